"""GM: tokens for sends and receives, size classes, and adapters that retransmit until a buffer is there.

A send costs a token, which its callback returns. A receive buffer has a size class (2 to the power of it bytes) and a
priority, and takes a message of exactly these: there is no matching of tags, so MPI matches in its library. A message
for which there is no buffer is refused by the receiver's adapter, and the sender's adapter transmits it again until one
is there. Memory must be registered; data elsewhere are copied by the program.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mxwire.bench.models.header import FrameFlag, FrameKind, ModelFrame
from mxwire.bench.models.layer import Address, CallError, ModelLayer, check_writable_memory
from mxwire.bench.models.order import ReliableOrder
from mxwire.bench.models.port import ModelPort

TOKENS: Final = 16
WRITE: Final = 0xFFFF
"""Size class of a directed send, which needs no receive buffer."""
SendCallback = Callable[[bool], object]
"""Called with True when the partner has a message, with False when it was abandoned."""


@dataclass(slots=True)
class GmEvent:
    """A received message, in a buffer that the program has provided."""

    source: Address
    memory: memoryview
    length: int


def size_class(length: int) -> int:
    """Return the smallest size class for messages of a length."""
    return max(length - 1, 0).bit_length()


class GmLayer(ModelLayer):
    """A port of GM."""

    name = "gm"
    number = 8
    shares_node = True

    def __init__(self, *place: Any, **options: Any) -> None:
        super().__init__(*place, **options)
        self.order: ReliableOrder = ReliableOrder(self, self._lost)
        self.tokens = TOKENS
        self._registered: list[memoryview] = []
        self._provided: dict[tuple[int, int], deque[memoryview]] = {}
        self._filling: dict[Address, tuple[memoryview, int]] = {}
        self._events: deque[GmEvent] = deque()
        self._completed: deque[tuple[SendCallback, bool]] = deque()

    def register(self, memory: memoryview) -> int:
        """Register memory for transfers and for directed sends of partners; return its number."""
        check_writable_memory(memory)
        self._registered.append(memory)
        return len(self._registered) - 1

    def provide(self, memory: memoryview, priority: int = 0) -> None:
        """Provide a buffer for messages of the size class of its length, which must be a power of 2."""
        self.check_alive()
        check_writable_memory(memory)
        size = size_class(len(memory))
        if len(memory) != 1 << size:
            raise CallError(f"{self.name}: a receive buffer has a power of 2 bytes, not {len(memory)}")
        self._provided.setdefault((size, priority), deque()).append(memory)

    def send(
        self, target: Address, data: memoryview, done: SendCallback = lambda _: None, *, size: int, priority: int = 0
    ) -> bool:
        """Send a message of a size class; return False without a token. Data must not change until ``done``."""
        if len(data) > 1 << size:
            raise CallError(f"{self.name}: {len(data)} bytes exceed size class {size}")
        return self._start(target, data, done, size << 16 | priority, 0)

    def directed_send(
        self, target: Address, region: int, offset: int, data: memoryview, done: SendCallback = lambda _: None
    ) -> bool:
        """Write to a partner's registered memory; return False without a token."""
        return self._start(target, data, done, WRITE << 16 | region, offset)

    def _start(self, target: Address, data: memoryview, done: SendCallback, place: int, offset: int) -> bool:
        self.check_target(target)
        if not self.tokens:
            self.counts["blocked"] += 1
            return False
        self.tokens -= 1
        kind = FrameKind.DEPOSIT if place >> 16 == WRITE else FrameKind.DATA
        for start, part, flags in self.cut(data):
            frame = ModelFrame(kind, flags, place=place, offset=offset + start, key=len(data), data=part)
            last = flags & FrameFlag.LAST
            self.order.send(target, frame, (lambda: self._completed.append((done, True))) if last else None)
        return True

    def poll(self) -> GmEvent | None:
        """Run the callbacks that are due, each of which returns a token; return the next message, if there is one."""
        self.check_alive()
        while self._completed:
            done, success = self._completed.popleft()
            self.tokens += 1
            done(success)
        return self._events.popleft() if self._events else None

    def _lost(self, partner: Address, _: list[ModelFrame]) -> None:
        self.fail(f"node {partner[0]} does not acknowledge")

    def take(self, source: Address, frame: ModelFrame) -> None:
        """Take the next frame of a partner if there is a buffer for it."""
        if frame.kind not in (FrameKind.DATA, FrameKind.DEPOSIT, FrameKind.ACK) or not self.order.take(source, frame):
            return
        data = memoryview(frame.data)
        if frame.kind is FrameKind.DEPOSIT:
            self.order.accept(source)
            self._write(frame, data)
            return
        if frame.flags & FrameFlag.FIRST:
            size, priority = frame.place >> 16, frame.place & 0xFFFF
            buffers = self._provided.get((size, priority))
            if not buffers:
                self.counts["refused for now"] += 1
                self.order.refuse(source)
                return
            self._filling[source] = buffers.popleft(), frame.key
        self.order.accept(source)
        if source in self._filling:
            self._fill(source, frame, data)

    def _fill(self, source: Address, frame: ModelFrame, data: memoryview) -> None:
        memory, length = self._filling[source]
        if frame.offset + len(data) > min(length, len(memory)):
            # A forged frame: no message of a size class exceeds its buffer.
            self.counts["refused"] += 1
            return
        self.transferred.copy(memory[frame.offset :], data)
        self.translated.note(len(data))
        if frame.flags & FrameFlag.LAST:
            del self._filling[source]
            self._events.append(GmEvent(source, memory, length))

    def _write(self, frame: ModelFrame, data: memoryview) -> None:
        region = frame.place & 0xFFFF
        if region < len(self._registered) and frame.offset + len(data) <= len(self._registered[region]):
            self.transferred.copy(self._registered[region][frame.offset :], data)
            self.translated.note(len(data))
        else:
            self.counts["refused"] += 1


class GmPort(ModelPort[GmLayer]):
    """Messages of one size class, with buffers for ``depth`` of them."""

    def __init__(self, layer: GmLayer, partner: Address, **options: Any) -> None:
        super().__init__(layer, partner, **options)
        self._class = size_class(self.size)
        for _ in range(self.depth):
            layer.provide(layer.allocate(1 << self._class))
        self._events: deque[GmEvent] = deque()

    def progress(self) -> None:
        """Run callbacks, and keep messages."""
        while (event := self.layer.poll()) is not None:
            self._events.append(event)

    def offer(self, data: memoryview) -> int | None:
        """Send the message, from registered memory."""
        part = data
        if self.copied:
            part = memoryview(bytearray(len(data)))
            self.program.copy(part, data)
        self.progress()
        return len(data) if self.layer.send(self.partner, part, size=self._class) else None

    def unsettled(self) -> int:
        """Number of messages whose callback has not been called; copied data are not the program's."""
        self.progress()
        return 0 if self.copied else TOKENS - self.layer.tokens

    def next_piece(self) -> memoryview | None:
        """The next message, in its buffer."""
        self.progress()
        if not self._events:
            return None
        event = self._events.popleft()
        self.held.append(event.memory)
        self.source = event.source
        return event.memory[: event.length]

    def take_back(self, buffer: memoryview) -> None:
        """Provide a buffer again."""
        self.layer.provide(buffer)
