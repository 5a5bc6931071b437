"""Every packet as a ``struct`` string, written by hand from the tables of the wire format (sections 6.1 to 6.13) and
checked against the hex dumps of the worked examples. An ``x`` is an undefined byte."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Any

ETHERTYPE = 0x86DF
SHORTEST = 60
BROADCAST = b"\xff" * 6
UNKNOWN_INDEX = 0xFFFF

HEAD = ">6s6sHHB"
HEAD_WITHOUT_INDEX = ">6s6sH2xB"
HEAD_NAMES = "dst_mac src_mac ethertype dst_src_peer_index ptype"
HEAD_NAMES_WITHOUT_INDEX = "dst_mac src_mac ethertype ptype"


@dataclass(frozen=True)
class Dialect:
    """The choices on which both hosts must agree; all sizes in bytes (section 7)."""

    name: str
    medium_payload: int
    """Called F in the specification."""
    pull_payload: int
    """Called P."""
    block_frames: int
    """Called B."""

    @property
    def native(self) -> bool:
        return self.name != "mxoe"


def dialect(text: str) -> Dialect:
    """``mxoe`` or ``omx:M``, M being the frame limit in bytes, Ethernet header included."""
    if text == "mxoe":
        return Dialect("mxoe", 4096, 4096, 8)
    given = re.fullmatch(r"omx:(\d+)", text)
    if given is None:
        raise ValueError(f"no dialect: {text} (mxoe or omx:M)")
    limit = int(given[1])
    medium = limit - 48 if limit - 48 <= 4096 else 8192 if limit >= 8240 else 4096
    return Dialect(text, medium, limit - 32, 32)


class Format:
    """One packet up to its data: which bytes, under which names."""

    def __init__(self, kind: str, ptype: int, body: str, names: str, *, index: bool = True) -> None:
        self.kind = kind
        self.ptype = ptype
        self.struct = struct.Struct((HEAD if index else HEAD_WITHOUT_INDEX) + body)
        self.names = (HEAD_NAMES if index else HEAD_NAMES_WITHOUT_INDEX).split() + names.split()
        ones = [b"\xff" * 20 if name.endswith(("mac", "zeros")) else -1 for name in self.names]
        signed = self.struct.format.replace("H", "h").replace("I", "i").replace("B", "b")
        self.defined = struct.pack(signed, *ones)
        """0xff for each byte that has a meaning, 0 for the others."""


_NUMBERED = "BBxH2xHHIII"
_NUMBERED_NAMES = "dst_endpoint src_endpoint length lib_seqnum lib_piggyack match_a match_b session"
_CONNECT = "BBxB3xHH4x"
_CONNECT_NAMES = "dst_endpoint src_endpoint length lib_seqnum src_dst_peer_index"

COMMON = (
    Format("RAW", 1, "15sIII20s", "front_zeros nic_id_hi nic_id_lo serial back_zeros"),
    Format("HOST_QUERY", 3, "xH4xI4x", "src_dst_peer_index magic", index=False),
    Format("HOST_REPLY", 4, "BH4xI4x", "length src_dst_peer_index magic", index=False),
    Format(
        "TRUC",
        35,
        "BBxB3xIBxHIIHBx",
        "dst_endpoint src_endpoint length session type lib_seqnum session_id acknum send_seq resent",
    ),
    Format(
        "CONNECT_REQUEST",
        36,
        _CONNECT + "IIHBB4x",
        _CONNECT_NAMES + " src_session_id app_key target_recv_seqnum_start is_reply connect_seqnum",
    ),
    Format(
        "CONNECT_REPLY",
        36,
        _CONNECT + "IIHBBB3x",
        _CONNECT_NAMES
        + " src_session_id target_session_id target_recv_seqnum_start is_reply connect_seqnum connect_status_code",
    ),
    Format("TINY", 37, _NUMBERED, _NUMBERED_NAMES),
    Format("SMALL", 38, _NUMBERED, _NUMBERED_NAMES),
    Format(
        "RNDV",
        40,
        _NUMBERED + "IBBH",
        _NUMBERED_NAMES + " msg_length pulled_rdma_id pulled_rdma_seqnum pulled_rdma_offset",
    ),
    Format("PULL_REPLY", 42, "BHIII", "frame_seqnum frame_length msg_offset dst_pull_handle dst_magic", index=False),
    Format(
        "NOTIFY",
        43,
        "BBxIIBB2x2xHH2x",
        "dst_endpoint src_endpoint session total_length pulled_rdma_id pulled_rdma_seqnum lib_seqnum lib_piggyack",
    ),
    Format("NACK_LIB", 44, "BxB4xxBHH2x", "src_endpoint nack_type dst_endpoint copied_peer_index lib_seqnum"),
    Format("NACK_MCP", 45, "BxB4xII", "src_endpoint nack_type src_pull_handle src_magic"),
)
_PULL_NAMES = (
    "dst_endpoint src_endpoint session total_length pulled_rdma_id pulled_rdma_seqnum pulled_rdma_offset "
    "src_pull_handle src_magic first_frame_offset block_length frame_index"
)
COMPATIBLE = (
    Format("MEDIUM", 39, _NUMBERED + "HBB4x", _NUMBERED_NAMES + " frag_length frag_seqnum frag_pipeline"),
    Format("PULL", 41, "BBxIIBBHIIHHI", _PULL_NAMES),
)
"""In the ``mxoe`` dialect only."""
NATIVE = (
    Format("MEDIUM", 39, "BBxIHHIIIHBx4x", _NUMBERED_NAMES + " frag_length frag_seqnum"),
    Format("PULL", 41, "BBxIIIB3xIIIIII", _PULL_NAMES),
)
"""In the ``omx`` dialect only."""

DATA_LENGTH = {
    "HOST_REPLY": "length",
    "TINY": "length",
    "SMALL": "length",
    "MEDIUM": "frag_length",
    "PULL_REPLY": "frame_length",
}
"""The field with the length of the data, of those packets that have some."""

CONSTANT: dict[str, dict[str, Any]] = {
    "RAW": {"dst_src_peer_index": 0, "front_zeros": bytes(15), "back_zeros": bytes(20)},
    "TRUC": {"length": 16, "type": 0x55, "resent": 0},
    "CONNECT_REQUEST": {"length": 16, "lib_seqnum": 0, "is_reply": 0},
    "CONNECT_REPLY": {"length": 16, "lib_seqnum": 0, "is_reply": 1},
    "RNDV": {"length": 8},
    "MEDIUM": {"frag_pipeline": 12},
}
"""The values that every sender writes into these fields."""


def formats(spoken: Dialect) -> dict[str, Format]:
    """The packets of a dialect by their names."""
    return {each.kind: each for each in COMMON + (NATIVE if spoken.native else COMPATIBLE)}


@dataclass(frozen=True)
class Frame:
    """A packet as it was received."""

    kind: str
    fields: dict[str, Any]
    data: bytes
    length: int
    """Of the whole frame, in bytes."""

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]


class Unreadable(Exception):
    """Bytes that are not a packet of the dialect, and the reason."""


class Codec:
    """Builds and reads the frames of a dialect. ``noise`` is written into every undefined byte, as hosts do that do
    not clear their buffers."""

    def __init__(self, spoken: Dialect, noise: int = 0) -> None:
        self._formats = formats(spoken)
        self._noise = noise

    def build(self, kind: str, fields: dict[str, Any], data: bytes = b"") -> bytes:
        """A frame; fields that are constant need not be given."""
        form = self._formats[kind]
        values = {"ethertype": ETHERTYPE, "ptype": form.ptype, **CONSTANT.get(kind, {}), **fields}
        packed = form.struct.pack(*(values[name] for name in form.names))
        defined, noise = int.from_bytes(form.defined), int.from_bytes(bytes([self._noise]) * len(packed))
        header = (int.from_bytes(packed) & defined | noise & ~defined).to_bytes(len(packed))
        return (header + data).ljust(proper_length(kind, len(header), len(data)), bytes([self._noise]))

    def read(self, raw: bytes) -> Frame:
        """The fields of a frame; raises :class:`Unreadable`."""
        if len(raw) < SHORTEST:
            raise Unreadable(f"{len(raw)} bytes, shorter than {SHORTEST}")
        form = self._form(raw)
        fields = dict(zip(form.names, form.struct.unpack_from(raw), strict=True))
        size, count = form.struct.size, fields[DATA_LENGTH[form.kind]] if form.kind in DATA_LENGTH else 0
        if size + count > len(raw):
            raise Unreadable(f"{form.kind} announces {count} bytes of data in a frame of {len(raw)}")
        return Frame(form.kind, fields, raw[size : size + count], len(raw))

    def constants(self, kind: str) -> dict[str, Any]:
        """The values of the fields that are the same in every such packet; ``omx`` has no pipeline."""
        return {name: value for name, value in CONSTANT.get(kind, {}).items() if name in self._formats[kind].names}

    def proper_length(self, frame: Frame) -> int:
        """The length in bytes that a frame with this content must have."""
        return proper_length(frame.kind, self._formats[frame.kind].struct.size, len(frame.data))

    def _form(self, raw: bytes) -> Format:
        ptype = raw[16]
        if ptype == 36:
            return self._formats["CONNECT_REPLY" if raw[42] else "CONNECT_REQUEST"]
        for form in self._formats.values():
            if form.ptype == ptype:
                return form
        raise Unreadable(f"packet type {ptype}")


def proper_length(kind: str, header: int, data: int) -> int:
    """Padding is up to 60 bytes, except that a HOST_REPLY has 60 bytes and the name (section 6.3)."""
    return SHORTEST + data if kind == "HOST_REPLY" else max(SHORTEST, header + data)


def successor(number: int) -> int:
    """The next sequence number: 14 bits count, the upper two stay (R-SEQ-01)."""
    return number & 0xC000 | number + 1 & 0x3FFF


def distance(later: int, earlier: int) -> int:
    """Modulo 2^14 (R-SEQ-02)."""
    return later - earlier & 0x3FFF
