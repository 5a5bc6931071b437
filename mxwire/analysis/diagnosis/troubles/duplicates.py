"""Duplicate frames: made by the network, or only by the capture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations import CapturedMessage
from mxwire.analysis.diagnosis.facts import Facts, frames_of, named
from mxwire.analysis.diagnosis.finding import KEPT, SHOWN, Finding, Observations, Party, Weight, evidence, weighed
from mxwire.analysis.diagnosis.losses import Pair, pair_of
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.analysis.diagnosis.traffic import is_group, pairs_of
from mxwire.analysis.diagnosis.troubles.order import reordered_pairs
from mxwire.analysis.first_keys import FirstKeys
from mxwire.ethernet import SHORTEST_FRAME, mac_text
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.encapsulation import ROW
from mxwire.words import count_of

DOUBLED: Final = Diagnosis("capture-frames-doubled", "capture")
DUPLICATED: Final = Diagnosis("frames-duplicated", "network")
_LEAST: Final = 2
_NEARLY_ALL: Final = 0.4
_SHORTLY_NS: Final = 2_000_000
_FIRST_HALF: Final = np.uint64(0xFFFFFFFF)
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
_ENOUGH: Final = 8


@dataclass(slots=True)
class _Duplicates(Observations):
    pulls: int = 0
    replies: int = 0


@examines(DOUBLED, DUPLICATED)
class DuplicateExaminer(Examiner):
    """Counter of duplicates, by the sender of the original frame."""

    def __init__(self) -> None:
        self._twice: FirstKeys[Pair, int] = FirstKeys(KEPT, int)
        self._twice_frames: list[int] = []
        self._found: FirstKeys[Pair, _Duplicates] = FirstKeys(KEPT, _Duplicates)
        self._requested_again: set[Pair] = set()
        """Directions in which blocks were requested again: their pullers repeat PULLs themselves."""

    def frames(self, decoded: DecodedBatch, facts: Facts) -> None:
        """Collect frames that are identical to a frame captured shortly before."""
        again = _again(decoded)
        if not len(again):
            return
        keys = decoded.hosts.keys
        for source, destination, members in pairs_of(
            decoded.assignment.source[again], decoded.assignment.destination[again]
        ):
            self._twice[keys[source], keys[destination]] += len(members)
        if len(self._twice_frames) < SHOWN:
            self._twice_frames += decoded.batch.number[again[: SHOWN - len(self._twice_frames)]].tolist()

    def any_message(self, message: CapturedMessage, facts: Facts) -> None:
        """Count the duplicates of a message."""
        pull = message.pull
        pair = pair_of(message)
        back = pair[::-1]
        if message.position < 0 or not (message.flow.frames and message.flow.back.frames):
            # The frames that explain the repetition may be missing from the capture.
            return
        if message.duplicates:
            self._note(pair, message, message.duplicates, "of its frames")
        if pull is None:
            return
        if pull.re_requests and len(self._requested_again) < KEPT:
            self._requested_again.add(back)
        if pull.duplicate_pulls:
            self._note(back, message, pull.duplicate_pulls, "of its PULLs").pulls += pull.duplicate_pulls
        elif pull.duplicate_replies:
            # A duplicate PULL is answered as well (R-PUL-12), so duplicate replies to it are not evidence.
            self._note(pair, message, pull.duplicate_replies, "of its data").replies += pull.duplicate_replies
        if pull.notice is not None and pull.notice.duplicates:
            self._note(back, message, pull.notice.duplicates, "of its NOTIFY")

    def _note(self, pair: Pair, message: CapturedMessage, number: int, what: str) -> _Duplicates:
        text = f"{named(message)}: {count_of(number, 'duplicate', 'duplicates')} {what}"
        known = self._found[pair]
        known.add(evidence(text, frames_of([message]), message.first_ns), number)
        return known

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield findings on pairs of hosts with duplicates."""
        reordered = reordered_pairs(facts)
        frames: Counter[Pair] = Counter()
        for conversation in facts.follower.conversations:
            for flow in conversation.flows:
                frames[flow.address, flow.back.address] += flow.frames
        yield from self._doubled(facts)
        for pair, found in self._found.items():
            (source, destination), number = pair, found.count
            parties = Party(source), Party(destination)
            if number >= _LEAST:
                direction = f"from {mac_text(source)} to {mac_text(destination)}"
                summary = f"{number} of {frames.get(pair, number)} frames {direction} are duplicates"
                if number == found.pulls and pair in self._requested_again:
                    # A puller requests a block up to three times within 2 ms around its timer (R-MEA-27), and early
                    # after a loss that the capture does not show (R-PUL-07).
                    continue
                of_pulls = found.pulls + found.replies
                if number == found.pulls or (number == of_pulls and {pair, pair[::-1]} & reordered):
                    # A PULL that is repeated because of reordered replies, and a reply that passes after the repeated
                    # one, look the same.
                    weight: Weight = "hint"
                else:
                    weight = "sign"
                shown = weighed(found.shown, weight, number // _LEAST)
                yield DUPLICATED.found(parties, summary, shown, frames=number)

    def _doubled(self, facts: Facts) -> Iterator[Finding]:
        """Yield a finding per pair of hosts if nearly every frame between them was captured twice."""
        if facts.follower.cooked:
            yield from self._doubled_without_destinations(facts.follower.frames)
            return
        to_one = [direction for direction in facts.traffic.directions.values() if not is_group(direction.destination)]
        doubled = sum(self._twice.get((direction.source, direction.destination), 0) for direction in to_one)
        single = doubled < _NEARLY_ALL * sum(direction.frames for direction in to_one)
        for pair, twice in self._twice.items():
            if is_group(pair[1]) and single:
                # A host with two interfaces on one network receives broadcasts on both.
                continue
            directions = [
                each for each in (facts.traffic.direction(*pair), facts.traffic.direction(pair[1], pair[0])) if each
            ]
            enough = [
                self._twice.get((direction.source, direction.destination), 0) >= _NEARLY_ALL * direction.frames
                for direction in directions
                if direction.frames >= _ENOUGH
            ]
            # Both directions of a pair are in the table, and reported once.
            if not enough or not all(enough) or (len(directions) > 1 and pair[0] > pair[1]):
                continue
            back = self._twice.get((pair[1], pair[0]), 0)
            number = sum(direction.frames for direction in directions)
            yield self._doubled_finding((Party(pair[0]), Party(pair[1])), twice + back, number)

    def _doubled_without_destinations(self, frames: int) -> Iterator[Finding]:
        """Yield a finding if nearly every frame of a cooked capture, of whatever hosts, was captured twice."""
        twice = sum(self._twice.values())
        if frames >= _ENOUGH and twice >= _NEARLY_ALL * frames:
            yield self._doubled_finding((), twice, frames)

    def _doubled_finding(self, concerns: tuple[Party, ...], twice: int, frames: int) -> Finding:
        text = f"{twice} frames are the same as one at most {_SHORTLY_NS // 1_000_000} ms before"
        shown = [evidence(text, self._twice_frames, weight="proof")]
        return DOUBLED.found(concerns, f"{twice} of {frames} frames are duplicates of others", shown)


def _again(decoded: DecodedBatch) -> NDArray[np.intp]:
    """Return the places of frames whose header was seen shortly before, in ascending order."""
    located = decoded.located
    # Bytes of a row after the captured ones are undefined; frames have at least 60 bytes.
    which = np.flatnonzero(located.captured >= SHORTEST_FRAME)
    words = located.row_bytes[which].view("<u8").astype(np.uint64)
    words[located.captured[which] < ROW, -1] &= _FIRST_HALF
    mixed = located.wire_length[which].astype(np.uint64)
    for column in range(words.shape[1]):
        mixed = (mixed ^ words[:, column]) * _ODD
        mixed ^= mixed >> np.uint64(29)
    order = np.argsort(mixed, kind="stable")
    same = mixed[order][1:] == mixed[order][:-1]
    # The sort is stable, so that equal frames are beside each other in the order of time.
    same &= np.diff(decoded.batch.timestamp_ns[which[order]]) <= _SHORTLY_NS
    again: NDArray[np.intp] = np.sort(which[order[1:][same]])
    return again
