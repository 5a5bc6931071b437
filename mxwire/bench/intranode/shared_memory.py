"""Memory that both sides map: slots that are filled in turn, queues of cells, and a heap that is used in place.

The twin in C of the queue is that of Nemesis: one free and one receive queue per process, for any number of senders, by
exchange and compare-exchange. Python has neither, so that here each pair of processes has a queue of its own, of which
only one side writes each word: a cell that is full has its length, plus one, in its flag.
"""

from __future__ import annotations

import mmap
import os
import socket
from typing import ClassVar, Final

from mxwire.bench.intranode.mechanism import POLLS, STRIDE, Direction, Mechanism, Piece, SharedFlags

LARGEST: Final = 16 << 20
"""Longest message of the heap in bytes."""
CELLS: Final = 8
"""Cells per direction."""
_NUMBER: Final = 32
_LENGTH: Final = (1 << _NUMBER) - 1
"""Bits of a flag for the length, below those for the number of the part."""


class SharedMemory(Mechanism):
    """Anonymous memory, mapped before the fork: parts of equal length, as many per direction, each with a flag."""

    PARTS: ClassVar[int]
    """Parts per direction; those of side 0 come first."""

    def open(self) -> None:
        """Map the memory."""
        self._flags = SharedFlags(2 * self.PARTS)
        self._use(mmap.mmap(-1, 2 * self.PARTS * self._part_length))

    @property
    def _part_length(self) -> int:
        return self.slot or LARGEST

    def _use(self, memory: mmap.mmap) -> None:
        """Use mapped memory. The pages of slots exist from now on, those of a heap when a message is built in them."""
        self._memory, self._view = memory, memoryview(memory)
        if self.slot:
            self.shared_bytes = len(memory)
            self._view[:: mmap.PAGESIZE] = bytes(-(-len(memory) // mmap.PAGESIZE))

    def join(self, rank: int, partner: int) -> None:
        """Take the parts of the side."""
        super().join(rank, partner)
        self._flags.watch(0 if rank else partner)
        length = self._part_length
        self._parts = [self._view[begin : begin + length] for begin in range(0, len(self._view), length)]
        self._own, self._other = self.PARTS * rank, self.PARTS * (1 - rank)

    def close(self) -> None:
        """Unmap the memory."""
        for each in (*getattr(self, "_parts", ()), self._view):
            each.release()
        self._memory.close()


class SharedHeap(SharedMemory):
    """Memory for one message per direction: what MPI_Alloc_mem gives. The source builds the message in it, which counts
    as the one copy, and the destination uses it where it is."""

    one_sided = ("get", "put")
    PARTS = 1

    def give(self, piece: Piece) -> None:
        """Build the message when the last one was used, and notify the destination."""
        self._flags.wait(self._own, 0)
        self._parts[self._own][: len(piece.view)] = piece.view
        self._flags.set(self._own, 1)

    def take(self, piece: Piece) -> memoryview:
        """Return the message in place."""
        self._flags.wait(self._other, 1)
        self._flags.set(self._other, 0)
        return self._parts[self._other][: len(piece.view)]

    # As a window: loads and stores, of which the other side notices nothing.

    def offer(self, piece: Piece) -> memoryview:
        """Build the content of this side's window, and return its memory."""
        own = self._parts[self._own][: piece.size]
        own[:] = piece.view
        return own

    def offered(self) -> int:
        """Return the place of the other side's window."""
        return self._other

    def access(self, direction: Direction, piece: Piece, place: int) -> None:
        """Load or store."""
        window = self._parts[place][: piece.size]
        if direction == "get":
            piece.view[:] = window
        else:
            window[:] = piece.view

    def report_moved(self) -> None:
        """Do nothing: the memory stays."""

    def await_moved(self) -> None:
        """Do nothing: the memory stays."""


class SharedBuffer(SharedMemory):
    """Two slots per direction; one is filled while the other one is emptied. Every message begins with the first."""

    SLOT: ClassVar[int | None] = 65536
    PARTS = 2

    def give(self, piece: Piece) -> None:
        """Fill slots in turn, each when it is empty."""
        words, slot, view, place = self._flags.words, self.slot, piece.view, self._own
        for begin in range(0, len(view), slot):
            part, whole = view[begin : begin + slot], self._parts[place]
            # A slice that is not needed would take time.
            filled = whole if len(part) == slot else whole[: len(part)]
            # A call per flag would be a tenth of the time of a slot.
            if words[place * STRIDE]:
                self._flags.wait(place, 0)
            # Data before the flag: on x86-64 other processors see stores in this order.
            filled[:] = part
            words[place * STRIDE] = 1
            place ^= 1

    def take(self, piece: Piece) -> None:
        """Empty slots in turn, each when it is full."""
        words, slot, view, place = self._flags.words, self.slot, piece.view, self._other
        for begin in range(0, len(view), slot):
            part, whole = view[begin : begin + slot], self._parts[place]
            filled = whole if len(part) == slot else whole[: len(part)]
            if not words[place * STRIDE]:
                self._flags.wait(place, 1)
            part[:] = filled
            words[place * STRIDE] = 0
            place ^= 1


class MemfdBuffer(SharedBuffer):
    """A memfd, whose descriptor the first side passes to the second one, as programs do that are not related."""

    JOINS_ALONE = False

    def open(self) -> None:
        """Open the socket over which the descriptor passes."""
        self._flags = SharedFlags(2 * self.PARTS)
        self._sockets = socket.socketpair()
        self._descriptor = os.memfd_create("mxwire-intranode", os.MFD_CLOEXEC)
        os.ftruncate(self._descriptor, 2 * self.PARTS * self.slot)
        self._use(mmap.mmap(self._descriptor, 0))

    def join(self, rank: int, partner: int) -> None:
        """Pass the descriptor, or map the memory of the one that is passed."""
        if not rank:
            socket.send_fds(self._sockets[0], [b"\0"], [self._descriptor])
        else:
            _, (descriptor, *_), _, _ = socket.recv_fds(self._sockets[1], 1, 1)
            self._view.release()
            self._memory.close()
            self._use(mmap.mmap(descriptor, 0))
            os.close(descriptor)
        super().join(rank, partner)

    def close(self) -> None:
        """Unmap the memory, and close descriptor and sockets."""
        super().close()
        os.close(self._descriptor)
        for each in self._sockets:
            each.close()


class CellQueue(SharedMemory):
    """Cells that a sender fills and a receiver gives back. A message takes the cells that follow those of the last
    one."""

    SLOT: ClassVar[int | None] = 32 << 10
    PARTS = CELLS

    def open(self) -> None:
        """Map the cells."""
        super().open()
        self._next = [0, 0]

    def give(self, piece: Piece) -> None:
        """Fill cells, each when it was given back."""
        view, place, first, slot = piece.view, self._next[0], self._own, self.slot
        words = self._flags.words
        for begin in range(0, len(view), slot):
            part, whole, flag = view[begin : begin + slot], self._parts[first + place], (first + place) * STRIDE
            length = len(part)
            cell = whole if length == slot else whole[:length]
            if words[flag]:
                self._flags.wait(first + place, 0)
            cell[:] = part
            # One more, since 0 is an empty cell, also beside an empty message.
            words[flag] = length + 1
            place = (place + 1) % CELLS
        self._next[0] = place

    def take(self, piece: Piece) -> None:
        """Empty cells, and give each back."""
        view, place, first, slot = piece.view, self._next[1], self._other, self.slot
        words = self._flags.words
        for begin in range(0, len(view), slot):
            # Before the cell is full, so that nothing but the copy follows.
            part, whole, flag = view[begin : begin + slot], self._parts[first + place], (first + place) * STRIDE
            length = len(part)
            cell = whole if length == slot else whole[:length]
            if words[flag] != length + 1:
                self._flags.wait(first + place, length + 1)
            part[:] = cell
            words[flag] = 0
            place = (place + 1) % CELLS
        self._next[1] = place


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
        view, first = piece.view, self._own
        for begin in range(0, len(view), self.slot):
            part = view[begin : begin + self.slot]
            place = first + self._found(first, 0)
            self._parts[place][: len(part)] = part
            self._flags.set(place, self._next[0] << _NUMBER | len(part) + 1)
            self._next[0] += 1

    def take(self, piece: Piece) -> None:
        """Empty the cells in the order of their parts."""
        view, first = piece.view, self._other
        done = 0
        while done < len(view):
            place = first + self._found(first, self._next[1])
            length = (self._flags.get(place) & _LENGTH) - 1
            view[done : done + length] = self._parts[place][:length]
            self._flags.set(place, 0)
            self._next[1] += 1
            done += length

    def _found(self, first: int, number: int) -> int:
        """Poll the flags of a direction until a cell has the part of this number, or none for 0; return its place."""
        polls = 0
        while True:
            # Each time from the first cell, so that the same few remain in the caches.
            for place in range(CELLS):
                if self._flags.get(first + place) >> _NUMBER == number:
                    return place
            polls += 1
            if not polls % POLLS:
                self._flags.pause()
