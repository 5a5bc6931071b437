"""Fast Messages 2: messages as streams of pieces, and handlers that are logical threads.

A handler is a generator: ``yield stream.receive(n)`` returns the next n bytes, ``yield stream.receive_into(memory)``
lets them land where the handler decides. It begins with the first packet of its message, while the sender may still
send the rest, and can only be interrupted where it yields. Credits per partner, one per packet, keep the receiver's
ring from overflowing. In FM 2.02 a handler is an address; FM 2.1 has registered numbers, refuses
others, and serves several processes of a node.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Final

from mxwire.bench.models.header import FrameFlag, FrameKind, ModelFrame
from mxwire.bench.models.layer import Address, CallError, ModelLayer
from mxwire.bench.models.port import ModelPort

CREDITS: Final = 16
PACKET: Final = 1024
"""Payload of a packet in bytes; not in the paper."""


@dataclass(slots=True)
class PieceRequest:
    """Data that a handler waits for. ``memory`` is where they land; ``own`` if the program named it."""

    memory: memoryview
    own: bool
    filled: int = 0


StreamHandler = Callable[["PieceStream", Address], Generator[PieceRequest, Any, None]]


@dataclass(slots=True)
class PieceStream:
    """A message at its receiver, as its handler sees it."""

    layer: FastMessagesLayer
    pieces: deque[memoryview] = field(default_factory=deque)
    ended: bool = False
    thread: Generator[PieceRequest, Any, None] | None = None
    wanted: PieceRequest | None = None

    def receive(self, count: int) -> PieceRequest:
        """Request the next ``count`` bytes as an object; fewer at the end of the message."""
        return PieceRequest(memoryview(bytearray(count)), own=False)

    def receive_into(self, memory: memoryview) -> PieceRequest:
        """Request that the next bytes land in ``memory``; the answer is their number."""
        return PieceRequest(memory, own=True)

    def resume(self) -> None:
        """Run the handler until it waits for data that have not arrived; drop the data that it does not take."""
        while self.thread is not None:
            wanted = self.wanted
            if wanted is not None and not self._fill(wanted):
                return
            answer: Any = None
            if wanted is not None:
                answer = wanted.filled if wanted.own else bytes(wanted.memory[: wanted.filled])
            try:
                self.wanted = self.thread.send(answer)
            except StopIteration:
                self.thread = None
        self.pieces.clear()

    def _fill(self, wanted: PieceRequest) -> bool:
        """Copy arrived data for a request; return True if it has all that there will be."""
        while wanted.filled < len(wanted.memory) and self.pieces:
            piece = self.pieces.popleft()
            part = piece[: len(wanted.memory) - wanted.filled]
            self.layer.receive_copies.copy(wanted.memory[wanted.filled :], part)
            wanted.filled += len(part)
            if len(part) < len(piece):
                self.pieces.appendleft(piece[len(part) :])
        return wanted.filled == len(wanted.memory) or self.ended


@dataclass(slots=True)
class SendStream:
    """A message at its sender. ``left`` bytes may still be sent."""

    target: Address
    handler: int
    left: int
    first: bool = True
    packet: bytearray = field(default_factory=bytearray)


class FastMessagesLayer(ModelLayer):
    """FM 2.02."""

    name = "fm2"
    number = 4
    frame_payload = PACKET

    def __init__(self, *place: Any, **options: Any) -> None:
        super().__init__(*place, **options)
        self.handlers: dict[int, StreamHandler] = {}
        self.credit: dict[Address, int] = {}
        self._taken: dict[Address, int] = {}
        self._ring: deque[tuple[Address, ModelFrame]] = deque()
        self._streams: dict[Address, PieceStream] = {}
        self._sending: SendStream | None = None
        self._handling = False

    def register(self, handler: StreamHandler) -> int:
        """Return the number of a handler."""
        self.handlers[len(self.handlers)] = handler
        return len(self.handlers) - 1

    def begin_message(self, target: Address, length: int, handler: int) -> SendStream | None:
        """Begin a message of up to ``length`` bytes; None without credit, or while another message is being sent."""
        self.check_target(target)
        if self._sending is not None or not self._credit(target):
            self.counts["blocked"] += 1
            return None
        self._sending = SendStream(target, handler, length)
        return self._sending

    def send_piece(self, stream: SendStream, data: memoryview) -> int:
        """Append a piece; return the number of bytes accepted, which is less than given if the credit is used up."""
        self.check_alive()
        if stream is not self._sending or len(data) > stream.left:
            raise CallError(f"{self.name}: a piece exceeds the length of its message")
        done = 0
        while done < len(data):
            if len(stream.packet) == self.payload and not self._flush(stream):
                break
            part = data[done : done + self.payload - len(stream.packet)]
            stream.packet += part
            self.send_copies.note(len(part))
            self.written.note(len(part))
            done += len(part)
        stream.left -= done
        return done

    def end_message(self, stream: SendStream) -> bool:
        """Send the last packet; return False without credit: extract, and try again."""
        self.check_alive()
        if not self._flush(stream, FrameFlag.LAST):
            return False
        self._sending = None
        return True

    def extract(self, count: int = 1 << 30) -> int:
        """Take about ``count`` bytes from the network, in whole packets, and run handlers; return the number taken."""
        self.check_alive()
        if self._handling:
            raise CallError(f"{self.name}: a handler may not extract")
        done = 0
        while self._ring and done < count and not self.catastrophe:
            source, frame = self._ring.popleft()
            done += max(len(frame.data), 1)
            self._handle(source, frame)
        return done

    def _credit(self, target: Address) -> bool:
        if self.credit.setdefault(target, CREDITS) <= 0 and not self._handling:
            self.extract()
        return self.credit[target] > 0

    def _flush(self, stream: SendStream, flags: FrameFlag = FrameFlag.NONE) -> bool:
        if not self._credit(stream.target):
            self.counts["blocked"] += 1
            return False
        self.credit[stream.target] -= 1
        flags |= FrameFlag.FIRST if stream.first else FrameFlag.NONE
        returned = self._taken.pop(stream.target, 0)
        packet = memoryview(bytes(stream.packet))
        frame = ModelFrame(FrameKind.DATA, flags, place=stream.handler, ack=returned, data=packet)
        self.order.send(stream.target, frame)
        stream.first, stream.packet = False, bytearray()
        return True

    def take(self, source: Address, frame: ModelFrame) -> None:
        """Take credit, and put a packet into the ring."""
        if frame.kind not in (FrameKind.DATA, FrameKind.CREDIT) or not self.order.take(source, frame):
            return
        self.credit[source] = self.credit.get(source, CREDITS) + frame.ack
        if self.credit[source] > CREDITS:
            self.fail(f"forged frame of node {source[0]}: it returns credit that was not used")
        elif frame.kind is FrameKind.DATA:
            self.transferred.note(len(frame.data))
            self._ring.append((source, frame))
            waiting = sum(each == source for each, _ in self._ring) + self._taken.get(source, 0)
            if waiting > CREDITS:
                self.fail(f"forged frame of node {source[0]}: it exceeds its credit")

    def _handle(self, source: Address, frame: ModelFrame) -> None:
        if frame.flags & FrameFlag.FIRST:
            self._begin(source, frame.place)
        stream = self._streams.get(source)
        if stream is not None:
            if len(frame.data) and stream.thread is not None:
                stream.pieces.append(memoryview(frame.data))
            stream.ended = bool(frame.flags & FrameFlag.LAST)
            self._handling = True
            try:
                stream.resume()
            finally:
                self._handling = False
        self._taken[source] = self._taken.get(source, 0) + 1
        if self._taken[source] >= CREDITS // 2:
            self.order.send(source, ModelFrame(FrameKind.CREDIT, ack=self._taken.pop(source)))

    def _begin(self, source: Address, number: int) -> None:
        handler = self.handlers.get(number)
        stream = self._streams[source] = PieceStream(self)
        if handler is not None:
            stream.thread = handler(stream, source)
        elif self.shares_node:
            # Without a handler, the packets of the message are dropped, and their credit is returned.
            self.counts["refused"] += 1
        else:
            self.fail(f"forged frame of node {source[0]}: handler {number} does not exist")

    def work(self) -> str:
        """Describe a message that waits for credit."""
        waits = self._sending is not None and self.credit.get(self._sending.target, CREDITS) <= 0
        return "a message without credit" if waits else ""


class RegisteredFastMessagesLayer(FastMessagesLayer):
    """FM 2.1."""

    name = "fm2.1"
    number = 5
    shares_node = True


class FastMessagesPort(ModelPort[FastMessagesLayer]):
    """Messages as streams of one piece, which lands in the program's memory."""

    anywhere = True

    def __init__(self, layer: FastMessagesLayer, partner: Address, **options: Any) -> None:
        super().__init__(layer, partner, **options)
        self._number = layer.register(self._arrived)
        self._messages: deque[tuple[Address, memoryview]] = deque()
        self._stream: SendStream | None = None

    def _arrived(self, stream: PieceStream, source: Address) -> Generator[PieceRequest, int, None]:
        memory = memoryview(bytearray(self.size))
        length = yield stream.receive_into(memory)
        self._messages.append((source, memory[:length]))

    @property
    def handled(self) -> int:
        """Number of messages that handlers have taken."""
        return len(self._messages)

    def progress(self) -> None:
        """Run handlers."""
        self.layer.extract()

    def offer(self, data: memoryview) -> int | None:
        """Send as much of the message as the credit allows."""
        if self._stream is None:
            self._stream = self.layer.begin_message(self.partner, len(data), self._number)
        if self._stream is None:
            return None
        done = self.layer.send_piece(self._stream, data)
        return done if done or not len(data) else None

    def completed(self) -> bool:
        """End the message, as soon as there is credit for its last packet."""
        if self._stream is not None and self.layer.end_message(self._stream):
            self._stream = None
        return self._stream is None

    def next_piece(self) -> memoryview | None:
        """The next message."""
        self.layer.extract()
        if not self._messages:
            return None
        self.source, message = self._messages.popleft()
        return message
