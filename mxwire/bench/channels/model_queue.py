"""A server and its clients, which are processes of a classic library: the carrier of the pattern *central queue*.

The passive side is the server, node 0. The active side plays all clients in turn, each with a layer of its own: a
machine with two processors has one for them anyway. The port number of a process is its node number, so that the header
names both ends. If a library has a common queue (``ModelPort.common``), the server looks there; otherwise it looks at
the place of each client in turn, as with VMMC-2.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final

from mxwire.bench.channels.channel import ChannelSetup
from mxwire.bench.channels.models import LibraryChannel
from mxwire.bench.models.header import HEADER
from mxwire.bench.models.layer import Address
from mxwire.bench.models.port import ModelPort
from mxwire.errors import MxwireError

_PORTS: Final = Struct("!4xHH")
"""Source and target port at the beginning of a header."""
SERVER: Final[Address] = (0, 0)


class QueueChannel(LibraryChannel):
    """The server (passive), or all of its ``setup.clients`` clients (active)."""

    nap = 0.002

    def __init__(self, setup: ChannelSetup) -> None:
        super().__init__(setup)
        model, payload = self._model, self._payload
        self.clients: list[Address] = [(number, number) for number in range(1, setup.clients + 1)]
        if setup.size > payload and model.port.cuts:
            raise MxwireError(f"{setup.carrier}: a request of {setup.size:,} bytes exceeds a packet of {payload:,}")
        for node, number in self.clients if setup.active else [SERVER]:
            layer = self._add_process(node, number, range(setup.clients + 1))
            options: dict[str, Any] = {"copied": self._copied, "size": setup.size, "depth": 2}
            if setup.active:
                self.ports.append(model.port(layer, SERVER, **options))
            elif model.port.common:
                options |= {"depth": 2 * setup.clients, "partners": self.clients}
                self.ports.append(model.port(layer, self.clients[0], **options))
            else:
                self.ports += [model.port(layer, each, **options) for each in self.clients]
        self._started: set[ModelPort[Any]] = set()
        self.looks = 0
        """Places at which the server has looked for a request since it had the one before, or since its begin."""

    def send(self, size: int) -> None:
        """Refuse: requests and answers belong to a client."""
        raise MxwireError(f"{self.setup.carrier}: a queue has no partner to which {size} bytes could be sent")

    def receive(self, size: int) -> None:
        """Refuse: see :meth:`send`."""
        self.send(size)

    def start(self) -> None:
        """Do the work that precedes the messages of all clients."""
        for port in self.ports:
            self._start(port)

    def _start(self, port: ModelPort[Any]) -> None:
        if port not in self._started:
            self._started.add(port)
            port.start()
            self.until(port.started)

    def next_request(self, size: int, ports: Sequence[ModelPort[Any]]) -> ModelPort[Any]:
        """Wait for the next request at some ports, and return the one that has it; its ``source`` is the client."""
        found: list[ModelPort[Any]] = []

        def look() -> bool:
            # A search without success costs as much, but does not find the next message.
            for number, port in enumerate(ports, 1):
                if port.received(size):
                    self.looks += number
                    found.append(port)
                    return True
            return False

        self.until(look)
        return found[0]

    def answer(self, port: ModelPort[Any], data: memoryview) -> None:
        """Answer the client whose request a port has."""
        self._start(port)
        port.partner = port.source
        port.send(data)
        self.until(port.sent)

    def _arrive(self, raw: memoryview, now: int) -> None:
        """Hand a frame to the process that it names; a question to all nodes to all processes."""
        if len(raw) < HEADER.size:
            return
        source, target = _PORTS.unpack_from(raw)
        own = self._inlets.get(target if self.active else SERVER[1])
        for each in self._inlets.values() if own is None else (own,):
            each.arrive(source, raw, now)
