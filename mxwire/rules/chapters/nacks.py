"""Nacks (behaviour, chapter 16)."""

from __future__ import annotations

from mxwire.rules.registry import Breach, judges
from mxwire.rules.state.flows import ObservedFlow
from mxwire.rules.state.frame import JudgedFrame
from mxwire.rules.state.streams import ObservedMessage
from mxwire.wire.enums import NackType
from mxwire.wire.packets import NackLib, NackMcp


@judges("R-NAK-07", NackLib, alone=True)
def library_nack_type(seen: JudgedFrame) -> Breach | None:
    """NACK_LIB has type 1, 2 or 3; any other type aborts the receiving application."""
    if not NackType.BAD_ENDPT <= seen.frame.nack_type <= NackType.BAD_SESSION:
        return Breach("nack type 1, 2 or 3", f"type {seen.frame.nack_type}")
    return None


@judges("R-NAK-09", NackMcp, alone=True)
def pull_nack_type(seen: JudgedFrame) -> Breach | None:
    """NACK_MCP has type 1, 2, 3 or 4."""
    if not NackType.BAD_ENDPT <= seen.frame.nack_type <= NackType.BAD_RDMAWIN:
        return Breach("nack type 1, 2, 3 or 4", f"type {seen.frame.nack_type}")
    return None


def _is_former(flow: ObservedFlow, message: ObservedMessage | None) -> bool:
    """Return whether a message belongs to an earlier stream, whose retransmissions are no longer counted."""
    return message is not None and (flow.stream is None or flow.stream.message(message.position) is not message)


@judges("R-NAK-02", NackLib, also=("R-NAK-01", "R-ACK-10", "D-6"))
def refuses_a_packet(seen: JudgedFrame) -> Breach | None:
    """A NACK_LIB answers a CONNECT or a numbered packet, with its number and endpoints, once per packet."""
    frame, vantage, flow = seen.frame, seen.vantage, seen.flow
    if flow is None:
        return _unprovoked(seen) if vantage.from_start else None
    message, connect = seen.message, seen.connect
    if message is None and connect is None:
        stream = flow.stream
        # Otherwise the refused packet may have been sent before the observation began.
        followed = flow.source.fresh if stream is None else not stream.adopted
        return _unprovoked(seen) if followed and not flow.loose else None
    refused = message or connect
    assert refused is not None
    sent = (message.frames if message else 0) + (connect.deliveries if connect else 0)
    nacks = (message.nacks if message else 0) + (connect.nacks if connect else 0)
    if refused.exact and nacks >= sent and not _is_former(flow, message):
        return Breach(f"one nack per packet: {sent}", f"nack {nacks + 1} of 0x{frame.lib_seqnum:04x}")
    return None


def _unprovoked(seen: JudgedFrame) -> Breach:
    frame = seen.frame
    return Breach(
        "a nack answers a packet, with its number and endpoints",
        f"no packet with number 0x{frame.lib_seqnum:04x} went to endpoint {frame.src_endpoint}",
        defect="D-6" if seen.flow is None else None,
    )


@judges("R-CON-09", NackLib)
def connect_without_session(seen: JudgedFrame) -> Breach | None:
    """A CONNECT is never refused for its session."""
    if seen.frame.nack_type == NackType.BAD_SESSION and seen.connect is not None and seen.message is None:
        return Breach(
            "no check of the session of a CONNECT",
            "refused as a bad session (nack type 3)",
            frames=(seen.connect.number,),
        )
    return None


@judges("R-NAK-03", NackLib, severity="deviation", alone=True)
def index_copied(seen: JudgedFrame) -> Breach | None:
    """The second index field repeats the one in the head (wire format, 6.12)."""
    frame = seen.frame
    if frame.dst_src_peer_index_copy != frame.dst_src_peer_index:
        return Breach(f"index {frame.dst_src_peer_index} in both fields", f"{frame.dst_src_peer_index_copy}")
    return None


@judges("R-NAK-02", NackMcp)
def refuses_a_pull(seen: JudgedFrame) -> Breach | None:
    """A NACK_MCP answers a PULL, with its handle and magic, once per PULL."""
    frame, vantage, transfer = seen.frame, seen.vantage, seen.transfer
    if transfer is None:
        if not vantage.from_start:
            return None
        return Breach("handle and magic of a PULL", f"no PULL had handle 0x{frame.src_pull_handle:08x}")
    if transfer.exact and transfer.nacks >= transfer.deliveries:
        return Breach(
            f"one nack per PULL: {transfer.deliveries}",
            f"nack {transfer.nacks + 1} of handle 0x{transfer.handle:08x}",
            frames=(transfer.last_number,),
        )
    return None


@judges("R-NAK-03", NackMcp, severity="deviation")
def puller_copied(seen: JudgedFrame) -> Breach | None:
    """``src_endpoint`` is copied from the PULL: the endpoint that pulls (wire format, 6.13)."""
    frame, transfer = seen.frame, seen.transfer
    if transfer is not None and frame.src_endpoint != transfer.puller:
        return Breach(f"src_endpoint {transfer.puller} as in the PULL", f"{frame.src_endpoint}")
    return None
