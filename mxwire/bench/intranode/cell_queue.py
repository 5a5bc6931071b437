"""Cell queue: cells of a fixed size in shared memory, which a sender fills and a receiver gives back.

The twin in C is that of Nemesis: one free and one receive queue per process, for any number of senders, by exchange and
compare-exchange. Python has neither, so that here each pair of processes has a queue of its own, of which only one side
writes each word: a cell that is full has its length, plus one, in its flag.
"""

from __future__ import annotations

import mmap
from typing import ClassVar, Final

from mxwire.bench.intranode.mechanism import POLLS, Mechanism, MechanismFacts, Piece, SharedFlags

CELLS: Final = 8
"""Cells per direction."""
_NUMBER: Final = 32
_LENGTH: Final = (1 << _NUMBER) - 1
"""Bits of a flag for the length, below those for the number of the part."""


class CellQueue(Mechanism):
    """One queue of cells per direction. A message takes the cells that follow those of the last one."""

    facts: ClassVar[MechanismFacts] = MechanismFacts(copies=2, actor="both")
    SLOT: ClassVar[int | None] = 32 << 10

    def open(self) -> None:
        """Map the cells."""
        self._flags = SharedFlags(2 * CELLS)
        self._memory = mmap.mmap(-1, 2 * CELLS * self.slot)
        self._view = memoryview(self._memory)
        self.shared_bytes = len(self._view)
        self._view[:: mmap.PAGESIZE] = bytes(-(-len(self._view) // mmap.PAGESIZE))
        self._next = [0, 0]

    def join(self, rank: int, partner: int) -> None:
        """Take the cells of the side."""
        super().join(rank, partner)
        self._flags.watch(0 if rank else partner)
        self._cells = [self._view[place * self.slot : (place + 1) * self.slot] for place in range(2 * CELLS)]

    def give(self, piece: Piece) -> None:
        """Fill cells, each when it was given back."""
        flags, view, place, first = self._flags, piece.view, self._next[0], CELLS * self.rank
        for begin in range(0, len(view), self.slot):
            part = view[begin : begin + self.slot]
            flags.wait(first + place, 0)
            self._cells[first + place][: len(part)] = part
            flags.set(first + place, len(part) + 1)
            place = (place + 1) % CELLS
        self._next[0] = place

    def take(self, piece: Piece) -> None:
        """Empty cells, and give each back."""
        flags, view, place, first = self._flags, piece.view, self._next[1], CELLS * (1 - self.rank)
        done = 0
        while done < len(view):
            length = flags.wait_least(first + place, 1) - 1
            view[done : done + length] = self._cells[first + place][:length]
            flags.set(first + place, 0)
            place = (place + 1) % CELLS
            done += length
        self._next[1] = place

    def close(self) -> None:
        """Unmap the cells."""
        for each in (*getattr(self, "_cells", ()), self._view):
            each.release()
        self._memory.close()


class CellStack(CellQueue):
    """Cells that are reused last in, first out, as far as they are free: few of them pass through the caches.

    The flag of a full cell also has the number of its part, since parts do not lie in order; the first one is 1.
    """

    def open(self) -> None:
        """Map the cells."""
        super().open()
        self._next = [1, 1]

    def give(self, piece: Piece) -> None:
        """Fill for each part the first cell that is free."""
        view, first = piece.view, CELLS * self.rank
        for begin in range(0, len(view), self.slot):
            part = view[begin : begin + self.slot]
            place = first + self._found(first, 0)
            self._cells[place][: len(part)] = part
            self._flags.set(place, self._next[0] << _NUMBER | len(part) + 1)
            self._next[0] += 1

    def take(self, piece: Piece) -> None:
        """Empty the cells in the order of their parts."""
        view, first = piece.view, CELLS * (1 - self.rank)
        done = 0
        while done < len(view):
            place = first + self._found(first, self._next[1])
            length = (self._flags.get(place) & _LENGTH) - 1
            view[done : done + length] = self._cells[place][:length]
            self._flags.set(place, 0)
            self._next[1] += 1
            done += length

    def _found(self, first: int, number: int) -> int:
        """Poll the flags of a direction until a cell has the part of this number, or none for 0; return its place."""
        polls = 0
        while True:
            for place in range(CELLS):
                if self._flags.get(first + place) >> _NUMBER == number:
                    return place
            polls += 1
            if not polls % POLLS:
                self._flags.pause()
