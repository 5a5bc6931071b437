"""The part of a capture in memory, refilled from its source as records are consumed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mxwire.capture.source import ByteSource

SMALLEST_READ_BYTES = 64 << 10
"""Capacity of a pipe; with less free space than this, a new buffer replaces the current one."""


class ChunkBuffer:
    """The bytes ``buffer[start:end]``: read but not consumed yet.

    Batches refer to the buffer, so its contents never change once read. New bytes are appended while there is room;
    then the remainder (part of one record) is copied to a new buffer. No byte is copied more than a few times, however
    small the pieces in which it is read.

    Files are read rather than mapped: if another process truncates a mapped file, access to the lost pages kills the
    reader with SIGBUS, and captures are often read while they are written or rotated.
    """

    def __init__(self, source: ByteSource, chunk_bytes: int) -> None:
        """``chunk_bytes`` is the size of a buffer, unless a record needs more."""
        self.buffer: NDArray[np.uint8] = np.empty(0, np.uint8)
        self.start = 0
        self.end = 0
        self._source = source
        self._chunk_bytes = chunk_bytes
        self._smallest_read = min(SMALLEST_READ_BYTES, max(chunk_bytes // 4, 1))
        self._buffer_offset = 0

    @property
    def available(self) -> int:
        """Number of bytes in memory and not consumed."""
        return self.end - self.start

    @property
    def offset(self) -> int:
        """Offset in the capture of the first byte not consumed."""
        return self.offset_at(self.start)

    def offset_at(self, place: int) -> int:
        """Offset in the capture of a position in the buffer."""
        return self._buffer_offset + place

    def fill(self, needed: int) -> bool:
        """Read more, and return False at the end. ``needed`` is the number of available bytes required to continue."""
        if len(self.buffer) - self.end < max(needed - self.available, self._smallest_read):
            self._move_to_fresh_buffer(needed)
        count = self._source.read_into(self.buffer.data[self.end :])
        self.end += count
        return count > 0

    def _move_to_fresh_buffer(self, needed: int) -> None:
        fresh = np.empty(max(self._chunk_bytes, needed), np.uint8)
        fresh[: self.available] = self.buffer[self.start : self.end]
        self._buffer_offset = self.offset
        self.start, self.end = 0, self.available
        self.buffer = fresh
