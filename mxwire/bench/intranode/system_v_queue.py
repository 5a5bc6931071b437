"""System V message queue: ``msgsnd`` and ``msgrcv`` of up to 8,192 bytes, the default of ``kernel.msgmax``."""

from __future__ import annotations

import ctypes
from typing import ClassVar, Final

from mxwire.bench.intranode.mechanism import PACKET, Mechanism, MechanismFacts, Piece, checked, library

_PRIVATE: Final = 0
_OWNER_ONLY: Final = 0o600
_REMOVE: Final = 0
_TYPE: Final = 1


class _QueueMessage(ctypes.Structure):
    _fields_ = (("type", ctypes.c_long), ("data", ctypes.c_char * PACKET))


class SystemVQueue(Mechanism):
    """A queue per direction."""

    facts: ClassVar[MechanismFacts] = MechanismFacts(copies=2, actor="both")

    def open(self) -> None:
        """Create the queues, which have no name."""
        get, self._send, self._receive, self._control = library("msgget", "msgsnd", "msgrcv", "msgctl")
        self._queues = [checked(get(_PRIVATE, _OWNER_ONLY), "msgget") for _ in range(2)]
        self._message = _QueueMessage(_TYPE)
        self._data = memoryview(self._message).cast("B")[_QueueMessage.data.offset :]

    def give(self, piece: Piece) -> None:
        """Send the message in packets."""
        queue, pointer, view = self._queues[self.rank], ctypes.byref(self._message), piece.view
        for begin in range(0, len(view), PACKET):
            part = view[begin : begin + PACKET]
            self._data[: len(part)] = part
            checked(self._send(queue, pointer, ctypes.c_size_t(len(part)), 0), "msgsnd")

    def take(self, piece: Piece) -> None:
        """Receive the packets."""
        queue, pointer, view, done = self._queues[1 - self.rank], ctypes.byref(self._message), piece.view, 0
        while done < len(view):
            length = checked(self._receive(queue, pointer, ctypes.c_size_t(PACKET), ctypes.c_long(0), 0), "msgrcv")
            view[done : done + length] = self._data[:length]
            done += length

    def close(self) -> None:
        """Remove the queues, once."""
        if not self.rank:
            for each in self._queues:
                self._control(each, _REMOVE, None)
