"""Messages of the classic libraries: a layer of ``bench/models`` that runs inside the calls of its side.

The library does the adapter's work, too, whenever it is called. Therefore its time is part of both overheads, also of
libraries whose receiver takes no part on real adapters. ``cards.py`` has the same libraries with an adapter that is a
process of its own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

from mxwire.bench.channels.channel import POLLS, ChannelSetup, end_of_wait
from mxwire.bench.channels.links import LinkFrameChannel
from mxwire.bench.errors import SilenceError
from mxwire.bench.models.catalogue import Model, model_of
from mxwire.bench.models.header import HEADER, packed
from mxwire.bench.models.layer import ModelLayer
from mxwire.bench.models.port import ModelPort, content
from mxwire.bench.models.wire import AdapterInlet
from mxwire.bench.roles.common import CONTENT
from mxwire.ethernet import HEADER_SIZE, SHORTEST_FRAME
from mxwire.frames import FrameBatch
from mxwire.link import FewLink

_LINGER_NS: Final = 20_000_000
"""Time in ns for which a side that closes answers its partner."""
_RESEND_NS: Final = 50_000_000
"""Time in ns after which frames are retransmitted: a partner acknowledges in its calls only, between which it works."""


class LibraryChannel(LinkFrameChannel):
    """Processes with a library, over a packet socket with mapped rings or a network in memory."""

    nap = 0.02
    """Maximum time in seconds for which a side that does not poll waits for a frame."""

    def __init__(self, setup: ChannelSetup) -> None:
        super().__init__(setup)
        # In memory both sides share the interpreter: a polling side would starve the other.
        self._polls = setup.spin and setup.network is None and isinstance(self._link, FewLink)
        self._model, self._copied = model_of(setup.carrier)
        self._payload = min(setup.payload or self._model.layer.frame_payload, self._link.mtu - HEADER.size)
        self._layers: list[ModelLayer] = []
        self._inlets: dict[int, AdapterInlet] = {}
        """Frames at the adapter of each process, by its port number."""
        self._processes: list[tuple[ModelLayer, AdapterInlet]] = []
        self.ports: list[ModelPort[Any]] = []
        """The places at which this side receives."""
        self._queued: list[bytes] = []

    def _add_process(self, node: int, number: int = 0, nodes: Iterable[int] | None = None) -> ModelLayer:
        """Add a process to this side, and return its layer."""
        layer = self._layer_class(self._model)(node, number, nodes, self._payload)
        layer.order.resend = _RESEND_NS
        self._layers.append(layer)
        inlet = self._inlets[number] = AdapterInlet()
        inlet.attach(layer)
        self._processes.append((layer, inlet))
        return layer

    def _layer_class(self, model: Model) -> type[ModelLayer]:
        return model.layer

    @abstractmethod
    def _arrive(self, raw: memoryview, now: int) -> None:
        """Hand a frame, without its Ethernet header, to the processes that it is for."""

    def until(self, condition: Callable[[], bool]) -> None:
        """Run all processes of this side until a condition holds.

        Raises :class:`~mxwire.bench.errors.SilenceError` if it does not, or a library has ended.
        """
        end = 0.0
        while True:
            for _ in range(POLLS if self._polls else 1):
                if condition():
                    self._flush()
                    return
                for layer in self._layers:
                    if layer.outgoing:
                        # A synchronous send ends when its frames are transmitted.
                        self._flush()
                        break
                else:
                    self._turn(self.nap)
            try:
                end = end_of_wait(end)
            except SilenceError as error:
                left = next(filter(None, (each.work() for each in self._layers)), "")
                raise SilenceError(f"{error}; {self._model.layer.name}: {left}" if left else str(error)) from None

    def _turn(self, nap: float) -> int:
        """Hand over the frames that have arrived, do what is due, and transmit; return the number of frames."""
        self._flush()
        link: Any = self._link
        if self._polls:
            found = link.receive_few()
        else:
            due = min((at for layer in self._layers if (at := layer.deadline()) is not None), default=None)
            found = link.receive(nap if due is None else max(min(nap, (due - self.clock()) / 1e9), 0))
        now = self.clock()
        # Frames that are kept must not lie in the ring, which the next call reuses.
        frames = found if isinstance(found, list) else [found.frame(place) for place in range(len(found))]
        for frame in frames:
            self._arrive(memoryview(frame)[HEADER_SIZE:], now)
        for layer, inlet in self._processes:
            if inlet.stopped_at is not None:
                inlet.advance(now)
            layer.now = now
            deadline = layer.deadline()
            if deadline is not None and deadline <= now:
                layer.expire(now)
        for port in self.ports:
            port.progress()
        self._flush()
        return len(frames)

    def _flush(self) -> None:
        """Transmit the frames of all processes."""
        for layer in self._layers:
            while layer.outgoing:
                frame = layer.outgoing.popleft()[1]
                self._queued.append((self._head + packed(layer.number, frame)).ljust(SHORTEST_FRAME, b"\0"))
        if self._queued:
            link: Any = self._link
            queued = self._queued
            sent = link.send_few(queued) if self._polls else link.send(FrameBatch.from_frames(queued))
            # A full queue refuses the rest until the receiver has taken frames from it.
            self._queued = queued[sent:]

    def close(self) -> None:
        """Answer the partners for a moment, and close the link."""
        end = self.clock() + _LINGER_NS
        # A partner that has closed first does not answer.
        with suppress(SilenceError):
            while self.clock() < end and (self._queued or any(each.outgoing or each.work() for each in self._layers)):
                self._turn(self.nap / 10)
        super().close()


class ModelChannel(LibraryChannel):
    """One process with a library."""

    def __init__(self, setup: ChannelSetup) -> None:
        super().__init__(setup)
        node = 0 if setup.active else 1
        self._partner = 1 - node
        self._layer = self._add_process(node)
        self.port = self._make_port(self._model, copied=self._copied, depth=setup.depth, size=setup.size)
        self.ports.append(self.port)
        self._begun = False
        self.data = self.allocate(len(self.buffer))
        """The content of messages that this side sends."""
        self.data[:] = CONTENT[: len(self.data)]

    def _arrive(self, raw: memoryview, now: int) -> None:
        self._inlets[0].arrive(self._partner, raw, now)

    def _make_port(self, model: Model, **options: Any) -> ModelPort[Any]:
        return model.port(self._layer, (self._partner, 0), **options)

    def allocate(self, length: int) -> memoryview:
        """Memory of the program for messages that it sends."""
        return memoryview(bytearray(length))

    def settle(self) -> None:
        """Wait until the library reads the data of no message again, so that they may be changed."""
        self._layer.now = self.clock()
        self.until(lambda: not self.port.unsettled())

    def send(self, size: int, data: memoryview | None = None) -> None:
        """Hand a message to the library: ``data``, or the beginning of :attr:`data`."""
        port = self.port
        self._layer.now = self.clock()
        if not self._begun:
            # The other side is open now: it is the passive one, or has sent a message.
            self._begun = True
            port.start()
            self.until(port.started)
        port.send(self.data[:size] if data is None else data)
        if port.sent():
            self._flush()
        else:
            self.until(port.sent)

    def receive(self, size: int) -> None:
        """Wait for the next message."""
        self._layer.now = self.clock()
        self.port.expect(size)
        self.until(lambda: self.port.received(size))

    def exchange(self, size: int) -> None:
        """Post the receive, where the library wants that, before the send: both sides may wait for it."""
        self.port.expect(size)
        self._flush()
        super().exchange(size)

    def check(self, size: int) -> None:
        """Compare the last received message with the content that was sent."""
        if content(self.port) != CONTENT[:size]:
            raise AssertionError(f"{self.setup.carrier}: a message of {size} bytes is not what was sent")

    def frames(self) -> dict[str, int]:
        """The counters of the link, and the frames that the library has transmitted again."""
        return super().frames() | {"retransmitted": self._layer.counts["retransmitted"]}
