"""The formats of all MXoE packets of both dialects, in Construct: the only definition of the formats.

Packets are described from the first byte of the Ethernet frame, without VLAN tags, as in the specification ("MXoE wire
format", with section numbers in brackets). Each field has its meaning, its unit if any, and its section. Codec, NumPy
columns, reference pages and all other users of offsets derive them from here through :mod:`mxwire.wire.layout`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import construct
from construct import Construct, Default, Enum, GreedyBytes, Hex, Int8ub, Int16ub, Int32ub, Struct

from mxwire.ethernet import ETHERTYPE_MXOE, SHORTEST_FRAME
from mxwire.wire.enums import ConnectStatus, NackType, PacketType, TrucType
from mxwire.wire.numbers import NO_PEER_INDEX

# Elements beyond Construct's own. Each marks a property of a field that codec, columns, scapy layers and Wireshark
# tables need, and that Construct cannot express.


class SenderOrder(construct.Subconstruct):  # type: ignore[misc]
    """An integer in network byte order, or in little-endian order if the sender was built with the endian option off.

    Unmarked integers are big-endian in every build (section 3).
    """


U16 = SenderOrder(Int16ub)
U32 = SenderOrder(Int32ub)


class Mac(construct.Subconstruct):  # type: ignore[misc]
    """An Ethernet address of six bytes."""

    def __init__(self) -> None:
        super().__init__(construct.Bytes(6))


class Undefined(construct.Subconstruct):  # type: ignore[misc]
    """Bytes that the sender never writes: parsed, never compared, zero when built (section 3)."""

    def __init__(self, size: int) -> None:
        super().__init__(construct.Bytes(size))
        self.size = size
        # Makes Construct accept a packet without a value for this field.
        self.flagbuildnone = True

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> bytes:
        zeros = bytes(self.size)
        construct.stream_write(stream, zeros, self.size, path)
        return zeros


class Payload(construct.Subconstruct):  # type: ignore[misc]
    """The data at the end of a packet, with its length in bytes in the field ``length_field``."""

    def __init__(self, length_field: str) -> None:
        super().__init__(construct.Bytes(lambda context: context[length_field]))
        self.length_field = length_field


class TextPayload(construct.Subconstruct):  # type: ignore[misc]
    """A payload that contains a NUL-terminated name."""

    def __init__(self, payload: Construct) -> None:
        super().__init__(payload)


@dataclass(frozen=True, slots=True)
class PacketFormat:
    """A packet layout: names, purpose and structure."""

    name: str
    """The specification's name of the layout, in lower case."""
    frame_class: str
    """The class in :mod:`mxwire.wire.packets` that holds such a packet; the same for both dialects."""
    packet_type: PacketType
    section: str
    """Section of the wire format specification."""
    summary: str
    """Purpose of the packet, in a sentence or two."""
    struct: Construct
    minimum_length: int = SHORTEST_FRAME
    """Minimum length of the frame in bytes; senders pad to it."""
    extra_length: str | None = None
    """A field whose value is added to ``minimum_length``: HOST_REPLY frames are 60 bytes *plus* the name."""


def _head(packet_type: PacketType, peer_index: Construct) -> tuple[Construct, ...]:
    """Ethernet header, peer index and type: the first 17 bytes of every packet (sections 2 and 4)."""
    return (
        "dst_mac" / Mac() * "Ethernet address of the destination. [2]",
        "src_mac" / Mac() * "Ethernet address of the sending interface. [2]",
        "ethertype" / Default(Hex(Int16ub), ETHERTYPE_MXOE) * "0x86DF unless configured otherwise at build time. [2]",
        peer_index,
        "ptype" / Default(Enum(Int8ub, PacketType), packet_type) * "Packet type. [6]",
    )


PEER_INDEX = (
    "dst_src_peer_index"
    / Default(U16, NO_PEER_INDEX)
    * (
        "Index of the sender in the destination's peer table, as announced by the destination; 0xFFFF until the "
        "sender knows it. Together with src_endpoint it identifies the sender. [4, 5]"
    )
)
UNDEFINED_PEER_INDEX = "dst_src_peer_index" / Undefined(2) * "Undefined in this packet type. [4]"

DST_ENDPOINT = "dst_endpoint" / Int8ub * "Endpoint number at the destination, 0 to 255. [6]"
SRC_ENDPOINT = "src_endpoint" / Int8ub * "Endpoint number of the sender, 0 to 255. [6]"
SRC_GENERATION = "src_generation" / Undefined(1) * "Never written by the sender, never read by the receiver. [6]"


def _endpoint_head(packet_type: PacketType) -> tuple[Construct, ...]:
    """The head of a packet between two endpoints (section 6)."""
    return *_head(packet_type, PEER_INDEX), DST_ENDPOINT, SRC_ENDPOINT, SRC_GENERATION


SESSION = (
    "session"
    / Hex(U32)
    * ("Session id of the destination endpoint; 0xFFFFFFFF if unknown to the sender. [6.4 to 6.11]")
)
LIB_SEQNUM = (
    "lib_seqnum"
    / U16
    * ("Sequence number of the message: the session number in the upper 2 bits, the number in the lower 14. [6.6]")
)
LIB_PIGGYACK = (
    "lib_piggyack"
    / U16
    * ("Acknowledgement: the next sequence number expected from the destination, session number included. [6.6]")
)
MATCH_A = "match_a" / Hex(U32) * "Match information, bits 63 to 32. [6.6]"
MATCH_B = "match_b" / Hex(U32) * "Match information, bits 31 to 0. [6.6]"
CHECKSUM = (
    "checksum"
    / Default(Hex(U16), 0)
    * (
        "CRC-16 of the whole message, only if both sides run the debug library with checksums enabled; otherwise "
        "meaningless stale memory. [8]"
    )
)
PULLED_RDMA_SEQNUM = (
    "pulled_rdma_seqnum"
    / Int8ub
    * ("Use counter of the region, which prevents a late NOTIFY from completing another send. [6.8]")
)


def _undefined(name: str, size: int) -> Construct:
    return name / Undefined(size) * "Undefined bytes: stale contents of the sender's buffer. [3]"


RAW = PacketFormat(
    "raw",
    "Raw",
    PacketType.RAW,
    "6.1",
    "Opaque bytes between the peer-discovery programs of two hosts; the driver queues the whole frame of at most "
    "1024 bytes.",
    Struct(
        *_head(PacketType.RAW, PEER_INDEX),
        "opaque" / GreedyBytes * "Contents interpreted only by the discovery programs, up to the frame's end. [6.1]",
    ),
)

RAW_OMXOED = PacketFormat(
    "raw_omxoed",
    "Announcement",
    PacketType.RAW,
    "6.1",
    "The RAW frame that the discovery daemon omxoed (and MX's mxoed) broadcasts to announce a host.",
    Struct(
        *_head(PacketType.RAW, "dst_src_peer_index" / Default(U16, 0) * "Always 0 in an announcement. [6.1]"),
        "pad0" / Undefined(15) * "Padding, zero. [6.1]",
        "nic_id_hi" / Hex(Int32ub) * "Upper 32 bits of the NIC id: the first two bytes of its address. [6.1]",
        "nic_id_lo" / Hex(Int32ub) * "Lower 32 bits of the NIC id: the last four bytes of its address. [6.1]",
        "serial"
        / Hex(Int32ub)
        * "Pseudo-random number chosen at each start of the daemon, seeded with the clock in seconds. [6.1]",
        "pad1" / Undefined(20) * "Padding, zero. [6.1]",
    ),
)

HOST_QUERY = PacketFormat(
    "host_query",
    "HostQuery",
    PacketType.HOST_QUERY,
    "6.2",
    "Requests the host name of a peer, and announces the sender's index for it.",
    Struct(
        *_head(PacketType.HOST_QUERY, UNDEFINED_PEER_INDEX),
        _undefined("pad", 1),
        "src_dst_peer_index"
        / U16
        * "Index of the queried host in the querier's peer table; the receiver keeps it as its reverse index. [6.2]",
        _undefined("pad0", 4),
        "magic" / Hex(U32) * "Number that the reply must repeat; 0x13052008 after the driver is loaded. [6.2]",
        _undefined("pad1", 4),
    ),
)

HOST_REPLY = PacketFormat(
    "host_reply",
    "HostReply",
    PacketType.HOST_REPLY,
    "6.3",
    "Answers a host query with the name of the interface that received it.",
    Struct(
        *_head(PacketType.HOST_REPLY, UNDEFINED_PEER_INDEX),
        "length" / Int8ub * "Length of the host name in bytes, including its NUL: 1 to 80. [6.3]",
        "src_dst_peer_index"
        / U16
        * "Index of the querier in the replier's peer table; the receiver keeps it as its reverse index. [6.3]",
        _undefined("pad0", 4),
        "magic" / Hex(U32) * "Copy of the query's magic. [6.3]",
        _undefined("pad1", 4),
        "hostname" / TextPayload(Payload("length")) * "Host name with its NUL, for example vm1:0. [6.3]",
    ),
    extra_length="length",
)

TRUC = PacketFormat(
    "truc",
    "Truc",
    PacketType.TRUC,
    "6.4",
    "Library packet; its only sub-type is the explicit acknowledgement (liback).",
    Struct(
        *_endpoint_head(PacketType.TRUC),
        "length" / Default(Int8ub, 16) * "Length in bytes of the data from frame offset 28 on; 16. [6.4]",
        _undefined("pad1", 3),
        SESSION,
        "liback"
        / Struct(
            "type" / Default(Enum(Int8ub, TrucType), TrucType.ACK) * "Sub-type; 0x55 is the liback. [6.4]",
            _undefined("pad", 1),
            "lib_seqnum"
            / U16
            * "Acknowledgement: the next sequence number expected from the destination, session number included. "
            "[6.4]",
            "session_id" / Hex(U32) * "Session id of the destination endpoint, repeated. [6.4]",
            "acknum" / U32 * "Number of this liback in this direction of the connection, from 1. [6.4]",
            "send_seq" / U16 * "Open-MX repeats lib_seqnum here; receivers ignore it. [6.4]",
            "resent" / Default(Int8ub, 0) * "Open-MX sends 0; receivers ignore it. [6.4]",
            _undefined("pad1", 1),
        ),
    ),
)


def _connect(is_reply: int, *body: Construct) -> Construct:
    """A CONNECT: the common part, then the fields of the request or reply (section 6.5)."""
    session, second, seqnum_start, *rest = body
    return Struct(
        *_endpoint_head(PacketType.CONNECT),
        "length" / Default(Int8ub, 16) * "Length in bytes of the data from frame offset 32 on; 16. [6.5]",
        _undefined("pad1", 3),
        "lib_seqnum" / Default(U16, 0) * "Always 0; copied into a NACK_LIB. [6.5]",
        "src_dst_peer_index"
        / U16
        * "Index of the destination in the sender's peer table; the receiver keeps it as its reverse index. [6.5]",
        _undefined("pad2", 4),
        session,
        second,
        seqnum_start,
        "is_reply" / Default(Int8ub, is_reply) * "0 in a request, 1 in a reply. [6.5]",
        "connect_seqnum" / Int8ub * "Number of this connect operation, per partner, modulo 256, from 0. [6.5]",
        *rest,
    )


CONNECT_REQUEST = PacketFormat(
    "connect_request",
    "ConnectRequest",
    PacketType.CONNECT,
    "6.5",
    "Requests a connection to an endpoint, presents the key, and gives the sequence number to start with.",
    _connect(
        0,
        "src_session_id" / Hex(U32) * "Session id of the requesting endpoint. [6.5]",
        "app_key" / Hex(U32) * "Application key that the requester presents. [6.5]",
        "target_recv_seqnum_start"
        / U16
        * "Next sequence number the requester expects: the target's messages must start there. [6.5]",
        _undefined("pad", 4),
    ),
)

CONNECT_REPLY = PacketFormat(
    "connect_reply",
    "ConnectReply",
    PacketType.CONNECT,
    "6.5",
    "Answers a connect request with the target's session id and its start number, or with a refusal.",
    _connect(
        1,
        "src_session_id" / Hex(U32) * "Copy from the request: session id of the requesting endpoint. [6.5]",
        "target_session_id" / Hex(U32) * "Session id of the replying endpoint. [6.5]",
        "target_recv_seqnum_start"
        / U16
        * "Next sequence number the replier expects: the requester's messages must start there. [6.5]",
        "connect_status_code"
        / Enum(Int8ub, ConnectStatus)
        * "0 success, 11 bad key; a reply with any other value is ignored. [6.5]",
        _undefined("pad", 3),
    ),
)


def _inline(packet_type: PacketType, maximum: int) -> Construct:
    """TINY and SMALL: one message with its data in the packet (section 6.6)."""
    return Struct(
        *_endpoint_head(packet_type),
        "length" / U16 * f"Length of the message in bytes, 0 to {maximum}. [6.6]",
        CHECKSUM,
        LIB_SEQNUM,
        LIB_PIGGYACK,
        MATCH_A,
        MATCH_B,
        SESSION,
        "data" / Payload("length") * "The message. [6.6]",
    )


TINY = PacketFormat(
    "tiny",
    "Tiny",
    PacketType.TINY,
    "6.6",
    "A message of up to 32 bytes.",
    _inline(PacketType.TINY, 32),
)
SMALL = PacketFormat(
    "small",
    "Small",
    PacketType.SMALL,
    "6.6",
    "A message of up to 128 bytes.",
    _inline(PacketType.SMALL, 128),
)


def _medium(length: tuple[Construct, ...], fragment: Construct) -> Construct:
    """MEDIUM; the dialects differ in the width of the length and in the byte at 43 (section 6.7)."""
    return Struct(
        *_endpoint_head(PacketType.MEDIUM),
        *length,
        "lib_seqnum" / U16 * "Sequence number of the message, the same in all its fragments. [6.7]",
        LIB_PIGGYACK,
        MATCH_A,
        MATCH_B,
        SESSION,
        "frag_length" / U16 * "Bytes of the message in this packet. [6.7]",
        "frag_seqnum" / Int8ub * "Number of the fragment, from 0. [6.7]",
        fragment,
        CHECKSUM,
        _undefined("pad2", 2),
        "data" / Payload("frag_length") * "This fragment of the message. [6.7]",
    )


_MEDIUM_SUMMARY = "One fragment of a message of up to 32768 bytes (by default)."
_MEDIUM_LENGTH_16 = "length" / U16 * "Length of the whole message, not of the fragment, in bytes. [6.7]"

MEDIUM_MXOE = PacketFormat(
    "medium",
    "Medium",
    PacketType.MEDIUM,
    "6.7",
    _MEDIUM_SUMMARY,
    _medium(
        (_MEDIUM_LENGTH_16, _undefined("pad", 2)),
        "frag_pipeline"
        / Int8ub
        * "Base-2 logarithm of the sender's fragment size: the data belongs at frag_seqnum << frag_pipeline. "
        "Open-MX sends 12. [6.7]",
    ),
)
MEDIUM_OMX = PacketFormat(
    "medium",
    "Medium",
    PacketType.MEDIUM,
    "6.7",
    _MEDIUM_SUMMARY,
    _medium(
        ("length" / U32 * "Length of the whole message, not of the fragment, in bytes (32 bits wide here). [6.7]",),
        _undefined("pad1", 1),
    ),
)
MEDIUM_OMX_N3 = PacketFormat(
    "medium",
    "Medium",
    PacketType.MEDIUM,
    "differences, 4.2",
    "One fragment of a medium message, as sent by Open-MX 1.0.901 to 1.3.1 in their own dialect.",
    _medium((_MEDIUM_LENGTH_16, _undefined("pad", 2)), _undefined("pad1", 1)),
)

RNDV = PacketFormat(
    "rndv",
    "Rndv",
    PacketType.RNDV,
    "6.8",
    "Announces a large (or synchronous) message that the receiver may pull.",
    Struct(
        *_endpoint_head(PacketType.RNDV),
        "length" / Default(U16, 8) * "Length in bytes of the data from frame offset 40 on; 8. [6.8]",
        CHECKSUM,
        LIB_SEQNUM,
        LIB_PIGGYACK,
        MATCH_A,
        MATCH_B,
        SESSION,
        "msg_length" / U32 * "Length of the message to be pulled, in bytes; 0 is legal. [6.8]",
        "pulled_rdma_id" / Int8ub * "The sender's region that holds the message, 0 to 255. [6.8]",
        PULLED_RDMA_SEQNUM,
        "pulled_rdma_offset"
        / U16
        * "Offset of the message in the region, in bytes; the receiver copies it into its PULLs. [6.8]",
    ),
)


def _pull(*middle: Construct) -> Construct:
    """PULL; the dialects differ in widths and therefore in offsets (section 6.9)."""
    return Struct(
        *_endpoint_head(PacketType.PULL),
        SESSION,
        "total_length" / U32 * "Length of the whole transfer in bytes; the replier does not use it. [6.9]",
        *middle,
        "frame_index" / U32 * "Number of the first frame of this block within the transfer. [6.9]",
    )


_PULL_SUMMARY = "Requests one block of a large message from its sender."
_PULL_HANDLE = "src_pull_handle" / Hex(U32) * "The puller's handle: opaque to the replier, repeated in replies. [6.9]"
_PULL_MAGIC = (
    "src_magic"
    / Hex(U32)
    * ("The puller's magic, repeated in replies; Open-MX: 0x21071980 XOR its endpoint number. [6.9]")
)
_PULLED_RDMA_ID = "Region to pull from, as named in the RNDV. [6.9]"
_PULLED_RDMA_OFFSET = "Offset of the message in the region, in bytes, copied from the RNDV. [6.9]"
_FIRST_FRAME_OFFSET = "Offset of the block in its first frame, in bytes; 0 except in the first block. [6.9]"
_BLOCK_LENGTH = "Bytes requested by this packet. [6.9]"

PULL_MXOE = PacketFormat(
    "pull",
    "Pull",
    PacketType.PULL,
    "6.9",
    _PULL_SUMMARY,
    _pull(
        "pulled_rdma_id" / Int8ub * _PULLED_RDMA_ID,
        PULLED_RDMA_SEQNUM,
        "pulled_rdma_offset" / U16 * _PULLED_RDMA_OFFSET,
        _PULL_HANDLE,
        _PULL_MAGIC,
        "first_frame_offset" / U16 * _FIRST_FRAME_OFFSET,
        "block_length" / U16 * _BLOCK_LENGTH,
    ),
)
PULL_OMX = PacketFormat(
    "pull",
    "Pull",
    PacketType.PULL,
    "6.9",
    _PULL_SUMMARY,
    _pull(
        "pulled_rdma_id" / U32 * _PULLED_RDMA_ID,
        PULLED_RDMA_SEQNUM,
        _undefined("pad1", 3),
        "pulled_rdma_offset" / U32 * _PULLED_RDMA_OFFSET,
        _PULL_HANDLE,
        _PULL_MAGIC,
        "first_frame_offset" / U32 * _FIRST_FRAME_OFFSET,
        "block_length" / U32 * _BLOCK_LENGTH,
    ),
)

PULL_REPLY = PacketFormat(
    "pull_reply",
    "PullReply",
    PacketType.PULL_REPLY,
    "6.10",
    "One frame of the data requested by a PULL.",
    Struct(
        *_head(PacketType.PULL_REPLY, UNDEFINED_PEER_INDEX),
        "frame_seqnum" / Int8ub * "Number of the frame within the transfer, modulo 256. [6.10]",
        "frame_length" / U16 * "Bytes of data in this packet. [6.10]",
        "msg_offset" / U32 * "Offset of the data in the message, in bytes. [6.10]",
        "dst_pull_handle" / Hex(U32) * "Copy of the PULL's src_pull_handle. [6.10]",
        "dst_magic" / Hex(U32) * "Copy of the PULL's src_magic. [6.10]",
        "data" / Payload("frame_length") * "This frame of the message. [6.10]",
    ),
)

NOTIFY = PacketFormat(
    "notify",
    "Notify",
    PacketType.NOTIFY,
    "6.11",
    "Informs the sender of a large message that the pull has ended.",
    Struct(
        *_endpoint_head(PacketType.NOTIFY),
        SESSION,
        "total_length" / U32 * "Bytes received by the puller; 0 if the pull failed. [6.11]",
        "pulled_rdma_id" / Int8ub * "Region that was pulled, as named in the RNDV. [6.11]",
        PULLED_RDMA_SEQNUM,
        _undefined("pad1", 2),
        _undefined("pad2", 2),
        "lib_seqnum" / U16 * "Sequence number; a NOTIFY is numbered like a message. [6.11]",
        LIB_PIGGYACK,
        _undefined("pad3", 2),
    ),
)


def _nack(packet_type: PacketType, endpoint: str, *rest: Construct) -> Construct:
    """The common part of both nacks, where the *source* endpoint comes first (sections 6.12 and 6.13)."""
    return Struct(
        *_head(packet_type, PEER_INDEX),
        "src_endpoint" / Int8ub * endpoint,
        SRC_GENERATION,
        "nack_type" / Enum(Int8ub, NackType) * "Reason of the refusal. [6.14]",
        _undefined("pad1", 4),
        *rest,
    )


NACK_LIB = PacketFormat(
    "nack_lib",
    "NackLib",
    PacketType.NACK_LIB,
    "6.12",
    "The driver's refusal of a CONNECT, TINY, SMALL, MEDIUM, RNDV or NOTIFY.",
    _nack(
        PacketType.NACK_LIB,
        "The endpoint that could not be reached: dst_endpoint of the refused packet. [6.12]",
        _undefined("pad2", 1),
        "dst_endpoint" / Int8ub * "src_endpoint of the refused packet. [6.12]",
        "dst_src_peer_index_copy" / Default(U16, NO_PEER_INDEX) * "Copy of the head's dst_src_peer_index. [6.12]",
        "lib_seqnum" / U16 * "lib_seqnum of the refused packet; 0 for a CONNECT. [6.12]",
        _undefined("pad3", 2),
    ),
)
NACK_MCP = PacketFormat(
    "nack_mcp",
    "NackMcp",
    PacketType.NACK_MCP,
    "6.13",
    "The driver's refusal of a PULL.",
    _nack(
        PacketType.NACK_MCP,
        "src_endpoint of the refused PULL: the puller's endpoint, not the refuser's. [6.13]",
        "src_pull_handle" / Hex(U32) * "Copy of the PULL's src_pull_handle. [6.13]",
        "src_magic" / Hex(U32) * "Copy of the PULL's src_magic. [6.13]",
    ),
)

COMMON_FORMATS: Final = (
    RAW,
    RAW_OMXOED,
    HOST_QUERY,
    HOST_REPLY,
    TRUC,
    CONNECT_REQUEST,
    CONNECT_REPLY,
    TINY,
    SMALL,
    RNDV,
    PULL_REPLY,
    NOTIFY,
    NACK_LIB,
    NACK_MCP,
)
"""The layouts that are identical in both dialects (section 1)."""
