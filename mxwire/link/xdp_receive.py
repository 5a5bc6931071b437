"""XdpReceiveRing: received frames of an AF_XDP socket, read where the kernel wrote them.

Theory of operation
-------------------
All chunks of the receiving half of the memory begin in the fill ring. The kernel takes a chunk for each 3840 bytes of a
frame (1792 with short chunks) and puts a descriptor into the receive ring. ``take`` reads descriptors from ``_at`` on;
``release`` returns their chunks by writing their addresses into the fill ring. Fill ring, receive ring and the number
of chunks are equal, so an index of one is an index of the others, and neither ring can overflow.

A batch is one buffer with an offset per frame, so all descriptors of a frame must lie together. In copy mode they do:
chunks overlap, with a distance from one to the next equal to the bytes of a chunk that remain after the kernel's
headroom. The kernel takes them in the order in which they were returned, so the next descriptor of a frame continues
exactly behind the last. If the descriptors of a frame do not lie together, it is joined in the spill area behind the
chunks: the frame that continues at the start of the memory, and all longer frames of a zero-copy driver, whose chunks
must not cross pages.

As for the packet ring (``ring_v2.py``), three costs determine the design: polling reads one word; a few short frames
are returned as copies; a batch is read by columns above ``_FEW`` frames and one by one below.
"""

from __future__ import annotations

import time
from typing import Final

import numpy as np

from mxwire.link.ring import SHORT, Arrivals, ReceiveRing, fence
from mxwire.link.umem import CHUNK, CONTINUED, HEADROOM, LOW_WORD, NEED_WAKEUP, POSITION_BITS, XdpSocket

BATCH: Final = 2048
"""Largest number of descriptors per batch."""
_FEW: Final = 28
"""Number of descriptors up to which reading them one by one is faster than by columns."""
_SPILLED: Final = 32
"""Frames that can be joined per batch."""
_POSITION: Final = (1 << POSITION_BITS) - 1
_MORE: Final = CONTINUED << 32


def receive_bytes(count: int, longest: int, unaligned: bool, chunk: int) -> int:
    """Return the bytes of memory for ``count`` chunks of ``chunk`` bytes and frames of up to ``longest`` bytes."""
    return _spill_start(count, unaligned, chunk) + _SPILLED * _spill_bytes(longest)


def _stride(unaligned: bool, chunk: int) -> int:
    """Bytes from one chunk to the next."""
    return chunk - HEADROOM if unaligned else chunk


def _spill_start(count: int, unaligned: bool, chunk: int) -> int:
    return -(-((count - 1) * _stride(unaligned, chunk) + chunk) // CHUNK) * CHUNK


def _spill_bytes(longest: int) -> int:
    return -(-longest // CHUNK) * CHUNK


class XdpReceiveRing(ReceiveRing):
    """Receives through a socket whose memory begins with ``receive_bytes(...)`` for this ring."""

    def __init__(self, opened: XdpSocket, longest: int) -> None:
        assert opened.receive is not None
        self._rx = opened.receive
        self._fill = opened.fill
        self.memory = opened.memory
        self._count = self._rx.count
        self._mask = self._count - 1
        self._view = self.memory.data
        self._words = self._rx.words
        self._producer = self._rx.producer
        self._spill = _spill_start(self._count, opened.unaligned, opened.chunk)
        self._spill_each = _spill_bytes(longest)
        stride = _stride(opened.unaligned, opened.chunk)
        self._base = _POSITION if opened.unaligned else _POSITION & -opened.chunk
        """Mask from the address of a descriptor to that of its chunk."""
        self._at = 0
        self._taken = 0
        self._quiet = False
        """True if a poll has found no frame since the last one was taken."""
        self._fill.table[:, 0] = np.arange(self._count, dtype=np.uint64) * np.uint64(stride)
        fence()
        self._fill.producer[0] = self._count

    @property
    def needs_wakeup(self) -> bool:
        """True if the driver waits for a system call before it takes chunks."""
        return bool(self._fill.flags[0] & NEED_WAKEUP)

    def ready(self) -> bool:
        """True if there is a frame that has not been taken."""
        if self._producer[0] != self._at & LOW_WORD:
            return True
        self._quiet = True
        return False

    def take(self) -> Arrivals | None:
        """Take the next frames, at most ``BATCH`` descriptors, which stay in place until ``release``."""
        available = (self._producer[0] - self._at) & LOW_WORD
        if not available:
            return None
        fence()
        if available > _FEW:
            arrivals = self._by_column(min(available, BATCH))
            if arrivals is not None:
                return arrivals
        return self._by_one(available)

    def _by_one(self, available: int) -> Arrivals:
        words, mask = self._words, self._mask
        offset: list[int] = []
        length: list[int] = []
        taken = spilled = 0
        while taken < available and taken < _FEW and spilled < _SPILLED:
            start = end = -1
            scattered: list[tuple[int, int]] = []
            while True:
                at = (self._at + taken) & mask
                address, size = words[2 * at], words[2 * at + 1]
                position = (address & _POSITION) + (address >> POSITION_BITS)
                taken += 1
                scattered.append((position, size & LOW_WORD))
                if start < 0:
                    start = end = position
                end = end + (size & LOW_WORD) if position == end else -1
                # The kernel publishes all descriptors of a frame at once.
                if not size & _MORE:
                    break
            if end < 0:
                start, end = self._join(scattered, spilled)
                spilled += 1
            offset.append(start)
            length.append(end - start)
        self._taken = taken
        count = len(offset)
        # One array for all three is faster than three.
        together = np.array(offset + length + [time.time_ns()] * count)
        lengths = together[count : 2 * count]
        return Arrivals(together[:count], lengths, lengths, together[2 * count :])

    def _join(self, scattered: list[tuple[int, int]], spilled: int) -> tuple[int, int]:
        """Copy the descriptors of a frame into contiguous memory, and return its start and end."""
        start = end = self._spill + spilled * self._spill_each
        for position, size in scattered:
            fitting = min(size, start + self._spill_each - end)
            self._view[end : end + fitting] = self._view[position : position + fitting]
            end += fitting
        return start, end

    def _by_column(self, available: int) -> Arrivals | None:
        """Take frames up to the end of the ring; None if one of them is not contiguous."""
        first = self._at & self._mask
        table = self._rx.table[first : first + available]
        address, second = table[:, 0], table[:, 1]
        start = ((address & np.uint64(_POSITION)) + (address >> np.uint64(POSITION_BITS))).astype(np.int64)
        length = (second & np.uint64(LOW_WORD)).astype(np.int64)
        more = second > np.uint64(LOW_WORD)
        if more.any():
            whole = len(more) - int((~more[::-1]).argmax())
            if more[whole - 1]:
                return None
            start, length, more = start[:whole], length[:whole], more[:whole]
            inner = np.flatnonzero(more)
            if not np.array_equal(start[inner] + length[inner], start[inner + 1]):
                return None
            begins = np.flatnonzero(np.concatenate(([True], ~more[:-1])))
            length = np.add.reduceat(length, begins)
            start = start[begins]
        self._taken = len(more)
        return Arrivals(start, length, length, np.full(len(start), time.time_ns()))

    def take_short(self) -> list[bytes] | None:
        """Take copies of the next frames while they are few or short; release them at once."""
        if not self.ready():
            return None
        frames: list[bytes] = []
        available = (self._producer[0] - self._at) & LOW_WORD
        # After a poll without success, return this frame at once, before the next entry is read.
        most = min(available, 1 if self._quiet else _FEW)
        self._quiet = False
        fence()
        words, mask = self._words, self._mask
        for number in range(self._at, self._at + most):
            at = number & mask
            size = words[2 * at + 1]
            # A frame in several parts has a flag above its length.
            if size > LOW_WORD or (size > SHORT and available > _FEW):
                break
            address = words[2 * at]
            position = (address & _POSITION) + (address >> POSITION_BITS)
            frames.append(bytes(self._view[position : position + size]))
        self._taken = len(frames)
        self.release()
        return frames

    def release(self) -> None:
        """Return the taken frames' chunks to the kernel."""
        taken = self._taken
        if not taken:
            return
        first = self._at & self._mask
        if taken <= _FEW:
            words, chunks, mask, base = self._words, self._fill.words, self._mask, self._base
            for at in range(first, first + taken):
                chunks[at & mask] = words[2 * (at & mask)] & base
        else:
            end = first + taken
            np.bitwise_and(self._rx.table[first:end, 0], np.uint64(self._base), out=self._fill.table[first:end, 0])
        self._at += taken
        self._taken = 0
        # All frames must have been read before the kernel may write into their chunks.
        fence()
        self._rx.consumer[0] = self._at & LOW_WORD
        self._fill.producer[0] = (self._at + self._count) & LOW_WORD

    def close(self) -> None:
        """Release all references to the rings, which their socket unmaps."""
        self._view.release()
        self.memory = np.zeros(0, np.uint8)
