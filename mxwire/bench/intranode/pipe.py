"""Pipe: one per direction, with a buffer of 1 MiB, written and read, or with pages of the source lent to it."""

from __future__ import annotations

import ctypes
import fcntl
import os
from contextlib import suppress
from typing import ClassVar, Final

from mxwire.bench.intranode.mechanism import Mechanism, MechanismFacts, Piece, checked, library
from mxwire.link.sendmmsg import IoVector

_BUFFER: Final = 1 << 20


def write_all(descriptor: int, view: memoryview) -> None:
    """Write a message."""
    while view:
        view = view[os.write(descriptor, view) :]


def read_all(descriptor: int, view: memoryview) -> None:
    """Read a message into memory."""
    while view:
        count = os.readv(descriptor, [view])
        if not count:
            raise EOFError
        view = view[count:]


class Pipe(Mechanism):
    """The kernel copies in and out."""

    facts: ClassVar[MechanismFacts] = MechanismFacts(copies=2, actor="both")

    def open(self) -> None:
        """Open the pipes; an unprivileged user may not be allowed the large buffer."""
        self._pipes = [os.pipe(), os.pipe()]
        for _, writing in self._pipes:
            with suppress(PermissionError):
                fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _BUFFER)

    def join(self, rank: int, partner: int) -> None:
        """Take the ends of the side, so that the end of the other side is seen."""
        super().join(rank, partner)
        self._write, self._read = self._pipes[rank][1], self._pipes[1 - rank][0]
        for each in (self._pipes[rank][0], self._pipes[1 - rank][1]):
            os.close(each)
        self._pipes = []

    def give(self, piece: Piece) -> None:
        """Write the message."""
        write_all(self._write, piece.view)

    def take(self, piece: Piece) -> None:
        """Read the message."""
        read_all(self._read, piece.view)

    def close(self) -> None:
        """Close the pipes."""
        ends = [each for pipe in self._pipes for each in pipe] or [self._write, self._read]
        for each in ends:
            os.close(each)


class Vmsplice(Pipe):
    """Pages of the source are lent to the pipe, and the destination copies out of them.

    The source must leave them alone until they were read, which no call reports; here the answer of the other side
    does.
    """

    facts: ClassVar[MechanismFacts] = MechanismFacts(copies=1, actor="both")

    def open(self) -> None:
        """Open the pipes."""
        super().open()
        (self._splice,) = library("vmsplice")
        self._segment = IoVector()

    def give(self, piece: Piece) -> None:
        """Lend the pages of the message."""
        segment, done = self._segment, 0
        while done < piece.size:
            segment.base, segment.length = piece.address + done, piece.size - done
            count = self._splice(self._write, ctypes.byref(segment), ctypes.c_ulong(1), 0)
            done += checked(count, "vmsplice")
