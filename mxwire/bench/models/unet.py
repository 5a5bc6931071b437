"""U-Net: an endpoint is a buffer area with queues of descriptors; the system is needed to set it up, and nothing else.

A channel is a tag of the network that leads to an endpoint. A message that fits into a descriptor lies in it; a longer
one in buffers of the area, which the receiver takes from its free queue. If that is empty, the message is dropped:
flow control and recovery are the affair of protocols above. AF_XDP has the same shape.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from mxwire.bench.models.header import ONLY, FrameKind, ModelFrame
from mxwire.bench.models.layer import Address, CallError, ModelLayer
from mxwire.bench.models.order import UncheckedOrder
from mxwire.bench.models.port import ModelPort

CELL: Final = 40
"""Maximum length of a message in a descriptor."""
BUFFERS: Final = 64
QUEUE: Final = 8192
"""Length of the receive queue."""


@dataclass(slots=True)
class ReceiveDescriptor:
    """A received message: in the descriptor, or at an offset of the buffer area."""

    channel: int
    length: int
    inline: bytes = b""
    offset: int | None = None


class UnetLayer(ModelLayer):
    """An endpoint. ``buffers`` of a frame's payload each are its area, half of them for sending."""

    name = "unet"
    number = 10
    shares_node = True

    def __init__(self, *place: Any, buffers: int = BUFFERS, **options: Any) -> None:
        super().__init__(*place, **options)
        self.order = UncheckedOrder(self)
        self._channels: dict[int, Address] = {}
        self._free: deque[int] = deque()
        self._arrived: deque[ReceiveDescriptor] = deque()
        self.area = memoryview(b"")
        self.resize(buffers)

    def resize(self, buffers: int) -> None:
        """Have an area of another size, all of whose buffers are the program's."""
        self.area = self.allocate(buffers * self.payload)
        self._free.clear()

    def open_channel(self, tag: int, partner: Address) -> None:
        """Let messages with a tag pass to and from a partner; the system does this."""
        self.check_target(partner)
        self._channels[tag] = partner

    def free(self, offset: int) -> None:
        """Put a buffer of the area into the free queue, for a message to come."""
        if offset % self.payload or not 0 <= offset < len(self.area):
            raise CallError(f"{self.name}: there is no buffer at {offset}")
        self._free.append(offset)

    def send(self, tag: int, offset: int, length: int) -> None:
        """Send a message of up to a buffer from the area."""
        if length > self.payload or offset + length > len(self.area):
            raise CallError(f"{self.name}: {length} bytes at {offset} are not in a buffer of the area")
        self.transferred.note(length)
        self._transmit(tag, self.area[offset : offset + length])

    def send_inline(self, tag: int, data: bytes | memoryview) -> None:
        """Send a message in its descriptor."""
        if len(data) > CELL:
            raise CallError(f"{self.name}: a descriptor has room for {CELL} bytes, not for {len(data)}")
        self.written.note(len(data))
        self._transmit(tag, bytes(data))

    def _transmit(self, tag: int, data: memoryview | bytes) -> None:
        self.check_alive()
        if tag not in self._channels:
            raise CallError(f"{self.name}: channel {tag} is not open")
        self.order.send(self._channels[tag], ModelFrame(FrameKind.DATA, ONLY, place=tag, data=data))

    def sent(self) -> bool:
        """Return whether the network has all messages, so that their buffers may be changed."""
        return not self.outgoing

    def receive(self) -> ReceiveDescriptor | None:
        """The next descriptor; None if there is none."""
        return self._arrived.popleft() if self._arrived else None

    def take(self, source: Address, frame: ModelFrame) -> None:
        """Put a message into the receive queue, if its channel is open and there is a buffer for it."""
        if frame.kind is not FrameKind.DATA:
            return
        if self._channels.get(frame.place) != source:
            self.counts["refused"] += 1
            return
        self.order.take(source, frame)
        length = len(frame.data)
        if len(self._arrived) >= QUEUE:
            self.counts["dropped"] += 1
        elif length <= CELL:
            self._arrived.append(ReceiveDescriptor(frame.place, length, bytes(frame.data)))
        elif not self._free or length > self.payload:
            self.counts["dropped"] += 1
        else:
            offset = self._free.popleft()
            self.transferred.copy(self.area[offset:], frame.data)
            self._arrived.append(ReceiveDescriptor(frame.place, length, offset=offset))


class UnetPort(ModelPort[UnetLayer]):
    """Messages cut into buffers, on a channel per partner. The area has room for ``depth`` messages per direction."""

    written = CELL
    cuts = True

    def __init__(self, layer: UnetLayer, partner: Address, **options: Any) -> None:
        super().__init__(layer, partner, **options)
        count = self.depth * -(-self.size // layer.payload)
        layer.resize(2 * count)
        # Both sides of a pair have the same tag for it.
        self._partners = {layer.node + each[0]: each for each in self.partners}
        for tag, each in self._partners.items():
            layer.open_channel(tag, each)
        self._send = [place * layer.payload for place in range(count)]
        for place in range(count, 2 * count):
            layer.free(place * layer.payload)
        self._next = 0

    def offer(self, data: memoryview) -> int | None:
        """Send a buffer. In place, the data are those that the program has put there."""
        part, tag = data[: self.layer.payload], self.layer.node + self.partner[0]
        if len(part) <= CELL:
            self.layer.send_inline(tag, part)
            return len(part)
        if self._next == len(self._send):
            if not self.layer.sent():
                return None
            self._next = 0
        offset = self._send[self._next]
        self._next += 1
        if self.copied:
            self.program.copy(self.layer.area[offset:], part)
        else:
            self.layer.area[offset : offset + len(part)] = part
        self.layer.send(tag, offset, len(part))
        return len(part)

    def next_piece(self) -> memoryview | None:
        """The next descriptor's data."""
        found = self.layer.receive()
        if found is None:
            return None
        self.held.append(found.offset)
        self.source = self._partners[found.channel]
        if found.offset is None:
            return memoryview(found.inline)
        return self.layer.area[found.offset : found.offset + found.length]

    def take_back(self, buffer: int | None) -> None:
        """Put a buffer into the free queue; None for that of a descriptor."""
        if buffer is not None:
            self.layer.free(buffer)
