"""mxwire's own path between the processes of a machine: two hosts on one interface."""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from itertools import count
from typing import Final

from mxwire.bench.intranode.mechanism import Mechanism, MechanismError, Piece
from mxwire.host import Host, HostError
from mxwire.host.sharing import MachineSharing
from mxwire.link import MemoryNetwork
from mxwire.protocol import Partner

_PATIENCE: Final = 60.0
_MATCH: Final = 5


_made = count(1)


def interface_name() -> str:
    """The name of an interface without a wire, which nothing else has."""
    return f"intranode{os.getpid()}-{next(_made)}"


class MxMechanism(Mechanism):
    """An endpoint of MX on each side, with all of its semantics."""

    JOINS_ALONE = False

    def open(self) -> None:
        """Name the interface."""
        self.interface = interface_name()

    @abstractmethod
    def open_host(self) -> Host:
        """Open the host of a side."""

    def join(self, rank: int, partner: int) -> None:
        """Open a host with an endpoint, and connect: side 1 by the first message, for which it polls."""
        super().join(rank, partner)
        self._host = self.open_host()
        self._endpoint = self._host.open_endpoint(rank)
        there = self._endpoint.receive(timeout=_PATIENCE).partner if rank else self._connected()
        if there is None:
            raise MechanismError("the other process has closed its endpoint")
        self._there = there
        if not rank:
            self._endpoint.send(there, b"", _MATCH)

    def _connected(self) -> Partner:
        """The other side, as soon as it has opened its endpoint."""
        limit = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._endpoint.connect(self._host.name, 1)
            except HostError:
                if time.monotonic() > limit:
                    raise MechanismError("the other process has not opened its endpoint") from None

    def give(self, piece: Piece) -> None:
        """Send, and wait until the memory may be reused."""
        self._endpoint.send(self._there, piece.view, _MATCH)

    def take(self, piece: Piece) -> None:
        """Receive into the piece."""
        self._endpoint.receive(_MATCH, buffer=piece.view)

    def close(self) -> None:
        """Close the host."""
        if hasattr(self, "_host"):
            self._host.close()


class MxLocal(MxMechanism):
    """Messages to posted receives: into a ring and out of it, by both processes at the same time."""

    def open_host(self) -> Host:
        """Open a host that shares the interface."""
        link, sharing = MemoryNetwork().attach(), MachineSharing([self.interface])
        return Host(link, sharing=sharing, name="local", announce=False, spin=True, background=False)


class MxLocalOneCopy(MxLocal):
    """Messages that arrive before their receive: long ones are copied by the receiver, out of the sender's memory."""

    def take(self, piece: Piece) -> None:
        """Wait for a message, and receive it into the piece."""
        self._endpoint.probe(_MATCH)
        super().take(piece)
