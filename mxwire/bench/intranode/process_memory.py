"""The memory of the other process: through ``process_vm_readv`` and ``process_vm_writev``, and as a file.

Debuggers read that file since 2005; it can be kept open without stopping the process.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, ClassVar, Final

from mxwire.bench.intranode.mechanism import (
    Direction,
    GetMechanism,
    MechanismError,
    OneSided,
    Piece,
    PutMechanism,
    checked,
    library,
)
from mxwire.link.process_memory import permit_reading
from mxwire.link.sendmmsg import IoVector

_ATTACH, _DETACH = 16, 17
_ALL_CHILDREN: Final = 0x40000000


class _ReadableProcess(OneSided):
    """A mechanism whose initiator uses the memory of the other process."""

    def join(self, rank: int, partner: int) -> None:
        """Permit the other side to use this side's memory, if only Yama forbids it."""
        super().join(rank, partner)
        permit_reading()


class _CrossMemory(_ReadableProcess):
    """A call with one segment on either side. Nothing is registered: pages are pinned while they are copied."""

    CALL: ClassVar[str]

    def open(self) -> None:
        """Find the call."""
        super().open()
        self._function: Any
        (self._function,) = library(self.CALL)
        pair = (IoVector * 2)()
        self._vectors = memoryview(pair).cast("B").cast("Q")
        """Address and length here, and there."""
        here, there = ctypes.byref(pair), ctypes.byref(pair, ctypes.sizeof(IoVector))
        # Objects of ctypes that are made once: those of a call would take as long as the kernel's part of a short one.
        one, nothing = ctypes.c_ulong(1), ctypes.c_ulong(0)
        self._arguments = here, one, there, one, nothing

    def move(self, piece: Piece, address: int) -> None:
        """Copy the message."""
        vectors, size = self._vectors, len(piece.view)
        vectors[0], vectors[1], vectors[2], vectors[3] = piece.address, size, address, size
        count = self._function(self.partner, *self._arguments)
        if count != size:
            checked(count, self.CALL)
            raise MechanismError(f"{self.CALL}: a part of the memory does not exist")


class CrossMemoryGet(_CrossMemory, GetMechanism):
    """``process_vm_readv`` by the destination."""

    CALL = "process_vm_readv"


class CrossMemoryPut(_CrossMemory, PutMechanism):
    """``process_vm_writev`` by the source."""

    CALL = "process_vm_writev"


def _path(process: int) -> str:
    return f"/proc/{process}/mem"


def _read(descriptor: int, piece: Piece, address: int) -> None:
    """Read a message from the address in the other process."""
    done, view = 0, piece.view
    while done < len(view):
        count = os.preadv(descriptor, [view[done:]], address + done)
        if not count:
            raise EOFError
        done += count


class PtraceGet(_ReadableProcess, GetMechanism):
    """Attach, which stops the source; open ``/proc/PID/mem``, read, close, and detach."""

    def open(self) -> None:
        """Find the call."""
        super().open()
        (self._ptrace,) = library("ptrace")

    def move(self, piece: Piece, address: int) -> None:
        """Read the message while the source is stopped."""
        checked(self._ptrace(_ATTACH, self.partner, None, None), "ptrace")
        os.waitpid(self.partner, _ALL_CHILDREN)
        try:
            descriptor = os.open(_path(self.partner), os.O_RDONLY)
            try:
                _read(descriptor, piece, address)
            finally:
                os.close(descriptor)
        finally:
            checked(self._ptrace(_DETACH, self.partner, None, None), "ptrace")


class ProcessFile(_ReadableProcess, GetMechanism):
    """``/proc/PID/mem``, opened once: the permission is checked at its opening only."""

    one_sided = ("get", "put")

    def start(self) -> None:
        """Open the memory of the other side."""
        self._descriptor = os.open(_path(self.partner), os.O_RDWR)

    def move(self, piece: Piece, address: int) -> None:
        """Read the message."""
        _read(self._descriptor, piece, address)

    def access(self, direction: Direction, piece: Piece, address: int) -> None:
        """Read or write."""
        if direction == "get":
            self.move(piece, address)
        elif os.pwrite(self._descriptor, piece.view, address) != piece.size:
            raise MechanismError("a part of the memory does not exist")

    def close(self) -> None:
        """Close the file."""
        if getattr(self, "_descriptor", -1) >= 0:
            os.close(self._descriptor)
