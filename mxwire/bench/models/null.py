"""The null model: frames out and frames in, and nothing else. It is the ceiling of all others.

As the reference line of the paper's figures 10 to 12, it has received data transferred by DMA, but those of up to 16
bytes read from the adapter by the processor. It has channels, as the Myricom API had: packets to one that is not open
are dropped.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from mxwire.bench.models.facts import FACTS
from mxwire.bench.models.header import ONLY, FrameKind, ModelFrame
from mxwire.bench.models.layer import Address, ModelLayer
from mxwire.bench.models.order import UncheckedOrder
from mxwire.bench.models.port import ModelPort

QUEUE: Final = 1 << 16
"""Packets of a channel that wait to be received; others are lost, and counted."""
_READS: Final = FACTS["null"].reads


class NullLayer(ModelLayer):
    """Packets without any promise; lost ones are counted."""

    name = "null"
    number = 0

    def __init__(self, *place: Any, **options: Any) -> None:
        super().__init__(*place, **options)
        self.order = UncheckedOrder(self)
        self._channels: dict[int, deque[memoryview]] = {}
        self.open_channel(0)

    def open_channel(self, channel: int) -> None:
        """Receive packets of a channel from now on; channel 0 is open."""
        self._channels.setdefault(channel, deque())

    def send(self, target: Address, data: memoryview | bytes, channel: int = 0) -> None:
        """Transmit a packet of up to a frame's payload on a channel."""
        self.transferred.note(len(data))
        self.order.send(target, ModelFrame(FrameKind.DATA, ONLY, place=channel, data=data))

    def receive(self, channel: int = 0) -> memoryview | None:
        """The next packet of a channel; None if there is none. Raises :class:`KeyError` if the channel is not open."""
        arrived = self._channels[channel]
        if not arrived:
            return None
        packet = arrived.popleft()
        if len(packet) <= _READS:
            self.read.note(len(packet))
        return packet

    def take(self, source: Address, frame: ModelFrame) -> None:
        """Keep a packet."""
        if frame.kind is FrameKind.DATA and self.order.take(source, frame):
            arrived = self._channels.get(frame.place)
            if arrived is None:
                self.counts["dropped"] += 1
                return
            if len(arrived) >= QUEUE:
                self.counts["lost"] += 1
                return
            if len(frame.data) > _READS:
                self.transferred.note(len(frame.data))
            arrived.append(memoryview(frame.data))


class NullPort(ModelPort[NullLayer]):
    """Messages as packets."""

    cuts = True
    common = False

    def __init__(self, layer: NullLayer, partner: Address, **options: Any) -> None:
        super().__init__(layer, partner, **options)
        # A packet does not have its sender: each pair has a channel.
        self._channel = layer.node + partner[0] - 1
        layer.open_channel(self._channel)

    def offer(self, data: memoryview) -> int:
        """Send a packet."""
        part = data[: self.layer.payload]
        self.layer.send(self.partner, part, self._channel)
        return len(part)

    def unsettled(self) -> int:
        """Number of packets that the network has not taken: none of them ends a message before all of it has left."""
        return len(self.layer.outgoing)

    def next_piece(self) -> memoryview | None:
        """The next packet."""
        return self.layer.receive(self._channel)
