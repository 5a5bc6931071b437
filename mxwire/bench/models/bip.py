"""BIP (Basic Interface for Parallelism): tagged messages with the least function, for one user who errs in nothing.

A message below 256 bytes is copied into a queue of its tag, which has fixed room: a message for which there is none is
lost. Longer messages are moved from user memory to user memory, without copies and without buffers: the receive must
have been posted. If it has not, the receiver's adapter takes no frame, the link stops, and so do all who use it; after
50 ms the reset of the link loses the message. Memory is used as the program names it: nothing is checked.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

from mxwire.bench.models.header import ONLY, FrameFlag, FrameKind, ModelFrame
from mxwire.bench.models.layer import Address, CallError, ModelLayer, check_writable_memory
from mxwire.bench.models.port import ModelPort

SHORT: Final = 256
"""Length in bytes from which a message is long."""
TAGS: Final = 256
"""Number of tags."""
ROOM: Final = 10
"""Messages in the queue of a tag, unless :meth:`BipLayer.initialise` sets another number."""


@dataclass(slots=True)
class _Tag:
    """Messages with a tag."""

    room: int = ROOM
    queue: deque[memoryview] = field(default_factory=deque)
    posted: memoryview | None = None
    filling: bool = False
    """True while a long message is being received."""
    length: int | None = None
    """Length of the message that has completed the posted receive."""


class BipLayer(ModelLayer):
    """One send, and one receive per tag, at a time."""

    name = "bip"
    number = 3

    def __init__(self, *place: Any, **options: Any) -> None:
        super().__init__(*place, **options)
        self._tags: dict[int, _Tag] = {}

    def _tag(self, tag: int) -> _Tag:
        """The messages with a tag; those with a number that is too high share one."""
        tag = min(tag, TAGS)
        return self._tags.setdefault(tag, _Tag())

    def initialise(self, tag: int, room: int) -> None:
        """Set the number of short messages that may wait for receives of a tag."""
        self._tag(tag).room = room

    def send(self, target: Address, tag: int, data: memoryview) -> None:
        """Begin to send a message; its memory may be changed as soon as :meth:`sent` returns True."""
        self.check_target(target)
        if target[0] == self.node:
            raise CallError(f"{self.name}: no message to the same node")
        if not self.sent():
            raise CallError(f"{self.name}: one send at a time")
        if len(data) < SHORT:
            self.written.note(len(data))
            frame = ModelFrame(FrameKind.DATA, ONLY, place=tag, key=len(data), data=bytes(data))
            self.order.send(target, frame)
            return
        for offset, part, flags in self.cut(data):
            frame = ModelFrame(FrameKind.DATA, flags, place=tag, offset=offset, key=len(data), data=part)
            self.order.send(target, frame)

    def sent(self) -> bool:
        """Return whether the last message is in the network, and its memory may be changed."""
        return not self.outgoing

    def post(self, tag: int, memory: memoryview) -> None:
        """Post the receive of a tag."""
        self.check_alive()
        check_writable_memory(memory)
        state = self._tag(tag)
        if state.posted is not None:
            raise CallError(f"{self.name}: one receive per tag at a time")
        state.posted, state.length = memory, None
        if state.queue:
            self._complete(state, state.queue.popleft())

    def received(self, tag: int) -> int | None:
        """Return the length of the message that has completed the receive of a tag, once; None if none has."""
        self.check_alive()
        state = self._tag(tag)
        length = state.length
        if length is not None:
            state.posted = state.length = None
        return length

    def take_short(self, tag: int) -> memoryview | None:
        """The next short message of a tag, in the library's buffer; None if there is none."""
        queue = self._tag(tag).queue
        return queue.popleft() if queue else None

    def _complete(self, state: _Tag, data: memoryview) -> None:
        assert state.posted is not None
        part = data[: len(state.posted)]
        self.receive_copies.copy(state.posted, part)
        state.length = len(part)

    def ready(self, frame: ModelFrame) -> bool:
        """Return False for a long message without posted receive."""
        if frame.kind is not FrameKind.DATA or frame.key < SHORT or not frame.flags & FrameFlag.FIRST:
            return True
        state = self._tag(frame.place)
        return state.posted is not None and state.length is None and not state.filling

    def take(self, source: Address, frame: ModelFrame) -> None:
        """Put a message into its queue or its memory."""
        if frame.kind is not FrameKind.DATA or not self.order.take(source, frame):
            return
        state, data = self._tag(frame.place), memoryview(frame.data)
        if frame.key < SHORT:
            if state.posted is not None and state.length is None and not state.filling:
                self._complete(state, data)
            elif len(state.queue) < state.room:
                state.queue.append(data)
            else:
                self.counts["lost"] += 1
            return
        if frame.flags & FrameFlag.FIRST:
            state.filling = True
        if not state.filling or state.posted is None:
            # The rest of a message whose beginning a reset has lost.
            self.counts["lost by reset"] += 1
            return
        self.transferred.note(len(data))
        self.translated.note(len(data))
        rest = state.posted[frame.offset :]
        rest[: len(data)] = data[: len(rest)]
        if frame.flags & FrameFlag.LAST:
            state.filling, state.length = False, min(frame.key, len(state.posted))

    def work(self) -> str:
        """Describe a long message that has begun."""
        return "a long message without end" if any(each.filling for each in self._tags.values()) else ""


class BipPort(ModelPort[BipLayer]):
    """Messages with one tag. If ``synchronised``, the receiver announces each long receive by a short message."""

    synchronised = anywhere = True
    written = SHORT - 1
    common = False

    def __init__(self, layer: BipLayer, partner: Address, **options: Any) -> None:
        super().__init__(layer, partner, **options)
        # A message does not have its sender: each pair has tags.
        pair = layer.node + partner[0]
        self._data, self._announcement = 2 * pair - 1, 2 * pair
        for tag in (self._data, self._announcement):
            layer.initialise(tag, self.depth)
        self._posted = self._announces = False

    def expect(self, size: int) -> None:
        """Post a receive, and announce it if it is long."""
        if not self._posted and (size >= SHORT or self.copied):
            self._posted = True
            self._announces = self.synchronised and size >= SHORT
            self.layer.post(self._data, self._memory[: max(size, 1)])
        self._announce()

    def _announce(self) -> None:
        if self._announces and self.layer.sent():
            self._announces = False
            self.layer.send(self.partner, self._announcement, memoryview(b""))

    def progress(self) -> None:
        """Announce a receive that was posted during a send."""
        self._announce()

    def offer(self, data: memoryview) -> int | None:
        """Send the message, if it is short or has been announced."""
        self.layer.check_alive()
        self._announce()
        if not self.layer.sent():
            return None
        if len(data) >= SHORT and self.synchronised and self.layer.take_short(self._announcement) is None:
            return None
        self.layer.send(self.partner, self._data, data)
        return len(data)

    def completed(self) -> bool:
        """Return whether the message is in the network."""
        return self.layer.sent()

    def received(self, size: int) -> bool:
        """Return whether the next message has been received."""
        self.expect(size)
        return super().received(size)

    def next_piece(self) -> memoryview | None:
        """The message of the posted receive; without one, the next short message."""
        self.layer.check_alive()
        if not self._posted:
            return self.layer.take_short(self._data)
        length = self.layer.received(self._data)
        if length is None:
            return None
        self._posted = False
        return self._memory[:length]


class UnsynchronisedBipPort(BipPort):
    """Long messages without announcements: those that arrive before their receive stop the link."""

    synchronised = False
