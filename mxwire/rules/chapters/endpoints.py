"""Endpoints and their sessions (behaviour, chapter 4; also R-CON-12)."""

from __future__ import annotations

from mxwire.rules.registry import MESSAGES, SESSIONED, Breach, judges
from mxwire.rules.state.frame import FrameStatus, JudgedFrame
from mxwire.wire.enums import NackType
from mxwire.wire.numbers import NO_SESSION, SESSION_NUMBER_MASK
from mxwire.wire.packets import ConnectReply, ConnectRequest, NackLib, NackMcp, Notify, Pull, Truc


@judges("R-EP-01", NackLib, NackMcp)
def endpoint_limit(seen: JudgedFrame) -> Breach | None:
    """One limit separates endpoint numbers refused with type 1 from those refused with types 2 and 3."""
    frame, host = seen.frame, seen.pair.source
    if isinstance(frame, NackLib):
        number = frame.src_endpoint
    elif seen.transfer is not None:
        number = seen.transfer.owner
    else:
        return None
    if frame.nack_type == NackType.BAD_ENDPT and number <= host.limit_above:
        return Breach(
            f"endpoint {number} is below the limit: {host.limit_above} was in use or only closed",
            "refused as beyond the limit (nack type 1)",
        )
    if frame.nack_type in (NackType.ENDPT_CLOSED, NackType.BAD_SESSION) and number >= host.limit_at_most:
        return Breach(
            f"endpoint {number} is beyond the limit, as {host.limit_at_most} was", f"nack type {frame.nack_type}"
        )
    return None


@judges("R-EP-02", *SESSIONED, also=("D-1",))
def destination_session(seen: JudgedFrame) -> Breach | None:
    """A packet names the session that its destination announced."""
    flow = seen.flow
    session = seen.frame.session
    if session in flow.sessions:
        return None
    message = seen.message
    # Retransmissions and further PULLs keep the session of the first (R-RTX-04).
    if (message is not None and message.session == session) or seen.transfer is not None:
        return None
    # R-RTX-05 reports these, which are only sent to an abandoned partner.
    if session == NO_SESSION and isinstance(seen.frame, MESSAGES) and is_unconnected(seen):
        return None
    if session == NO_SESSION and isinstance(seen.frame, (Notify, Pull, Truc)):
        return Breach(
            "the destination's session from its CONNECT request, which the sender awaits first (R-CON-12)",
            "session 0xFFFFFFFF (unknown to the sender), which is refused",
            defect="D-1",
        )
    if not flow.sessions and not seen.vantage.from_start:
        return None
    if not seen.vantage.as_sent and seen.time_ns - flow.source.reopened_ns < seen.vantage.reorder_ns:
        return None
    known = ", ".join(f"0x{each:08x}" for each in flow.sessions) or "none"
    return Breach(f"a session that the destination announced: {known}", f"session 0x{session:08x}")


def is_unconnected(seen: JudgedFrame) -> bool:
    """Return whether the number is one that a partner uses before any handshake (chapter 1)."""
    return bool(seen.frame.lib_seqnum & SESSION_NUMBER_MASK == SESSION_NUMBER_MASK)


@judges("R-RTX-05", *MESSAGES, severity="note")
def sending_to_abandoned(seen: JudgedFrame) -> Breach | None:
    """An abandoned partner is as if never connected: a message to it has no session."""
    if seen.frame.session != NO_SESSION or not is_unconnected(seen) or not seen.flow.sessions:
        return None
    return Breach(
        "a new connect to the abandoned partner, before anything else is sent",
        f"a message without a session, lib_seqnum 0x{seen.frame.lib_seqnum:04x}; it can only be refused",
    )


@judges("R-EP-02", ConnectRequest, ConnectReply)
def own_session(seen: JudgedFrame) -> Breach | None:
    """A session ends with its opening: it is not used again, and not shown after the host denied it."""
    frame, endpoint = seen.frame, seen.endpoint
    if endpoint is None or seen.status is FrameStatus.STALE:
        return None
    session = frame.target_session_id if isinstance(frame, ConnectReply) else frame.src_session_id
    if session == NO_SESSION:
        return Breach("a session other than 0xFFFFFFFF, which means none", "an endpoint with session 0xFFFFFFFF")
    if session == endpoint.session:
        denied = endpoint.denied.get(session)
        if denied is not None and seen.time_ns - denied[1] > seen.within_reordering:
            return Breach(
                "no nack of type 3 (bad session) for the endpoint's own session",
                f"session 0x{session:08x} was refused, but is in use",
                frames=denied[:1],
            )
    elif session in endpoint.past:
        return Breach("a new session id per opening", f"former session 0x{session:08x} again")
    return None
