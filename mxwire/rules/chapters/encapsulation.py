"""Frames and their constant fields (wire format, sections 2, 5 and 6)."""

from __future__ import annotations

from typing import Final

from mxwire.ethernet import BROADCAST, SHORTEST_FRAME, is_group, mac_text
from mxwire.rules.registry import CONNECTS, NUMBERED, SESSIONED, Breach, judges
from mxwire.rules.state.flows import ANY_INDEX
from mxwire.rules.state.frame import JudgedFrame
from mxwire.wire import packets
from mxwire.wire.checks import Reason
from mxwire.wire.dialect import MEDIUM_DATA_OFFSET, PULL_REPLY_DATA_OFFSET
from mxwire.wire.enums import TrucType
from mxwire.wire.formats import SMALL, TINY
from mxwire.wire.layout import layout_of
from mxwire.wire.numbers import CONNECT_LENGTH, LIBACK_LENGTH, NO_PEER_INDEX

_DATA_AT: Final[dict[type[packets.Frame], tuple[int, str]]] = {
    packets.Tiny: (layout_of(TINY).header_end, "length"),
    packets.Small: (layout_of(SMALL).header_end, "length"),
    packets.Medium: (MEDIUM_DATA_OFFSET, "frag_length"),
    packets.PullReply: (PULL_REPLY_DATA_OFFSET, "frame_length"),
    # In a HOST_REPLY, the space for the name follows the whole padded header (section 6.3).
    packets.HostReply: (SHORTEST_FRAME, "length"),
}
_DISCOVERY: Final = (packets.Raw, packets.Announcement)
_ALL_BUT_RAW: Final = tuple(each for each in packets.FRAME_CLASSES if each not in _DISCOVERY)

MALFORMED: Final[dict[Reason, tuple[str, str]]] = {
    Reason.BAD_HEADER_LENGTH: ("W-2", "a frame holds its whole header, and at least 60 bytes"),
    Reason.INVALID_TYPE: ("W-6", "types of native MX are not sent to Open-MX hosts, which drop them"),
    Reason.UNKNOWN_TYPE: ("W-6", "only the packet types of section 6 exist"),
    Reason.BAD_DATA_LENGTH: ("W-7", "lengths lie within the limits of the packet type"),
    Reason.BAD_FRAME_LENGTH: ("W-7", "the announced data lies within the frame"),
    Reason.RAW_TOO_LARGE: ("R-DISC-06", "RAW frames have at most 1024 bytes"),
}
"""The rule that each kind of malformed frame breaks, and the expected value."""


@judges("W-2", *_ALL_BUT_RAW, alone=True)
def frame_length(seen: JudgedFrame) -> Breach | None:
    """At least 60 bytes, at most M, and no padding beyond 60."""
    length = seen.length
    if length < SHORTEST_FRAME:
        return Breach(f"frames are padded to {SHORTEST_FRAME} bytes", f"a frame of {length} bytes")
    place = _DATA_AT.get(type(seen.frame))
    if place is None:
        required = SHORTEST_FRAME
    else:
        required = place[0] + getattr(seen.frame, place[1])
        required = required if required > SHORTEST_FRAME else SHORTEST_FRAME
        limit = seen.pair.dialect.frame_limit
        if length > limit:
            return Breach(f"frames have at most {limit} bytes in dialect {seen.pair.dialect}", f"{length} bytes")
    if length != required:
        return Breach(f"{required} bytes for this packet", f"{length} bytes", "deviation")
    return None


@judges("W-2", *_ALL_BUT_RAW, severity="deviation", alone=True, strange=True)
def unicast(seen: JudgedFrame) -> Breach | None:
    """All frames except RAW go to one host."""
    if is_group(seen.frame.dst_mac):
        return Breach("only RAW frames are broadcast", f"destination {mac_text(seen.frame.dst_mac)}")
    return None


@judges("W-5", *NUMBERED, *CONNECTS, packets.Truc, packets.Pull, packets.NackLib, packets.NackMcp)
def peer_index(seen: JudgedFrame) -> Breach | None:
    """``dst_src_peer_index`` is the last index that the destination announced, or 0xFFFF before that."""
    index = seen.frame.dst_src_peer_index
    known = seen.pair.indexes
    # Nearly all frames: nothing else is looked at.
    if index == known[-1]:
        return None
    if seen.pair.lesson is not None and index != NO_PEER_INDEX and _has_heard(seen):
        return Breach(f"the destination announced {seen.pair.lesson}", f"dst_src_peer_index {index}")
    if index in known:
        return _outdated(seen, index)
    # In a capture, the announcement may have passed although the sender never received it.
    if ANY_INDEX in known or (index == NO_PEER_INDEX and not seen.vantage.as_sent):
        return None
    taught = " or ".join(_index(each) for each in known)
    return Breach(f"the destination announced {taught}", f"dst_src_peer_index {_index(index)}")


def _has_heard(seen: JudgedFrame) -> bool:
    """Return whether the packet carries knowledge from a CONNECT, which announced the index to the sender as well."""
    frame = seen.frame
    if isinstance(frame, packets.ConnectReply):
        return seen.connect is not None
    return isinstance(frame, SESSIONED) and frame.session in seen.flow.sessions


def _outdated(seen: JudgedFrame, index: int) -> Breach | None:
    """Accept an earlier index as long as the sender cannot have learned the later one."""
    pair = seen.pair
    if not seen.vantage.as_sent or pair.known_ns is None:
        return None
    for value, taught_ns in zip(reversed(pair.indexes), reversed(pair.taught_ns), strict=True):
        if value == index:
            return None
        if taught_ns is not None and pair.known_ns < taught_ns < seen.time_ns - seen.vantage.clock_ns:
            return Breach(f"the destination has since announced {_index(value)}", f"dst_src_peer_index {_index(index)}")
    return None


def _index(index: int) -> str:
    return "0xFFFF (unknown)" if index == NO_PEER_INDEX else "any index" if index == ANY_INDEX else str(index)


@judges("W-6.1", packets.Announcement, severity="deviation", alone=True)
def announcement_fields(seen: JudgedFrame) -> Breach | None:
    """The announcement of omxoed: broadcast, 64 bytes, index 0, the sender's own address as NIC id."""
    frame = seen.frame
    address = (frame.nic_id_hi << 32 | frame.nic_id_lo).to_bytes(8, "big")
    # Captures with Linux cooked headers do not record all destinations.
    if frame.dst_mac not in (BROADCAST, bytes(6)):
        return Breach("announcements are broadcast", f"destination {mac_text(frame.dst_mac)}")
    if frame.dst_src_peer_index:
        return Breach("dst_src_peer_index of an announcement is 0", str(frame.dst_src_peer_index))
    if address != b"\0\0" + frame.src_mac:
        return Breach("the NIC id is the sender's address", f"NIC id 0x{address.hex()}")
    return None


@judges("W-6.4", packets.Truc, alone=True)
def liback_constants(seen: JudgedFrame) -> Breach | None:
    """Sub-type 0x55, 16 bytes of data, the same session in both fields."""
    frame = seen.frame
    if frame.liback_type != TrucType.ACK:
        return Breach("the only sub-type of TRUC is 0x55", f"sub-type 0x{frame.liback_type:02x}")
    if frame.length != LIBACK_LENGTH:
        return Breach(f"a liback has {LIBACK_LENGTH} bytes of data", f"length {frame.length}")
    if frame.session != frame.liback_session_id:
        return Breach(
            "the same session in both fields of a liback", f"0x{frame.session:08x} and 0x{frame.liback_session_id:08x}"
        )
    return None


@judges("W-6.5", packets.ConnectRequest, packets.ConnectReply, alone=True)
def connect_constants(seen: JudgedFrame) -> Breach | None:
    """16 bytes of data, number 0, ``is_reply`` 0 or 1."""
    frame = seen.frame
    if frame.length != CONNECT_LENGTH:
        return Breach(f"a CONNECT has {CONNECT_LENGTH} bytes of data", f"length {frame.length}")
    if frame.lib_seqnum:
        return Breach("lib_seqnum of a CONNECT is 0", f"lib_seqnum {frame.lib_seqnum}")
    if frame.is_reply > 1:
        return Breach("is_reply is 0 or 1", f"is_reply {frame.is_reply}", "deviation")
    return None


@judges("W-6.8", packets.Rndv, alone=True)
def rndv_constants(seen: JudgedFrame) -> Breach | None:
    """8 bytes of data."""
    if seen.frame.length != 8:
        return Breach("a RNDV has 8 bytes of data", f"length {seen.frame.length}")
    return None
