"""TPACKET_V2: a ring of slots of one size, each visible as soon as its frame has come."""

from __future__ import annotations

import socket
import struct
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import HEADER_SIZE
from mxwire.link.ring import OURS, RING_BYTES, SHORT, VLAN_VALID, Arrivals, ReceiveRing, fence, map_ring, unmap
from mxwire.units import SECOND

VERSION: Final = 1
BATCH: Final = 1024
"""Frames that are taken at once, at most."""
_FEW: Final = 28
"""Up to so many frames reading one by one is faster than by columns."""
_LOOKS: Final = (16, 128, BATCH)
"""How far ahead is looked: a look at a slot that is empty costs a miss of the cache."""
_NOTE: Final = struct.Struct("IIIHxxII")
_SHORT_NOTE: Final = struct.Struct("IIIH")
"""As much of a note as frames by themselves need."""
_HEADROOM: Final = 96
"""More than the kernel writes in front of a frame: its note, a socket address, and the space to align."""
_SLOT_UNIT: Final = 1024
_BLOCK_LIMIT: Final = 1 << 20


def _slot_bytes(mtu: int) -> int:
    """Bytes of a slot: a frame of the MTU with room for a tag, in whole kilobytes."""
    return -(-(_HEADROOM + HEADER_SIZE + 4 + mtu) // _SLOT_UNIT) * _SLOT_UNIT


def _block_bytes(slot: int) -> int:
    """Bytes of a block: whole pages and whole slots, so that slots lie evenly, and wasting least.

    The kernel rounds the memory for a block up to a power of two.
    """
    page = 4096
    unit = np.lcm(slot, page)
    fitting = range(int(unit), max(_BLOCK_LIMIT, int(unit)) + 1, int(unit))
    return max(fitting, key=lambda block: (round(block / (1 << (block - 1).bit_length()), 2), block))


class SlotRing(ReceiveRing):
    """A receive ring for frames of up to ``mtu`` bytes behind the header, on a socket with ``VERSION`` set."""

    def __init__(self, opened: socket.socket, mtu: int, ring_bytes: int = RING_BYTES) -> None:
        slot = _slot_bytes(mtu)
        block = _block_bytes(slot)
        self._mapped = map_ring(opened, block, max(ring_bytes // block, 1), slot)
        self.slots = len(self._mapped) // slot
        self.memory = np.frombuffer(self._mapped, np.uint8)
        self._words = memoryview(self._mapped).cast("I")
        self._words_a_slot = slot // 4
        self._slot = slot
        names = ["status", "length", "snapped", "mac", "seconds", "nanoseconds"]
        formats, offsets = ["u4", "u4", "u4", "u2", "u4", "u4"], [0, 4, 8, 12, 16, 20]
        layout = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": slot})
        self._notes: NDArray[Any] = self.memory.view(layout)
        self._status: NDArray[np.uint32] = self._notes["status"]
        self._starts = np.arange(self.slots, dtype=np.int64) * slot
        self._head = 0
        self._taken = 0
        self._quiet = False
        """Whether somebody has looked in vain since a frame was taken."""

    def ready(self) -> bool:
        """Whether a frame is there that has not been taken."""
        if self._words[self._head * self._words_a_slot] & OURS:
            return True
        self._quiet = True
        return False

    def take(self) -> Arrivals | None:
        """The next frames, at most ``BATCH``; they stay where they are until ``release``."""
        if not self._words[self._head * self._words_a_slot] & OURS:
            return None
        count = self._count()
        fence()
        arrivals = self._by_one(count) if count <= _FEW else self._by_column(count)
        self._taken = count
        return arrivals

    def take_short(self) -> list[bytes]:
        """Copies of the next frames, as far as they are few and short, whole and untagged."""
        frames: list[bytes] = []
        words, step, mapped, place = self._words, self._words_a_slot, self._mapped, self._head
        # Who has waited for a frame wants it now, before anybody looks whether there is another one behind it.
        last = place + 1 if self._quiet else min(place + _FEW, self.slots)
        self._quiet = False
        while place < last and words[place * step] & OURS:
            fence()
            start = place * self._slot
            status, whole, snapped, mac = _SHORT_NOTE.unpack_from(mapped, start)
            if snapped > SHORT or snapped != whole or status & VLAN_VALID:
                break
            start += mac
            frames.append(mapped[start : start + snapped])
            words[place * step] = 0
            place += 1
        self._head = 0 if place == self.slots else place
        return frames

    def _count(self) -> int:
        """How many slots in a row have been filled; a run ends at the end of the ring."""
        words, step, head = self._words, self._words_a_slot, self._head
        few = min(_FEW + 1, self.slots - head)
        count = 1
        while count < few and words[(head + count) * step] & OURS:
            count += 1
        if count < few or count == self.slots - head:
            return count
        for look in _LOOKS:
            status = self._status[head : head + look]
            filled = (status & OURS).astype(np.bool_)
            if not filled.all():
                return int(filled.argmin())
            count = len(filled)
        return count

    def _by_one(self, count: int) -> Arrivals:
        offset, length, wire, times, tagged = [], [], [], [], []
        for start in range(self._head * self._slot, (self._head + count) * self._slot, self._slot):
            status, whole, snapped, mac, seconds, nanoseconds = _NOTE.unpack_from(self._mapped, start)
            offset.append(start + mac)
            length.append(snapped)
            wire.append(whole)
            times.append(seconds * SECOND + nanoseconds)
            tagged.append(status & VLAN_VALID != 0)
        # One array for all three is made faster than three.
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
            header=self._starts[self._head : self._head + count],
            plain=False,
        )

    def _by_column(self, count: int) -> Arrivals:
        notes = self._notes[self._head : self._head + count]
        return Arrivals.noted(notes, self._starts[self._head : self._head + count])

    def release(self) -> None:
        """Give the kernel back what was taken."""
        if not self._taken:
            return
        end = self._head + self._taken
        if self._taken <= _FEW:
            for place in range(self._head, end):
                self._words[place * self._words_a_slot] = 0
        else:
            self._status[self._head : end] = 0
        self._taken = 0
        self._head = 0 if end == self.slots else end

    def close(self) -> None:
        """Let go of the memory."""
        self._words.release()
        self.memory = self._notes = np.zeros(0, np.uint8)
        self._status = np.zeros(0, np.uint32)
        self._mapped = unmap(self._mapped)
