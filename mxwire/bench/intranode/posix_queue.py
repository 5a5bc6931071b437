"""POSIX message queue: ``mq_send`` and ``mq_receive`` of up to 8,192 bytes, ten of them at once, as Linux permits."""

from __future__ import annotations

import ctypes
import os
from typing import ClassVar, Final

from mxwire.bench.intranode.mechanism import PACKET, Mechanism, MechanismFacts, Piece, checked, library

_QUEUED: Final = 10
_OWNER_ONLY: Final = 0o600


class PosixQueue(Mechanism):
    """A queue per direction, whose name is removed at once."""

    facts: ClassVar[MechanismFacts] = MechanismFacts(copies=2, actor="both")

    def open(self) -> None:
        """Create the queues."""
        opening, unlink, self._close = library("mq_open", "mq_unlink", "mq_close")
        self._send, self._receive = library("mq_send", "mq_receive")
        attributes = (ctypes.c_long * 8)(0, _QUEUED, PACKET)
        self._queues = []
        for number in range(2):
            name = f"/mxwire-intranode-{os.getpid()}-{number}".encode()
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
            queue = checked(opening(name, flags, ctypes.c_uint(_OWNER_ONLY), ctypes.byref(attributes)), "mq_open")
            unlink(name)
            self._queues.append(queue)
        self._buffer = ctypes.create_string_buffer(PACKET)
        self._data = memoryview(self._buffer).cast("B")

    def give(self, piece: Piece) -> None:
        """Send the message in packets."""
        queue = self._queues[self.rank]
        for begin in range(0, piece.size, PACKET):
            length = min(PACKET, piece.size - begin)
            place = ctypes.c_void_p(piece.address + begin)
            checked(self._send(queue, place, ctypes.c_size_t(length), 0), "mq_send")

    def take(self, piece: Piece) -> None:
        """Receive the packets."""
        queue, view, done = self._queues[1 - self.rank], piece.view, 0
        while done < len(view):
            length = checked(self._receive(queue, self._buffer, ctypes.c_size_t(PACKET), None), "mq_receive")
            view[done : done + length] = self._data[:length]
            done += length

    def close(self) -> None:
        """Close the queues."""
        for each in self._queues:
            self._close(each)
