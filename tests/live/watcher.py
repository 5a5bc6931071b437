"""Watches an interface of a namespace: every frame in both directions, with the kernel's times."""

from __future__ import annotations

import select
import socket
import struct
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from .namespaces import Port
from .referee import Watched

ETHERTYPE = 0x86DF
_EVERYTHING = 3  # ETH_P_ALL
_BUFFER = 64 << 20
_FORCED_RECEIVE_BUFFER = 33  # SO_RCVBUFFORCE
_TIMESTAMPS = 35  # SO_TIMESTAMPNS
_PACKET = 263  # SOL_PACKET
_STATISTICS = 6  # PACKET_STATISTICS
_TIMESPEC = struct.Struct("qq")
_PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)


class Watcher:
    """Collects frames of MXoE from the beginning of the ``with`` to its end."""

    def __init__(self, port: Port) -> None:
        with port.namespace.inside():
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_EVERYTHING))
            self._socket.setsockopt(socket.SOL_SOCKET, _FORCED_RECEIVE_BUFFER, _BUFFER)
            self._socket.setsockopt(socket.SOL_SOCKET, _TIMESTAMPS, 1)
            self._socket.bind((port.interface, _EVERYTHING))
        self.frames: list[Watched] = []
        self.dropped = 0
        """Frames that were missed, which makes a judgement worthless."""
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()
        self.dropped = struct.unpack("II", self._socket.getsockopt(_PACKET, _STATISTICS, 8))[1]
        self._socket.close()

    def write_pcap(self, path: Path) -> None:
        """A capture file with times in nanoseconds."""
        with path.open("wb") as file:
            file.write(_PCAP_HEADER)
            for time_ns, raw in self.frames:
                file.write(struct.pack("<IIII", *divmod(time_ns, 1_000_000_000), len(raw), len(raw)) + raw)

    def _watch(self) -> None:
        while True:
            ending = self._ending.is_set()
            if select.select([self._socket], [], [], 0.05)[0]:
                self._take()
            elif ending:
                return

    def _take(self) -> None:
        raw, ancillary, _flags, _address = self._socket.recvmsg(65536, 64)
        if raw[12:14] != ETHERTYPE.to_bytes(2, "big"):
            return
        [stamp] = [data for level, kind, data in ancillary if (level, kind) == (socket.SOL_SOCKET, _TIMESTAMPS)]
        seconds, nanoseconds = _TIMESPEC.unpack(stamp[: _TIMESPEC.size])
        self.frames.append((seconds * 1_000_000_000 + nanoseconds, raw))
