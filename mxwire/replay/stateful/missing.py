"""Meaning of a recorded frame that the live host does not send."""

from __future__ import annotations

from typing import Any

from mxwire.replay.stateful.expectations import MESSAGES, Expectation, own_session
from mxwire.replay.stateful.finding import Cause
from mxwire.replay.stateful.records import NUMBERED, Record, acked_by, covers
from mxwire.wire.packets import ConnectReply, ConnectRequest, NackLib, Notify, Pull, PullReply, Rndv


def is_awaited(expectation: Expectation) -> bool:
    """Return whether the script waits for a frame; not for a PULL, which is answered whenever it comes."""
    return not isinstance(expectation.record.frame, Pull)


def whose(frame: Any) -> tuple[Cause, str]:
    """Return the cause if a recorded frame does not come, and the rule that requires it."""
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


def described(frame: Any) -> str:
    """Describe a frame briefly."""
    name = type(frame).__name__
    if isinstance(frame, MESSAGES):
        length = frame.msg_length if isinstance(frame, Rndv) else frame.length
        match = frame.match_a << 32 | frame.match_b
        return f"{name} of {length} bytes, match information {match:#x}"
    if isinstance(frame, (NackLib,)):
        return f"{name}, nack type {frame.nack_type}"
    return name


def acknowledged(records: list[Record]) -> set[tuple[int, int, int]]:
    """Return the played messages that the recorded host acknowledged: endpoints and number."""
    found: set[tuple[int, int, int]] = set()
    waiting: dict[tuple[int, int], set[int]] = {}
    sessions: set[int] = set()
    for record in records:
        frame = record.frame
        if isinstance(frame, (ConnectRequest, ConnectReply)) and record.ours:
            sessions.add(own_session(frame))
        if record.ours and isinstance(frame, NUMBERED):
            waiting.setdefault((frame.src_endpoint, frame.dst_endpoint), set()).add(frame.lib_seqnum)
        value = None if record.ours else acked_by(frame)
        if value is None or frame.session not in sessions:
            continue
        pair = frame.dst_endpoint, frame.src_endpoint
        for number in [each for each in waiting.get(pair, ()) if covers(value, each)]:
            waiting[pair].discard(number)
            found.add((*pair, number))
    return found
