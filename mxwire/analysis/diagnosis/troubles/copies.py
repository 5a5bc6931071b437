"""Frames that are there twice: in the network, or only in the capture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mxwire.analysis.conversations import Message
from mxwire.analysis.diagnosis.facts import Facts, first_frame, named
from mxwire.analysis.diagnosis.finding import Evidence, Finding, Party, count, evidence
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.wire.address import mac_text

DOUBLED: Final = Diagnosis(
    id="capture-frames-doubled",
    title="The capture shows every frame twice",
    group="capture",
    users_see="Nothing is wrong with the hosts; counts in reports on the capture are twice what they should be.",
    capture_shows="Nearly every frame of both directions comes twice.",
    told_apart="From copies that the network makes: those befall single frames, or one direction.",
    advice=(
        "Mirror one direction of one switch port only, or both directions of one port rather than two ports.",
        "Capture on one interface instead of on several (-i any, or a bridge and its ports).",
    ),
)
COPIES: Final = Diagnosis(
    id="frames-duplicated",
    title="The network makes copies of frames",
    group="network",
    users_see="Mostly nothing: receivers drop copies. Late copies of PULLs draw nacks, and copies use up bandwidth.",
    capture_shows="Messages, PULLs or replies that come again sooner than any host would send them again.",
    told_apart="From retransmissions: those come half a second later, or are explained by a timer. From a capture that "
    "shows everything twice: there nearly all frames are.",
    advice=(
        "Look for loops and for link aggregation whose ends are set up differently; check the spanning tree.",
        "On virtual machines, look whether a bridge forwards frames by two ways.",
    ),
    needs=frozenset({"every frame"}),
    follows_from=frozenset({DOUBLED.id}),
)
_KEPT: Final = 4096
_SHOWN: Final = 4
_LEAST: Final = 2
_NEARLY_ALL: Final = 0.3
"""Of the frames between two hosts; copies of acknowledgements and connects are not counted."""
_ENOUGH: Final = 8

Pair = tuple[int, int]


@examines(DOUBLED, COPIES)
class Copies(Examiner):
    """Counts copies by who sent the first of them."""

    def __init__(self) -> None:
        self._shown: dict[Pair, list[Evidence]] = {}

    def any_message(self, message: Message, facts: Facts) -> None:
        """Examples of what came twice."""
        pull = message.pull
        copied = pull is not None and (pull.duplicate_pulls or pull.duplicate_replies)
        if not message.duplicates and not copied:
            return
        pair = message.flow.address, message.flow.back.address
        if pair in self._shown or len(self._shown) < _KEPT:
            kept = self._shown.setdefault(pair, [])
            if len(kept) < _SHOWN:
                what = [count(message.duplicates, "copy", "copies") + " of its frames"] if message.duplicates else []
                if pull is not None and pull.duplicate_pulls:
                    what.append(count(pull.duplicate_pulls, "copy", "copies") + " of PULLs")
                if pull is not None and pull.duplicate_replies:
                    what.append(count(pull.duplicate_replies, "copy", "copies") + " of its data")
                first = first_frame(message)
                frames = [first] if first is not None else []
                kept.append(evidence(f"{named(message)}: {', '.join(what)}", frames, message.first_ns))

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Pairs of hosts with copies."""
        frames: dict[Pair, int] = {}
        copies: dict[Pair, int] = {}
        for conversation in facts.follower.conversations:
            for flow in conversation.flows:
                pair = flow.address, flow.back.address
                frames[pair] = frames.get(pair, 0) + flow.frames
                copies[pair] = copies.get(pair, 0) + flow.duplicates
        doubled = {
            pair for pair, number in copies.items() if number >= _ENOUGH and number >= _NEARLY_ALL * frames[pair]
        }
        for pair, number in copies.items():
            source, destination = pair
            back = destination, source
            if number < _LEAST or (back in doubled and pair in doubled and source > destination):
                continue
            shown = [*self._shown.get(pair, []), *self._shown.get(back, [])][:_SHOWN]
            parties = Party(source), Party(destination)
            if pair in doubled and back in doubled:
                summary = f"{number + copies[back]} of {frames[pair] + frames[back]} frames are copies of others"
                yield DOUBLED.found("high", parties, summary, shown)
            else:
                summary = (
                    f"{number} of {frames[pair]} frames from {mac_text(source)} to {mac_text(destination)} are copies"
                )
                yield COPIES.found("high" if number > _LEAST else "medium", parties, summary, shown)
