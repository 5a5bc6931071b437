"""Endpoints and their sessions (behaviour, chapter 4; also R-CON-12)."""

from __future__ import annotations

from mxwire.rules.registry import MESSAGES, SESSIONED, Breach, judges
from mxwire.rules.state.sighting import Sighting, Status
from mxwire.wire.enums import NackType
from mxwire.wire.numbers import NO_SESSION, SESSION_NUMBER_MASK
from mxwire.wire.packets import ConnectReply, ConnectRequest, NackLib, NackMcp, Notify, Pull, Truc


@judges("R-EP-01", NackLib, NackMcp)
def endpoint_limit(seen: Sighting) -> Breach | None:
    """One limit separates numbers that are refused with type 1 from those that are refused with 2 and 3."""
    frame, host = seen.frame, seen.pair.source
    if isinstance(frame, NackLib):
        number = frame.src_endpoint
    elif seen.transfer is not None:
        number = seen.transfer.owner
    else:
        return None
    if frame.nack_type == NackType.BAD_ENDPT and number <= host.limit_above:
        return Breach(
            f"endpoint {number} is below the limit: {host.limit_above} was in use or merely closed",
            "refused as beyond the limit (nack type 1)",
        )
    if frame.nack_type in (NackType.ENDPT_CLOSED, NackType.BAD_SESSION) and number >= host.limit_at_most:
        return Breach(
            f"endpoint {number} is beyond the limit, as {host.limit_at_most} was", f"nack type {frame.nack_type}"
        )
    return None


@judges("R-EP-02", *SESSIONED, also=("D-1",))
def destination_session(seen: Sighting) -> Breach | None:
    """A packet names the session that its destination told the sender."""
    flow = seen.flow
    session = seen.frame.session
    if session in flow.told:
        return None
    message = seen.message
    if (message is not None and message.session == session) or seen.transfer is not None:
        return None
    if session == NO_SESSION and isinstance(seen.frame, MESSAGES) and is_unconnected(seen):
        return None
    if session == NO_SESSION and isinstance(seen.frame, (Notify, Pull, Truc)):
        return Breach(
            "the destination's session is known from its CONNECT request, which is awaited first (R-CON-12)",
            "session 0xFFFFFFFF, which is refused",
            defect="D-1",
        )
    if not flow.told and not seen.vantage.from_start:
        return None
    if not seen.vantage.as_sent and seen.time_ns - flow.source.reopened_ns < seen.vantage.reorder_ns:
        return None
    told = ", ".join(f"0x{each:08x}" for each in flow.told) or "none"
    return Breach(f"sessions that the destination told the sender: {told}", f"session 0x{session:08x}")


def is_unconnected(seen: Sighting) -> bool:
    """Whether a number is one of those that a partner has before any handshake (chapter 1)."""
    return bool(seen.frame.lib_seqnum & SESSION_NUMBER_MASK == SESSION_NUMBER_MASK)


@judges("R-RTX-05", *MESSAGES, severity="note")
def sending_to_the_given_up(seen: Sighting) -> Breach | None:
    """A partner that was given up is as if never connected: what is sent to it all the same has no session."""
    if seen.frame.session != NO_SESSION or not is_unconnected(seen) or not seen.flow.told:
        return None
    return Breach(
        "a new connect to the partner that was given up, before anything else is sent",
        f"a message without session, lib_seqnum 0x{seen.frame.lib_seqnum:04x}; it can only be refused",
    )


@judges("R-EP-02", ConnectRequest, ConnectReply)
def own_session(seen: Sighting) -> Breach | None:
    """A session ends with its opening: it does not come back, and is not shown after it was denied."""
    frame, endpoint = seen.frame, seen.endpoint
    if endpoint is None or seen.status is Status.STALE:
        return None
    session = frame.target_session_id if isinstance(frame, ConnectReply) else frame.src_session_id
    if session == NO_SESSION:
        return Breach("0xFFFFFFFF stands for no session", "an endpoint with that session")
    if session == endpoint.session:
        denied = endpoint.denied.get(session)
        if denied is not None and seen.time_ns - denied[1] > seen.within_reordering:
            return Breach(
                "a packet for the endpoint's own session is not refused as a bad session",
                f"session 0x{session:08x} is alive",
                frames=denied[:1],
            )
    elif session in endpoint.past:
        return Breach("a session id is drawn anew at each opening", f"former session 0x{session:08x} once more")
    return None
