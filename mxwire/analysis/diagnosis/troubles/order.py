"""Frames that the network reorders, and PULLs that their host sends out of order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from mxwire.analysis.conversations import CapturedMessage
from mxwire.analysis.diagnosis.facts import Facts
from mxwire.analysis.diagnosis.finding import (
    KEPT,
    SHOWN,
    Evidence,
    Finding,
    Observations,
    Party,
    evidence,
    seconds,
    standstill,
    weighed,
)
from mxwire.analysis.diagnosis.losses import Pair, pair_of
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.analysis.diagnosis.sequence import Disorder, LateFrame
from mxwire.analysis.first_keys import FirstKeys
from mxwire.analysis.verification import PROVEN
from mxwire.ethernet import mac_text
from mxwire.words import count_of

ORDER: Final = Diagnosis("frames-out-of-order", "network")
PULLS: Final = Diagnosis("pulls-out-of-order", "processes")


@dataclass(slots=True)
class Reordered:
    """Frames and messages that were reordered from one host to another."""

    frames: Disorder = field(default_factory=Disorder)
    messages: list[Disorder] = field(default_factory=list)

    @property
    def late(self) -> int:
        """Number of late frames."""
        return self.frames.late + sum(each.late for each in self.messages)


@examines(ORDER, PULLS)
class OrderExaminer(Examiner):
    """Examiner of disorder, by the network or by the sending host."""

    def __init__(self) -> None:
        self._pulls: FirstKeys[Pair, Observations] = FirstKeys(KEPT, Observations)

    def any_message(self, message: CapturedMessage, facts: Facts) -> None:
        """Note the PULLs of a transfer that passed after later ones."""
        pull = message.pull
        if pull is None or not pull.passed_pulls:
            return
        passed = pull.passed_pulls
        text = f"message {message.number}: {count_of(len(passed), 'PULL')} after that of a later block"
        self._pulls[pair_of(message)[::-1]].add(evidence(text, [each for each, _ in passed], passed[0][1]))

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield findings per pair of hosts and direction."""
        for pair, frames in reordered(facts).items():
            yield _reordered(pair, frames)
        for pair, found in self._pulls.items():
            parties = Party(pair[0]), Party(pair[1])
            summary = f"{mac_text(pair[0])} sent the PULLs of {count_of(found.count, 'transfer')} out of order"
            yield PULLS.found(parties, summary, weighed(found.shown, "sign"))


def reordered(facts: Facts) -> dict[Pair, Reordered]:
    """Return frames reordered by the network, by source and destination; empty if the capture may be the cause."""
    frames, answers_first = facts.sequences.disorders()
    if answers_first >= PROVEN:
        return {}
    disorders = {pair: Reordered(each) for pair, each in frames.items() if each.late}
    for flow, numbering in facts.numberings.found.items():
        pair = flow.address, flow.back.address
        known = disorders.setdefault(pair, Reordered(frames.get(pair, Disorder())))
        known.messages.append(numbering)
    return disorders


def reordered_pairs(facts: Facts) -> set[Pair]:
    """Return source and destination of all directions in which frames were reordered."""
    return set(reordered(facts))


def _reordered(pair: Pair, found: Reordered) -> Finding:
    shown = []
    frames = found.frames
    if frames.late:
        share = 100 * frames.late / frames.examined
        text = (
            f"{frames.late} of {count_of(frames.examined, 'fragment or reply', 'fragments and replies')} "
            f"({share:.2g}%) passed after later ones, overtaken by up to {count_of(frames.deepest, 'frame')}, up to "
            f"{seconds(frames.longest_ns)} late"
        )
        shown.append(evidence(text, [each.number for each in frames.samples], frames.samples[0].time_ns))
    passed = [each for numbering in found.messages for each in numbering.samples]
    shown += [_message_evidence(each) for each in passed[:SHOWN]]
    direction = f"from {mac_text(pair[0])} to {mac_text(pair[1])}"
    summary = f"{direction}, {count_of(found.late, 'frame')} passed after later ones"
    waits = [*frames.waits, *(wait for each in found.messages for wait in each.waits)]
    return ORDER.found(
        (Party(pair[0]), Party(pair[1])), summary, weighed(shown, "sign", found.late), stalled_ns=standstill(waits)
    )


def _message_evidence(passed: LateFrame) -> Evidence:
    text = f"a message arrived {seconds(passed.time_ns - passed.since_ns)} after one with a later number"
    return evidence(text, [passed.passed_by, passed.number], passed.since_ns)
