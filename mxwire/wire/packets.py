"""One frozen class per packet type, with the contents of a frame except its undefined bytes.

Integers are in host order, addresses are six bytes. A field that exists in one dialect only is None in the other. The
classes below the base class are generated from :mod:`mxwire.wire.formats` by ``python -m mxwire.wire.generate``; do not
edit them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mxwire.ethernet import ETHERTYPE_MXOE


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The fields common to all packets (wire format, sections 2 and 4)."""

    layout_name: ClassVar[str] = ""
    """The specification's name of the layout."""

    dst_mac: bytes
    """Ethernet address of the destination. [2]"""
    src_mac: bytes
    """Ethernet address of the sending interface. [2]"""
    ethertype: int = ETHERTYPE_MXOE
    """0x86DF unless configured otherwise at build time. [2]"""
    ptype: int = 0
    """Packet type. [6]"""


# The rest is generated.


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw(Frame):
    """Opaque bytes between the peer-discovery programs of two hosts; the driver queues the whole frame of at most
    1024 bytes. [6.1]"""

    layout_name: ClassVar[str] = "raw"

    dst_src_peer_index: int = 65535
    """Index of the sender in the destination's peer table, as announced by the destination; 0xFFFF until the sender
    knows it. Together with src_endpoint it identifies the sender. [4, 5]"""
    ptype: int = 1
    """Packet type. [6]"""
    opaque: bytes
    """Contents interpreted only by the discovery programs, up to the frame's end. [6.1]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement(Frame):
    """The RAW frame that the discovery daemon omxoed (and MX's mxoed) broadcasts to announce a host. [6.1]"""

    layout_name: ClassVar[str] = "raw_omxoed"

    dst_src_peer_index: int = 0
    """Always 0 in an announcement. [6.1]"""
    ptype: int = 1
    """Packet type. [6]"""
    nic_id_hi: int
    """Upper 32 bits of the NIC id: the first two bytes of its address. [6.1]"""
    nic_id_lo: int
    """Lower 32 bits of the NIC id: the last four bytes of its address. [6.1]"""
    serial: int
    """Pseudo-random number chosen at each start of the daemon, seeded with the clock in seconds. [6.1]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostQuery(Frame):
    """Requests the host name of a peer, and announces the sender's index for it. [6.2]"""

    layout_name: ClassVar[str] = "host_query"

    ptype: int = 3
    """Packet type. [6]"""
    src_dst_peer_index: int
    """Index of the queried host in the querier's peer table; the receiver keeps it as its reverse index. [6.2]"""
    magic: int
    """Number that the reply must repeat; 0x13052008 after the driver is loaded. [6.2]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReply(Frame):
    """Answers a host query with the name of the interface that received it. [6.3]"""

    layout_name: ClassVar[str] = "host_reply"

    ptype: int = 4
    """Packet type. [6]"""
    length: int
    """Length of the host name in bytes, including its NUL: 1 to 80. [6.3]"""
    src_dst_peer_index: int
    """Index of the querier in the replier's peer table; the receiver keeps it as its reverse index. [6.3]"""
    magic: int
    """Copy of the query's magic. [6.3]"""
    hostname: bytes
    """Host name with its NUL, for example vm1:0. [6.3]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truc(Frame):
    """Library packet; its only sub-type is the explicit acknowledgement (liback). [6.4]"""

    layout_name: ClassVar[str] = "truc"

    dst_src_peer_index: int = 65535
    """Index of the sender in the destination's peer table, as announced by the destination; 0xFFFF until the sender
    knows it. Together with src_endpoint it identifies the sender. [4, 5]"""
    ptype: int = 35
    """Packet type. [6]"""
    dst_endpoint: int
    """Endpoint number at the destination, 0 to 255. [6]"""
    src_endpoint: int
    """Endpoint number of the sender, 0 to 255. [6]"""
    length: int = 16
    """Length in bytes of the data from frame offset 28 on; 16. [6.4]"""
    session: int
    """Session id of the destination endpoint; 0xFFFFFFFF if unknown to the sender. [6.4 to 6.11]"""
    liback_type: int = 85
    """Sub-type; 0x55 is the liback. [6.4]"""
    liback_lib_seqnum: int
    """Acknowledgement: the next sequence number expected from the destination, session number included. [6.4]"""
    liback_session_id: int
    """Session id of the destination endpoint, repeated. [6.4]"""
    liback_acknum: int
    """Number of this liback in this direction of the connection, from 1. [6.4]"""
    liback_send_seq: int
    """Open-MX repeats lib_seqnum here; receivers ignore it. [6.4]"""
    liback_resent: int = 0
    """Open-MX sends 0; receivers ignore it. [6.4]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectRequest(Frame):
    """Requests a connection to an endpoint, presents the key, and gives the sequence number to start with. [6.5]"""

    layout_name: ClassVar[str] = "connect_request"

    dst_src_peer_index: int = 65535
    """Index of the sender in the destination's peer table, as announced by the destination; 0xFFFF until the sender
    knows it. Together with src_endpoint it identifies the sender. [4, 5]"""
    ptype: int = 36
    """Packet type. [6]"""
    dst_endpoint: int
    """Endpoint number at the destination, 0 to 255. [6]"""
    src_endpoint: int
    """Endpoint number of the sender, 0 to 255. [6]"""
    length: int = 16
    """Length in bytes of the data from frame offset 32 on; 16. [6.5]"""
    lib_seqnum: int = 0
    """Always 0; copied into a NACK_LIB. [6.5]"""
    src_dst_peer_index: int
    """Index of the destination in the sender's peer table; the receiver keeps it as its reverse index. [6.5]"""
    src_session_id: int
    """Session id of the requesting endpoint. [6.5]"""
    app_key: int
    """Application key that the requester presents. [6.5]"""
    target_recv_seqnum_start: int
    """Next sequence number the requester expects: the target's messages must start there. [6.5]"""
    is_reply: int = 0
    """0 in a request, 1 in a reply. [6.5]"""
    connect_seqnum: int
    """Number of this connect operation, per partner, modulo 256, from 0. [6.5]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectReply(Frame):
    """Answers a connect request with the target's session id and its start number, or with a refusal. [6.5]"""

    layout_name: ClassVar[str] = "connect_reply"

    dst_src_peer_index: int = 65535
    """Index of the sender in the destination's peer table, as announced by the destination; 0xFFFF until the sender
    knows it. Together with src_endpoint it identifies the sender. [4, 5]"""
    ptype: int = 36
    """Packet type. [6]"""
    dst_endpoint: int
    """Endpoint number at the destination, 0 to 255. [6]"""
    src_endpoint: int
    """Endpoint number of the sender, 0 to 255. [6]"""
    length: int = 16
    """Length in bytes of the data from frame offset 32 on; 16. [6.5]"""
    lib_seqnum: int = 0
    """Always 0; copied into a NACK_LIB. [6.5]"""
    src_dst_peer_index: int
    """Index of the destination in the sender's peer table; the receiver keeps it as its reverse index. [6.5]"""
    src_session_id: int
    """Copy from the request: session id of the requesting endpoint. [6.5]"""
    target_session_id: int
    """Session id of the replying endpoint. [6.5]"""
    target_recv_seqnum_start: int
    """Next sequence number the replier expects: the requester's messages must start there. [6.5]"""
    is_reply: int = 1
    """0 in a request, 1 in a reply. [6.5]"""
    connect_seqnum: int
    """Number of this connect operation, per partner, modulo 256, from 0. [6.5]"""
    connect_status_code: int
    """0 success, 11 bad key; a reply with any other value is ignored. [6.5]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiny(Frame):
    """A message of up to 32 bytes. [6.6]"""

    layout_name: ClassVar[str] = "tiny"

    dst_src_peer_index: int = 65535
    """Index of the sender in the destination's peer table, as announced by the destination; 0xFFFF until the sender
    knows it. Together with src_endpoint it identifies the sender. [4, 5]"""
    ptype: int = 37
    """Packet type. [6]"""
    dst_endpoint: int
    """Endpoint number at the destination, 0 to 255. [6]"""
    src_endpoint: int
    """Endpoint number of the sender, 0 to 255. [6]"""
    length: int
    """Length of the message in bytes, 0 to 32. [6.6]"""
    checksum: int = 0
    """CRC-16 of the whole message, only if both sides run the debug library with checksums enabled; otherwise
    meaningless stale memory. [8]"""
    lib_seqnum: int
    """Sequence number of the message: the session number in the upper 2 bits, the number in the lower 14. [6.6]"""
    lib_piggyack: int
    """Acknowledgement: the next sequence number expected from the destination, session number included. [6.6]"""
    match_a: int
    """Match information, bits 63 to 32. [6.6]"""
    match_b: int
    """Match information, bits 31 to 0. [6.6]"""
    session: int
    """Session id of the destination endpoint; 0xFFFFFFFF if unknown to the sender. [6.4 to 6.11]"""
    data: bytes
    """The message. [6.6]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Small(Frame):
    """A message of up to 128 bytes. [6.6]"""

    layout_name: ClassVar[str] = "small"

    dst_src_peer_index: int = 65535
    """Index of the sender in the destination's peer table, as announced by the destination; 0xFFFF until the sender
    knows it. Together with src_endpoint it identifies the sender. [4, 5]"""
    ptype: int = 38
    """Packet type. [6]"""
    dst_endpoint: int
    """Endpoint number at the destination, 0 to 255. [6]"""
    src_endpoint: int
    """Endpoint number of the sender, 0 to 255. [6]"""
    length: int
    """Length of the message in bytes, 0 to 128. [6.6]"""
    checksum: int = 0
    """CRC-16 of the whole message, only if both sides run the debug library with checksums enabled; otherwise
    meaningless stale memory. [8]"""
    lib_seqnum: int
    """Sequence number of the message: the session number in the upper 2 bits, the number in the lower 14. [6.6]"""
    lib_piggyack: int
    """Acknowledgement: the next sequence number expected from the destination, session number included. [6.6]"""
    match_a: int
    """Match information, bits 63 to 32. [6.6]"""
    match_b: int
    """Match information, bits 31 to 0. [6.6]"""
    session: int
    """Session id of the destination endpoint; 0xFFFFFFFF if unknown to the sender. [6.4 to 6.11]"""
    data: bytes
    """The message. [6.6]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Medium(Frame):
    """One fragment of a message of up to 32768 bytes (by default). [6.7]"""

    layout_name: ClassVar[str] = "medium"

    dst_src_peer_index: int = 65535
    """Index of the sender in the destination's peer table, as announced by the destination; 0xFFFF until the sender
    knows it. Together with src_endpoint it identifies the sender. [4, 5]"""
    ptype: int = 39
    """Packet type. [6]"""
    dst_endpoint: int
    """Endpoint number at the destination, 0 to 255. [6]"""
    src_endpoint: int
    """Endpoint number of the sender, 0 to 255. [6]"""
    length: int
    """Length of the whole message, not of the fragment, in bytes. [6.7]"""
    lib_seqnum: int
    """Sequence number of the message, the same in all its fragments. [6.7]"""
    lib_piggyack: int
    """Acknowledgement: the next sequence number expected from the destination, session number included. [6.6]"""
    match_a: int
    """Match information, bits 63 to 32. [6.6]"""
    match_b: int
    """Match information, bits 31 to 0. [6.6]"""
    session: int
    """Session id of the destination endpoint; 0xFFFFFFFF if unknown to the sender. [6.4 to 6.11]"""
    frag_length: int
    """Bytes of the message in this packet. [6.7]"""
    frag_seqnum: int
    """Number of the fragment, from 0. [6.7]"""
    frag_pipeline: int | None = None
    """Base-2 logarithm of the sender's fragment size: the data belongs at frag_seqnum << frag_pipeline. Open-MX
    sends 12. [6.7]"""
    checksum: int = 0
    """CRC-16 of the whole message, only if both sides run the debug library with checksums enabled; otherwise
    meaningless stale memory. [8]"""
    data: bytes
    """This fragment of the message. [6.7]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rndv(Frame):
    """Announces a large (or synchronous) message that the receiver may pull. [6.8]"""

    layout_name: ClassVar[str] = "rndv"

    dst_src_peer_index: int = 65535
    """Index of the sender in the destination's peer table, as announced by the destination; 0xFFFF until the sender
    knows it. Together with src_endpoint it identifies the sender. [4, 5]"""
    ptype: int = 40
    """Packet type. [6]"""
    dst_endpoint: int
    """Endpoint number at the destination, 0 to 255. [6]"""
    src_endpoint: int
    """Endpoint number of the sender, 0 to 255. [6]"""
    length: int = 8
    """Length in bytes of the data from frame offset 40 on; 8. [6.8]"""
    checksum: int = 0
    """CRC-16 of the whole message, only if both sides run the debug library with checksums enabled; otherwise
    meaningless stale memory. [8]"""
    lib_seqnum: int
    """Sequence number of the message: the session number in the upper 2 bits, the number in the lower 14. [6.6]"""
    lib_piggyack: int
    """Acknowledgement: the next sequence number expected from the destination, session number included. [6.6]"""
    match_a: int
    """Match information, bits 63 to 32. [6.6]"""
    match_b: int
    """Match information, bits 31 to 0. [6.6]"""
    session: int
    """Session id of the destination endpoint; 0xFFFFFFFF if unknown to the sender. [6.4 to 6.11]"""
    msg_length: int
    """Length of the message to be pulled, in bytes; 0 is legal. [6.8]"""
    pulled_rdma_id: int
    """The sender's region that holds the message, 0 to 255. [6.8]"""
    pulled_rdma_seqnum: int
    """Use counter of the region, which prevents a late NOTIFY from completing another send. [6.8]"""
    pulled_rdma_offset: int
    """Offset of the message in the region, in bytes; the receiver copies it into its PULLs. [6.8]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull(Frame):
    """Requests one block of a large message from its sender. [6.9]"""

    layout_name: ClassVar[str] = "pull"

    dst_src_peer_index: int = 65535
    """Index of the sender in the destination's peer table, as announced by the destination; 0xFFFF until the sender
    knows it. Together with src_endpoint it identifies the sender. [4, 5]"""
    ptype: int = 41
    """Packet type. [6]"""
    dst_endpoint: int
    """Endpoint number at the destination, 0 to 255. [6]"""
    src_endpoint: int
    """Endpoint number of the sender, 0 to 255. [6]"""
    session: int
    """Session id of the destination endpoint; 0xFFFFFFFF if unknown to the sender. [6.4 to 6.11]"""
    total_length: int
    """Length of the whole transfer in bytes; the replier does not use it. [6.9]"""
    pulled_rdma_id: int
    """Region to pull from, as named in the RNDV. [6.9]"""
    pulled_rdma_seqnum: int
    """Use counter of the region, which prevents a late NOTIFY from completing another send. [6.8]"""
    pulled_rdma_offset: int
    """Offset of the message in the region, in bytes, copied from the RNDV. [6.9]"""
    src_pull_handle: int
    """The puller's handle: opaque to the replier, repeated in replies. [6.9]"""
    src_magic: int
    """The puller's magic, repeated in replies; Open-MX: 0x21071980 XOR its endpoint number. [6.9]"""
    first_frame_offset: int
    """Offset of the block in its first frame, in bytes; 0 except in the first block. [6.9]"""
    block_length: int
    """Bytes requested by this packet. [6.9]"""
    frame_index: int
    """Number of the first frame of this block within the transfer. [6.9]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullReply(Frame):
    """One frame of the data requested by a PULL. [6.10]"""

    layout_name: ClassVar[str] = "pull_reply"

    ptype: int = 42
    """Packet type. [6]"""
    frame_seqnum: int
    """Number of the frame within the transfer, modulo 256. [6.10]"""
    frame_length: int
    """Bytes of data in this packet. [6.10]"""
    msg_offset: int
    """Offset of the data in the message, in bytes. [6.10]"""
    dst_pull_handle: int
    """Copy of the PULL's src_pull_handle. [6.10]"""
    dst_magic: int
    """Copy of the PULL's src_magic. [6.10]"""
    data: bytes
    """This frame of the message. [6.10]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify(Frame):
    """Informs the sender of a large message that the pull has ended. [6.11]"""

    layout_name: ClassVar[str] = "notify"

    dst_src_peer_index: int = 65535
    """Index of the sender in the destination's peer table, as announced by the destination; 0xFFFF until the sender
    knows it. Together with src_endpoint it identifies the sender. [4, 5]"""
    ptype: int = 43
    """Packet type. [6]"""
    dst_endpoint: int
    """Endpoint number at the destination, 0 to 255. [6]"""
    src_endpoint: int
    """Endpoint number of the sender, 0 to 255. [6]"""
    session: int
    """Session id of the destination endpoint; 0xFFFFFFFF if unknown to the sender. [6.4 to 6.11]"""
    total_length: int
    """Bytes received by the puller; 0 if the pull failed. [6.11]"""
    pulled_rdma_id: int
    """Region that was pulled, as named in the RNDV. [6.11]"""
    pulled_rdma_seqnum: int
    """Use counter of the region, which prevents a late NOTIFY from completing another send. [6.8]"""
    lib_seqnum: int
    """Sequence number; a NOTIFY is numbered like a message. [6.11]"""
    lib_piggyack: int
    """Acknowledgement: the next sequence number expected from the destination, session number included. [6.6]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NackLib(Frame):
    """The driver's refusal of a CONNECT, TINY, SMALL, MEDIUM, RNDV or NOTIFY. [6.12]"""

    layout_name: ClassVar[str] = "nack_lib"

    dst_src_peer_index: int = 65535
    """Index of the sender in the destination's peer table, as announced by the destination; 0xFFFF until the sender
    knows it. Together with src_endpoint it identifies the sender. [4, 5]"""
    ptype: int = 44
    """Packet type. [6]"""
    src_endpoint: int
    """The endpoint that could not be reached: dst_endpoint of the refused packet. [6.12]"""
    nack_type: int
    """Reason of the refusal. [6.14]"""
    dst_endpoint: int
    """src_endpoint of the refused packet. [6.12]"""
    dst_src_peer_index_copy: int = 65535
    """Copy of the head's dst_src_peer_index. [6.12]"""
    lib_seqnum: int
    """lib_seqnum of the refused packet; 0 for a CONNECT. [6.12]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NackMcp(Frame):
    """The driver's refusal of a PULL. [6.13]"""

    layout_name: ClassVar[str] = "nack_mcp"

    dst_src_peer_index: int = 65535
    """Index of the sender in the destination's peer table, as announced by the destination; 0xFFFF until the sender
    knows it. Together with src_endpoint it identifies the sender. [4, 5]"""
    ptype: int = 45
    """Packet type. [6]"""
    src_endpoint: int
    """src_endpoint of the refused PULL: the puller's endpoint, not the refuser's. [6.13]"""
    nack_type: int
    """Reason of the refusal. [6.14]"""
    src_pull_handle: int
    """Copy of the PULL's src_pull_handle. [6.13]"""
    src_magic: int
    """Copy of the PULL's src_magic. [6.13]"""


FRAME_CLASSES: tuple[type[Frame], ...] = (
    Raw,
    Announcement,
    HostQuery,
    HostReply,
    Truc,
    ConnectRequest,
    ConnectReply,
    Tiny,
    Small,
    Medium,
    Rndv,
    Pull,
    PullReply,
    Notify,
    NackLib,
    NackMcp,
)
"""All packet classes, in order of packet type."""
