"""The stretch of a capture that is in memory, refilled from its source as records are taken from it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mxwire.capture.source import Source

SMALLEST_READ_BYTES = 64 << 10
"""What a pipe holds; with less room than this left, a fresh buffer is better."""


class ChunkBuffer:
    """The bytes ``buffer[start:end]``, read but not taken yet.

    The batches handed out refer to the buffer, so what is in it never changes. What arrives is put behind that
    while there is room, then the rest (part of one record) is copied to a fresh buffer: no byte is copied more
    than a few times, however small the pieces in which it comes.

    Files are read, not mapped: when a mapped file is truncated by somebody else, touching the lost pages kills
    the process with SIGBUS, and a capture being written or rotated is an ordinary thing to read.
    """

    def __init__(self, source: Source, chunk_bytes: int) -> None:
        """``chunk_bytes``: the size of the buffers, unless a record needs more."""
        self.buffer: NDArray[np.uint8] = np.empty(0, np.uint8)
        self.start = 0
        self.end = 0
        self._source = source
        self._chunk_bytes = chunk_bytes
        self._smallest_read = min(SMALLEST_READ_BYTES, max(chunk_bytes // 4, 1))
        self._buffer_offset = 0

    @property
    def available(self) -> int:
        """How many bytes are in memory and not taken."""
        return self.end - self.start

    @property
    def offset(self) -> int:
        """Where the first byte that is not taken stands in the capture."""
        return self.offset_at(self.start)

    def offset_at(self, place: int) -> int:
        """Where a place in the buffer stands in the capture."""
        return self._buffer_offset + place

    def fill(self, needed: int) -> bool:
        """Read more; false at the end. ``needed`` is how many bytes have to be available to go on."""
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
