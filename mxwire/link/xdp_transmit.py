"""TransmitQueue: frames sent through an AF_XDP socket, built in its memory or copied there.

Theory of operation
-------------------
The transmitting part of the memory is used from its start to its end and then again. ``room`` reserves some of it for a
caller that builds its frames there; ``send`` recognises the reserved array by its identity and only writes descriptors,
while frames from elsewhere are copied first. One system call then starts the transmission of all of them.

*Ownership.* Memory belongs to the kernel from the moment when the producer index has passed its descriptors, until
their completions have returned. ``_flight`` lists the parts without a completion, in order. Drivers that copy usually
complete a frame within the system call, so that the list is empty and the same memory, still in the CPU's cache, is
used again.

*Layout of frames.* A driver that copies makes the first descriptor of a frame linear and every other one a page. A
frame longer than a page would cost a large allocation; with a first descriptor of 64 bytes it costs pages only. In
zero-copy mode the driver reads chunks as they are, and descriptors may not cross them: frames start at chunks, and are
copied.

*Failure.* If the interface is down, the kernel leaves the descriptors in the ring and would transmit them when it is up
again, although their memory may contain other frames by then. They are therefore set to length 0, which the kernel
skips.
"""

from __future__ import annotations

import errno
import socket
import time
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import HEADER_SIZE
from mxwire.frames import FrameBatch
from mxwire.link.backoff import BACKOFF_NS
from mxwire.link.ring import fence
from mxwire.link.umem import CONTINUED, LOW_WORD, NEED_WAKEUP, Descriptors, XdpSocket, descriptors_of, pieces_of

RING: Final = 1024
"""Descriptors of the transmit ring."""
TRANSMIT_BYTES: Final = 1 << 20
"""Bytes of memory for frames: more than a batch of the engine. It is used from its start whenever it is free, so that
the used part stays in the CPU's cache."""
_GROUP: Final = 64
"""Frames per system call: enough to make its cost small, few enough that the receiver starts early."""
_LINEAR: Final = 3500
"""Maximum length in bytes of a frame that is sent as one descriptor in copy mode, if a descriptor may be that long."""
_HEAD: Final = 64
"""Bytes in the first descriptor of longer frames."""
_LINE: Final = 64
"""Alignment in bytes of frames that are copied one by one: a cache line."""
_PAUSE: Final = 50e-6
"""Seconds between two attempts while the kernel makes no progress."""
_FLAGS: Final = int(socket.MSG_DONTWAIT)
_PASSING: Final = frozenset({0, errno.EAGAIN, errno.ENOBUFS, errno.EBUSY})
"""Results of a system call after which a further call may send more."""
_WORD_MASK: Final = (1 << 64) - 1
_PLANS: Final = 256
"""Maximum number of batch shapes whose descriptors are cached."""
Groups = list[tuple[int, int, Descriptors]]
"""Frames sent by one system call each: their number, the start of the first in the room, and their descriptors relative
to it."""


@lru_cache(maxsize=256)
def _even_table(length: int, head: int, most: int, gap: int, count: int) -> Descriptors:
    """Descriptors of ``count`` frames of one length at one distance, from address 0."""
    return descriptors_of(length, head, most, np.arange(count) * gap)


class TransmitQueue:
    """Sends through a bound socket from its memory between ``start`` and ``end``, bytes from its start."""

    def __init__(self, opened: XdpSocket, start: int, end: int) -> None:
        assert opened.transmit is not None
        self._ring = opened.transmit
        self._completion = opened.completion
        self._send = opened.socket.send
        self._zero_copy = not opened.unaligned
        self._start, self._end = start, end
        self._memory = opened.memory
        self._view = self._memory.data
        self._words, self._mask = self._ring.words, self._ring.count - 1
        self._longest = opened.interface.mtu + HEADER_SIZE
        self._chunk = opened.chunk
        self._linear = opened.chunk if self._zero_copy else min(_LINEAR, opened.chunk)
        self._most_pieces = len(pieces_of(self._longest, _HEAD, self._chunk))
        self._next = start
        self._produced = self._completed = 0
        self._flight: deque[tuple[int, int, int]] = deque()
        """Memory that belongs to the kernel: the completions after which it is free, its start and its end."""
        self._room: NDArray[np.uint8] | None = None
        self._room_start = self._room_end = 0
        self._plans: dict[int, tuple[NDArray[np.int64], NDArray[np.int64], Groups]] = {}
        self._shift = np.zeros(2, np.uint64)
        self._stuck = False
        """True if the last group was not taken: the interface is down, or its queue full."""
        self.sent = 0
        self.refused = 0

    def room(self, size: int) -> NDArray[np.uint8] | None:
        """Reserve ``size`` bytes for a batch that is built in place; None if it would not fit, or must be copied.

        The array is valid until the next call of this queue, which should send a batch with it as its buffer.
        """
        self._room = None
        if self._zero_copy:
            return None
        start = self._reserve(size)
        if start < 0:
            return None
        self._room = self._memory[start : start + size]
        self._room_start, self._room_end = start, start + size
        return self._room

    def hold(self, offset: NDArray[np.int64], length: NDArray[np.int64]) -> bool:
        """Keep frames in the array that ``room`` returned last, at ``offset``, for repeated transmission.

        Their descriptors are computed once. This works only in copy mode, and only for queues with no other use. Return
        False otherwise, and for frames that are too long.
        """
        if self._room is None or int(length.max()) > self._longest:
            return False
        self._room = None
        places = (offset + self._room_start).tolist()
        tables = [
            descriptors_of(size, self._head(size), self._chunk, [start])
            for start, size in zip(places, length.tolist(), strict=True)
        ]
        self._held = np.concatenate(tables)
        self._held_ends = [0, *np.cumsum([len(each) for each in tables]).tolist()]
        return True

    def send_held(self, first: int, end: int) -> int:
        """Send the held frames from ``first`` up to, not including, ``end``; return the number sent."""
        sent = 0
        self._stuck = False
        while first < end and not self._stuck:
            count = min(end - first, RING // 2 // self._most_pieces)
            table = self._held[self._held_ends[first] : self._held_ends[first + count]]
            if not self._free(len(table)):
                break
            at, ring = self._produced & self._mask, self._ring.table
            fitting = min(len(table), self._mask + 1 - at)
            ring[at : at + fitting] = table[:fitting]
            if fitting < len(table):
                ring[: len(table) - fitting] = table[fitting:]
            self._produced += len(table)
            done = self._go(count, self._room_start, self._room_end)
            sent += done
            first += count
            if done < count:
                break
        self.sent += sent
        self.refused += end - first
        return sent

    def send(self, batch: FrameBatch) -> int:
        """Send frames in order; return the number sent."""
        count = len(batch)
        if not count:
            return 0
        sent = 0
        self._stuck = False
        if self._room is not None and batch.buffer is self._room:
            self._room = None
            for frames, base, table in self._plan(batch.offset, batch.length):
                if self._stuck:
                    break
                sent += self._transmit(table, frames, self._room_start + base, self._room_start, self._room_end)
            self.sent += sent
            self.refused += count - sent
            return sent
        self._room = None
        longest, shortest = int(batch.length.max()), int(batch.length.min())
        if longest > self._longest or shortest < HEADER_SIZE:
            batch = batch.select((batch.length <= self._longest) & (batch.length >= HEADER_SIZE))
        for first in range(0, len(batch), _GROUP):
            if self._stuck:
                break
            offset, length = batch.offset[first : first + _GROUP], batch.length[first : first + _GROUP]
            sent += self._copy(batch.buffer, offset, length)
        self.sent += sent
        self.refused += count - sent
        return sent

    def send_few(self, frames: Sequence[bytes]) -> int:
        """Send a few single frames; return the number sent."""
        if len(frames) > _GROUP or self._zero_copy:
            return self.send(FrameBatch.from_frames(frames))
        self._room = None
        self._stuck = False
        start = self._reserve(sum([-(-len(each) // _LINE) * _LINE for each in frames if len(each) <= self._longest]))
        count = end = 0
        if start >= 0 and self._free(len(frames) * self._most_pieces):
            end = start
            for frame in frames:
                length = len(frame)
                if HEADER_SIZE <= length <= self._longest:
                    self._view[end : end + length] = frame
                    self._put(end, length)
                    count += 1
                    end += -(-length // _LINE) * _LINE
        sent = self._go(count, start, end)
        self.sent += sent
        self.refused += len(frames) - sent
        return sent

    def _copy(self, buffer: NDArray[np.uint8], offset: NDArray[np.int64], length: NDArray[np.int64]) -> int:
        """Copy frames into the memory and send them; return the number sent."""
        first, last = int(offset[0]), int(offset[-1]) + int(length[-1])
        total = int(length.sum())
        if not self._zero_copy and 0 < last - first <= 2 * total and bool((offset[1:] > offset[:-1]).all()):
            # The frames are close together, so copy all of them at once, with the gaps between them.
            start = self._reserve(last - first)
            if start >= 0:
                self._memory[start : start + last - first] = buffer[first:last]
                return self._transmit(self._table(offset, length), len(offset), start, start, start + last - first)
        unit = self._chunk if self._zero_copy else _LINE
        places = -(-length // unit) * unit
        starts = places.cumsum() - places
        if int(places.sum()) > self._end - self._start:
            half = len(offset) // 2
            return self._copy(buffer, offset[:half], length[:half]) + self._copy(buffer, offset[half:], length[half:])
        start = self._reserve(int(places.sum()))
        if start < 0:
            return 0
        for place, at, size in zip(starts.tolist(), offset.tolist(), length.tolist(), strict=True):
            self._memory[start + place : start + place + size] = buffer[at : at + size]
        return self._transmit(self._table(starts, length), len(starts), start, start, start + int(places.sum()))

    def _transmit(self, table: Descriptors, frames: int, base: int, start: int, end: int) -> int:
        """Send frames with descriptors relative to ``base``, within the memory from ``start`` to ``end``."""
        if not self._free(len(table)):
            return 0
        self._shift[0] = base
        self._put_table(table)
        return self._go(frames, start, end)

    def _plan(self, offset: NDArray[np.int64], length: NDArray[np.int64]) -> Groups:
        """Descriptors of frames within the room, by group; frames of a length that cannot be sent are left out.

        The engine passes the same arrays for each batch of one shape, and never writes to them.
        """
        known = self._plans.get(id(length))
        if known is not None and known[0] is offset and known[1] is length:
            return known[2]
        offsets, lengths = offset, length
        if int(length.max()) > self._longest or int(length.min()) < HEADER_SIZE:
            right = (length <= self._longest) & (length >= HEADER_SIZE)
            offsets, lengths = offset[right], length[right]
        made = []
        for first in range(0, len(offsets), _GROUP):
            part = offsets[first : first + _GROUP]
            made.append((len(part), int(part[0]), self._table(part, lengths[first : first + _GROUP])))
        if not offset.flags.writeable and not length.flags.writeable:
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            # Keep the arrays, so that no later arrays have the same identities.
            self._plans[id(length)] = offset, length, made
        return made

    def _table(self, offset: NDArray[np.int64], length: NDArray[np.int64]) -> Descriptors:
        """Descriptors of frames at ``offset``, relative to the first of them."""
        size = int(length[0])
        gap = int(offset[1] - offset[0]) if len(offset) > 1 else 0
        if (length == size).all() and (offset[1:] - offset[:-1] == gap).all():
            return _even_table(size, self._head(size), self._chunk, gap, len(offset))
        words: list[int] = []
        for at, each in zip((offset - offset[0]).tolist(), length.tolist(), strict=True):
            for start, piece in pieces_of(each, self._head(each), self._chunk):
                # A frame may lie before the first one: the addition of words is modular.
                words += ((at + start) & _WORD_MASK, piece | (CONTINUED << 32 if start + piece < each else 0))
        return np.array(words, np.uint64).reshape(-1, 2)

    def _head(self, length: int) -> int:
        return self._chunk if length <= self._linear or self._zero_copy else _HEAD

    def _put(self, address: int, length: int) -> None:
        """Write the descriptors of a frame."""
        words, mask = self._words, self._mask
        if length <= self._linear:
            at = 2 * (self._produced & mask)
            words[at], words[at + 1] = address, length
            self._produced += 1
            return
        for start, size in pieces_of(length, self._head(length), self._chunk):
            at = 2 * (self._produced & mask)
            words[at] = address + start
            words[at + 1] = size | (CONTINUED << 32 if start + size < length else 0)
            self._produced += 1

    def _put_table(self, table: Descriptors) -> None:
        count, at = len(table), self._produced & self._mask
        fitting = min(count, self._mask + 1 - at)
        np.add(table[:fitting], self._shift, out=self._ring.table[at : at + fitting])
        if fitting < count:
            np.add(table[fitting:], self._shift, out=self._ring.table[: count - fitting])
        self._produced += count

    def _free(self, count: int) -> bool:
        """Wait briefly until the ring has ``count`` free entries; return whether it has."""
        until = 0
        while self._ring.count - ((self._produced - self._ring.consumer[0]) & LOW_WORD) < count:
            until = until or time.monotonic_ns() + BACKOFF_NS
            if self._kick() not in _PASSING or time.monotonic_ns() > until:
                self._stuck = True
                return False
            if self._zero_copy:
                time.sleep(_PAUSE)
        return True

    def _reserve(self, size: int) -> int:
        """Return the start of ``size`` bytes of memory that belong to this process, or -1 if no such memory is free."""
        size = -(-size // _LINE) * _LINE
        if size > self._end - self._start:
            return -1
        until = 0
        while True:
            self._reclaim()
            start = self._next if self._flight else self._start
            if start + size > self._end:
                start = self._start
            end = start + size
            if not any(begin < end and start < stop for _, begin, stop in self._flight):
                self._next = end
                return start
            until = until or time.monotonic_ns() + BACKOFF_NS
            if time.monotonic_ns() > until:
                self._stuck = True
                return -1
            self._kick()
            time.sleep(_PAUSE)

    def _reclaim(self) -> None:
        """Take back the memory of completed frames."""
        produced = self._completion.producer[0]
        done = (produced - self._completed) & LOW_WORD
        if done:
            self._completed += done
            fence()
            self._completion.consumer[0] = produced
        flight = self._flight
        while flight and flight[0][0] <= self._completed:
            flight.popleft()

    def _kick(self) -> int:
        """Make the kernel transmit; return its error number, 0 for none."""
        if self._zero_copy and not self._ring.flags[0] & NEED_WAKEUP:
            return 0
        try:
            self._send(b"", _FLAGS)
        except OSError as error:
            return error.errno or errno.EIO
        return 0

    def _go(self, frames: int, start: int, end: int) -> int:
        """Pass the written descriptors of ``frames`` to the kernel; return the number of frames that it has sent."""
        if not frames:
            return 0
        # Descriptors before the index: the kernel reads them as soon as the index has passed them.
        fence()
        wanted = self._produced & LOW_WORD
        self._ring.producer[0] = wanted
        lost, until = 0, 0
        consumer = self._ring.consumer
        while True:
            error = self._kick()
            # The kernel has dropped this frame: the queue of the interface is full.
            lost += error == errno.EBUSY
            if self._zero_copy or consumer[0] == wanted:
                break
            now = time.monotonic_ns()
            until = until or now + BACKOFF_NS
            if error not in _PASSING or now > until:
                lost += self._abandon()
                self._stuck = True
                break
            self._reclaim()
        if not self._stuck:
            self._flight.append((self._produced, start, end))
        self._reclaim()
        return max(frames - lost, 0)

    def _abandon(self) -> int:
        """Make the descriptors that the kernel has not taken empty; return their number of frames."""
        frames = 0
        left = (self._produced - self._ring.consumer[0]) & LOW_WORD
        for number in range(self._produced - left, self._produced):
            at = 2 * (number & self._mask)
            frames += not self._words[at + 1] >> 32 & CONTINUED and self._words[at + 1] != 0
            self._words[at + 1] = 0
        return frames

    def close(self) -> None:
        """Release all references to the memory and the rings."""
        self._room = None
        self._view.release()
        self._memory = np.zeros(0, np.uint8)
