"""Templates of test frames: valid MXoE frames from the codec, with a stamp and the fields that differ per frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.errors import MxwireError
from mxwire.ethernet import DESTINATION, ETHERTYPE, ETHERTYPE_MXOE, SHORTEST_FRAME, SOURCE
from mxwire.frames import FrameBatch
from mxwire.wire.codec import Malformed, codec_of, parse
from mxwire.wire.columns import Columns, decode_columns
from mxwire.wire.dialect import MXOE, Dialect, omx
from mxwire.wire.enums import PacketType
from mxwire.wire.layout import TYPE_OFFSET
from mxwire.wire.numbers import NUMBER_MASK, SMALL_MAXIMUM, TINY_MAXIMUM
from mxwire.wire.packets import Frame, Medium, Pull, PullReply, Small, Tiny

STAMP: Final = np.dtype([("magic", "<u2"), ("streams", "<u2"), ("place", "<u8"), ("time", "<i8")])
"""The last bytes of every test frame.

``place`` is the run in its highest 8 bits, then 12 bits of stream and 44 bits of sequence number; ``time`` is the
sender's clock in nanoseconds since 1970. 20 bytes, so that the shortest frame of Ethernet has room for a TINY with it.
"""
MAGIC: Final = 0x726C
"""Marks a stamp; a frame without it is foreign."""
STREAMS_MAXIMUM: Final = 1024
STREAMS_MASK: Final = 0x0FFF
CAPTURED: Final = 1 << 15
"""Flag in ``streams``: the frame is one of a capture, so only its format can be checked."""
RUN_SHIFT: Final = 56
STREAM_SHIFT: Final = 44
SEQUENCE_MASK: Final = (1 << STREAM_SHIFT) - 1
STREAM_MASK: Final = 0xFFF
RUNS: Final = 1 << 8
"""Number of different runs."""
_PATTERN: Final = (np.arange(1 << 16, dtype=np.uint32) * 167 + 13).astype(np.uint8).tobytes()
"""Data of test frames before the stamp: different in neighbouring bytes, so that shifted data are detected."""
_REGION_ENDPOINT: Final = 0xFF
"""Endpoint of test frames: hosts refuse or drop them, because no host opens that many endpoints."""
_BLOCK_FRAMES: Final = MXOE.frames_per_block


def prepare_stamps(stamps: NDArray[Any], streams: int, *, captured: bool) -> None:
    """Write the fields of stamps that are the same in all frames of a run with ``streams`` streams."""
    stamps["magic"] = MAGIC
    stamps["streams"] = streams | (CAPTURED if captured else 0)


@dataclass(frozen=True, slots=True)
class FieldPatch:
    """A field that depends on the sequence number, in network order: ``number * factor``, cut to its size by ``mask``.

    It is data rather than a function, so that array operations and the program in the kernel compute the same values.
    """

    name: str
    offset: int
    size: int
    """1, 2 or 4 bytes."""
    factor: int = 1
    mask: int = 0xFFFF_FFFF

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """Type of the field as an array."""
        return np.dtype(f">u{self.size}")

    def values(self, sequence: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Compute the field for sequence numbers, both of shape (n,)."""
        found = sequence if self.factor == 1 else sequence * np.uint64(self.factor)
        return found & np.uint64(self.mask)


@dataclass(frozen=True)
class FrameTemplate:
    """A frame that a generator repeats, and a sink expects."""

    name: str
    """Packet type."""
    frame: bytes
    patches: tuple[FieldPatch, ...] = ()
    captured: bool = False
    """True for a frame of a capture: it is sent as it is, except for the stamp and the addresses."""

    def __post_init__(self) -> None:
        """Check that there is room for a stamp."""
        if len(self.frame) < SHORTEST_FRAME:
            raise MxwireError(f"a test frame has at least {SHORTEST_FRAME} bytes, not {len(self.frame)}")

    def __len__(self) -> int:
        """Length in bytes, without frame check sequence."""
        return len(self.frame)

    @property
    def stamp_at(self) -> int:
        """Offset of the stamp: it ends with the frame."""
        return len(self.frame) - STAMP.itemsize

    @property
    def mask(self) -> NDArray[np.uint8]:
        """255 for each byte that is the same in all frames, and 0 for those of patched fields and the stamp."""
        mask = np.full(len(self.frame), 255, np.uint8)
        mask[self.stamp_at :] = 0
        for patch in self.patches:
            mask[patch.offset : patch.offset + patch.size] = 0
        return mask


# The frames of each kind


def _frame(packet: type[Frame], destination: bytes, source: bytes, length: int) -> Frame:
    """Build a packet with ``length`` bytes of data, in which all fields are 0 but those of lengths and addresses."""
    known = {
        "dst_mac": destination,
        "src_mac": source,
        "data": _PATTERN[:length],
        "dst_src_peer_index": 0,
        **dict.fromkeys(("dst_endpoint", "src_endpoint"), _REGION_ENDPOINT),
        **dict.fromkeys(("length", "frag_length", "frame_length"), length),
        "frag_pipeline": 12,
        "total_length": _BLOCK_FRAMES * MXOE.reply_payload,
        "block_length": MXOE.block_length,
    }
    values: dict[str, Any] = {each.name: 0 for each in fields(packet) if each.default is MISSING}
    return packet(**values | {each.name: known[each.name] for each in fields(packet) if each.name in known})


@dataclass(frozen=True)
class _Kind:
    """A packet type as a test frame."""

    packet: type[Frame]
    longest: int
    """Maximum length of the data in bytes in dialect ``mxoe``; 0 for packets without data, whose stamp follows the
    packet.
    """
    patched: tuple[tuple[str, int, int], ...] = ()
    """Fields that depend on the sequence number: name, factor (0: the length of the data), mask."""


_NUMBERED: Final = (("lib_seqnum", 1, NUMBER_MASK),)
KINDS: Final[dict[str, _Kind]] = {
    "TINY": _Kind(Tiny, TINY_MAXIMUM, _NUMBERED),
    "SMALL": _Kind(Small, SMALL_MAXIMUM, _NUMBERED),
    "MEDIUM": _Kind(Medium, MXOE.fragment_payload, _NUMBERED),
    "PULL": _Kind(Pull, 0, (("frame_index", _BLOCK_FRAMES, 0xFFFF_FFFF),)),
    "PULL_REPLY": _Kind(PullReply, MXOE.reply_payload, (("frame_seqnum", 1, 0xFF), ("msg_offset", 0, 0xFFFF_FFFF))),
}
"""Test frames by packet type."""
MIX: Final = "MIX"
"""One frame of each kind in turn."""
_BY_SIZE: Final = ("TINY", "SMALL", "PULL_REPLY", "MEDIUM")
"""Kinds for a frame of a given size: the first kind that can have this length is used. Hosts drop a PULL_REPLY that
they did not request without an answer, whereas they refuse a MEDIUM for an unknown endpoint.
"""


def header_of(kind: str) -> int:
    """Length in bytes of the header of a kind of test frame."""
    return codec_of(MXOE).layout(KINDS[kind].packet.layout_name).header_end


def full_size(kind: str) -> int:
    """Length in bytes of the longest test frame of a kind in dialect ``mxoe``."""
    length = header_of(kind) + (KINDS[kind].longest or STAMP.itemsize)
    return max(length, SHORTEST_FRAME)


def template_of(kind: str, destination: bytes, source: bytes, size: int | None = None) -> FrameTemplate:
    """Build the template of a kind of frame: TINY, SMALL, MEDIUM, PULL or PULL_REPLY.

    ``size`` is the length of the frame in bytes, by default the longest of dialect ``mxoe``; a longer PULL_REPLY is
    one of dialect ``omx:M`` with that frame limit. Raises :class:`~mxwire.errors.MxwireError` for an unknown kind, or
    a size that this kind cannot have.
    """
    found = KINDS.get(kind)
    if found is None:
        raise MxwireError(f"{kind!r} is not a kind of test frame: choose {', '.join(KINDS)} or {MIX}")
    longest = full_size(kind)
    size = longest if size is None else size
    dialect = _dialect_of(kind, size, longest)
    header = header_of(kind)
    shortest = max(SHORTEST_FRAME, header + STAMP.itemsize)
    if dialect is None or not shortest <= size or (not found.longest and size != longest):
        sizes = f"{shortest} to {longest} bytes" if found.longest else f"{longest} bytes"
        raise MxwireError(f"a {kind} cannot have {size} bytes: test frames of this type have {sizes}")
    codec = codec_of(dialect)
    data = size - header
    frame = codec.build(_frame(found.packet, destination, source, data))
    if not found.longest:
        frame = frame[:header] + bytes(size - header)
    layout = codec.layout(found.packet.layout_name)
    patched = [(layout.by_name[name], factor or data, mask) for name, factor, mask in found.patched]
    patches = tuple(FieldPatch(each.name, each.offset, each.size or 0, factor, mask) for each, factor, mask in patched)
    return FrameTemplate(kind, frame, patches)


def _dialect_of(kind: str, size: int, longest: int) -> Dialect | None:
    """Return the dialect in which a kind of frame can have a size; None if there is none."""
    if size <= longest:
        return MXOE
    if kind != "PULL_REPLY" or size > _LONGEST_OMX:
        return None
    return omx(size)


_LONGEST_OMX: Final = 65535


def template_of_size(size: int, destination: bytes, source: bytes) -> FrameTemplate:
    """Build the template for a frame of ``size`` bytes, of the kind that usually has that size."""
    for kind in _BY_SIZE:
        if size <= full_size(kind):
            return template_of(kind, destination, source, size)
    return template_of("PULL_REPLY", destination, source, size)


def templates_of(name: str, destination: bytes, source: bytes, size: int | None = None) -> tuple[FrameTemplate, ...]:
    """Build the templates for the name of a kind in any case, or for ``mix``; ``size`` as for :func:`template_of`, of a
    mix the largest.

    Raises :class:`~mxwire.errors.MxwireError` as :func:`template_of` does.
    """
    kind = name.upper().replace("-", "_")
    if kind != MIX:
        return (template_of(kind, destination, source, size),)
    sizes = {each: full_size(each) if size is None else min(size, full_size(each)) for each in KINDS}
    return tuple(template_of(each, destination, source, sizes[each]) for each in KINDS)


def captured_templates(
    batches: Iterable[FrameBatch], destination: bytes, source: bytes, most: int = 4096
) -> tuple[FrameTemplate, ...]:
    """Build templates from the first ``most`` frames of a capture that are valid MXoE of hosts, in order.

    The addresses are replaced. The stamp takes the place of the last bytes of the data, or follows a frame that has too
    few. Truncated, tagged and malformed frames are left out, and so are RAW frames, because control frames are RAW
    frames. Raises :class:`~mxwire.errors.MxwireError` if no frame is left.
    """
    found: list[FrameTemplate] = []
    for batch in batches:
        for place in range(len(batch)):
            if batch.length[place] == batch.wire_length[place]:
                made = _captured(batch.frame(place), destination, source)
                found += [made] if made is not None else []
            if len(found) == most:
                return tuple(found)
    if not found:
        raise MxwireError("the capture has no frame to generate: complete, valid MXoE without VLAN tag")
    return tuple(found)


def _captured(frame: bytes, destination: bytes, source: bytes) -> FrameTemplate | None:
    if frame[ETHERTYPE] != ETHERTYPE_MXOE.to_bytes(2, "big"):
        return None
    columns = next((each for each in _decoded(frame) if not each.reason[0]), None)
    if columns is None or columns.packet_type[0] == PacketType.RAW:
        return None
    data_at, data = int(columns.payload_offset[0]), int(columns.payload_length[0])
    if data < STAMP.itemsize or data_at + data != len(frame) or len(frame) < SHORTEST_FRAME:
        frame = frame.ljust(SHORTEST_FRAME - STAMP.itemsize, b"\0") + bytes(STAMP.itemsize)
    changed = bytearray(frame)
    changed[DESTINATION], changed[SOURCE] = destination, source
    return FrameTemplate(PacketType(int(columns.packet_type[0])).name, bytes(changed), captured=True)


def _decoded(frame: bytes) -> Iterator[Columns]:
    """Decode a frame in each family of dialects."""
    batch = FrameBatch.from_frames([frame])
    return (decode_columns(batch, each) for each in (MXOE, omx()))


# Recognition


def recognise(frame: bytes) -> FrameTemplate | None:
    """Rebuild the template of a received frame from its type, length and addresses; None if it cannot be a test frame.

    The result is the frame that was sent, so that its bytes can be compared, except those that differ per frame.
    """
    if len(frame) < SHORTEST_FRAME:
        return None
    stamp = np.frombuffer(frame[-STAMP.itemsize :], STAMP)[0]
    if int(stamp["magic"]) != MAGIC:
        return None
    if int(stamp["streams"]) & CAPTURED:
        if all(isinstance(parse(frame, each), Malformed) for each in (MXOE, omx())):
            return None
        return FrameTemplate(PacketType(frame[TYPE_OFFSET]).name, frame, captured=True)
    try:
        kind = PacketType(frame[TYPE_OFFSET]).name
        return _cached(kind, frame[DESTINATION], frame[SOURCE], len(frame))
    except (ValueError, MxwireError):
        return None


@cache
def _template(kind: str, size: int) -> FrameTemplate:
    return template_of(kind, bytes(6), bytes(6), size)


def _cached(kind: str, destination: bytes, source: bytes, size: int) -> FrameTemplate:
    made = _template(kind, size)
    frame = destination + source + made.frame[SOURCE.stop :]
    return FrameTemplate(kind, frame, made.patches)


def mean_length(templates: Sequence[FrameTemplate]) -> float:
    """Mean length in bytes of frames sent in turn."""
    return sum(map(len, templates)) / len(templates)
