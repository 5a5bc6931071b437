"""Message queues of the kernel, in packets of up to 8,192 bytes: those of System V and of POSIX."""

from __future__ import annotations

import ctypes
import os
from typing import Final

from mxwire.bench.intranode.mechanism import PACKET, Mechanism, Piece, checked, library

_OWNER_ONLY: Final = 0o600
_PRIVATE: Final = 0
_REMOVE: Final = 0
_TYPE: Final = 1
_QUEUED: Final = 10
"""Messages that a POSIX queue holds, as many as Linux permits."""


class _QueueMessage(ctypes.Structure):
    _fields_ = (("type", ctypes.c_long), ("data", ctypes.c_char * PACKET))


class SystemVQueue(Mechanism):
    """``msgsnd`` and ``msgrcv`` on a queue per direction; 8,192 is the default of ``kernel.msgmax``."""

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


class PosixQueue(Mechanism):
    """``mq_send`` and ``mq_receive`` on a queue per direction, whose name is removed at once."""

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
