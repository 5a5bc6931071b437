"""TPACKET_V3: a ring of blocks packed with frames, each handed over when it is full or after a timeout."""

from __future__ import annotations

import socket
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.link.ring import RING_BYTES, USER, Arrivals, ReceiveRing, fence, map_ring, unmap

VERSION: Final = 2
BLOCK_BYTES: Final = 256 << 10
RETIRE_MS: Final = 1
"""Timeout of a block that is not full, in milliseconds; 1 is the kernel's minimum."""
_STATUS: Final = 2
_COUNT: Final = 3
_FIRST: Final = 4
"""Indexes of words in a block's header (struct tpacket_block_desc)."""
NOTE: Final = np.dtype(
    {
        "names": ["next", "seconds", "nanoseconds", "snapped", "length", "status", "mac", "tag", "tag_protocol"],
        "formats": ["u4", "u4", "u4", "u4", "u4", "u4", "u2", "u4", "u2"],
        "offsets": [0, 4, 8, 12, 16, 20, 24, 32, 36],
        "itemsize": 48,
    }
)
"""Header that the kernel writes before each frame (struct tpacket3_hdr)."""
_SHORT_RUN: Final = 8
"""Run length below which walking from header to header is faster than looking for another run."""


class BlockRing(ReceiveRing):
    """A receive ring on a socket with ``VERSION`` set; frames may be as long as a block."""

    def __init__(
        self, opened: socket.socket, ring_bytes: int = RING_BYTES, *, block: int = BLOCK_BYTES, retire: int = RETIRE_MS
    ) -> None:
        self._mapped = map_ring(opened, block, max(ring_bytes // block, 2), 2048, retire, 0, 0)
        self.blocks = len(self._mapped) // block
        self.memory = np.frombuffer(self._mapped, np.uint8)
        self._words = memoryview(self._mapped).cast("I")
        self._words_per_block = block // 4
        self._block = block
        self._current = 0
        self._taken = False

    def ready(self) -> bool:
        """True if there is a block that has not been taken."""
        return bool(self._words[self._current * self._words_per_block + _STATUS] & USER)

    def take(self) -> Arrivals | None:
        """Take the frames of the next block, which stay in place until ``release``; None if there is no block."""
        if not self.ready():
            return None
        fence()
        self._taken = True
        note = self._current * self._words_per_block
        count = self._words[note + _COUNT]
        if not count:
            self.release()
            return None
        return self._arrivals(self._headers(self._current * self._block + self._words[note + _FIRST], count))

    def take_short(self) -> list[bytes] | None:
        """Take no frames: the delay of blocks is far longer than the cost of a batch."""
        return [] if self.ready() else None

    def _headers(self, at: int, count: int) -> NDArray[np.int64]:
        """Offsets of the kernel's headers of the ``count`` frames of a block.

        Each header has the distance to the next. Runs of frames of equal length have equal distances and are found by
        one array comparison; all others are followed one by one.
        """
        runs: list[NDArray[np.int64]] = []
        while count:
            run = self._even_run(at, count)
            runs.append(run)
            count -= len(run)
            last = int(run[-1])
            at = last + self._words[last >> 2]
            if count and len(run) < _SHORT_RUN:
                runs.append(self._walk(at, count))
                break
        return runs[0] if len(runs) == 1 else np.concatenate(runs)

    def _even_run(self, at: int, count: int) -> NDArray[np.int64]:
        """Offsets of the frames from ``at`` on with equal distances, at most ``count``."""
        step = self._words[at >> 2]
        if count == 1:
            return np.array([at], np.int64)
        even = self._following(at, count, step) == step
        length = len(even) if even.all() else int(even.argmin())
        return at + step * np.arange(length + 1, dtype=np.int64)

    def _following(self, at: int, count: int, step: int) -> NDArray[np.uint32]:
        """Distances in the headers of ``count`` - 1 frames ``step`` bytes apart, up to the end of the block."""
        end = (at // self._block + 1) * self._block
        places = min(count - 1, (end - at - NOTE.itemsize) // step + 1)
        return np.ndarray((places,), np.uint32, self.memory, at, (step,))

    def _walk(self, at: int, count: int) -> NDArray[np.int64]:
        words = self._words
        places = []
        for _ in range(count):
            places.append(at)
            at += words[at >> 2]
        return np.array(places, np.int64)

    def _arrivals(self, headers: NDArray[np.int64]) -> Arrivals:
        words: NDArray[np.uint32] = self.memory.view(np.uint32)
        notes = words[(headers >> 2)[:, None] + np.arange(NOTE.itemsize // 4)].view(NOTE).reshape(len(headers))
        return Arrivals.described(notes, headers)

    def release(self) -> None:
        """Return the taken block to the kernel."""
        if not self._taken:
            return
        self._words[self._current * self._words_per_block + _STATUS] = 0
        self._taken = False
        self._current = (self._current + 1) % self.blocks

    def close(self) -> None:
        """Unmap the memory."""
        self._words.release()
        self.memory = np.zeros(0, np.uint8)
        self._mapped = unmap(self._mapped)
