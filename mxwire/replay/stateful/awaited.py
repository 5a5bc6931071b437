"""Recorded frames that the live host has not sent: the frames to wait for, and findings on missing ones."""

from __future__ import annotations

from typing import Any

from mxwire.replay.stateful.comparison import Cause, ReplayFinding
from mxwire.replay.stateful.conversation import EndpointPair, LiveConversation
from mxwire.replay.stateful.expectations import MESSAGES, Expectation, Expectations, length_of, match_of
from mxwire.replay.stateful.records import NUMBERED, Record, acked_by, covers, own_session
from mxwire.wire.packets import ConnectReply, ConnectRequest, Frame, NackLib, Notify, Pull, PullReply


class AwaitedFrames:
    """Recorded frames that have not been received, and played messages that the live host has not acknowledged."""

    def __init__(self, conversation: LiveConversation, expectations: Expectations) -> None:
        self._with = conversation
        self._expected = expectations
        self._open = {number: each for number, each in expectations.all.items() if is_awaited(each)}
        self._acked = acknowledged(conversation.script.records)
        self._reported: dict[int, ReplayFinding] = {}
        """Findings on missing frames, by the number of the record."""

    def before(self, record: Record) -> list[Expectation]:
        """Return the missing frames that preceded a record of the played host."""
        if isinstance(record.frame, PullReply):
            return self._expected.pulls_before(record)
        found = []
        for place, each in self._open.items():
            # Only earlier frames can have caused this one.
            if place >= record.number:
                break
            if not each.again or not self._has_arrived(each):
                found.append(each)
        return found

    def _has_arrived(self, expectation: Expectation) -> bool:
        """Return whether the content of a recorded retransmission has already arrived."""
        frame: Any = expectation.record.frame
        arrived = self._with.pair(frame.dst_endpoint, frame.src_endpoint).arrived
        return frame.lib_seqnum in arrived.values()

    def unacked(self) -> list[tuple[EndpointPair, int]]:
        """Return the messages that the recorded host acknowledged but the live one has not, by their live numbers."""
        return [
            (pair, live)
            for pair in self._with.pairs.values()
            for live in pair.unacked
            if (pair.played, pair.live, pair.recorded_of.get(live)) in self._acked
        ]

    def is_anything(self) -> bool:
        """Return whether any frame is still missing."""
        return bool(self.unacked()) or any(_is_lacking(each) for each in self._expected.all.values())

    def forget(self, expectation: Expectation) -> None:
        """Stop waiting for a recorded frame: it was received, or will not be."""
        self._open.pop(expectation.record.number, None)

    def arrived(self, expectation: Expectation) -> ReplayFinding | None:
        """Note the arrival of a recorded frame; return the finding on its absence, now void: times are not compared."""
        self.forget(expectation)
        return self._reported.pop(expectation.record.number, None)

    def given_up(self, expectation: Expectation) -> list[ReplayFinding]:
        """Continue without a recorded frame; return the findings on that."""
        expectation.missed = True
        self.forget(expectation)
        return self._missing(expectation)

    def left(self) -> list[ReplayFinding]:
        """Return the findings on everything that is missing at the end."""
        found = [
            finding for each in self._expected.all.values() if _is_lacking(each) for finding in self._missing(each)
        ]
        for _, live in self.unacked():
            text = f"message {live:#06x} of the played host is never acknowledged"
            found.append(ReplayFinding(Cause.PROTOCOL, "R-ACK-02", "", 0, "an ack, as recorded", text))
        return found

    def _missing(self, expectation: Expectation) -> list[ReplayFinding]:
        if expectation.again:
            return []
        frame: Any = expectation.record.frame
        kind, rule = whose(frame)
        if isinstance(frame, Notify) and not self._expected.is_pulled(frame):
            kind, rule = Cause.APPLICATION, "R-PUL-01"
        place = self._with.script.place(expectation.record)
        finding = ReplayFinding(kind, rule, "", place, described(frame), "nothing comes")
        self._reported[expectation.record.number] = finding
        return [finding]


def _is_lacking(expectation: Expectation) -> bool:
    return expectation.open and not expectation.again


def is_awaited(expectation: Expectation) -> bool:
    """Return whether the script waits for a frame; not for a PULL, which is answered whenever it arrives."""
    return not isinstance(expectation.record.frame, Pull)


def whose(frame: Frame) -> tuple[Cause, str]:
    """Return the cause of a missing frame, and the rule that requires the frame."""
    if isinstance(frame, (*MESSAGES, ConnectRequest)):
        return Cause.APPLICATION, ""
    if isinstance(frame, Pull):
        return Cause.APPLICATION, "R-PUL-01"
    if isinstance(frame, NackLib):
        return Cause.APPLICATION, "R-NAK-03"
    if isinstance(frame, ConnectReply):
        return Cause.PROTOCOL, "R-CON-08"
    if isinstance(frame, Notify):
        return Cause.PROTOCOL, "R-NOT-01"
    return Cause.PROTOCOL, "R-PUL-12" if isinstance(frame, PullReply) else "R-NAK-03"


def described(frame: Frame) -> str:
    """Describe a frame briefly."""
    name = type(frame).__name__
    if isinstance(frame, MESSAGES):
        return f"{name} of {length_of(frame)} bytes, match information {match_of(frame):#x}"
    if isinstance(frame, (NackLib,)):
        return f"{name}, nack type {frame.nack_type}"
    return name


def acknowledged(records: list[Record]) -> set[tuple[int, int, int]]:
    """Return the played messages that the recorded host acknowledged: endpoints and number."""
    numbers: set[tuple[int, int, int]] = set()
    waiting: dict[tuple[int, int], set[int]] = {}
    sessions: set[int] = set()
    for record in records:
        frame = record.frame
        if isinstance(frame, (ConnectRequest, ConnectReply)) and record.is_played:
            sessions.add(own_session(frame))
        if record.is_played and isinstance(frame, NUMBERED):
            waiting.setdefault((frame.src_endpoint, frame.dst_endpoint), set()).add(frame.lib_seqnum)
        value = None if record.is_played else acked_by(frame)
        if value is None or frame.session not in sessions:
            continue
        pair = frame.dst_endpoint, frame.src_endpoint
        for number in [each for each in waiting.get(pair, ()) if covers(value, each)]:
            waiting[pair].discard(number)
            numbers.add((*pair, number))
    return numbers
