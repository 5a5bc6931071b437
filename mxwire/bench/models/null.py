"""The null model: frames out and frames in, and nothing else. It is the ceiling of all others."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from mxwire.bench.models.facts import ModelFacts
from mxwire.bench.models.header import ONLY, PAYLOAD, FrameKind, ModelFrame
from mxwire.bench.models.layer import Address, ModelLayer
from mxwire.bench.models.order import UncheckedOrder
from mxwire.bench.models.port import ModelPort

QUEUE: Final = 1 << 16
"""Packets that wait to be received; others are lost, and counted."""
FACTS: Final = ModelFacts(
    "null",
    model="send/recv",
    transfer="combined",
    within=True,
    between=False,
    multiprogramming=False,
    overflow="data loss",
    errors="data loss",
    management="static",
    send="DMA",
    receive="DMA",
    protection="none",
    reliability="none",
    notification="polling",
    stages=("-", "L", "L", "L", "-"),
    in_place=(0, 0),
    elsewhere=(0, 1),
)


class NullLayer(ModelLayer):
    """Packets without any promise; lost ones are counted."""

    name = "null"
    number = 0
    facts = FACTS

    def __init__(self, node: int, port: int = 0, nodes: Iterable[int] = (0, 1), payload: int = PAYLOAD) -> None:
        super().__init__(node, port, nodes, payload)
        self.order = UncheckedOrder(self)
        self.arrived: deque[memoryview] = deque()

    def send(self, target: Address, data: memoryview | bytes) -> None:
        """Transmit a packet of up to a frame's payload."""
        self.transferred.note(len(data))
        self.order.send(target, ModelFrame(FrameKind.DATA, ONLY, data=data))

    def receive(self) -> memoryview | None:
        """The next packet; None if there is none."""
        return self.arrived.popleft() if self.arrived else None

    def take(self, source: Address, frame: ModelFrame) -> None:
        """Keep a packet."""
        if frame.kind is FrameKind.DATA and self.order.take(source, frame):
            if len(self.arrived) >= QUEUE:
                self.counts["lost"] += 1
                return
            self.transferred.note(len(frame.data))
            self.arrived.append(memoryview(frame.data))


class NullPort(ModelPort[NullLayer]):
    """Messages as packets."""

    cuts = True

    def offer(self, data: memoryview) -> int:
        """Send a packet."""
        part = data[: self.layer.payload]
        self.layer.send(self.partner, part)
        return len(part)

    def next_piece(self) -> memoryview | None:
        """The next packet."""
        return self.layer.receive()
