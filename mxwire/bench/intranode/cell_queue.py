"""Cell queue: cells of a fixed size in shared memory, which a sender fills and a receiver gives back.

The twin in C is that of Nemesis: one free and one receive queue per process, for any number of senders, by exchange and
compare-exchange. Python has neither, so that here each pair of processes has a queue of its own, of which only one side
writes each word: a cell that is full has its length, plus one, in its flag.
"""

from __future__ import annotations

import mmap
from typing import ClassVar, Final

from mxwire.bench.intranode.mechanism import Mechanism, MechanismFacts, Piece, SharedFlags

CELLS: Final = 8
"""Cells per direction."""


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
