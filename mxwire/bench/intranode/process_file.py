"""The memory of a process as a file: as debuggers read it since 2005, and kept open without stopping the process."""

from __future__ import annotations

import os
from typing import ClassVar, Final

from mxwire.bench.intranode.mechanism import GetMechanism, MechanismFacts, Piece, checked, library
from mxwire.link.process_memory import permit_reading

_ATTACH, _DETACH = 16, 17
_ALL_CHILDREN: Final = 0x40000000
_PERMISSION: Final = "ptrace attach"


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


class PtraceGet(GetMechanism):
    """Attach, which stops the source; open ``/proc/PID/mem``, read, close, and detach."""

    facts: ClassVar[MechanismFacts] = MechanismFacts(
        copies=2, actor="initiator", one_sided=("get",), permission=_PERMISSION, freezes=True, yama=False,
        containers=False,
    )  # fmt: skip

    def open(self) -> None:
        """Permit the other side to attach, if only Yama forbids it."""
        super().open()
        (self._ptrace,) = library("ptrace")

    def join(self, rank: int, partner: int) -> None:
        """Permit the other side."""
        super().join(rank, partner)
        permit_reading()

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


class ProcessFile(GetMechanism):
    """``/proc/PID/mem``, opened once: the permission is checked at its opening only."""

    facts: ClassVar[MechanismFacts] = MechanismFacts(
        copies=2, actor="initiator", one_sided=("get", "put"), permission=_PERMISSION, yama=False, containers=False
    )

    def join(self, rank: int, partner: int) -> None:
        """Permit the other side."""
        super().join(rank, partner)
        permit_reading()

    def start(self) -> None:
        """Open the memory of the other side."""
        self._descriptor = os.open(_path(self.partner), os.O_RDWR)

    def move(self, piece: Piece, address: int) -> None:
        """Read the message."""
        _read(self._descriptor, piece, address)

    def close(self) -> None:
        """Close the file."""
        if getattr(self, "_descriptor", -1) >= 0:
            os.close(self._descriptor)
