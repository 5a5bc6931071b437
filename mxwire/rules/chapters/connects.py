"""Connects (behaviour, chapter 5)."""

from __future__ import annotations

from mxwire.rules.registry import NUMBERED, Breach, judges
from mxwire.rules.state.flows import ObservedFlow
from mxwire.rules.state.frame import FrameStatus, JudgedFrame
from mxwire.rules.state.streams import position_of
from mxwire.units import MILLISECOND
from mxwire.wire.enums import ConnectStatus
from mxwire.wire.numbers import ABANDONED_NEXT, FIRST_NUMBER, NO_SESSION, NUMBER_MASK, SESSION_NUMBER_MASK
from mxwire.wire.packets import ConnectReply, ConnectRequest


@judges("R-CON-01", ConnectRequest, severity="deviation", when=(FrameStatus.NEW,), as_sent=True)
def connect_number(seen: JudgedFrame) -> Breach | None:
    """Connects to a partner are numbered 0, 1, 2 …, and from 0 again after a disconnect."""
    flow, number = seen.flow, seen.frame.connect_seqnum
    if flow.connect_next is None:
        return None
    # Another opening of the source counts its connects for itself.
    if flow.source.session != seen.frame.src_session_id or number in (0, flow.connect_next):
        return None
    return Breach(f"connect_seqnum {flow.connect_next}, or 0 after a disconnect", f"connect_seqnum {number}")


@judges("R-CON-01", ConnectRequest, ConnectReply)
def requested_start(seen: JudgedFrame) -> Breach | None:
    """The requested start is at most the next number that the partner has not used."""
    frame, back = seen.frame, seen.back
    if isinstance(frame, ConnectReply) and frame.src_session_id != seen.flow.destination.session:
        return None
    stream, start = back.stream, frame.target_recv_seqnum_start
    if seen.status is FrameStatus.STALE or _is_reopened(seen):
        return None
    if stream is None:
        if back.former is None and back.source.fresh and not back.source.epoch and _is_late_start(back, start):
            return Breach("number 1, since the partner has not sent anything", f"requests number 0x{start:04x}")
        return None
    if start & SESSION_NUMBER_MASK != stream.session_bits or stream.adopted or start & NUMBER_MASK == FIRST_NUMBER:
        # After a reset number 1 is requested again, which lies ahead of the numbers of an abandoned partner (R-CLS-05,
        # R-RTX-05).
        return None
    ahead = position_of(start, stream.next) - stream.next
    if ahead > 0:
        expected = f"at most 0x{stream.number(stream.next):04x}, the partner's next number"
        return Breach(expected, f"requests number 0x{start:04x}, which is {ahead} ahead")
    return None


def _is_reopened(seen: JudgedFrame) -> bool:
    """Return whether the frame shows a new opening of its sender, which has no memory of earlier ones."""
    frame = seen.frame
    own = frame.target_session_id if isinstance(frame, ConnectReply) else frame.src_session_id
    return seen.endpoint is not None and seen.endpoint.session != own and seen.endpoint.session is not None


def _is_late_start(back: ObservedFlow, start: int) -> bool:
    if start & NUMBER_MASK in (FIRST_NUMBER, ABANDONED_NEXT):
        return False
    return start not in {each for known in back.sessions.values() for each in known.starts}


@judges("R-SEQ-03", ConnectRequest, ConnectReply)
def requested_session_number(seen: JudgedFrame) -> Breach | None:
    """The requested session number increases by one when the partner is abandoned, and is 0 for a new partner."""
    flow, start = seen.flow, seen.frame.target_recv_seqnum_start
    if flow.requested is None or _is_reopened(seen) or not start & SESSION_NUMBER_MASK:
        return None
    steps = ((start & SESSION_NUMBER_MASK) - (flow.requested & SESSION_NUMBER_MASK) & SESSION_NUMBER_MASK) >> 14
    since = seen.time_ns - flow.requested_ns
    # Abandoning takes at least two more transmissions each time, except for the first.
    if steps < 2 or not seen.within_reordering <= since < (steps - 1) * 2 * seen.resend_delay:
        return None
    return Breach(f"the session number of 0x{flow.requested:04x}, or one more", f"requests number 0x{start:04x}")


@judges("R-CON-02", ConnectRequest, severity="deviation", when=(FrameStatus.REPEAT,))
def request_repeated(seen: JudgedFrame) -> Breach | None:
    """An unanswered request is retransmitted after the resend delay, unchanged, up to the resend limit."""
    connect, frame = seen.connect, seen.frame
    if connect is None:
        return None
    if connect.key != frame.app_key:
        return Breach(
            f"the same key 0x{connect.key:08x} in a retransmitted request",
            f"key 0x{frame.app_key:08x}",
            "violation",
            (connect.number,),
        )
    since = seen.time_ns - connect.last_ns
    if since < seen.resend_delay:
        return Breach("retransmission after the resend delay of about 500 ms", f"after {since // MILLISECOND} ms")
    most = seen.vantage.resends_maximum
    if most is not None and connect.requests > most:
        return Breach(f"at most {most + 1} transmissions (R-RTX-03)", f"transmission {connect.requests + 1}")
    return None


@judges("R-CON-04", ConnectReply, alone=True)
def reply_status(seen: JudgedFrame) -> Breach | None:
    """A reply has status 0 or 11; requesters ignore any other."""
    status = seen.frame.connect_status_code
    if status not in (ConnectStatus.SUCCESS, ConnectStatus.BAD_KEY):
        return Breach("status 0 or 11", f"status {status}")
    return None


@judges("R-CON-08", ConnectReply)
def requested_reply(seen: JudgedFrame) -> Breach | None:
    """A reply answers a request: session and connect number are copied from it, and each request gets one reply."""
    frame, connect = seen.frame, seen.connect
    if seen.status is FrameStatus.STALE:
        return None
    if connect is None:
        if not (seen.back.source.fresh or seen.back.connects) or frame.src_session_id in seen.back.source.past:
            # A suspended application may answer a request of a former opening (R-GEN-01).
            return None
        requested = ", ".join(f"{number} of 0x{each.session:08x}" for number, each in seen.back.connects.items())
        return Breach(
            f"src_session_id and connect_seqnum of a request: {requested or 'there was no request'}",
            f"{frame.connect_seqnum} of 0x{frame.src_session_id:08x}",
        )
    # Only an observer of deliveries knows how many requests arrived, each of which is answered.
    if connect.exact and seen.delivered_ns is not None and connect.replies >= connect.deliveries:
        return Breach(
            f"one reply to each request: {connect.deliveries}", f"reply {connect.replies + 1}", frames=(connect.number,)
        )
    return None


@judges("R-CON-08", ConnectReply)
def reply_by_key(seen: JudgedFrame) -> Breach | None:
    """FrameStatus 0 for the endpoint's key, 11 for any other."""
    connect, endpoint, frame = seen.connect, seen.endpoint, seen.frame
    if connect is None or endpoint is None or endpoint.key is None or endpoint.session != frame.target_session_id:
        return None
    if connect.other_keys:
        # An application that was suspended answers all requests of one number, also those with another key (R-GEN-01).
        return None
    required = ConnectStatus.SUCCESS if connect.key == endpoint.key else ConnectStatus.BAD_KEY
    if frame.connect_status_code != required:
        return Breach(
            f"status {required.value} for key 0x{connect.key:08x}, since the endpoint's key is 0x{endpoint.key:08x}",
            f"status {frame.connect_status_code}",
            frames=(connect.number,),
        )
    return None


@judges("R-CON-12", *NUMBERED, severity="note", when=(FrameStatus.NEW,))
def connected_both_ways(seen: JudgedFrame) -> Breach | None:
    """A sender transmits its own CONNECT request first, because otherwise acks and PULLs cannot be addressed to it."""
    flow = seen.flow
    if flow.unannounced or flow.connects or not flow.sessions:
        return None
    if seen.frame.session == NO_SESSION:
        return None
    return Breach(
        "the sender's own CONNECT request, before its first message", "it only answered its partner's request"
    )
