"""Active Messages: requests that run a handler at the other side, and the replies to them.

A handler runs in a call of its process (:meth:`ActiveLayer.poll`, which all calls make). A request handler may only
reply, and does so at most once; the library replies if it does not. A reply handler may not communicate. Each partner
has tokens: a request costs one, which its reply returns, so the receiver's buffers never overflow. Long messages are
copied into a buffer of the library, transferred, and copied from a buffer into the receiver's segment, or handled in
that buffer.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from struct import pack, unpack_from
from typing import Any, Final

from mxwire.bench.models.header import ONLY, FrameFlag, FrameKind, ModelFrame
from mxwire.bench.models.layer import Address, CallError, ModelLayer
from mxwire.words import count_of

TOKENS: Final = 8
WORDS: Final = 4
"""Maximum number of words of a request or reply."""
KINDS: Final = (FrameKind.REQUEST, FrameKind.REPLY, FrameKind.DEPOSIT, FrameKind.READ)
SHORT: Final = 4 * WORDS
NO_HANDLER: Final = 0xFFFFFFFF
IN_PLACE: Final = 0xFFFFFFFF
"""Offset of a store whose handler takes the data in the library's buffer."""
ActiveHandler = Callable[["ActiveMessage"], object]


@dataclass(slots=True)
class ActiveMessage:
    """A request or a reply, as its handler sees it."""

    layer: ActiveLayer
    source: Address
    words: tuple[int, ...]
    data: memoryview
    """Data of a store or a get: in the segment, or in the library's buffer until the handler returns."""
    replied: bool = field(default=False)
    request: bool = field(default=True)

    def reply(self, handler: int, *words: int) -> None:
        """Answer a request, once. Raises :class:`~mxwire.bench.models.layer.CallError` otherwise."""
        if not self.request:
            raise CallError(f"{self.layer.name}: a reply handler may not communicate")
        if self.replied:
            raise CallError(f"{self.layer.name}: a request has one reply")
        self.replied = True
        self.layer.answer(self.source, handler, words)


class ActiveLayer(ModelLayer):
    """The common part of GAM and AM-II. ``segment`` is the length of the memory for stores, in bytes."""

    def __init__(self, *place: Any, segment: int = 1 << 16, **options: Any) -> None:
        super().__init__(*place, **options)
        self.segment = memoryview(bytearray(segment))
        self.handlers: list[ActiveHandler] = []
        self.tokens: dict[Address, int] = {}
        self._arrived: deque[tuple[Address, ModelFrame]] = deque()
        self._handling = False

    def register(self, handler: ActiveHandler) -> int:
        """Return the number of a handler."""
        self.handlers.append(handler)
        return len(self.handlers) - 1

    def request(self, target: Address, handler: int, *words: int) -> bool:
        """Run a handler at a partner; return False if there is no token for it: poll, and try again."""
        if len(words) > WORDS:
            raise CallError(f"{self.name}: a request has at most {WORDS} words")
        data = pack(f"!{len(words)}I", *words)
        return self._ask(target, ModelFrame(FrameKind.REQUEST, ONLY, place=handler, data=data))

    def store(self, target: Address, offset: int, data: memoryview, handler: int = NO_HANDLER) -> int | None:
        """Store data into a partner's segment, and run a handler there per frame; return the number of bytes accepted.

        Fewer bytes than given are accepted if the tokens do not suffice, and None without a token. With the offset
        :data:`IN_PLACE`, handlers take the data in the library's buffers.
        """
        done = 0
        while True:
            part = data[done : done + self.payload]
            place = offset if offset == IN_PLACE else offset + done
            if not self._ask(target, ModelFrame(FrameKind.DEPOSIT, ONLY, place=handler, offset=place, data=part)):
                return done or None
            done += len(part)
            if done == len(data):
                return done

    def get(self, target: Address, offset: int, length: int, into: int, handler: int = NO_HANDLER) -> bool:
        """Fetch up to a frame's payload of a partner's segment into the local one; the handler runs here afterwards.

        Return False if there is no token for it.
        """
        data = pack("!II", length, into)
        return self._ask(target, ModelFrame(FrameKind.READ, ONLY, place=handler, offset=offset, data=data))

    def poll(self) -> int:
        """Run the handlers of the frames that have arrived; return their number."""
        self.check_alive()
        if self._handling:
            return 0
        count = 0
        while self._arrived and not self.catastrophe:
            self._handle(*self._arrived.popleft())
            count += 1
        return count

    def _ask(self, target: Address, frame: ModelFrame) -> bool:
        if self._handling:
            raise CallError(f"{self.name}: a handler may only reply")
        self.check_target(target)
        self.poll()
        if self.tokens.setdefault(target, TOKENS) <= 0:
            self.counts["blocked"] += 1
            return False
        self.tokens[target] -= 1
        self.move(frame)
        self.transmit(target, frame)
        return True

    def answer(
        self, target: Address, handler: int, words: Iterable[int], data: memoryview | None = None, at: int = 0
    ) -> None:
        """Transmit a reply, which returns a token."""
        numbers = tuple(words)
        content = pack(f"!{len(numbers)}I", *numbers) if data is None else data
        flags = ONLY if data is None else ONLY | FrameFlag.NOTIFIES
        frame = ModelFrame(FrameKind.REPLY, flags, place=handler, offset=at, data=content)
        self.move(frame)
        self.transmit(target, frame)

    @abstractmethod
    def move(self, frame: ModelFrame) -> None:
        """Move the data of a frame out of the program's memory, as the library does, and count that."""

    @abstractmethod
    def transmit(self, target: Address, frame: ModelFrame) -> None:
        """Number and transmit a frame."""

    @abstractmethod
    def trusted(self, source: Address, frame: ModelFrame, problem: str) -> None:
        """Handle a frame that no partner may send."""

    def keep(self, source: Address, frame: ModelFrame) -> None:
        """Put a received frame into the library's buffers, for the next poll."""
        self.transferred.note(len(frame.data))
        # A partner has at most as many requests and replies in flight as there are tokens.
        if sum(each == source for each, _ in self._arrived) >= 2 * TOKENS:
            self.trusted(source, frame, "a request without token")
            return
        self._arrived.append((source, frame))

    def _handle(self, source: Address, frame: ModelFrame) -> None:
        if frame.kind is FrameKind.REPLY:
            self._return_token(source, frame)
        if self.catastrophe:
            return
        data = memoryview(frame.data)
        words: tuple[int, ...] = ()
        try:
            if frame.kind is FrameKind.READ:
                if len(data) != 8:
                    raise ValueError(f"a get with {len(data)} bytes of parameters")
                length, into = unpack_from("!II", data)
                view = self._view(frame.offset, min(length, self.payload))
                self.answer(source, frame.place, (), view, into)
                return
            if frame.kind is FrameKind.DEPOSIT or frame.flags & FrameFlag.NOTIFIES:
                data = self._landed(frame, data)
            else:
                words, data = unpack_from(f"!{len(data) // 4}I", data), data[:0]
            handler = self._handler(frame.place)
        except (LookupError, ValueError) as error:
            self.trusted(source, frame, str(error))
            return
        message = ActiveMessage(self, source, words, data, request=frame.kind is not FrameKind.REPLY)
        self._handling = True
        try:
            if handler is not None:
                handler(message)
        finally:
            self._handling = False
        if message.request and not message.replied:
            self.answer(source, NO_HANDLER, ())

    def _return_token(self, source: Address, frame: ModelFrame) -> None:
        self.counts["replies"] += 1
        self.tokens[source] = self.tokens.get(source, TOKENS) + 1
        if self.tokens[source] > TOKENS:
            self.tokens[source] = TOKENS
            self.trusted(source, frame, "a reply without request")

    def _handler(self, number: int) -> ActiveHandler | None:
        if number == NO_HANDLER:
            return None
        if number >= len(self.handlers):
            raise LookupError(f"handler {number} does not exist")
        return self.handlers[number]

    def _view(self, offset: int, length: int) -> memoryview:
        if offset + length > len(self.segment):
            raise ValueError(f"{length} bytes at {offset} are outside of the segment")
        return self.segment[offset : offset + length]

    def _landed(self, frame: ModelFrame, data: memoryview) -> memoryview:
        if frame.offset == IN_PLACE:
            return data
        view = self._view(frame.offset, len(data))
        self.receive_copies.copy(view, data)
        return view

    def work(self) -> str:
        """Describe requests without reply."""
        missing = sum(TOKENS - each for each in self.tokens.values())
        return f"{count_of(missing, 'request')} without reply" if missing else self.order.work()
