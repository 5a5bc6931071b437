"""Messages of the classic libraries: a layer of ``bench/models`` that runs inside the calls of its side.

The library does the adapter's work, too, whenever it is called. Therefore its time is part of both overheads, also of
libraries whose receiver takes no part on real adapters. ``cards.py`` has the same libraries with an adapter that is a
process of its own.
"""

from __future__ import annotations

from typing import Any, Final

from mxwire.bench.channels.channel import POLLS, ChannelSetup, SilenceError, end_of_wait
from mxwire.bench.channels.links import LinkFrameChannel
from mxwire.bench.models.catalogue import Model, model_of
from mxwire.bench.models.header import HEADER, packed
from mxwire.bench.models.layer import CatastropheError, ModelLayer
from mxwire.bench.models.order import ReliableOrder
from mxwire.bench.models.port import ModelPort, content
from mxwire.bench.models.wire import AdapterInlet
from mxwire.bench.roles.common import CONTENT
from mxwire.ethernet import HEADER_SIZE, SHORTEST_FRAME
from mxwire.frames import FrameBatch
from mxwire.link import FewLink

LINGER_NS: Final = 20_000_000
"""Time in ns for which a side that closes answers its partner."""
RESEND_NS: Final = 50_000_000
"""Time in ns after which frames are retransmitted: a partner acknowledges in its calls only, between which it works."""
_NAP: Final = 0.02
"""Maximum time in seconds for which a side that does not poll waits for a frame."""


class ModelChannel(LinkFrameChannel):
    """One process with a library, over a packet socket with mapped rings or a network in memory."""

    def __init__(self, setup: ChannelSetup) -> None:
        super().__init__(setup)
        # In memory both sides share the interpreter: a polling side would starve the other.
        self._polls = setup.spin and setup.network is None and isinstance(self._link, FewLink)
        model, copied = model_of(setup.carrier)
        node = 0 if setup.active else 1
        self._partner = 1 - node
        room = self._link.mtu - HEADER.size
        self._layer = self._layer_class(model)(node, payload=min(setup.payload or model.payload, room))
        if isinstance(self._layer.order, ReliableOrder):
            self._layer.order.resend = RESEND_NS
        self.port = self._make_port(model, copied=copied, depth=setup.depth, size=setup.size)
        self._inlet = AdapterInlet()
        self._inlet.attach(self._layer)
        self._queued: list[bytes] = []
        self._begun = False
        self.data = self.allocate(len(self.buffer))
        """The content of messages that this side sends."""
        self.data[:] = CONTENT[: len(self.data)]

    def _layer_class(self, model: Model) -> type[ModelLayer]:
        return model.layer

    def _make_port(self, model: Model, **options: Any) -> ModelPort[Any]:
        return model.port(self._layer, (self._partner, 0), **options)

    def allocate(self, length: int) -> memoryview:
        """Memory of the program for messages that it sends."""
        return memoryview(bytearray(length))

    def settle(self) -> None:
        """Wait until the library reads the data of no message again, so that they may be changed."""
        self._layer.now = self.clock()
        try:
            self._until(lambda: not self.port.unsettled())
        except CatastropheError as error:
            raise SilenceError(str(error)) from None

    def send(self, size: int, data: memoryview | None = None) -> None:
        """Hand a message to the library: ``data``, or the beginning of :attr:`data`."""
        layer, port = self._layer, self.port
        layer.now = self.clock()
        if not self._begun:
            # The other side is open now: it is the passive one, or has sent a message.
            self._begun = True
            port.start()
            self._until(port.started)
        try:
            port.send(self.data[:size] if data is None else data)
            if not port.sent():
                self._flush()
                if not port.sent():
                    self._until(port.sent)
        except CatastropheError as error:
            raise SilenceError(str(error)) from None
        self._flush()

    def receive(self, size: int) -> None:
        """Wait for the next message."""
        self._layer.now = self.clock()
        try:
            self.port.expect(size)
            self._until(lambda: self.port.received(size))
        except CatastropheError as error:
            raise SilenceError(str(error)) from None
        self._flush()

    def exchange(self, size: int) -> None:
        """Post the receive, where the library wants that, before the send: both sides may wait for it."""
        self.port.expect(size)
        self._flush()
        super().exchange(size)

    def _until(self, condition: Any) -> None:
        """Run the library until a condition holds."""
        end = 0.0
        while True:
            for _ in range(POLLS if self._polls else 1):
                if condition():
                    return
                if self._layer.outgoing:
                    # A synchronous send ends when its frames are transmitted.
                    self._flush()
                else:
                    self._turn()
            try:
                end = end_of_wait(end)
            except SilenceError as error:
                left = self._layer.work()
                raise SilenceError(f"{error}; {self._layer.name}: {left}" if left else str(error)) from None

    def _turn(self, nap: float = _NAP) -> int:
        """Hand over the frames that have arrived, do what is due, and transmit; return the number of frames."""
        self._flush()
        if self._polls:
            found = self._link.receive_few()  # type: ignore[attr-defined]
        else:
            due = self._layer.deadline()
            found = self._link.receive(nap if due is None else max(min(nap, (due - self.clock()) / 1e9), 0))
        now = self.clock()
        # Frames that are kept must not lie in the ring, which the next call reuses.
        frames = found if isinstance(found, list) else [found.frame(place) for place in range(len(found))]
        for each in frames:
            self._inlet.arrive(self._partner, memoryview(each)[HEADER_SIZE:], now)
        if self._inlet.stopped_at is not None:
            self._inlet.advance(now)
        due = self._layer.deadline()
        if due is not None and due <= now:
            self._layer.expire(now)
        self.port.progress()
        self._flush()
        return len(frames)

    def _flush(self) -> None:
        """Transmit the frames of the layer."""
        outgoing, head, number = self._layer.outgoing, self._head, self._layer.number
        while outgoing:
            _, frame = outgoing.popleft()
            self._queued.append((head + packed(number, frame)).ljust(SHORTEST_FRAME, b"\0"))
        if not self._queued:
            return
        queued = self._queued
        if self._polls:
            sent = self._link.send_few(queued)  # type: ignore[attr-defined]
        else:
            sent = self._link.send(FrameBatch.from_frames(queued))
        # A full queue refuses the rest until the receiver has taken frames from it.
        self._queued = queued[sent:]

    def check(self, size: int) -> None:
        """Compare the last received message with the content that was sent."""
        if content(self.port) != CONTENT[:size]:
            raise AssertionError(f"{self.setup.carrier}: a message of {size} bytes is not what was sent")

    def frames(self) -> dict[str, int]:
        """The counters of the link, and the frames that the library has transmitted again."""
        return super().frames() | {"retransmitted": self._layer.counts["retransmitted"]}

    def close(self) -> None:
        """Answer the partner for a moment, and close the link."""
        end = self.clock() + LINGER_NS
        try:
            while self.clock() < end and (self._queued or self._layer.outgoing or self._layer.work()):
                self._turn(_NAP / 10)
        except (CatastropheError, SilenceError):
            # A partner that has closed first does not answer.
            pass
        super().close()
