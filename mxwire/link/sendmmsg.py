"""BatchSender: sends many frames in one system call, without a copy."""

from __future__ import annotations

import ctypes
import socket
from typing import Final

import numpy as np

from mxwire.frames import FrameBatch
from mxwire.link.backoff import SendBackoff, send_all

AT_ONCE: Final = 1024
"""Largest number of messages per call (UIO_MAXIOV)."""
_FLAGS: Final = int(socket.MSG_DONTWAIT)


class IoVector(ctypes.Structure):
    """struct iovec. Addresses are integers, so that NumPy fills them, and signed, as NumPy's offsets are."""

    _fields_ = (("base", ctypes.c_ssize_t), ("length", ctypes.c_ssize_t))


class _MessageVector(ctypes.Structure):
    """struct msghdr."""

    _fields_ = (
        ("name", ctypes.c_size_t),
        ("name_length", ctypes.c_uint32),
        ("pieces", ctypes.c_size_t),
        ("piece_count", ctypes.c_size_t),
        ("control", ctypes.c_size_t),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _Header(ctypes.Structure):
    """struct mmsghdr."""

    _fields_ = (("message", _MessageVector), ("sent", ctypes.c_uint))


class BatchSender:
    """Arguments of ``sendmmsg``, filled by array operations."""

    def __init__(self, through: socket.socket) -> None:
        self._socket = through
        self._pieces = np.zeros(AT_ONCE, np.dtype(IoVector))
        self._base, self._length = self._pieces["base"], self._pieces["length"]
        self._headers = np.zeros(AT_ONCE, np.dtype(_Header))
        self._headers["message"]["pieces"] = self._pieces.ctypes.data + np.arange(AT_ONCE) * self._pieces.itemsize
        self._headers["message"]["piece_count"] = 1
        self._at = self._headers.ctypes.data
        self._sendmmsg = ctypes.CDLL(None, use_errno=True).sendmmsg
        self._sendmmsg.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int)

    def send(self, batch: FrameBatch) -> int:
        """Send frames in order; return the number sent."""
        backoff = SendBackoff(self._socket)
        buffer = np.ascontiguousarray(batch.buffer)
        address: int = buffer.__array_interface__["data"][0]
        sent = 0
        for first in range(0, len(batch), AT_ONCE):
            offset = batch.offset[first : first + AT_ONCE]
            count = len(offset)
            np.add(offset, address, self._base[:count])
            self._length[:count] = batch.length[first : first + AT_ONCE]
            sent += send_all(self._call, count, backoff)
            if backoff.ended:
                break
        return sent

    def _call(self, first: int, end: int) -> int:
        # Read the descriptor each time: if another thread has closed the socket during a pause, its old number may
        # belong to another file.
        descriptor = self._socket.fileno()
        count: int = self._sendmmsg(descriptor, self._at + first * self._headers.itemsize, end - first, _FLAGS)
        if count < 0:
            number = ctypes.get_errno()
            raise OSError(number, "sendmmsg")
        return count
