"""Decoder of the pcap format: a file header of 24 bytes, then each frame with a header of 16 bytes."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from mxwire.capture.metadata import SUPPORTED_LINK_TYPES, CaptureInterface, CaptureSection, describe_link_type
from mxwire.capture.scan import RECORD_HEADER_BYTES, Scanner, gather_words
from mxwire.capture.source import ChunkBuffer
from mxwire.errors import CaptureError
from mxwire.frames import FrameBatch
from mxwire.words import count_of

FILE_HEADER_BYTES = 24

MAGIC_MICROSECONDS = 0xA1B2C3D4
MAGIC_NANOSECONDS = 0xA1B23C4D

ORDINARY_LARGEST_FRAME = 256 << 10
"""The snap length that capture programs use for "no limit"."""
_LONGEST_PAUSE = 86_400
"""Seconds between the last frame before damage and the first one after it, at most."""
LARGEST_FRAME = 16 << 20
"""Longer frames are treated as damage, whatever the snap length in the header."""

_BYTE_ORDERS = {
    magic.to_bytes(4, order): (order == "little", ticks)
    for magic, ticks in ((MAGIC_MICROSECONDS, 10**6), (MAGIC_NANOSECONDS, 10**9))
    for order in ("little", "big")
}
"""Little-endian or not, and ticks per second, by the first four bytes."""


def is_pcap(head: bytes) -> bool:
    """Return True if ``head``, the first four bytes of a file, is that of a pcap file."""
    return head in _BYTE_ORDERS


class PcapDecoder:
    """Decodes the complete records of a chunk buffer as batches."""

    format = "pcap"
    dropped = 0
    """Frames lost during capture, which the format does not record."""

    def __init__(self, name: str, chunk: ChunkBuffer) -> None:
        """Read the file header, which must be in the chunk unless the file is shorter."""
        if chunk.available < FILE_HEADER_BYTES:
            raise CaptureError(
                f"{name}: cut off after {count_of(chunk.available, 'byte')} of its header of "
                f"{FILE_HEADER_BYTES}; record or copy it again"
            )
        header = chunk.buffer[chunk.start : chunk.start + FILE_HEADER_BYTES].tobytes()
        chunk.start += FILE_HEADER_BYTES
        self.frames = 0
        self.needed = RECORD_HEADER_BYTES
        self._name = name
        self._little_endian, ticks_per_second = _BYTE_ORDERS[header[:4]]
        self._nanoseconds_per_tick = 10**9 // ticks_per_second
        order = "<" if self._little_endian else ">"
        major, minor, snap_length, link_field = Struct(f"{order}4x2H8x2I").unpack(header)
        if major != 2:
            raise CaptureError(
                f"{name}: claims version {major}.{minor} of the pcap format, of which only 2.x exists; "
                "its header is damaged"
            )
        # Above the 16 bits of the link type are 10 unused bits, a flag (bit 26) that the length of the frame check
        # sequence is known, and that length in units of 16 bits (bits 28 to 31).
        self._link_type = link_field & 0xFFFF
        self._frame_check_bytes = 2 * (link_field >> 28) if link_field & 1 << 26 else 0
        if self._link_type not in SUPPORTED_LINK_TYPES:
            raise CaptureError(
                f"{name}: has link type {describe_link_type(self._link_type)}; "
                "mxwire reads Ethernet and Linux cooked captures"
            )
        self._largest = max(ORDINARY_LARGEST_FRAME, min(snap_length, LARGEST_FRAME))
        self._header = Struct(f"{order}8xI")
        self._last_seconds: int | None = None
        self.sections = [CaptureSection(self._little_endian)]
        self.interfaces = [
            CaptureInterface(0, 0, self._link_type, snap_length, ticks_per_second, self._frame_check_bytes)
        ]
        self.names: dict[bytes, str] = {}
        """Always empty: only pcapng has names of hosts."""

    def batches(self, chunk: ChunkBuffer, scanner: Scanner) -> Iterator[FrameBatch]:
        """Yield all complete records of the chunk as one batch, if there are any.

        Sets ``needed`` to the bytes required for the next record: its header, or all of it once its length is known.
        """
        records, following = scanner.records(chunk.buffer, chunk.start, chunk.end, self._little_endian, self._largest)
        if len(records):
            chunk.start = following
            yield self._batch(chunk, records)
        self._check_next(chunk)

    def plausible(self, chunk: ChunkBuffer, first: int) -> NDArray[np.int64]:
        """Places in the buffer from ``first`` where a record may begin that ends at another one, or at the end."""
        places = np.arange(first, chunk.end - RECORD_HEADER_BYTES + 1)
        following = self._ends(chunk, places)
        places, following = places[following > 0], following[following > 0]
        ends = following == chunk.end
        inside = following <= chunk.end - RECORD_HEADER_BYTES
        ends[inside] = self._ends(chunk, following[inside]) > 0
        found: NDArray[np.int64] = places[ends]
        return found

    def _ends(self, chunk: ChunkBuffer, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The end of the record at each place; 0 if its header is implausible."""
        if not len(places):
            return places
        words = np.ndarray((chunk.end - 3,), "<u4" if self._little_endian else ">u4", chunk.buffer, strides=(1,))
        ends = np.zeros(len(places), np.int64)
        # Most places fail by the second length, so that the other fields are gathered for a few. Records without data
        # would make any run of zeros plausible.
        original = words[places + 12]
        likely = np.flatnonzero((original > 0) & (original <= self._largest))
        at = places[likely]
        seconds, ticks, captured = (words[at + offset].astype(np.int64) for offset in (0, 4, 8))
        plausible = (captured <= original[likely]) & (captured > 0) & (ticks * self._nanoseconds_per_tick < 10**9)
        if self._last_seconds is not None:
            plausible &= abs(seconds - self._last_seconds) < _LONGEST_PAUSE
        ends[likely[plausible]] = (at + RECORD_HEADER_BYTES + captured)[plausible]
        return ends

    def cut_off(self, chunk: ChunkBuffer) -> str:
        """The defect of a file that ends with the bytes in the chunk."""
        missing = count_of(self.needed - chunk.available, "byte")
        if chunk.available < RECORD_HEADER_BYTES:
            missing = f"at least {missing}"
        return (
            f"{self._name}: cut off in the middle of frame {self.frames + 1} at byte {chunk.offset}: {missing} missing"
        )

    def check_link_types(self) -> None:
        """Do nothing: the single link type was checked with the header."""

    def skipped(self) -> list[str]:
        """Warnings about skipped frames, of which a pcap file has none."""
        return []

    def _batch(self, chunk: ChunkBuffer, records: NDArray[np.int64]) -> FrameBatch:
        seconds, ticks, captured, original = gather_words(chunk.buffer, records, 4, self._little_endian)
        # Some writers record a wire length below the captured length; users of batches rely on the opposite.
        wire_length = np.maximum(original, captured)
        length = captured
        if self._frame_check_bytes:
            wire_length = np.maximum(wire_length - self._frame_check_bytes, 0)
            length = np.minimum(captured, wire_length)
        self._last_seconds = int(seconds[-1])
        first_number = self.frames + 1
        self.frames += len(records)
        return FrameBatch(
            buffer=chunk.buffer,
            offset=records + RECORD_HEADER_BYTES,
            length=length,
            wire_length=wire_length,
            timestamp_ns=seconds * 10**9 + ticks * self._nanoseconds_per_tick,
            number=np.arange(first_number, first_number + len(records), dtype=np.int64),
            link_type=self._link_type,
        )

    def _check_next(self, chunk: ChunkBuffer) -> None:
        """Set ``needed`` for the next, incomplete record; raise if its length is impossible."""
        self.needed = RECORD_HEADER_BYTES
        if chunk.available < RECORD_HEADER_BYTES:
            return
        (captured,) = self._header.unpack_from(chunk.buffer.data, chunk.start)
        if captured > self._largest:
            raise CaptureError(
                f"{self._name}: damaged at byte {chunk.offset}: frame {self.frames + 1} claims {captured} "
                f"captured bytes, more than {self._largest}; only the frames before it can be read"
            )
        self.needed += captured
