"""Heap in place: the source builds the message in shared memory, and the destination uses it where it is."""

from __future__ import annotations

import mmap
from typing import ClassVar, Final

from mxwire.bench.intranode.mechanism import Mechanism, MechanismFacts, Piece, SharedFlags

LARGEST: Final = 16 << 20


class SharedHeap(Mechanism):
    """Memory for one message per direction: what MPI_Alloc_mem gives. Building the message counts as the one copy."""

    facts: ClassVar[MechanismFacts] = MechanismFacts(copies=1, actor="both", one_sided=("get", "put"), largest=LARGEST)

    def open(self) -> None:
        """Map the memory."""
        self._flags = SharedFlags(2)
        self._memory = mmap.mmap(-1, 2 * LARGEST)
        self._view = memoryview(self._memory)

    def join(self, rank: int, partner: int) -> None:
        """Take the heap of the side."""
        super().join(rank, partner)
        self._flags.watch(0 if rank else partner)
        halves = self._view[:LARGEST], self._view[LARGEST:]
        self._own, self._other = halves[rank], halves[1 - rank]

    def give(self, piece: Piece) -> None:
        """Build the message when the last one was used, and notify the destination."""
        self._flags.wait(self.rank, 0)
        self._own[: len(piece.view)] = piece.view
        self._flags.set(self.rank, 1)

    def take(self, piece: Piece) -> memoryview:
        """Return the message in place."""
        self._flags.wait(1 - self.rank, 1)
        self._flags.set(1 - self.rank, 0)
        return self._other[: len(piece.view)]

    def close(self) -> None:
        """Unmap the memory."""
        for each in (*(getattr(self, name) for name in ("_own", "_other") if hasattr(self, name)), self._view):
            each.release()
        self._memory.close()
