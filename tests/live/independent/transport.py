"""The source and target of frames: an interface, or anything else that has these three methods."""

from __future__ import annotations

import select
import socket
import time
from typing import Protocol

from .frames import BROADCAST, ETHERTYPE

_BUFFER = 8 << 20
_FORCED_RECEIVE_BUFFER = 33  # SO_RCVBUFFORCE, which the socket module does not name


class Transport(Protocol):
    """Whole Ethernet frames without FCS."""

    def send(self, frame: bytes) -> None: ...

    def receive(self, timeout: float) -> bytes | None:
        """The next frame, or None after ``timeout`` seconds."""

    def now(self) -> float:
        """Seconds of a clock that only goes forwards."""


class PacketSocket:
    """A plain packet socket on an interface. Foreign frames are left out."""

    def __init__(self, interface: str) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
        self._socket.setsockopt(socket.SOL_SOCKET, _FORCED_RECEIVE_BUFFER, _BUFFER)
        self._socket.bind((interface, ETHERTYPE))
        self.mac: bytes = self._socket.getsockname()[4]

    def send(self, frame: bytes) -> None:
        self._socket.send(frame)

    def receive(self, timeout: float) -> bytes | None:
        deadline = self.now() + timeout
        while select.select([self._socket], [], [], max(0.0, deadline - self.now()))[0]:
            frame = self._socket.recv(65536)
            if frame[:6] in (self.mac, BROADCAST):
                return frame
        return None

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        self._socket.close()
