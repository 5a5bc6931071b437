"""Encoders of batches as pcap and pcapng files, in little-endian order."""

from __future__ import annotations

from collections.abc import Mapping
from struct import pack
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mxwire.capture.blocks import (
    BYTE_ORDER_MAGIC,
    PACKET_LAYOUTS,
    BlockType,
    InterfaceOption,
    Option,
    SectionOption,
    block,
    name_resolution,
    option,
    statistics,
    terminated,
)
from mxwire.capture.metadata import describe_link_type
from mxwire.capture.pcap import MAGIC_MICROSECONDS, MAGIC_NANOSECONDS
from mxwire.capture.scan import RECORD_HEADER_BYTES
from mxwire.errors import CaptureError
from mxwire.frames import FrameBatch

APPLICATION = "mxwire"

_SECTION_LENGTH_UNKNOWN = -1


class EncoderSettings(NamedTuple):
    """Settings common to both formats."""

    name: str
    """Name of the file in messages."""
    snap_length: int
    """Maximum bytes to write per frame; 0 for no limit."""
    nanoseconds: bool
    """True for timestamps in nanoseconds, False for microseconds."""

    @property
    def nanoseconds_per_tick(self) -> int:
        """Duration of one tick of a timestamp."""
        return 1 if self.nanoseconds else 1000

    def captured_length(self, batch: FrameBatch) -> NDArray[np.int64]:
        """Bytes to write of each frame."""
        return np.minimum(batch.length, self.snap_length) if self.snap_length else batch.length

    def ticks(self, batch: FrameBatch, limit: int) -> NDArray[np.int64]:
        """The timestamps in ticks; raises ``CaptureError`` unless all are from 0 to below ``limit``."""
        ticks = batch.timestamp_ns // self.nanoseconds_per_tick
        wrong = (ticks < 0) | (ticks >= limit)
        if wrong.any():
            at = int(wrong.argmax())
            raise CaptureError(
                f"{self.name}: frame {batch.number[at]} has a timestamp ({batch.timestamp_ns[at]} ns) "
                "that the format cannot represent; it starts in 1970"
            )
        return ticks


class Encoder(Protocol):
    """Encodes batches as the bytes of a file."""

    def begin(self, link_type: int) -> bytes:
        """The bytes required before frames of a link type; empty if written before."""

    def frames(self, batch: FrameBatch, comments: Mapping[int, str]) -> memoryview:
        """The frames of a batch; ``comments`` are by frame number."""


class PcapEncoder:
    """Encoder of the pcap format, which has a single link type and no comments."""

    def __init__(self, settings: EncoderSettings) -> None:
        """Create an encoder; the link type is set by the first call of :meth:`begin`."""
        self._settings = settings
        self._link_type: int | None = None

    def begin(self, link_type: int) -> bytes:
        """The file header, on the first call."""
        if self._link_type is None:
            self._link_type = link_type
            magic = MAGIC_NANOSECONDS if self._settings.nanoseconds else MAGIC_MICROSECONDS
            return pack("<IHHiIII", magic, 2, 4, 0, 0, self._settings.snap_length, link_type)
        if self._link_type != link_type:
            raise CaptureError(
                f"{self._settings.name}: frames of link type {describe_link_type(link_type)} cannot go into a "
                f"pcap file of link type {describe_link_type(self._link_type)}; write pcapng instead"
            )
        return b""

    def frames(self, batch: FrameBatch, comments: Mapping[int, str]) -> memoryview:
        """A record header and the bytes of each frame."""
        ticks_per_second = 10**9 // self._settings.nanoseconds_per_tick
        ticks = self._settings.ticks(batch, ticks_per_second << 32)
        captured = self._settings.captured_length(batch)
        record_bytes = RECORD_HEADER_BYTES + captured
        data, records = _space_for(record_bytes)
        seconds, fraction = np.divmod(ticks, ticks_per_second)
        _put_words(data, records, seconds, fraction, captured, batch.wire_length)
        _put_frames(data, records + RECORD_HEADER_BYTES, batch, captured)
        return data.data


class PcapngEncoder:
    """Encoder of the pcapng format, with one section and by default one interface per link type."""

    def __init__(self, settings: EncoderSettings, interface_name: str | None, comment: str | None) -> None:
        """``comment`` applies to the section; all default interfaces are named ``interface_name``."""
        self._settings = settings
        self._interface_name = interface_name
        self._section_options = b"" if comment is None else option(Option.COMMENT, comment)
        self._section_options += option(SectionOption.APPLICATION, APPLICATION)
        self._interfaces: dict[int, int] = {}
        """Numbers of the default interfaces, by link type."""
        self._interface_count = 0

    def begin(self, link_type: int) -> bytes:
        """An interface for a new link type, preceded by the section header if it is the first one."""
        if link_type in self._interfaces:
            return b""
        head, self._interfaces[link_type] = self.add_interface(self._interface_name, link_type)
        return head

    def add_interface(self, name: str | None, link_type: int) -> tuple[bytes, int]:
        """The bytes of a further interface, and its number; the first is preceded by the section header."""
        section = b""
        if not self._interface_count:
            # A pipe cannot be sought back to fill in the length.
            header = pack("<IHHq", BYTE_ORDER_MAGIC, 1, 0, _SECTION_LENGTH_UNKNOWN)
            section = block(BlockType.SECTION_HEADER, header + terminated(self._section_options))
        options = b"" if name is None else option(InterfaceOption.NAME, name)
        options += option(InterfaceOption.RESOLUTION, b"\x09" if self._settings.nanoseconds else b"\x06")
        interface = pack("<HxxI", link_type, self._settings.snap_length)
        self._interface_count += 1
        return section + block(
            BlockType.INTERFACE_DESCRIPTION, interface + terminated(options)
        ), self._interface_count - 1

    def names(self, names: Mapping[bytes, str]) -> bytes:
        """A block with the names of hosts by Ethernet address."""
        return name_resolution(names)

    def statistics(self, end_ns: int, received: int, dropped: int) -> bytes:
        """A block with the frames received and dropped by the first interface up to ``end_ns``."""
        return statistics(0, end_ns // self._settings.nanoseconds_per_tick, received, dropped)

    def frames(
        self, batch: FrameBatch, comments: Mapping[int, str], interfaces: NDArray[np.intp] | None = None
    ) -> memoryview:
        """One enhanced packet block per frame; ``interfaces`` are their numbers, by default that of the link type."""
        if interfaces is None:
            interfaces = np.full(len(batch), self._interfaces[batch.link_type], np.intp)
        layout = PACKET_LAYOUTS[BlockType.ENHANCED_PACKET]
        captured = self._settings.captured_length(batch)
        ticks = self._settings.ticks(batch, 1 << 63)
        options = _comment_options(batch, comments)
        options_bytes = np.zeros(len(batch), np.int64)
        for index, encoded in options.items():
            options_bytes[index] = len(encoded)
        block_bytes = layout.smallest_block + (captured + 3 & ~3) + options_bytes
        data, blocks = _space_for(block_bytes)
        _put_words(
            data,
            blocks,
            np.full(len(batch), BlockType.ENHANCED_PACKET, np.int64),
            block_bytes,
            interfaces,
            ticks >> 32,
            ticks & 0xFFFFFFFF,
            captured,
            batch.wire_length,
        )
        _put_frames(data, blocks + layout.header_bytes, batch, captured)
        trailers = blocks + block_bytes - 4
        for index, encoded in options.items():
            end = int(trailers[index])
            data.data[end - len(encoded) : end] = encoded
        _put_words(data, trailers, block_bytes)
        return data.data


def _space_for(lengths: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """A zeroed buffer for consecutive parts of the given lengths, and the offset of each part."""
    ends = np.cumsum(lengths)
    return np.zeros(int(ends[-1]), np.uint8), ends - lengths


def _put_words(data: NDArray[np.uint8], offsets: NDArray[np.int64], *columns: NDArray[np.int64]) -> None:
    """Write one row of ``columns`` as little-endian 32-bit integers at each offset."""
    size = 4 * len(columns)
    rows = np.column_stack(columns).astype("<u4").view(f"V{size}")[:, 0]
    # A view with a row at every byte of the data, as in gather_words.
    every_place = np.ndarray((len(data) - size + 1,), rows.dtype, data, strides=(1,))
    every_place[offsets] = rows


def _put_frames(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], batch: FrameBatch, lengths: NDArray[np.int64]
) -> None:
    """Copy the first ``lengths`` bytes of each frame to its offset."""
    target, source = data.data, batch.buffer.data
    for to, start, length in zip(offsets.tolist(), batch.offset.tolist(), lengths.tolist(), strict=True):
        target[to : to + length] = source[start : start + length]


def _comment_options(batch: FrameBatch, comments: Mapping[int, str]) -> dict[int, bytes]:
    """The encoded comments, by the frame's place in the batch."""
    if not comments:
        return {}
    return {
        index: terminated(option(Option.COMMENT, comments[number]))
        for index, number in enumerate(batch.number.tolist())
        if number in comments
    }
