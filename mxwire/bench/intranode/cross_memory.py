"""Cross memory attach: the kernel copies between the memories of two processes, in one call."""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar, Literal

from mxwire.bench.intranode.mechanism import (
    GetMechanism,
    MechanismError,
    MechanismFacts,
    OneSided,
    Piece,
    PutMechanism,
    checked,
    library,
)
from mxwire.link.process_memory import permit_reading
from mxwire.link.sendmmsg import IoVector


def _facts(direction: Literal["get", "put"]) -> MechanismFacts:
    return MechanismFacts(
        copies=1, actor="initiator", one_sided=(direction,), permission="ptrace attach", yama=False, containers=False
    )


class _CrossMemory(OneSided):
    """A call with one segment on either side. Nothing is registered: pages are pinned while they are copied."""

    CALL: ClassVar[str]

    def open(self) -> None:
        """Find the call."""
        super().open()
        self._function: Any
        (self._function,) = library(self.CALL)
        self._here, self._there = IoVector(), IoVector()
        self._pointers = ctypes.byref(self._here), ctypes.byref(self._there)

    def join(self, rank: int, partner: int) -> None:
        """Permit the other side to use this side's memory, if only Yama forbids it."""
        super().join(rank, partner)
        permit_reading()

    def move(self, piece: Piece, address: int) -> None:
        """Copy the message."""
        here, there = self._pointers
        self._here.base, self._there.base = piece.address, address
        self._here.length = self._there.length = piece.size
        one, nothing = ctypes.c_ulong(1), ctypes.c_ulong(0)
        if checked(self._function(self.partner, here, one, there, one, nothing), self.CALL) != piece.size:
            raise MechanismError(f"{self.CALL}: a part of the memory does not exist")


class CrossMemoryGet(_CrossMemory, GetMechanism):
    """``process_vm_readv`` by the destination."""

    facts: ClassVar[MechanismFacts] = _facts("get")
    CALL = "process_vm_readv"


class CrossMemoryPut(_CrossMemory, PutMechanism):
    """``process_vm_writev`` by the source."""

    facts: ClassVar[MechanismFacts] = _facts("put")
    CALL = "process_vm_writev"
