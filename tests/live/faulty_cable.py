"""A cable between two machines whose faults a program chooses, also on kernels without netem."""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from contextlib import suppress
from random import Random

from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.link.faults import Faults, FaultyPath
from mxwire.units import SECOND

from .namespaces import Laboratory, Port

_PACKET = 263  # SOL_PACKET
_ADD_MEMBERSHIP = 1  # PACKET_ADD_MEMBERSHIP
_PROMISCUOUS = 1  # PACKET_MR_PROMISC
_IGNORE_OUTGOING = 23  # PACKET_IGNORE_OUTGOING
_FORCED_RECEIVE_BUFFER = 33  # SO_RCVBUFFORCE
_BUFFER = 16 << 20
_POLL_SECONDS = 0.05


class FaultyCable:
    """Two new machines with an interface each, and a third between them whose thread passes frames on, with faults."""

    def __init__(self, laboratory: Laboratory, mtu: int, seed: int, ethertype: int = ETHERTYPE_MXOE) -> None:
        middle = laboratory.machine()
        self.ports: list[Port] = []
        """The interfaces of the two machines."""
        self.sockets: list[Port] = []
        """The interfaces of the machine between them, in the same order."""
        for number in range(2):
            outer, inner = laboratory.cable(laboratory.machine(), middle, ("eth0", f"socket{number}"), mtu)
            self.ports.append(outer)
            self.sockets.append(inner)
        self._ends = [_open(each, ethertype) for each in self.sockets]
        self._paths = [FaultyPath(Faults(), Random(f"{seed} {number}")) for number in range(2)]
        """By the socket that the frames arrive at."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._pass_on, daemon=True)
        self._thread.start()

    def change(self, faults: Faults) -> None:
        """Change the faults of both directions."""
        for each in self._paths:
            each.faults = faults

    def counts(self) -> dict[str, int]:
        """Counters of both directions together."""
        names = ("frames", "lost", "duplicated", "reordered", "corrupted")
        return {name: sum(getattr(each.counts, name) for each in self._paths) for name in names}

    def close(self) -> None:
        """End the thread; the machines belong to the laboratory."""
        self._ended.set()
        self._thread.join()
        for each in self._ends:
            each.close()

    def _pass_on(self) -> None:
        poll = select.poll()
        for each in self._ends:
            poll.register(each, select.POLLIN)
        while not self._ended.is_set():
            dues = [due for each in self._paths if (due := each.due()) is not None]
            wait = min(_POLL_SECONDS, max(min(dues) - time.monotonic_ns(), 0) / SECOND) if dues else _POLL_SECONDS
            poll.poll(wait * 1000)
            now = time.monotonic_ns()
            for end, path, other in zip(self._ends, self._paths, reversed(self._ends), strict=True):
                _receive(end, path, now)
                for _, frame in path.take(now):
                    # An interface that is down loses frames.
                    with suppress(OSError):
                        other.send(frame)


def _open(port: Port, ethertype: int) -> socket.socket:
    """Return a socket for all frames with an EtherType that arrive at an interface."""
    with port.namespace.inside():
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        opened.setsockopt(socket.SOL_SOCKET, _FORCED_RECEIVE_BUFFER, _BUFFER)
        opened.setsockopt(_PACKET, _IGNORE_OUTGOING, 1)
        index = socket.if_nametoindex(port.interface)
        opened.setsockopt(_PACKET, _ADD_MEMBERSHIP, struct.pack("iHH8x", index, _PROMISCUOUS, 0))
        opened.bind((port.interface, ethertype))
    opened.setblocking(False)
    return opened


def _receive(end: socket.socket, path: FaultyPath, now: int) -> None:
    while True:
        try:
            path.put(end.recv(65536), now)
        except BlockingIOError:
            return
        except OSError:
            continue  # the interface went down; reported once
