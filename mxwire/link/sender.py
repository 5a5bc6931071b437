"""Sending through a packet socket: few frames one by one, many together."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Final

import numpy as np

from mxwire.frames import FrameBatch
from mxwire.link.patience import Patience, send_all
from mxwire.link.sendmmsg import BatchSender

FEW: Final = 5
"""Fewer frames than this leave one by one, which is faster then."""
_FLAGS: Final = int(socket.MSG_DONTWAIT)


class FrameSender:
    """Sends batches through a packet socket, and counts what the kernel did not take."""

    def __init__(self, through: socket.socket) -> None:
        self._socket = through
        self._send = through.send
        self._many = BatchSender(through)
        self.sent = 0
        self.refused = 0

    def send(self, batch: FrameBatch) -> int:
        """Give frames to the kernel, in order; returns how many it took."""
        count = len(batch)
        if count < FEW:
            buffer = np.ascontiguousarray(batch.buffer).data
            places = zip(batch.offset.tolist(), batch.length.tolist(), strict=True)
            return self.send_few([buffer[start : start + length] for start, length in places])
        sent = self._many.send(batch)
        self.sent += sent
        self.refused += count - sent
        return sent

    def send_few(self, frames: Sequence[bytes | memoryview]) -> int:
        """The same for frames by themselves, one system call each."""
        send, sent = self._send, 0
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
            self._send(frames[first], _FLAGS)
            return 1

        return send_all(one, len(frames), Patience(self._socket))
