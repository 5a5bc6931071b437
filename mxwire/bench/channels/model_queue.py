"""A server and its clients, which are processes of a classic library: the carrier of the pattern *central queue*.

The passive side is the server, node 0. The active side plays all clients in turn, each with a layer of its own: a
machine with two processors has one for them anyway. The port number of a process is its node number, so that the header
names both ends. If a library has a common queue (``ModelPort.common``), the server looks there; otherwise it looks at
the place of each client in turn, as with VMMC-2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

from mxwire.bench.channels.channel import POLLS, ChannelSetup, SilenceError, end_of_wait
from mxwire.bench.channels.links import LinkFrameChannel
from mxwire.bench.channels.models import LINGER_NS, RESEND_NS
from mxwire.bench.models.catalogue import model_of
from mxwire.bench.models.header import HEADER, packed
from mxwire.bench.models.layer import Address, CatastropheError, ModelLayer
from mxwire.bench.models.order import ReliableOrder
from mxwire.bench.models.port import ModelPort
from mxwire.bench.models.wire import AdapterInlet
from mxwire.errors import MxwireError
from mxwire.ethernet import HEADER_SIZE, SHORTEST_FRAME
from mxwire.frames import FrameBatch
from mxwire.link import FewLink

_PORTS: Final = Struct("!4xHH")
"""Source and target port at the beginning of a header."""
_NAP: Final = 0.002
"""Maximum time in seconds for which a side that does not poll waits for a frame."""
SERVER: Final[Address] = (0, 0)


@dataclass(slots=True)
class _Process:
    """A process of this side."""

    layer: ModelLayer
    inlet: AdapterInlet
    port: ModelPort[Any]


class QueueChannel(LinkFrameChannel):
    """The server (passive), or all of its ``setup.clients`` clients (active)."""

    def __init__(self, setup: ChannelSetup) -> None:
        super().__init__(setup)
        self._polls = setup.spin and setup.network is None and isinstance(self._link, FewLink)
        model, copied = model_of(setup.carrier)
        self.clients: list[Address] = [(number, number) for number in range(1, setup.clients + 1)]
        payload = min(setup.payload or model.payload, self._link.mtu - HEADER.size)
        if setup.size > payload and model.port.cuts:
            raise MxwireError(f"{setup.carrier}: a request of {setup.size:,} bytes exceeds a packet of {payload:,}")
        nodes, own = range(setup.clients + 1), self.clients if setup.active else [SERVER]
        self._by_number: dict[int, _Process] = {}
        self.ports: list[ModelPort[Any]] = []
        """The places at which this side receives: one per client, or one for all clients."""
        for node, number in own:
            layer: ModelLayer = model.layer(node, number, nodes, payload)
            if isinstance(layer.order, ReliableOrder):
                layer.order.resend = RESEND_NS
            options: dict[str, Any] = {"copied": copied, "size": setup.size, "depth": 2}
            if setup.active:
                ports = [model.port(layer, SERVER, **options)]
            elif model.port.common:
                options |= {"depth": 2 * setup.clients, "partners": self.clients}
                ports = [model.port(layer, self.clients[0], **options)]
            else:
                ports = [model.port(layer, each, **options) for each in self.clients]
            inlet = AdapterInlet()
            inlet.attach(layer)
            self._by_number[number] = _Process(layer, inlet, ports[0])
            self.ports += ports
        self._queued: list[bytes] = []
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

    def until(self, condition: Callable[[], bool]) -> None:
        """Run all processes of this side until a condition holds.

        Raises :class:`~mxwire.bench.channels.channel.SilenceError` if it does not, or a library has ended.
        """
        end = 0.0
        try:
            while True:
                for _ in range(POLLS if self._polls else 1):
                    if condition():
                        self._flush()
                        return
                    self.turn()
                end = end_of_wait(end)
        except CatastropheError as error:
            raise SilenceError(str(error)) from None

    def turn(self) -> None:
        """Transmit, hand over the frames that have arrived, and do what is due."""
        self._flush()
        link: Any = self._link
        now = self.clock()
        due = [at for each in self._by_number.values() if (at := each.layer.deadline()) is not None]
        nap = max(min([_NAP, *((at - now) / 1e9 for at in due)]), 0)
        found = link.receive_few() if self._polls else link.receive(nap)
        # Frames that are kept must not lie in the ring, which the next call reuses.
        frames = found if isinstance(found, list) else [found.frame(place) for place in range(len(found))]
        now = self.clock()
        for frame in frames:
            raw = memoryview(frame)[HEADER_SIZE:]
            if len(raw) < HEADER.size:
                continue
            source, target = _PORTS.unpack_from(raw)
            own = self._by_number.get(target if self.active else SERVER[1])
            # A question to all nodes is for all processes.
            for each in self._by_number.values() if own is None else (own,):
                each.inlet.arrive(source, raw, now)
        for each in self._by_number.values():
            each.layer.now = now
            each.inlet.advance(now)
            deadline = each.layer.deadline()
            if deadline is not None and deadline <= now:
                each.layer.expire(now)
        for port in self.ports:
            port.progress()
        self._flush()

    def _flush(self) -> None:
        for each in self._by_number.values():
            while each.layer.outgoing:
                frame = each.layer.outgoing.popleft()[1]
                self._queued.append((self._head + packed(each.layer.number, frame)).ljust(SHORTEST_FRAME, b"\0"))
        if self._queued:
            link: Any = self._link
            queued = self._queued
            sent = link.send_few(queued) if self._polls else link.send(FrameBatch.from_frames(queued))
            # A full queue refuses the rest until the receiver has taken frames from it.
            self._queued = queued[sent:]

    def close(self) -> None:
        """Answer the other side for a moment, and close the link."""
        end = self.clock() + LINGER_NS
        try:
            while self.clock() < end and any(each.layer.work() for each in self._by_number.values()):
                self.turn()
        except CatastropheError:
            # A side that has closed first does not answer.
            pass
        super().close()
