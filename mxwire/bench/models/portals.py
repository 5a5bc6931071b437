"""Portals 3.0: the adapter matches, so that data move without the library of the target.

A process has a table of portals; each index leads to a list of match entries (source, match bits, bits to ignore), and
each of these to a memory descriptor. An arriving put goes to the first entry that matches and whose descriptor takes
it: its threshold is not used up, it permits the operation, and the data fit or may be truncated. Then an event is
appended to the descriptor's queue. A put that no entry takes is dropped.

MPI posts a receive as an entry in front of those that take unexpected messages. A message may arrive between the
search among unexpected messages and the posting. Therefore a descriptor is posted inactive, and made active by an
update that succeeds only while the queue of unexpected messages is empty.

Match bits have 32 bits here, and a put has no header data: the common header has no room for more.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import IntFlag
from struct import pack, unpack_from
from typing import Any, Final, Literal

from mxwire.bench.models.header import ONLY, FrameFlag, FrameKind, ModelFrame
from mxwire.bench.models.layer import Address, CallError, ModelLayer, check_writable_memory
from mxwire.bench.models.port import ModelPort

INDEXES: Final = 8
"""Length of the table of portals."""
UNLIMITED: Final = -1
EVENTS: Final = 4096
"""Events that a queue holds; others are lost, and counted."""
_OPERATION: Final = 0xFFFFFF
EventKind = Literal["put", "get", "reply", "ack", "sent"]


class MemoryOption(IntFlag):
    """Properties of a memory descriptor."""

    PUT = 1
    GET = 2
    TRUNCATE = 4
    """Take the beginning of data that do not fit."""
    REMOTE_OFFSET = 8
    """The initiator chooses the offset; otherwise data are appended."""


@dataclass(slots=True)
class PortalEvent:
    """An operation on a memory descriptor that has ended."""

    kind: EventKind
    descriptor: MemoryDescriptor
    partner: Address
    match: int
    requested: int
    """Length that the initiator has requested."""
    moved: int
    offset: int


EventQueue = deque[PortalEvent]


@dataclass(slots=True, eq=False)
class MemoryDescriptor:
    """Memory with rules for its use. ``threshold`` counts the operations that remain."""

    memory: memoryview
    queue: EventQueue
    options: MemoryOption
    threshold: int = UNLIMITED
    offset: int = 0
    """Place of the next data, if the initiator does not choose it."""

    def __post_init__(self) -> None:
        """Raise :class:`~mxwire.bench.models.layer.CallError` for memory that cannot take a put."""
        if self.options & MemoryOption.PUT:
            check_writable_memory(self.memory)

    def room(self, remote_offset: int) -> tuple[int, int]:
        """The place for the next data, and the length that fits there."""
        place = remote_offset if self.options & MemoryOption.REMOTE_OFFSET else self.offset
        return place, max(len(self.memory) - place, 0)

    def takes(self, option: MemoryOption, remote_offset: int, length: int) -> bool:
        """Return whether it takes an operation."""
        fits = length <= self.room(remote_offset)[1] or bool(self.options & MemoryOption.TRUNCATE)
        return self.threshold != 0 and bool(self.options & option) and fits

    def use(self, remote_offset: int, length: int) -> memoryview:
        """Count an operation, and return its memory."""
        place, room = self.room(remote_offset)
        moved = min(length, room)
        if self.threshold != UNLIMITED:
            self.threshold -= 1
        if not self.options & MemoryOption.REMOTE_OFFSET:
            self.offset += moved
        return self.memory[place : place + moved]


@dataclass(slots=True, eq=False)
class MatchEntry:
    """A selection of messages. ``source`` is None for all partners."""

    source: Address | None
    match: int
    ignore: int
    unlinks: bool
    """Removed from its list when its descriptor's threshold has been used up."""
    descriptor: MemoryDescriptor | None = None

    def selects(self, source: Address, match: int) -> bool:
        """Return whether the entry matches."""
        return self.source in (None, source) and not (self.match ^ match) & ~self.ignore


@dataclass(slots=True)
class _PortalArrival:
    """A message that is being received."""

    event: PortalEvent
    memory: memoryview
    acked: int | None
    received: int = 0


@dataclass(slots=True)
class _PortalOperation:
    """A put that wants an ack, or a get."""

    descriptor: MemoryDescriptor
    partner: Address
    match: int
    length: int
    memory: memoryview = field(default_factory=lambda: memoryview(b""))


class PortalsLayer(ModelLayer):
    """One process. ``allowed`` are the nodes that may use its portals; None: all."""

    name = "portals"
    number = 9
    shares_node = True

    def __init__(self, *place: Any, **options: Any) -> None:
        super().__init__(*place, **options)
        self.allowed: set[int] | None = None
        self._table: list[list[MatchEntry]] = [[] for _ in range(INDEXES)]
        self._arrivals: dict[Address, _PortalArrival] = {}
        self._operations: dict[int, _PortalOperation] = {}
        self._next = 0

    def attach(
        self,
        index: int,
        match: int,
        ignore: int = 0,
        source: Address | None = None,
        *,
        unlinks: bool = False,
        before: MatchEntry | None = None,
    ) -> MatchEntry:
        """Append a match entry to the list of an index, or insert it before another one."""
        self.check_alive()
        entry, entries = MatchEntry(source, match, ignore, unlinks), self._table[index]
        entries.insert(len(entries) if before is None else entries.index(before), entry)
        return entry

    def unlink(self, index: int, entry: MatchEntry) -> None:
        """Remove a match entry."""
        self._table[index].remove(entry)

    @staticmethod
    def update(descriptor: MemoryDescriptor, threshold: int, queue: EventQueue) -> bool:
        """Change the threshold of a descriptor if a queue has no events; return whether it had none."""
        if queue:
            return False
        descriptor.threshold = threshold
        return True

    def put(
        self,
        descriptor: MemoryDescriptor,
        target: Address,
        index: int,
        match: int,
        offset: int = 0,
        *,
        ack: bool = False,
    ) -> None:
        """Send the memory of a descriptor to a partner's portal; it must not change until the event ``sent``."""
        self.check_target(target)
        data, place = descriptor.memory, index << 24
        if ack:
            place |= self._remember(_PortalOperation(descriptor, target, match, len(data)))
        sent = PortalEvent("sent", descriptor, target, match, len(data), len(data), 0)
        for start, part, flags in self.cut(data):
            flags |= FrameFlag.NOTIFIES if ack else FrameFlag.NONE
            at = offset + start
            frame = ModelFrame(FrameKind.DATA, flags, place=place, offset=at, ack=len(data), key=match, data=part)
            if flags & FrameFlag.LAST:
                frame.on_packed = lambda: self._log(sent)
            self.order.send(target, frame)

    def get(self, descriptor: MemoryDescriptor, target: Address, index: int, match: int, offset: int = 0) -> None:
        """Read a partner's portal into the memory of a descriptor."""
        self.check_target(target)
        memory = descriptor.memory
        number = self._remember(_PortalOperation(descriptor, target, match, len(memory), memory))
        place, length = index << 24 | number, pack("!I", len(memory))
        self.order.send(target, ModelFrame(FrameKind.READ, ONLY, place=place, offset=offset, key=match, data=length))

    def _remember(self, operation: _PortalOperation) -> int:
        if len(self._operations) > _OPERATION:
            raise CallError(f"{self.name}: too many operations wait for an answer")
        self._next = self._next + 1 & _OPERATION
        self._operations[self._next] = operation
        return self._next

    def take(self, source: Address, frame: ModelFrame) -> None:
        """Handle a frame on the adapter."""
        handle = _HANDLERS.get(frame.kind)
        if handle is not None and self.order.take(source, frame):
            handle(self, source, frame)

    def _chosen(self, source: Address, frame: ModelFrame, option: MemoryOption, length: int) -> MemoryDescriptor | None:
        """The descriptor of the first entry that takes an operation; None if it is dropped."""
        index = frame.place >> 24
        if self.allowed is not None and source[0] not in self.allowed:
            self.counts["refused"] += 1
            return None
        for entry in self._table[index] if index < INDEXES else ():
            found = entry.descriptor
            if found is None or not entry.selects(source, frame.key) or not found.takes(option, frame.offset, length):
                continue
            if entry.unlinks and found.threshold == 1:
                self._table[index].remove(entry)
            return found
        self.counts["dropped"] += 1
        return None

    def _take_put(self, source: Address, frame: ModelFrame) -> None:
        if frame.flags & FrameFlag.FIRST:
            self._arrivals.pop(source, None)
            descriptor = self._chosen(source, frame, MemoryOption.PUT, frame.ack)
            if descriptor is None:
                return
            place = descriptor.room(frame.offset)[0]
            memory = descriptor.use(frame.offset, frame.ack)
            event = PortalEvent("put", descriptor, source, frame.key, frame.ack, len(memory), place)
            acked = frame.place & _OPERATION if frame.flags & FrameFlag.NOTIFIES else None
            self._arrivals[source] = _PortalArrival(event, memory, acked)
        arrival = self._arrivals.get(source)
        if arrival is None:
            # The rest of a message that was dropped.
            return
        self._land(arrival, frame)
        if frame.flags & FrameFlag.LAST:
            del self._arrivals[source]
            self._log(arrival.event)
            if arrival.acked is not None:
                moved = pack("!I", arrival.event.moved)
                self.order.send(source, ModelFrame(FrameKind.NOTIFY, ONLY, place=arrival.acked, data=moved))

    def _land(self, arrival: _PortalArrival, frame: ModelFrame) -> None:
        part = memoryview(frame.data)[: len(arrival.memory) - arrival.received]
        self.transferred.copy(arrival.memory[arrival.received :], part)
        self.translated.note(len(part))
        arrival.received += len(part)

    def _take_get(self, source: Address, frame: ModelFrame) -> None:
        if len(frame.data) != 4:
            self.counts["refused"] += 1
            return
        (length,) = unpack_from("!I", frame.data)
        descriptor = self._chosen(source, frame, MemoryOption.GET, length)
        if descriptor is None:
            return
        place = descriptor.room(frame.offset)[0]
        memory = descriptor.use(frame.offset, length)
        for _, part, flags in self.cut(memory):
            number = frame.place & _OPERATION
            reply = ModelFrame(FrameKind.REPLY, flags, place=number, ack=len(memory), data=part)
            self.order.send(source, reply)
        self._log(PortalEvent("get", descriptor, source, frame.key, length, len(memory), place))

    def _take_answer(self, source: Address, frame: ModelFrame) -> None:
        """Take the data of a get, or the ack of a put."""
        operation = self._operations.get(frame.place)
        if operation is None or operation.partner != source:
            self.counts["refused"] += 1
            return
        kind: EventKind = "ack" if frame.kind is FrameKind.NOTIFY else "reply"
        if kind == "reply":
            part = memoryview(frame.data)[: len(operation.memory)]
            self.transferred.copy(operation.memory, part)
            self.translated.note(len(part))
            operation.memory = operation.memory[len(part) :]
        if frame.flags & FrameFlag.LAST:
            del self._operations[frame.place]
            descriptor, length = operation.descriptor, operation.length
            moved = frame.ack if kind == "reply" else int.from_bytes(frame.data, "big")
            self._log(PortalEvent(kind, descriptor, source, operation.match, length, moved, 0))

    def _log(self, event: PortalEvent) -> None:
        """Append an event to the queue of its descriptor."""
        if len(event.descriptor.queue) < EVENTS:
            event.descriptor.queue.append(event)
        else:
            self.counts["events lost"] += 1

    def work(self) -> str:
        """Describe operations without answer."""
        return "operations without answer" if self._operations else ""


_HANDLERS: Final = {
    FrameKind.DATA: PortalsLayer._take_put,
    FrameKind.READ: PortalsLayer._take_get,
    FrameKind.REPLY: PortalsLayer._take_answer,
    FrameKind.NOTIFY: PortalsLayer._take_answer,
}


class PortalsPort(ModelPort[PortalsLayer]):
    """Messages as puts to ``depth`` posted entries, each for one message."""

    anywhere = True
    _INDEX: Final = 4
    _MATCH: Final = 7

    def __init__(self, layer: PortalsLayer, partner: Address, **options: Any) -> None:
        super().__init__(layer, partner, **options)
        self._queue: EventQueue = deque()
        self._sent: EventQueue = deque()
        self._unsent = 0
        for _ in range(self.depth):
            self.take_back(layer.allocate(self.size))

    def take_back(self, buffer: memoryview) -> None:
        """Post memory."""
        entry = self.layer.attach(self._INDEX, self._MATCH, unlinks=True)
        entry.descriptor = MemoryDescriptor(buffer, self._queue, MemoryOption.PUT, threshold=1)

    def offer(self, data: memoryview) -> int:
        """Put the message."""
        self.layer.put(MemoryDescriptor(data, self._sent, MemoryOption(0)), self.partner, self._INDEX, self._MATCH)
        self._unsent += 1
        return len(data)

    def unsettled(self) -> int:
        """Number of puts without the event ``sent``."""
        self._unsent -= len(self._sent)
        self._sent.clear()
        return self._unsent

    def next_piece(self) -> memoryview | None:
        """The message of the next event."""
        self.layer.check_alive()
        if not self._queue:
            return None
        event = self._queue.popleft()
        self.held.append(event.descriptor.memory)
        self.source = event.partner
        return event.descriptor.memory[: event.moved]
