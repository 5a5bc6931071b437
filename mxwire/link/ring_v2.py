"""TPACKET_V2: a ring of slots of equal size, each handed over by the kernel as soon as its frame has arrived.

Theory of operation
-------------------
The kernel and this process share one block of memory, divided into slots. Each slot holds a header (struct
tpacket2_hdr: status, lengths, offset of the frame, timestamp) and one frame. The status, the first word, shows the
owner of the slot: with the bit ``USER`` this process, with 0 the kernel. The kernel fills slots in order and sets the
bit when a frame is complete; this process reads slots in the same order, from ``_head``, and writes 0 when it is done
with a frame. No system call is involved in either direction, and no copy: a batch refers to the frames in their slots.
If the next slot is still owned by this process, the kernel drops the frame and counts it.

Ownership of a batch. ``take`` does not return slots to the kernel; ``release``, called by the next ``receive``, does.
So a batch is valid until the next ``receive``, as :class:`~mxwire.link.link.Link` documents. Frames returned by
``take_short`` are copies, and their slots are returned at once.

Reordering. The status must be read before the rest of the slot. x86 keeps the order of reads; on other processors
``fence`` enforces it.

Three costs determine the design of this code, because a round trip of small messages takes only microseconds:

* *Polling an empty ring* reads a single word through a memoryview, some 50 ns. Accessing a NumPy array costs several
  times as much.
* *Looking ahead* at a slot that the kernel is about to write causes a cache miss in this process and another in the
  kernel. ``_LOOKS`` therefore extends the search in steps, each made only if all slots of the previous step were
  filled. After a poll that found no frame, a caller is waiting for this very frame, so ``take_short`` takes it alone,
  without reading the slot behind it (``_quiet``).
* *Building a batch* has a fixed cost by columns (a few NumPy calls) and a cost per frame one by one; ``_FEW`` is the
  number of frames at which they are equal. The engine pays a similar fixed cost per batch, so up to ``_FEW`` frames of
  any length are handed over as copies; only if more wait are frames longer than ``SHORT`` left for a batch. The native
  reader is faster one by one at any number: it hands over up to ``_FEW_NATIVE`` copies, which stay in the cache until
  the engine has stored them, and whose answers do not wait for the frames behind them.

A run of slots never extends past the end of the ring, so that all slots of a batch are contiguous, and ``_by_column``
is a slice of one structured array. A block is the unit of allocation in the kernel. Slots must not straddle blocks
with gaps, or that array would not have equal strides; ``_block_bytes`` chooses a size that is a multiple of both the
slot and the page, and wastes the least of the power of two that the kernel allocates for it.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import HEADER_SIZE, VLAN_TAG_SIZE
from mxwire.link.ring import RING_BYTES, SHORT, USER, VLAN_VALID, Arrivals, ReceiveRing, fence, map_ring, unmap
from mxwire.native import native
from mxwire.units import SECOND

VERSION: Final = 1
BATCH: Final = 1024
"""Largest number of frames per batch."""
_FEW: Final = 28
"""Number of frames up to which reading headers one by one is faster than by columns."""
_FEW_NATIVE: Final = 64
"""Maximum number of frames that the native reader hands over at once."""
_LOOKS: Final = (16, 128, BATCH)
"""Slots to search in each step; reading a slot that is still empty costs a cache miss."""
_NOTE: Final = struct.Struct("IIIHxxII")
_read_note: Final = struct.Struct("IIIH").unpack_from
"""Read the part of a header that copies need: status, both lengths and the offset of the frame."""
_HEADROOM: Final = 96
"""Upper bound of the bytes that the kernel writes before a frame: its header, a socket address and padding."""
_SLOT_UNIT: Final = 1024
_BLOCK_LIMIT: Final = 1 << 20


def _slot_bytes(mtu: int) -> int:
    """Slot size in bytes: headroom and a frame of the MTU with a VLAN tag, in whole kilobytes."""
    return -(-(_HEADROOM + HEADER_SIZE + VLAN_TAG_SIZE + mtu) // _SLOT_UNIT) * _SLOT_UNIT


def _block_bytes(slot: int) -> int:
    """Block size in bytes: a multiple of pages and slots, with the least waste.

    The kernel rounds the memory of a block up to a power of two.
    """
    page = 4096
    unit = np.lcm(slot, page)
    fitting = range(int(unit), max(_BLOCK_LIMIT, int(unit)) + 1, int(unit))
    return max(fitting, key=lambda block: (round(block / (1 << (block - 1).bit_length()), 2), block))


class SlotRing(ReceiveRing):
    """A receive ring for frames of up to ``mtu`` bytes after the Ethernet header, on a socket with ``VERSION`` set."""

    def __init__(self, opened: socket.socket, mtu: int, ring_bytes: int = RING_BYTES) -> None:
        slot = _slot_bytes(mtu)
        block = _block_bytes(slot)
        self._mapped = map_ring(opened, block, max(ring_bytes // block, 1), slot)
        self.slots = len(self._mapped) // slot
        self.memory = np.frombuffer(self._mapped, np.uint8)
        self._base = int(self.memory.ctypes.data)
        self._words = memoryview(self._mapped).cast("I")
        self._words_per_slot = slot // 4
        self._slot = slot
        names = ["status", "length", "snapped", "mac", "seconds", "nanoseconds"]
        formats, offsets = ["u4", "u4", "u4", "u2", "u4", "u4"], [0, 4, 8, 12, 16, 20]
        layout = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": slot})
        self._notes: NDArray[Any] = self.memory.view(layout)
        self._status: NDArray[np.uint32] = self._notes["status"]
        self._starts = np.arange(self.slots, dtype=np.int64) * slot
        self._first = self._beyond = 0
        self._taken = 0
        self._quiet = False
        """True if a poll has found no frame since the last one was taken."""
        self._reader: Any = None if native is None else native.SlotReader(self._mapped, slot, _FEW_NATIVE, slot)
        """Native reader, for which no frame is too long; while it exists, it holds the number of the next slot."""
        # Do not store a bound method of this object, because the reference cycle would keep its memory alive.
        self._take_quickly: Callable[[], list[bytes] | None] | None = (
            None if self._reader is None else self._reader.take
        )

    @property
    def _head(self) -> int:
        """The next slot."""
        return self._first if self._reader is None else self._reader.head

    @_head.setter
    def _head(self, place: int) -> None:
        if self._reader is None:
            self._first = place
        else:
            self._reader.head = place

    def ready(self) -> bool:
        """True if there is a frame that has not been taken."""
        return bool(self._words[self._head * self._words_per_slot] & USER)

    @property
    def next_word(self) -> int:
        """Address of the status word of the next slot; its lowest bit is set when a frame has arrived."""
        return self._base + self._head * self._slot

    def take(self) -> Arrivals | None:
        """Take the next frames, at most ``BATCH``, which stay in place until ``release``; None if there are none."""
        if not self.ready():
            return None
        count = self._count()
        fence()
        arrivals = self._by_one(count) if count <= _FEW else self._by_column(count)
        self._taken = count
        return arrivals

    def take_short(self) -> list[bytes] | None:
        """Take copies of the next frames while they are short or few, complete and untagged; None if there are none."""
        return self._take_short() if self._take_quickly is None else self._take_quickly()

    def _take_short(self) -> list[bytes] | None:
        frames: list[bytes] = []
        words, step, mapped, place = self._words, self._words_per_slot, self._mapped, self._first
        if not words[place * step] & USER:
            self._quiet = True
            return None
        # After a poll without success, return this frame at once, before the next slot is read.
        last = place + 1 if self._quiet else min(place + _FEW, self.slots)
        self._beyond = place + _FEW
        self._quiet = False
        while True:
            fence()
            start = place * self._slot
            note: tuple[int, int, int, int] = _read_note(mapped, start)
            status, whole, snapped, mac = note
            if snapped != whole or status & VLAN_VALID or (snapped > SHORT and self._has_many()):
                break
            start += mac
            frames.append(mapped[start : start + snapped])
            words[place * step] = 0
            place += 1
            if place == last or not words[place * step] & USER:
                break
        self._first = 0 if place == self.slots else place
        return frames

    def _has_many(self) -> bool:
        """True if more frames wait than ``take_short`` copies at once."""
        return self._beyond < self.slots and bool(self._words[self._beyond * self._words_per_slot] & USER)

    def _count(self) -> int:
        """Number of consecutive filled slots, up to the end of the ring."""
        words, step, head = self._words, self._words_per_slot, self._head
        few = min(_FEW + 1, self.slots - head)
        count = 1
        while count < few and words[(head + count) * step] & USER:
            count += 1
        if count < few or count == self.slots - head:
            return count
        for look in _LOOKS:
            status = self._status[head : head + look]
            filled = (status & USER).astype(np.bool_)
            if not filled.all():
                return int(filled.argmin())
            count = len(filled)
        return count

    def _by_one(self, count: int) -> Arrivals:
        offset, length, wire, times, tagged = [], [], [], [], []
        head = self._head
        for start in range(head * self._slot, (head + count) * self._slot, self._slot):
            status, whole, snapped, mac, seconds, nanoseconds = _NOTE.unpack_from(self._mapped, start)
            offset.append(start + mac)
            length.append(snapped)
            wire.append(whole)
            times.append(seconds * SECOND + nanoseconds)
            tagged.append(status & VLAN_VALID != 0)
        # One array for all three is faster than three.
        together = np.array(offset + length + times)
        offsets, lengths, moments = together[:count], together[count : 2 * count], together[2 * count :]
        if wire == length and True not in tagged:
            return Arrivals(offsets, lengths, lengths, moments)
        return Arrivals(
            offset=offsets,
            length=lengths,
            wire_length=np.array(wire),
            timestamp_ns=moments,
            tagged=np.array(tagged),
            header=self._starts[head : head + count],
            plain=False,
        )

    def _by_column(self, count: int) -> Arrivals:
        head = self._head
        return Arrivals.described(self._notes[head : head + count], self._starts[head : head + count])

    def release(self) -> None:
        """Return the taken slots to the kernel."""
        if not self._taken:
            return
        head = self._head
        end = head + self._taken
        if self._taken <= _FEW:
            for place in range(head, end):
                self._words[place * self._words_per_slot] = 0
        else:
            self._status[head:end] = 0
        self._taken = 0
        self._head = 0 if end == self.slots else end

    def close(self) -> None:
        """Unmap the memory."""
        if self._reader is not None:
            self._reader.close()
        self._words.release()
        self.memory = self._notes = np.zeros(0, np.uint8)
        self._status = np.zeros(0, np.uint32)
        self._mapped = unmap(self._mapped)
