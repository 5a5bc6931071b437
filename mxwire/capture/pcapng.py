"""Decoder of the pcapng format: a sequence of blocks with frames, and of blocks that describe how to read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from struct import unpack, unpack_from
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mxwire.capture.blocks import (
    BYTE_ORDER_MAGIC,
    PACKET_LAYOUTS,
    SMALLEST_CONTROL_BLOCKS,
    BlockType,
    InterfaceOption,
    Option,
    SectionOption,
    StatisticsOption,
    parts,
)
from mxwire.capture.interfaces import InterfaceTable, TimestampClock
from mxwire.capture.metadata import SUPPORTED_LINK_TYPES, CaptureInterface, CaptureSection, describe_link_type
from mxwire.capture.notes import ethernet_names
from mxwire.capture.scan import BLOCKS_TO_STOP_AT, LARGEST_BLOCK_BYTES, SMALLEST_BLOCK_BYTES, Scanner, gather_words
from mxwire.capture.source import ChunkBuffer
from mxwire.errors import CaptureError
from mxwire.frames import FrameBatch
from mxwire.words import count_of, printable

FILE_HEADER_BYTES = SMALLEST_CONTROL_BLOCKS[BlockType.SECTION_HEADER]

MOST_SECTIONS = MOST_INTERFACES = 65536
"""Maximum numbers of sections and interfaces per file: a file with more is damaged or hostile, and compressed, millions
of them take only a few kilobytes."""
MOST_DESCRIBED = 100
"""Maximum sections and interfaces of a file kept as metadata."""
MOST_NAMES = 65536
"""Maximum number of host names of a file that are kept."""
_STATISTICS_HEAD = 12
"""Bytes of the body of an interface statistics block before its options: the interface and a time."""

_SECTION_HEADER_TYPE = BlockType.SECTION_HEADER.to_bytes(4, "big")  # the same in both byte orders


def is_pcapng(head: bytes) -> bool:
    """Return True if ``head``, the first four bytes of a file, is that of a pcapng file."""
    return head == _SECTION_HEADER_TYPE


class PacketFields(NamedTuple):
    """Header fields of a run of packet blocks, with one entry per frame."""

    interface: NDArray[np.int64]
    ticks: NDArray[np.uint64] | None
    """Timestamps; None for blocks without."""
    captured: NDArray[np.int64]
    original: NDArray[np.int64]
    space: NDArray[np.int64]
    """Bytes that the block has for the frame and its options."""


@dataclass(slots=True)
class SkippedFrames:
    """Frames skipped because of an unsupported link type."""

    interface_label: str
    """The first interface with such frames."""
    count: int = 0


class PcapngDecoder:
    """Decodes the complete blocks of a chunk buffer, yielding frames as batches."""

    format = "pcapng"

    def __init__(self, name: str, chunk: ChunkBuffer) -> None:
        """Check that the chunk, which must start with a section, has a complete section header."""
        if chunk.available < FILE_HEADER_BYTES:
            raise _header_cut_off(name, chunk)
        self.frames = 0
        self.needed = FILE_HEADER_BYTES
        self.sections: list[CaptureSection] = []
        self.interfaces: list[CaptureInterface] = []
        self.names: dict[bytes, str] = {}
        self._name = name
        self._little_endian = True
        self._sections_seen = self._interfaces_seen = 0
        self._table = InterfaceTable()
        self._skipped: dict[int, SkippedFrames] = {}
        """By link type."""
        self._refused_interface: str | None = None
        """The first interface with an unsupported link type."""
        self._supported_interface_seen = False
        self._dropped: dict[tuple[int, int], int] = {}
        """By section and interface."""

    @property
    def dropped(self) -> int:
        """Frames lost during capture, according to the statistics read so far."""
        return sum(self._dropped.values())

    def batches(self, chunk: ChunkBuffer, scanner: Scanner) -> Iterator[FrameBatch]:
        """Yield the frames of all complete blocks of the chunk, in a new batch whenever the link type changes.

        Sets ``needed`` to the bytes required for the next block: its header, or all of it once its length is known.
        """
        while (block := self._whole_block(chunk)) is not None:
            block_type, length = block
            if block_type in PACKET_LAYOUTS:
                yield from self._frames(chunk, block_type, scanner)
                continue
            body = chunk.buffer[chunk.start + 8 : chunk.start + length - 4].tobytes()
            if block_type == BlockType.SECTION_HEADER:
                self._begin_section(chunk, body)
            elif block_type == BlockType.INTERFACE_DESCRIPTION:
                self._add_interface(chunk, body)
            elif block_type == BlockType.INTERFACE_STATISTICS:
                self._note_statistics(body)
            elif block_type == BlockType.NAME_RESOLUTION:
                self.names |= islice(ethernet_names(self._order, body), MOST_NAMES - len(self.names))
            else:
                _, chunk.start = scanner.blocks(
                    chunk.buffer, chunk.start, chunk.end, self._little_endian, block_type, SMALLEST_BLOCK_BYTES
                )
                continue
            chunk.start += length

    def plausible(self, chunk: ChunkBuffer, first: int) -> NDArray[np.int64]:
        """Places in the buffer from ``first`` where a complete block begins: known, with equal lengths at both ends."""
        end = chunk.end
        if end - first < SMALLEST_BLOCK_BYTES:
            return np.empty(0, np.int64)
        words = np.ndarray((end - 3,), f"{self._order}u4", chunk.buffer, strides=(1,))
        types, lengths = words[first : end - 11], words[first + 4 : end - 7].astype(np.int64)
        places = np.arange(first, end - 11)
        fits = (lengths >= SMALLEST_BLOCK_BYTES) & (lengths % 4 == 0) & (places + lengths <= end)
        candidates: NDArray[np.int64] = places[fits & np.isin(types, BLOCKS_TO_STOP_AT)]
        lengths = words[candidates + 4].astype(np.int64)
        found: NDArray[np.int64] = candidates[words[candidates + lengths - 4] == lengths]
        return found

    def cut_off(self, chunk: ChunkBuffer) -> str:
        """The defect of a file that ends with the bytes in the chunk."""
        if not self._sections_seen:
            raise _header_cut_off(self._name, chunk)
        missing = count_of(self.needed - chunk.available, "byte")
        if chunk.available < SMALLEST_BLOCK_BYTES:
            missing = f"at least {missing}"
        return (
            f"{self._name}: cut off in the middle of the block at byte {chunk.offset}, after frame {self.frames}: "
            f"{missing} missing"
        )

    def check_link_types(self) -> None:
        """Raise ``CaptureError`` if all interfaces of the file, now at its end, have unsupported link types."""
        if self._refused_interface and not self._supported_interface_seen:
            raise CaptureError(
                f"{self._name}: no supported interface, only {self._refused_interface}; "
                "mxwire reads Ethernet and Linux cooked captures"
            )

    def skipped(self) -> list[str]:
        """Warnings about skipped frames, one per link type."""
        return [
            f"{self._name}: skipped {count_of(skipped.count, 'frame')} of {skipped.interface_label}"
            for skipped in self._skipped.values()
        ]

    @property
    def _order(self) -> str:
        return "<" if self._little_endian else ">"

    def _whole_block(self, chunk: ChunkBuffer) -> tuple[int, int] | None:
        """The type and length of the next block; None, with ``needed`` set, if it is incomplete."""
        self.needed = SMALLEST_BLOCK_BYTES
        if chunk.available < SMALLEST_BLOCK_BYTES:
            return None
        head = chunk.buffer[chunk.start : chunk.start + SMALLEST_BLOCK_BYTES].tobytes()
        # Before its length is read, which is in the byte order of the new section.
        if head[:4] == _SECTION_HEADER_TYPE:
            self._little_endian = self._section_is_little_endian(chunk, head[8:])
        block_type, length = unpack(f"{self._order}II4x", head)
        if not _smallest_block(block_type) <= length <= LARGEST_BLOCK_BYTES:
            raise self._damaged(chunk.offset, f"a block of type {block_type:#x} claims {length} bytes")
        self.needed = length
        if chunk.available < length:
            return None
        (trailing,) = unpack_from(f"{self._order}I", chunk.buffer.data, chunk.start + length - 4)
        if trailing != length:
            raise self._damaged(
                chunk.offset,
                f"a block of type {block_type:#x} claims {length} bytes at its start, {trailing} at its end",
            )
        return block_type, length

    def _section_is_little_endian(self, chunk: ChunkBuffer, magic: bytes) -> bool:
        if magic == BYTE_ORDER_MAGIC.to_bytes(4, "little"):
            return True
        if magic == BYTE_ORDER_MAGIC.to_bytes(4, "big"):
            return False
        raise self._damaged(chunk.offset, f"a section has {magic.hex()} in place of its byte order")

    def _damaged(self, offset: int, what: str) -> CaptureError:
        return CaptureError(
            f"{self._name}: damaged at byte {offset}, after frame {self.frames}: {what}; "
            "only the frames before it can be read"
        )

    def _begin_section(self, chunk: ChunkBuffer, body: bytes) -> None:
        major, minor = unpack_from(f"{self._order}4x2H", body)
        if major != 1:
            raise self._damaged(
                chunk.offset, f"a section claims version {major}.{minor} of the pcapng format, of which only 1.x exists"
            )
        if self._sections_seen == MOST_SECTIONS:
            raise self._damaged(chunk.offset, f"a file has more than {MOST_SECTIONS} sections")
        self._sections_seen += 1
        self._table = InterfaceTable()
        if len(self.sections) < MOST_DESCRIBED:
            options = self._options(body[16:])
            self.sections.append(
                CaptureSection(
                    self._little_endian,
                    hardware=_text(options, SectionOption.HARDWARE),
                    operating_system=_text(options, SectionOption.OPERATING_SYSTEM),
                    application=_text(options, SectionOption.APPLICATION),
                    comment=_text(options, Option.COMMENT),
                )
            )

    def _add_interface(self, chunk: ChunkBuffer, body: bytes) -> None:
        number = len(self._table)
        if self._interfaces_seen == MOST_INTERFACES:
            raise self._damaged(chunk.offset, f"a file has more than {MOST_INTERFACES} interfaces")
        self._interfaces_seen += 1
        link_type, snap_length = unpack_from(f"{self._order}HxxI", body)
        options = self._options(body[8:])
        name = _text(options, InterfaceOption.NAME)
        label = f"interface {number}" + (f" ({printable(name[:80])})" if name else "")
        label += f" with link type {describe_link_type(link_type)}"
        clock = self._clock(options)
        frame_check_bytes = _frame_check_bytes(options)
        self._table.add(label, link_type, snap_length, frame_check_bytes, clock)
        if link_type in SUPPORTED_LINK_TYPES:
            self._supported_interface_seen = True
        elif self._refused_interface is None:
            self._refused_interface = label
        if len(self.interfaces) < MOST_DESCRIBED:
            self.interfaces.append(
                CaptureInterface(
                    section=self._sections_seen - 1,
                    number=number,
                    link_type=link_type,
                    snap_length=snap_length,
                    ticks_per_second=clock.ticks_per_second,
                    frame_check_bytes=frame_check_bytes,
                    name=name,
                    description=_text(options, InterfaceOption.DESCRIPTION),
                    capture_filter=_capture_filter(options),
                    operating_system=_text(options, InterfaceOption.OPERATING_SYSTEM),
                    hardware=_text(options, InterfaceOption.HARDWARE),
                )
            )

    def _note_statistics(self, body: bytes) -> None:
        """Record the drops of an interface; later blocks about the same interface have cumulative counts."""
        if len(body) <= _STATISTICS_HEAD:
            return
        (number,) = unpack_from(f"{self._order}I", body)
        options = self._options(body[_STATISTICS_HEAD:])
        found = (options.get(code, b"") for code in (StatisticsOption.DROPPED, StatisticsOption.DROPPED_BY_SYSTEM))
        dropped = sum(unpack(f"{self._order}Q", each)[0] for each in found if len(each) == 8)
        key = self._sections_seen, number
        if key in self._dropped or len(self._dropped) < MOST_DESCRIBED:
            self._dropped[key] = max(self._dropped.get(key, 0), dropped)

    def _clock(self, options: dict[int, bytes]) -> TimestampClock:
        resolution = options.get(InterfaceOption.RESOLUTION, b"")
        offset = options.get(InterfaceOption.TIME_OFFSET, b"")
        return TimestampClock.from_option(
            resolution[0] if resolution else 6, unpack(f"{self._order}q", offset)[0] if len(offset) == 8 else 0
        )

    def _options(self, data: bytes) -> dict[int, bytes]:
        """The first value of each option."""
        options: dict[int, bytes] = {}
        for code, value in parts(self._order, data, 0, Option.END):
            options.setdefault(code, value)
        return options

    def _frames(self, chunk: ChunkBuffer, block_type: int, scanner: Scanner) -> Iterator[FrameBatch]:
        """The frames of the run of blocks of type ``block_type`` at the start of the chunk."""
        layout = PACKET_LAYOUTS[block_type]
        blocks, following = scanner.blocks(
            chunk.buffer, chunk.start, chunk.end, self._little_endian, block_type, layout.smallest_block
        )
        chunk.start = following
        fields = self._packet_fields(chunk, block_type, blocks)
        bad = (fields.interface >= len(self._table)) | (fields.captured > fields.space)
        good = int(bad.argmax()) if bad.any() else len(blocks)
        if good:
            frames = self._all_frames(chunk, blocks[:good] + layout.header_bytes, fields)
            yield from self._batches_by_link_type(frames, fields.interface[:good])
        if good < len(blocks):
            chunk.start = int(blocks[good])
            raise self._damaged(chunk.offset, self._defect(fields, good))

    def _packet_fields(self, chunk: ChunkBuffer, block_type: int, blocks: NDArray[np.int64]) -> PacketFields:
        layout = PACKET_LAYOUTS[block_type]
        words = gather_words(chunk.buffer, blocks, layout.header_words, self._little_endian)
        space = words[1] - layout.smallest_block
        if block_type == BlockType.SIMPLE_PACKET:
            original = words[2]
            # The block has no captured length: it follows from the first interface.
            snap_length = int(self._table.snap_length[0]) if len(self._table) else 0
            captured = np.minimum(original, snap_length) if snap_length else original
            return PacketFields(np.zeros_like(original), None, captured, original, space)
        interface, high, low, captured, original = words[2:]
        if block_type == BlockType.PACKET:
            # Two 16-bit integers: the interface, then a drop count.
            interface = interface & 0xFFFF if self._little_endian else interface >> 16
        ticks = high.view(np.uint64) << np.uint64(32) | low.view(np.uint64)
        return PacketFields(interface, ticks, captured, original, space)

    def _defect(self, fields: PacketFields, index: int) -> str:
        interface = int(fields.interface[index])
        known = len(self._table)
        if interface >= known:
            return f"a frame of interface {interface}, but the section has {count_of(known, 'interface')}"
        return f"a frame of {fields.captured[index]} bytes in a block for {fields.space[index]}"

    def _all_frames(self, chunk: ChunkBuffer, offset: NDArray[np.int64], fields: PacketFields) -> FrameBatch:
        """The frames at ``offset``, of all link types; ``fields`` may have further entries."""
        count = len(offset)
        interface = fields.interface[:count]
        captured = fields.captured[:count]
        if fields.ticks is None:
            times = np.zeros(count, np.int64)
        else:
            times = self._table.nanoseconds(interface, fields.ticks[:count])
        # Some writers record a wire length below the captured length; users of batches rely on the opposite.
        wire_length = np.maximum(fields.original[:count], captured)
        wire_length = np.maximum(wire_length - self._table.frame_check_bytes[interface], 0)
        first_number = self.frames + 1
        self.frames += count
        return FrameBatch(
            buffer=chunk.buffer,
            offset=offset,
            length=np.minimum(captured, wire_length),
            wire_length=wire_length,
            timestamp_ns=times,
            number=np.arange(first_number, first_number + count, dtype=np.int64),
        )

    def _batches_by_link_type(self, frames: FrameBatch, interface: NDArray[np.int64]) -> Iterator[FrameBatch]:
        link_type = self._table.link_type[interface]
        supported = self._table.supported[interface]
        if not supported.all():
            self._count_skipped(interface[~supported], link_type[~supported])
            frames = frames.select(supported)
            link_type = link_type[supported]
        bounds = [0, *(np.flatnonzero(np.diff(link_type)) + 1).tolist(), len(link_type)]
        for first, behind in pairwise(bounds):
            if first < behind:
                yield replace(frames.part(first, behind), link_type=int(link_type[first]))

    def _count_skipped(self, interface: NDArray[np.int64], link_type: NDArray[np.int64]) -> None:
        _, first, counts = np.unique(link_type, return_index=True, return_counts=True)
        for place, count in sorted(zip(first.tolist(), counts.tolist(), strict=True)):
            label = self._table.labels[interface[place]]
            self._skipped.setdefault(int(link_type[place]), SkippedFrames(label)).count += count


def _header_cut_off(name: str, chunk: ChunkBuffer) -> CaptureError:
    return CaptureError(
        f"{name}: cut off after {count_of(chunk.available, 'byte')} of its header of at least "
        f"{FILE_HEADER_BYTES}; record or copy it again"
    )


def _smallest_block(block_type: int) -> int:
    layout = PACKET_LAYOUTS.get(block_type)
    if layout is not None:
        return layout.smallest_block
    return SMALLEST_CONTROL_BLOCKS.get(block_type, SMALLEST_BLOCK_BYTES)


def _text(options: dict[int, bytes], code: int) -> str | None:
    value = options.get(code)
    # Strings are not NUL-terminated by the format, but some writers do so.
    return None if value is None else value.rstrip(b"\0").decode(errors="replace")


def _capture_filter(options: dict[int, bytes]) -> str | None:
    value = options.get(InterfaceOption.FILTER, b"")
    # The first byte is the kind of filter: 0 is libpcap text, others are compiled filters.
    return value[1:].decode(errors="replace") if value[:1] == b"\0" else None


def _frame_check_bytes(options: dict[int, bytes]) -> int:
    value = options.get(InterfaceOption.FRAME_CHECK_LENGTH, b"\0")
    length = value[0] if value else 0
    # The specification defines bits but gives 4 as its example, and Wireshark reads bytes: both are in use.
    return length // 8 if length >= 16 else length
