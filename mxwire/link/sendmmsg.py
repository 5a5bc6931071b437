"""Sending many frames in one system call, straight from where they lie."""

from __future__ import annotations

import ctypes
import errno
import select
import socket
import time
from collections.abc import Callable, Sequence

import numpy as np

from mxwire.frames import FrameBatch

AT_ONCE = 1024
"""The kernel takes no more messages in a call."""
FEW = 5
"""Fewer frames than this leave one by one, which is faster then."""
PATIENCE_NS = 10_000_000
"""How long a full queue is waited for in one call of ``send``."""
_PAUSE = 50e-6
_THIS_FRAME = frozenset({errno.EMSGSIZE, errno.EINVAL})
"""Errors that are about one frame: longer than the MTU, or shorter than a header."""
_FULL = frozenset({errno.EAGAIN, errno.ENOBUFS})
_FLAGS = socket.MSG_DONTWAIT


class _Piece(ctypes.Structure):
    """struct iovec; addresses as integers, with a sign because offsets have one, so that NumPy fills them."""

    _fields_ = (("base", ctypes.c_ssize_t), ("length", ctypes.c_ssize_t))


class _Message(ctypes.Structure):
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

    _fields_ = (("message", _Message), ("sent", ctypes.c_uint))


Some = Callable[[int, int], int]
"""Sends frames from one place up to another, returns how many of them left; OSError when the first did not."""


class Sender:
    """Sends batches through a packet socket, and counts what the kernel did not take."""

    def __init__(self, through: socket.socket) -> None:
        self._socket = through
        self._descriptor = through.fileno()
        self._pieces = np.zeros(AT_ONCE, np.dtype(_Piece))
        self._base, self._length = self._pieces["base"], self._pieces["length"]
        self._headers = np.zeros(AT_ONCE, np.dtype(_Header))
        self._headers["message"]["pieces"] = self._pieces.ctypes.data + np.arange(AT_ONCE) * self._pieces.itemsize
        self._headers["message"]["piece_count"] = 1
        self._at = self._headers.ctypes.data
        self._sendmmsg = ctypes.CDLL(None, use_errno=True).sendmmsg
        self._sendmmsg.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int)
        self.sent = 0
        self.refused = 0

    def send(self, batch: FrameBatch) -> int:
        """Give frames to the kernel, in order; returns how many it took."""
        count = len(batch)
        if count < FEW:
            buffer = np.ascontiguousarray(batch.buffer).data
            places = zip(batch.offset.tolist(), batch.length.tolist(), strict=True)
            return self.send_few([buffer[start : start + length] for start, length in places])
        sent = self._many(batch)
        self.sent += sent
        self.refused += count - sent
        return sent

    def send_few(self, frames: Sequence[bytes | memoryview]) -> int:
        """The same for frames by themselves, one system call each."""
        send, sent = self._socket.send, 0
        try:
            for frame in frames:
                send(frame, _FLAGS)
                sent += 1
        except OSError:
            # Tried again from this frame on, and with patience.
            sent += self._one_by_one(frames[sent:])
        self.sent += sent
        self.refused += len(frames) - sent
        return sent

    def _one_by_one(self, frames: Sequence[bytes | memoryview]) -> int:
        def one(first: int, _end: int) -> int:
            self._socket.send(frames[first], _FLAGS)
            return 1

        return _send_all(one, len(frames), Patience(self._socket))

    def _many(self, batch: FrameBatch) -> int:
        patience = Patience(self._socket)
        buffer = np.ascontiguousarray(batch.buffer)
        address = buffer.ctypes.data
        sent = 0
        for first in range(0, len(batch), AT_ONCE):
            offset = batch.offset[first : first + AT_ONCE]
            count = len(offset)
            np.add(offset, address, self._base[:count])
            self._length[:count] = batch.length[first : first + AT_ONCE]
            sent += _send_all(self._call, count, patience)
            if patience.ended:
                break
        return sent

    def _call(self, first: int, end: int) -> int:
        count: int = self._sendmmsg(self._descriptor, self._at + first * self._headers.itemsize, end - first, _FLAGS)
        if count < 0:
            number = ctypes.get_errno()
            raise OSError(number, "sendmmsg")
        return count


def _send_all(some: Some, count: int, patience: Patience) -> int:
    """Send frames until all have been tried, or nothing goes any more; returns how many left."""
    done = sent = 0
    while done < count:
        try:
            left = some(done, count)
        except OSError as error:
            if error.errno in _THIS_FRAME:
                done += 1
            elif not patience.again(error.errno or 0):
                break
        else:
            done += left
            sent += left
    return sent


class Patience:
    """What a call of ``send`` bears before it gives the rest of its frames up."""

    def __init__(self, through: socket.socket) -> None:
        self._socket = through
        self._until = 0
        self._was_down = False
        self.ended = False

    def again(self, error: int) -> bool:
        """Whether to try again after an error, having waited where that may help."""
        if error in _FULL:
            self.ended = not self._wait(error)
        elif error == errno.ENETDOWN and not self._was_down:
            # The kernel tells once that the interface was down, also when it is up again.
            self._was_down = True
        else:
            self.ended = True
        return not self.ended

    def _wait(self, error: int) -> bool:
        now = time.monotonic_ns()
        self._until = self._until or now + PATIENCE_NS
        if now >= self._until:
            return False
        if error == errno.EAGAIN:
            leaving = select.poll()
            leaving.register(self._socket, select.POLLOUT)
            leaving.poll((self._until - now) / 1e6)
        else:
            # The queue of the interface is full, and nothing tells when it is not any more.
            time.sleep(_PAUSE)
        return True
