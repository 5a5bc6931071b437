"""FrameSender: sends through a packet socket, a few frames one by one, many in one system call."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any, Final

import numpy as np

from mxwire.frames import FrameBatch
from mxwire.link.backoff import SendBackoff, send_all
from mxwire.link.sendmmsg import BatchSender
from mxwire.native import native

FEW: Final = 5
"""Number of frames from which one ``sendmmsg`` is faster than several ``send``."""
_FLAGS: Final = int(socket.MSG_DONTWAIT)
_send_frames: Final[Any] = None if native is None else native.send_frames


class FrameSender:
    """Sends frames through a packet socket, and counts those sent and refused.

    If mxwire is compiled, long frames pass through ``whole`` instead, which expects a header for the kernel before
    each: this is faster (``send_frames`` in ``native.c``).
    """

    def __init__(self, through: socket.socket, whole: socket.socket | None = None) -> None:
        self._socket = through
        self._whole = whole
        self._second = -1 if whole is None else whole.fileno()
        self._send = through.send
        self._descriptor = through.fileno()
        self._many = BatchSender(through)
        self.sent = 0
        self.refused = 0

    def send(self, batch: FrameBatch) -> int:
        """Send frames in order; return the number sent."""
        count = len(batch)
        if count < FEW:
            buffer = np.ascontiguousarray(batch.buffer).data
            places = zip(batch.offset.tolist(), batch.length.tolist(), strict=True)
            return self.send_few([buffer[start : start + length] for start, length in places])
        sent = self._many.send(batch)
        self.sent += sent
        self.refused += count - sent
        return sent

    def send_few(self, frames: list[bytes] | list[memoryview]) -> int:
        """Send single frames, also gathered ones if mxwire is compiled; return the number sent."""
        count = len(frames)
        if _send_frames is None and count >= FEW:
            return self.send(FrameBatch.from_frames(map(bytes, frames)))
        sent: int = (
            self._send_each(frames) if _send_frames is None else _send_frames(self._descriptor, frames, self._second)
        )
        if sent < count:
            # Retry from this frame on, with backoff.
            sent += self._one_by_one(frames[sent:])
            self.refused += count - sent
        self.sent += sent
        return sent

    def _send_each(self, frames: list[bytes] | list[memoryview]) -> int:
        """Send frames until one is refused; return the number sent."""
        sent = 0
        with suppress(OSError):
            for frame in frames:
                self._send(frame, _FLAGS)
                sent += 1
        return sent

    def close(self) -> None:
        """Close the socket for long frames."""
        if self._whole is not None:
            self._whole.close()

    def _one_by_one(self, frames: list[Any]) -> int:
        def one(first: int, _end: int) -> int:
            # A copy of a gathered frame only.
            self._send(bytes(frames[first]), _FLAGS)
            return 1

        return send_all(one, len(frames), SendBackoff(self._socket))
