"""Generic Active Messages (GAM): one process per node, which trusts its partners and its network."""

from __future__ import annotations

from collections import deque
from typing import Any

from mxwire.bench.models.active_messages import IN_PLACE, KINDS, SHORT, ActiveLayer, ActiveMessage
from mxwire.bench.models.header import ModelFrame
from mxwire.bench.models.layer import Address
from mxwire.bench.models.port import ModelPort


class GamLayer(ActiveLayer):
    """Active Messages whose handlers are addresses: a request can name any, and the receiver jumps there."""

    name = "gam"
    number = 1

    def move(self, frame: ModelFrame) -> None:
        """Write short messages to the adapter; copy long ones to a buffer of the library, for a transfer."""
        length = len(frame.data)
        if length <= SHORT:
            self.written.note(length)
            frame.data = bytes(frame.data)
            return
        buffer = memoryview(bytearray(length))
        self.send_copies.copy(buffer, frame.data)
        self.transferred.note(length)
        frame.data = buffer

    def transmit(self, target: Address, frame: ModelFrame) -> None:
        """Transmit a frame."""
        self.order.send(target, frame)

    def take(self, source: Address, frame: ModelFrame) -> None:
        """Keep the next frame for a poll; the network does not lose any."""
        if frame.kind in KINDS and self.order.take(source, frame):
            self.keep(source, frame)

    def trusted(self, source: Address, frame: ModelFrame, problem: str) -> None:
        """End: the receiver has jumped or written to an address that is not its own."""
        self.fail(f"forged frame of node {source[0]}: {problem}")


class ActivePort(ModelPort[ActiveLayer]):
    """Messages as stores; the handler of the receiver takes them in the library's buffer."""

    replies = True

    def __init__(self, layer: ActiveLayer, partner: Address, **options: Any) -> None:
        super().__init__(layer, partner, **options)
        self._number = layer.register(self._arrived)
        self._packets: deque[tuple[Address, memoryview]] = deque()

    def _arrived(self, message: ActiveMessage) -> None:
        self._packets.append((message.source, message.data))

    @property
    def handled(self) -> int:
        """Number of packets that the handler has taken."""
        return len(self._packets)

    def started(self) -> bool:
        """Return whether the partner's node is known."""
        return self.partner[0] in self.layer.nodes

    def offer(self, data: memoryview) -> int | None:
        """Store a packet."""
        return self.layer.store(self.partner, IN_PLACE, data[: self.layer.payload], self._number)

    def progress(self) -> None:
        """Run handlers, also those of replies."""
        self.layer.poll()

    def next_piece(self) -> memoryview | None:
        """The next packet."""
        if not self._packets:
            self.layer.poll()
        if not self._packets:
            return None
        self.source, packet = self._packets.popleft()
        return packet
