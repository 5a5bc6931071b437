"""One-line summaries of frames, as in Wireshark's info column."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from mxwire.ethernet import mac_text
from mxwire.wire import packets
from mxwire.wire.codec import Malformed
from mxwire.wire.dialect import Dialect
from mxwire.wire.enums import ConnectStatus, NackType, TrucType, hostname_text, packet_type_name, sequence_text
from mxwire.wire.remarks import remarks
from mxwire.words import count_of


def summary(frame: packets.Frame | Malformed, dialect: Dialect) -> str:
    """The important fields of a frame in one line, with remarks; the reason and offset if it is malformed."""
    if isinstance(frame, Malformed):
        return _malformed(frame)
    text = _SUMMARIES[type(frame)](frame, dialect)
    notes = remarks(frame, dialect)
    return f"{text}  [{'; '.join(notes)}]" if notes else text


def type_text(frame: packets.Frame | Malformed) -> str:
    """The specification's name of the packet type; ``?`` if the frame ends before its type byte."""
    if isinstance(frame, Malformed):
        return "?" if frame.packet_type is None else packet_type_name(frame.packet_type)
    return packet_type_name(frame.ptype)


def endpoints_text(frame: packets.Frame | Malformed) -> str:
    """``5→3`` for packets with endpoint fields, else an empty string."""
    has = frame.fields.get if isinstance(frame, Malformed) else partial(_attribute, frame)
    endpoints = [has("src_endpoint"), has("dst_endpoint")]
    if endpoints == [None, None]:
        return ""
    return "→".join("" if each is None else str(each) for each in endpoints)


def _attribute(frame: packets.Frame, name: str) -> int | None:
    return getattr(frame, name, None)


def _malformed(frame: Malformed) -> str:
    seen = " ".join(
        f"{name}={value}"
        for name, value in frame.fields.items()
        if name in ("length", "frag_length", "frame_length") and isinstance(value, int)
    )
    tail = f" ({seen})" if seen and frame.reason.text.startswith("bad") else ""
    return f"MALFORMED at byte {frame.offset}: {frame.reason.text}, {frame.reason.explanation}{tail}"


def _name(values: Any, value: int) -> str:
    try:
        return str(values(value).name)
    except ValueError:
        return f"code {value}"


def _match(frame: packets.Tiny | packets.Small | packets.Medium | packets.Rndv) -> str:
    return f"match 0x{frame.match_a:08x}{frame.match_b:08x}"


def _numbers(frame: packets.Tiny | packets.Small | packets.Medium | packets.Rndv | packets.Notify) -> str:
    return f"seq {sequence_text(frame.lib_seqnum)} ack {sequence_text(frame.lib_piggyack)}"


def _region(frame: packets.Rndv | packets.Pull | packets.Notify) -> str:
    return f"region {frame.pulled_rdma_id}/{frame.pulled_rdma_seqnum}"


def _raw(frame: packets.Raw, dialect: Dialect) -> str:
    return f"opaque, {count_of(len(frame.opaque), 'byte')}"


def _announcement(frame: packets.Announcement, dialect: Dialect) -> str:
    nic = mac_text((frame.nic_id_hi << 32 | frame.nic_id_lo) & 0xFFFF_FFFF_FFFF)
    return f"announcement of {nic} serial 0x{frame.serial:08x}"


def _host_query(frame: packets.HostQuery, dialect: Dialect) -> str:
    return f"who are you? you are peer {frame.src_dst_peer_index} here, magic 0x{frame.magic:08x}"


def _host_reply(frame: packets.HostReply, dialect: Dialect) -> str:
    name = hostname_text(frame.hostname)
    return f"I am {name}, you are peer {frame.src_dst_peer_index} here, magic 0x{frame.magic:08x}"


def _truc(frame: packets.Truc, dialect: Dialect) -> str:
    if frame.liback_type != TrucType.ACK:
        return f"sub-type 0x{frame.liback_type:02x} session 0x{frame.session:08x}"
    return f"liback {frame.liback_acknum} ack {sequence_text(frame.liback_lib_seqnum)} session 0x{frame.session:08x}"


def _connect_request(frame: packets.ConnectRequest, dialect: Dialect) -> str:
    return (
        f"request {frame.connect_seqnum} session 0x{frame.src_session_id:08x} key 0x{frame.app_key:08x} "
        f"start {sequence_text(frame.target_recv_seqnum_start)} peer {frame.src_dst_peer_index}"
    )


def _connect_reply(frame: packets.ConnectReply, dialect: Dialect) -> str:
    return (
        f"reply {frame.connect_seqnum} {_name(ConnectStatus, frame.connect_status_code)} "
        f"session 0x{frame.target_session_id:08x} start {sequence_text(frame.target_recv_seqnum_start)} "
        f"peer {frame.src_dst_peer_index}"
    )


def _inline(frame: packets.Tiny | packets.Small, dialect: Dialect) -> str:
    return f"{_numbers(frame)}: {count_of(frame.length, 'byte')} {_match(frame)}"


def _medium(frame: packets.Medium, dialect: Dialect) -> str:
    if frame.frag_pipeline is None:
        start = frame.frag_seqnum * dialect.fragment_payload
    else:
        # A pipeline above 31 is nonsense from a hostile sender; the receiver's shift is 32 bits wide.
        start = frame.frag_seqnum << (frame.frag_pipeline & 31)
    return (
        f"{_numbers(frame)} fragment {frame.frag_seqnum}: {count_of(frame.frag_length, 'byte')} at {start} "
        f"of {frame.length} {_match(frame)}"
    )


def _rndv(frame: packets.Rndv, dialect: Dialect) -> str:
    offset = f" offset {frame.pulled_rdma_offset}" if frame.pulled_rdma_offset else ""
    return (
        f"{_numbers(frame)}: {count_of(frame.msg_length, 'byte')} to pull from {_region(frame)}{offset} {_match(frame)}"
    )


def _pull(frame: packets.Pull, dialect: Dialect) -> str:
    frames = -(-(frame.first_frame_offset + frame.block_length) // dialect.reply_payload)
    last = frame.frame_index + frames - 1
    which = f"frames {frame.frame_index}..{last}" if frames > 1 else f"frame {frame.frame_index}"
    return (
        f"{which}: {count_of(frame.block_length, 'byte')} of {frame.total_length} from {_region(frame)} "
        f"handle 0x{frame.src_pull_handle:08x}"
    )


def _pull_reply(frame: packets.PullReply, dialect: Dialect) -> str:
    return (
        f"frame {frame.frame_seqnum}: {count_of(frame.frame_length, 'byte')} at {frame.msg_offset} "
        f"handle 0x{frame.dst_pull_handle:08x}"
    )


def _notify(frame: packets.Notify, dialect: Dialect) -> str:
    return f"{_numbers(frame)}: {count_of(frame.total_length, 'byte')} pulled from {_region(frame)}"


def _nack_lib(frame: packets.NackLib, dialect: Dialect) -> str:
    what = f"seq {sequence_text(frame.lib_seqnum)}" if frame.lib_seqnum else "connect"
    return f"{_name(NackType, frame.nack_type)} for {what}"


def _nack_mcp(frame: packets.NackMcp, dialect: Dialect) -> str:
    return f"{_name(NackType, frame.nack_type)} for pull handle 0x{frame.src_pull_handle:08x}"


_SUMMARIES: Final[dict[type[packets.Frame], Callable[[Any, Dialect], str]]] = {
    packets.Raw: _raw,
    packets.Announcement: _announcement,
    packets.HostQuery: _host_query,
    packets.HostReply: _host_reply,
    packets.Truc: _truc,
    packets.ConnectRequest: _connect_request,
    packets.ConnectReply: _connect_reply,
    packets.Tiny: _inline,
    packets.Small: _inline,
    packets.Medium: _medium,
    packets.Rndv: _rndv,
    packets.Pull: _pull,
    packets.PullReply: _pull_reply,
    packets.Notify: _notify,
    packets.NackLib: _nack_lib,
    packets.NackMcp: _nack_mcp,
}
