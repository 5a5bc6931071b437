"""Acknowledgements (behaviour, chapter 11)."""

from __future__ import annotations

from mxwire.rules.registry import NUMBERED, Breach, judges
from mxwire.rules.state.frame import FrameStatus, JudgedFrame
from mxwire.wire.numbers import ABANDONED_DONE, FIRST_NUMBER, NO_SESSION, NUMBER_MASK
from mxwire.wire.packets import Truc


@judges("R-ACK-01", *NUMBERED, Truc, also=("R-ACK-03",))
def acknowledges_received(seen: JudgedFrame) -> Breach | None:
    """An ack is the next expected number, and never beyond the numbers that were completely received."""
    position = seen.ack_position
    stream = seen.back.stream
    if stream is None:
        return _nothing_sent(seen)
    if position is None or position <= stream.complete:
        return None
    # Frames from before the observation may have completed messages that were not seen.
    if stream.adopted:
        return None
    missing = stream.message(stream.complete)
    expected = f"0x{stream.number(stream.complete):04x} is the first number not completely received"
    if missing is not None and not missing.acceptable:
        expected += f": it has session 0x{missing.session:08x}, which is refused"
    return Breach(
        expected, f"acknowledges 0x{seen.ack:04x}", frames=(missing.last_number,) if missing is not None else ()
    )


def _nothing_sent(seen: JudgedFrame) -> Breach | None:
    """Before the first message, only the requested start can be acknowledged."""
    back = seen.back
    receiver = seen.flow.destination
    if seen.ack & NUMBER_MASK in (FIRST_NUMBER, ABANDONED_DONE) or not seen.vantage.from_start or not back.sessions:
        return None
    # The receiver was reopened, and the ack may be meant for the former opening.
    if receiver.epoch and seen.frame.session in (NO_SESSION, *receiver.past):
        return None
    starts = [start for known in back.sessions.values() for start in known.starts]
    if seen.ack in starts:
        return None
    requested = " or ".join(f"0x{each:04x}" for each in starts)
    return Breach(f"{requested}: the partner has not sent anything yet", f"acknowledges 0x{seen.ack:04x}")


@judges("R-ACK-01", *NUMBERED, Truc)
def never_backwards(seen: JudgedFrame) -> Breach | None:
    """Acks never decrease until one endpoint resets its state."""
    flow, position = seen.flow, seen.ack_position
    highest = flow.acknowledged
    if position is None or highest is None or position >= highest or seen.status is FrameStatus.DUPLICATE:
        return None
    stream = seen.back.stream
    if stream is None or flow.acknowledged_stream is not stream:
        return None
    # The network may have exchanged the two frames.
    if seen.time_ns - flow.acknowledged_ns < seen.within_reordering:
        return None
    return Breach(
        f"0x{stream.number(highest):04x} was acknowledged before",
        f"acknowledges 0x{seen.ack:04x}",
        frames=(flow.acknowledged_number,),
    )


@judges("R-ACK-04", Truc, severity="deviation", alone=True)
def liback_fields(seen: JudgedFrame) -> Breach | None:
    """``send_seq`` repeats the number, ``resent`` is 0."""
    frame = seen.frame
    if frame.liback_send_seq != frame.liback_lib_seqnum:
        return Breach(f"send_seq is lib_seqnum 0x{frame.liback_lib_seqnum:04x}", f"0x{frame.liback_send_seq:04x}")
    if frame.liback_resent:
        return Breach("resent is 0", str(frame.liback_resent))
    return None


@judges("R-ACK-06", Truc)
def liback_numbers(seen: JudgedFrame) -> Breach | None:
    """``acknum`` starts at 1 and increases by 1."""
    flow, frame = seen.flow, seen.frame
    number, last = frame.liback_acknum, flow.acknum
    if number == 0:
        return Breach("acknum starts at 1; 0 is never accepted", "acknum 0")
    if last is None or number == last + 1 or (flow.acknum_restart and (number == 1 or not seen.vantage.as_sent)):
        return None
    # Libacks to another opening of the partner are counted from 1 again.
    if not _same_session(frame.session, flow.acknum_session):
        if number == 1 or not seen.vantage.as_sent:
            return None
        return Breach("acknum 1 after the partner was reset", f"acknum {number}")
    if number <= last:
        if not seen.vantage.as_sent and seen.time_ns - flow.acknum_ns < seen.within_reordering:
            return None
        return Breach(f"acknum {last + 1}: it increases with each liback", f"acknum {number}")
    if seen.vantage.as_sent:
        return Breach(f"acknum {last + 1} is next", f"acknum {number}", "deviation")
    return None


def _same_session(one: int, other: int | None) -> bool:
    return other is None or one == other or NO_SESSION in (one, other)
