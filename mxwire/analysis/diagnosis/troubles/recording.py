"""Faults of the capture itself: they limit all other findings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from mxwire.analysis.conversations import CapturedMessage, Flow
from mxwire.analysis.diagnosis.facts import Facts, about
from mxwire.analysis.diagnosis.finding import SHOWN, Evidence, Finding, Party, evidence, weighed
from mxwire.analysis.diagnosis.queries import ReceptionEvidence
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.ethernet import mac_text
from mxwire.wire.decoder import DecodedBatch
from mxwire.words import count_of

DROPPED: Final = Diagnosis("capture-incomplete", "capture")
CUT: Final = Diagnosis("capture-frames-cut", "capture")
ONE_WAY: Final = Diagnosis("capture-one-direction", "capture")
_PAIRS_SHOWN: Final = 16
_ONE_WAY: Final = 5
"""Minimum number of frames in one direction for the opposite direction to be reported as missing."""
_BEGINNING_NS: Final = 1_000_000_000


@examines(DROPPED, CUT, ONE_WAY)
class RecordingExaminer(Examiner):
    """Detector of frames that must have been on the wire, but are not in the capture."""

    def __init__(self) -> None:
        self._cut = 0
        self._cut_frames: list[int] = []
        self._shortest = 1 << 62
        self._holes = 0
        self._shown: list[Evidence] = []

    def frames(self, decoded: DecodedBatch, facts: Facts) -> None:
        """Count the truncated frames."""
        batch = decoded.batch
        cut = np.flatnonzero(batch.wire_length > batch.length)
        if len(cut):
            self._cut += len(cut)
            self._cut_frames += batch.number[cut[: SHOWN - len(self._cut_frames)]].tolist()
            self._shortest = min(self._shortest, int(batch.length[cut].min()))

    def any_message(self, message: CapturedMessage, facts: Facts) -> None:
        """Record a message of which the receiver got more bytes than the capture contains."""
        if not message.half_seen or _began_before(message, facts):
            return
        unseen = [each for each in message.half_seen if each.endswith("bytes not seen")]
        if unseen and message.receiver == "received" and message.position >= 0 and _both(message):
            self._holes += 1
            if len(self._shown) < SHOWN:
                self._shown.append(about(message, f"was received completely: {unseen[0]}"))

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield findings on faults of the capture."""
        yield from self._dropped(facts)
        if self._cut:
            text = f"{count_of(self._cut, 'frame')} cut, the shortest to {self._shortest} bytes"
            summary = f"{self._cut} of {facts.follower.frames} frames are not completely in the capture"
            yield CUT.found((), summary, [evidence(text, self._cut_frames, weight="proof")])
        yield from _one_way(facts)

    def _dropped(self, facts: Facts) -> Iterator[Finding]:
        missing = sum(
            _missing(flow)
            for each in facts.follower.conversations
            for flow in each.flows
            if flow.frames and flow.back.frames
        )
        shown = weighed(self._shown, "sign", self._holes)
        if facts.dropped:
            text = f"{count_of(facts.dropped, 'frame')} were dropped by the capturing program"
            shown.insert(0, evidence(text, weight="proof"))
        if missing:
            text = (
                f"{count_of(missing, 'numbered packet')} acknowledged that {'is' if missing == 1 else 'are'} not there"
            )
            shown.append(evidence(text, weight="sign", times=missing))
        if shown:
            yield DROPPED.found((), "frames that were on the wire are not in the capture", shown)


def _began_before(message: CapturedMessage, facts: Facts) -> bool:
    """Return whether a message may have begun before the capture."""
    begun = message.first_ns - (facts.first_ns or 0) > _BEGINNING_NS
    return not message.flow.conversation.connect_count and not begun


def _both(message: CapturedMessage) -> bool:
    return bool(message.flow.frames and message.flow.back.frames)


def _missing(flow: Flow) -> int:
    """Return the minimum number of packets of a flow that the receiver acknowledged but the capture lacks."""
    unseen = flow.unseen
    for stream in (flow.stream, flow.former):
        if stream is not None:
            # Not up to the next number: one that nothing acknowledges may never have been sent.
            unseen += max(stream.acked - stream.first - stream.seen, 0)
    return unseen


def _one_way(facts: Facts) -> Iterator[Finding]:
    shown, heard = 0, ReceptionEvidence(facts)
    for direction in facts.traffic.one_way():
        if shown >= _PAIRS_SHOWN or direction.frames < _ONE_WAY or not heard.by_sender(direction):
            continue
        shown += 1
        source, destination = mac_text(direction.source), mac_text(direction.destination)
        text = f"{count_of(direction.frames, 'frame')} from {source} to {destination}, none back"
        found = [
            evidence(text, [direction.first_frame, direction.last_frame], direction.first_ns),
            evidence("its frames show that it receives answers", weight="proof"),
        ]
        parties = Party(direction.source), Party(direction.destination)
        summary = f"the capture has no frames of {destination}"
        yield ONE_WAY.found(parties, summary, found)
