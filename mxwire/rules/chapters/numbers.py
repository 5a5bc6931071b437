"""Sequence numbers (behaviour, chapter 6)."""

from __future__ import annotations

from mxwire.rules.registry import NUMBERED, Breach, judges
from mxwire.rules.state.frame import FrameStatus, JudgedFrame
from mxwire.wire.numbers import OUTSTANDING_MAXIMUM, SESSION_NUMBER_MASK


@judges("R-SEQ-03", *NUMBERED)
def session_bits(seen: JudgedFrame) -> Breach | None:
    """The two session bits of every number are those that the receiver requested."""
    stream = seen.flow.stream
    number = seen.frame.lib_seqnum
    if stream is None or seen.starts or number & SESSION_NUMBER_MASK == stream.session_bits:
        return None
    if stream.session is not None and seen.frame.session != stream.session and seen.status is FrameStatus.STALE:
        return None
    return Breach(f"session number {stream.session_bits >> 14}", f"{number >> 14} in lib_seqnum 0x{number:04x}")


@judges("R-SEQ-04", *NUMBERED, also=("R-SEQ-01", "R-SEQ-02"), when=(FrameStatus.NEW,), as_sent=True)
def consecutive(seen: JudgedFrame) -> Breach | None:
    """Numbers are consecutive in the order of first transmission."""
    stream = seen.flow.stream
    if seen.starts or stream is None:
        return None
    if seen.position > stream.next:
        expected = f"lib_seqnum 0x{stream.number(stream.next):04x}, which is next"
        return Breach(expected, f"0x{seen.frame.lib_seqnum:04x}")
    return None


@judges("R-SEQ-05", *NUMBERED)
def first_number(seen: JudgedFrame) -> Breach | None:
    """The first message has the number that the receiver requested."""
    flow, frame = seen.flow, seen.frame
    stream = flow.stream
    if not seen.starts:
        if seen.status is not FrameStatus.LATE or stream is None or seen.position >= stream.first or stream.adopted:
            return None
        # It may be a late packet of the previous stream.
        if flow.former is not None and flow.former.session == frame.session:
            return None
        return Breach(f"numbers from 0x{stream.number(stream.first):04x} on", f"lib_seqnum 0x{frame.lib_seqnum:04x}")
    known = flow.sessions.get(frame.session)
    starts = known.starts if known else [start for each in flow.sessions.values() for start in each.starts]
    number = frame.lib_seqnum
    if not starts or number in starts or not flow.fresh:
        return None
    if not seen.vantage.as_sent and any(_is_reachable(number, start) for start in starts):
        return None
    requested = " or ".join(f"0x{each:04x}" for each in starts)
    return Breach(f"the first number is the requested one, {requested}", f"lib_seqnum 0x{number:04x}")


def _is_reachable(number: int, start: int) -> bool:
    """Return whether ``number`` is plausible if the first messages were sent but not observed."""
    return (
        number & SESSION_NUMBER_MASK == start & SESSION_NUMBER_MASK
        and (number - start) & ~SESSION_NUMBER_MASK & 0xFFFF < OUTSTANDING_MAXIMUM
    )


@judges("R-SEQ-06", *NUMBERED, when=(FrameStatus.NEW,))
def window(seen: JudgedFrame) -> Breach | None:
    """At most 8191 numbers are outstanding."""
    stream = seen.flow.stream
    if seen.starts or stream is None or stream.adopted:
        return None
    outstanding = seen.position - stream.acknowledged
    if outstanding >= OUTSTANDING_MAXIMUM:
        return Breach(
            f"at most {OUTSTANDING_MAXIMUM} numbers are outstanding; "
            f"0x{stream.number(stream.acknowledged):04x} is awaited",
            f"0x{seen.frame.lib_seqnum:04x} would be number {outstanding + 1}",
        )
    return None
