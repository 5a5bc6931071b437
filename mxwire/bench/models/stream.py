"""Streams of numbered messages between two processes of a model on a wire in memory."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from struct import pack
from typing import Any

from mxwire.bench.models.catalogue import model_of
from mxwire.bench.models.layer import CatastropheError
from mxwire.bench.models.port import ModelPort, content
from mxwire.bench.models.wire import ModelWire


def body(number: int, size: int) -> bytes:
    """The content of a message, which begins with its number."""
    return (pack("!I", number) + pack("!I", number + 1) * (size // 4))[:size]


@dataclass
class MessageStream:
    """``count`` messages of ``size`` bytes from one process to another; ``received`` has them as they arrive.

    ``faults`` are those of a :class:`~mxwire.bench.models.wire.ModelWire`.
    """

    name: str
    count: int
    size: int
    copied: bool = False
    faults: dict[str, Any] = field(default_factory=dict)
    received: list[bytes] = field(default_factory=list)
    sent: int = 0

    def __post_init__(self) -> None:
        """Make both processes."""
        model = model_of(self.name)[0]
        self.layers: list[Any] = [model.layer(0), model.layer(1)]
        options: dict[str, Any] = {"copied": self.copied, "size": self.size, "depth": 64}
        self.ports: list[ModelPort[Any]] = [model.port(layer, (1 - layer.node, 0), **options) for layer in self.layers]
        self.wire = ModelWire(self.layers, **self.faults)
        self._busy = False
        self._lent: deque[bytearray] = deque()
        """Data of messages that the sender's library may still read."""

    @property
    def catastrophe(self) -> str:
        """The reason why a side has ended; empty if none has."""
        return next((each.catastrophe for each in self.layers if each.catastrophe), "")

    def run(self, *, receiving: bool = True) -> MessageStream:
        """Play until all messages have arrived, or nothing happens any more; return self."""
        for each in self.ports:
            each.start()
        self.wire.run(lambda: self.step(receiving), self._done)
        return self

    def _done(self) -> bool:
        return len(self.received) == self.count and not any(each.work() for each in self.layers)

    def step(self, receiving: bool) -> bool:
        """Make the calls of both programs; return True if a message was sent or received."""
        sender, receiver = self.ports
        did = False
        try:
            for each in self.ports[: 1 + receiving]:
                each.progress()
            if sender.started() and not self._busy and self.sent < self.count:
                self._lent.append(bytearray(body(self.sent, self.size)))
                sender.send(memoryview(self._lent[-1]))
                self._busy = did = True
            if self._busy and sender.sent():
                self.sent += 1
                self._busy, did = False, True
            while len(self._lent) > sender.unsettled() + self._busy:
                # A library that reads data which it has released sends other ones.
                spoiled = self._lent.popleft()
                spoiled[:] = b"\xee" * len(spoiled)
            if receiving and receiver.received(self.size):
                self.received.append(content(receiver))
                did = True
        except CatastropheError:
            return False
        return did

    def copies(self) -> tuple[float, float]:
        """Copies per byte that the processors of the sender and of the receiver have made."""
        (one, other), (here, there) = self.layers, self.ports
        total = self.count * self.size
        return (
            (one.send_copies.length + here.program.length) / total,
            (other.receive_copies.length + there.program.length) / total,
        )
