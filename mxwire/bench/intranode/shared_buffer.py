"""Shared buffer: two slots per direction, each with a flag; one is filled while the other one is emptied."""

from __future__ import annotations

import mmap
import os
import socket
from typing import ClassVar

from mxwire.bench.intranode.mechanism import Mechanism, MechanismFacts, Piece, SharedFlags

_SLOTS = 2


class SharedBuffer(Mechanism):
    """Anonymous memory, mapped before the fork. Every message begins with the first slot."""

    facts: ClassVar[MechanismFacts] = MechanismFacts(copies=2, actor="both")
    SLOT: ClassVar[int | None] = 65536

    def open(self) -> None:
        """Map the memory, and make its pages exist."""
        self._flags = SharedFlags(2 * _SLOTS)
        self._use(mmap.mmap(-1, self._length))

    @property
    def _length(self) -> int:
        return 2 * _SLOTS * self.slot

    def _use(self, memory: mmap.mmap) -> None:
        self._memory, self._view = memory, memoryview(memory)
        self.shared_bytes = self._length
        self._view[:: mmap.PAGESIZE] = bytes(-(-self._length // mmap.PAGESIZE))

    def join(self, rank: int, partner: int) -> None:
        """Take the slots of the side."""
        super().join(rank, partner)
        self._flags.watch(0 if rank else partner)
        slots = [self._view[place * self.slot : (place + 1) * self.slot] for place in range(2 * _SLOTS)]
        self._out, self._in = (slots[_SLOTS:], slots[:_SLOTS]) if rank else (slots[:_SLOTS], slots[_SLOTS:])
        self._filled, self._emptied = _SLOTS * rank, _SLOTS * (1 - rank)

    def give(self, piece: Piece) -> None:
        """Fill slots in turn, each when it is empty."""
        flags, slot, view, place = self._flags, self.slot, piece.view, 0
        for begin in range(0, len(view), slot):
            part = view[begin : begin + slot]
            flags.wait(self._filled + place, 0)
            self._out[place][: len(part)] = part
            flags.set(self._filled + place, 1)
            place = 1 - place

    def take(self, piece: Piece) -> None:
        """Empty slots in turn, each when it is full."""
        flags, slot, view, place = self._flags, self.slot, piece.view, 0
        for begin in range(0, len(view), slot):
            part = view[begin : begin + slot]
            flags.wait(self._emptied + place, 1)
            part[:] = self._in[place][: len(part)]
            flags.set(self._emptied + place, 0)
            place = 1 - place

    def close(self) -> None:
        """Unmap the memory."""
        for each in (*getattr(self, "_out", ()), *getattr(self, "_in", ()), self._view):
            each.release()
        self._memory.close()


class MemfdBuffer(SharedBuffer):
    """A memfd, whose descriptor the first side passes to the second one, as programs do that are not related."""

    JOINS_ALONE = False

    def open(self) -> None:
        """Open the socket over which the descriptor passes."""
        self._flags = SharedFlags(2 * _SLOTS)
        self._sockets = socket.socketpair()
        self._descriptor = os.memfd_create("mxwire-intranode", os.MFD_CLOEXEC)
        os.ftruncate(self._descriptor, self._length)
        self._use(mmap.mmap(self._descriptor, self._length))

    def join(self, rank: int, partner: int) -> None:
        """Pass the descriptor, or map the memory of the one that is passed."""
        if not rank:
            socket.send_fds(self._sockets[0], [b"\0"], [self._descriptor])
        else:
            _, (descriptor, *_), _, _ = socket.recv_fds(self._sockets[1], 1, 1)
            self._view.release()
            self._memory.close()
            self._use(mmap.mmap(descriptor, self._length))
            os.close(descriptor)
        super().join(rank, partner)

    def close(self) -> None:
        """Unmap the memory, and close descriptor and sockets."""
        super().close()
        os.close(self._descriptor)
        for each in self._sockets:
            each.close()
