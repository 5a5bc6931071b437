"""VMMC-2: data are deposited into exported memory of the receiver, whose processor takes no part.

A process exports memory, and others import it: this is the permission to deposit, and the adapter checks it for each
frame. There is no flow control, because the receiver's memory is the buffer, and overwriting it is the program's
affair. The receiver polls its memory, or is notified if the sender asks for that. With a redirection the data land
elsewhere: what arrives afterwards without a copy, what arrived before by a copy from the exported memory. Adapters
acknowledge and retransmit, from user memory, so the library need not copy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from struct import pack, unpack_from
from typing import Any, Final

from mxwire.bench.models.header import ONLY, FrameFlag, FrameKind, ModelFrame
from mxwire.bench.models.layer import Address, CallError, ModelLayer, check_writable_memory
from mxwire.bench.models.order import ReliableOrder
from mxwire.bench.models.port import ModelPort

WRITTEN: Final = 64
"""Maximum length of a message that a processor writes to the adapter."""
EVERYONE: Final = None
NOTIFICATIONS: Final = 1024
"""Notifications that wait for the program; others are lost, and counted."""
PARTS: Final = 4096
"""Parts of an exported buffer that are distinguished; with more, a redirection copies all of it."""


@dataclass(slots=True)
class ExportedBuffer:
    """Memory of this process into which partners may deposit."""

    number: int
    default: memoryview
    allowed: frozenset[int] | None
    """The nodes that may import it; None: all."""
    key: int
    target: memoryview | None = None
    """Memory of a redirection."""
    filled: dict[tuple[int, int], None] = field(default_factory=dict)
    """Offsets and lengths of the data that have arrived in the default memory, in order."""
    arrived: int = 0
    """Messages deposited so far. It stands for the last word of a message, which a program polls in its memory."""


@dataclass(slots=True)
class ImportedBuffer:
    """Memory of a partner. ``length`` is None until the partner has answered."""

    owner: Address
    number: int
    length: int | None = None
    key: int = 0
    refused: bool = False
    pending: int = 0
    """Deposits that are not acknowledged."""


class VmmcLayer(ModelLayer):
    """One process with exported and imported buffers."""

    name = "vmmc2"
    number = 7
    known_nodes = ()
    shares_node = True

    def __init__(self, *place: Any, **options: Any) -> None:
        super().__init__(*place, **options)
        self.order: ReliableOrder = ReliableOrder(self, self._lost)
        self._exported: list[ExportedBuffer] = []
        self._imported: dict[tuple[Address, int], ImportedBuffer] = {}
        self._fetches: list[tuple[memoryview, Callable[[], object]]] = []
        self._notified: deque[tuple[Address, int, int]] = deque()
        self.handler: Callable[[Address, int, int], object] | None = None
        """Called by :meth:`poll` with the source, the buffer and the end of each notified deposit."""

    def _lost(self, partner: Address, _: list[ModelFrame]) -> None:
        self.fail(f"node {partner[0]} does not acknowledge")

    def export(self, memory: memoryview, allowed: Iterable[int] | None = EVERYONE) -> ExportedBuffer:
        """Let the processes of some nodes, or of all, deposit into memory."""
        check_writable_memory(memory)
        number = len(self._exported)
        # Any number that a forger does not know; the same in each run.
        key = (number + 1) * 0x9E3779B1 + self.node * 0x85EBCA6B + self.port & 0xFFFFFFFF
        nodes = None if allowed is None else frozenset(allowed)
        self._exported.append(ExportedBuffer(number, memory, nodes, key))
        return self._exported[-1]

    def import_buffer(self, owner: Address, number: int) -> ImportedBuffer:
        """Ask for the permission to deposit into an exported buffer; ``length`` is set once it has been granted.

        A node that has not been met before is looked up now.
        """
        self.check_alive()
        self.nodes.add(owner[0])
        found = self._imported.setdefault((owner, number), ImportedBuffer(owner, number))
        if found.length is None:
            found.refused = False
            self.order.send(owner, ModelFrame(FrameKind.MEET, ONLY, place=number))
        return found

    def send(self, buffer: ImportedBuffer, offset: int, data: memoryview, *, notify: bool = False) -> None:
        """Begin to deposit data into a partner's memory. They must not change until :meth:`sent` returns True."""
        self._check(buffer, offset, len(data))
        buffer.pending += 1
        for start in range(0, max(len(data), 1), self.payload):
            part = data[start : start + self.payload]
            last = start + len(part) == len(data)
            flags = FrameFlag.LAST if last else FrameFlag.NONE
            flags |= FrameFlag.NOTIFIES if notify and last else FrameFlag.NONE
            if len(data) <= WRITTEN:
                self.written.note(len(part))
            else:
                self.transferred.note(len(part))
                self.translated.note(len(part))
            place = offset + start
            frame = ModelFrame(FrameKind.DEPOSIT, flags, place=buffer.number, offset=place, key=buffer.key, data=part)
            self.order.send(buffer.owner, frame, (lambda: self._acked(buffer)) if last else None)

    @staticmethod
    def _acked(buffer: ImportedBuffer) -> None:
        buffer.pending -= 1

    def sent(self, buffer: ImportedBuffer) -> bool:
        """Return whether the owner of a buffer has all that was sent to it."""
        self.check_alive()
        return not buffer.pending

    def fetch(self, buffer: ImportedBuffer, offset: int, memory: memoryview, done: Callable[[], object]) -> None:
        """Read a partner's memory, up to a frame's payload, into local memory; ``done`` is called afterwards."""
        self._check(buffer, offset, len(memory))
        if len(memory) > self.payload:
            raise CallError(f"{self.name}: a fetch has at most {self.payload} bytes")
        self._fetches.append((memory, done))
        data = pack("!II", len(memory), len(self._fetches) - 1)
        frame = ModelFrame(FrameKind.READ, ONLY, place=buffer.number, offset=offset, key=buffer.key, data=data)
        self.order.send(buffer.owner, frame)

    def redirect(self, buffer: ExportedBuffer, memory: memoryview | None) -> None:
        """Let data of an exported buffer land in other memory from now on, or again in the exported one.

        Data that have arrived since the last redirection are copied there.
        """
        if memory is not None:
            check_writable_memory(memory)
            for offset, length in buffer.filled:
                self.receive_copies.copy(memory[offset:], buffer.default[offset : offset + length])
        buffer.filled.clear()
        buffer.target = memory

    def poll(self) -> None:
        """Run the handler of notifications; deposits do not need it."""
        self.check_alive()
        while self._notified:
            notified = self._notified.popleft()
            if self.handler is not None:
                self.handler(*notified)

    def _check(self, buffer: ImportedBuffer, offset: int, length: int) -> None:
        self.check_alive()
        if buffer.length is None:
            raise CallError(f"{self.name}: buffer {buffer.number} of node {buffer.owner[0]} is not imported")
        if offset + length > buffer.length:
            raise CallError(f"{self.name}: {length} bytes at {offset} exceed a buffer of {buffer.length}")

    def take(self, source: Address, frame: ModelFrame) -> None:
        """Handle a frame on the adapter."""
        if frame.kind not in _HANDLERS and frame.kind is not FrameKind.ACK:
            return
        if self.order.take(source, frame):
            self.order.accept(source)
            _HANDLERS[frame.kind](self, source, frame)

    def _take_meet(self, source: Address, frame: ModelFrame) -> None:
        self.nodes.add(source[0])
        buffer = self._exported[frame.place] if frame.place < len(self._exported) else None
        if buffer is None or (buffer.allowed is not None and source[0] not in buffer.allowed):
            self.counts["refused"] += 1
            answer = ModelFrame(FrameKind.NACK, ONLY, place=frame.place)
        else:
            length = pack("!I", len(buffer.default))
            answer = ModelFrame(FrameKind.READY, ONLY, place=frame.place, key=buffer.key, data=length)
        self.order.send(source, answer)

    def _take_answer(self, source: Address, frame: ModelFrame) -> None:
        buffer = self._imported.get((source, frame.place))
        if buffer is None or (frame.kind is FrameKind.READY and len(frame.data) != 4):
            self.counts["refused"] += 1
        elif frame.kind is FrameKind.NACK:
            buffer.refused = True
        else:
            (buffer.length,), buffer.key = unpack_from("!I", frame.data), frame.key

    def _granted(self, frame: ModelFrame, length: int) -> ExportedBuffer | None:
        """The buffer that a frame may use; None if it may not, or leaves its bounds."""
        buffer = self._exported[frame.place] if frame.place < len(self._exported) else None
        if buffer is None or frame.key != buffer.key or frame.offset + length > len(buffer.default):
            self.counts["refused"] += 1
            return None
        return buffer

    def _take_deposit(self, source: Address, frame: ModelFrame) -> None:
        data = memoryview(frame.data)
        buffer = self._granted(frame, len(data))
        if buffer is None:
            return
        end = frame.offset + len(data)
        target = buffer.target
        if target is None or end > len(target):
            target = buffer.default
            buffer.filled[frame.offset, len(data)] = None
            if len(buffer.filled) > PARTS:
                buffer.filled = {(0, len(buffer.default)): None}
        self.transferred.copy(target[frame.offset :], data)
        self.translated.note(len(data))
        buffer.arrived += bool(frame.flags & FrameFlag.LAST)
        if frame.flags & FrameFlag.NOTIFIES:
            if len(self._notified) < NOTIFICATIONS:
                self._notified.append((source, frame.place, end))
            else:
                self.counts["notifications lost"] += 1

    def _take_read(self, source: Address, frame: ModelFrame) -> None:
        if len(frame.data) != 8:
            self.counts["refused"] += 1
            return
        length, number = unpack_from("!II", frame.data)
        buffer = self._granted(frame, length) if length <= self.payload else None
        if buffer is not None:
            self.transferred.note(length)
            data = buffer.default[frame.offset : frame.offset + length]
            self.order.send(source, ModelFrame(FrameKind.REPLY, ONLY, place=number, data=data))

    def _take_reply(self, _: Address, frame: ModelFrame) -> None:
        if frame.place >= len(self._fetches) or len(frame.data) != len(self._fetches[frame.place][0]):
            self.counts["refused"] += 1
            return
        memory, done = self._fetches[frame.place]
        self.transferred.copy(memory, frame.data)
        done()


_HANDLERS: Final = {
    FrameKind.MEET: VmmcLayer._take_meet,
    FrameKind.READY: VmmcLayer._take_answer,
    FrameKind.NACK: VmmcLayer._take_answer,
    FrameKind.DEPOSIT: VmmcLayer._take_deposit,
    FrameKind.READ: VmmcLayer._take_read,
    FrameKind.REPLY: VmmcLayer._take_reply,
}


class VmmcPort(ModelPort[VmmcLayer]):
    """Messages in slots of an exported buffer.

    A partner deposits into the slots made for it: node 0 may export buffers to several partners, in their order. The
    receiver does not acknowledge slots: a sender that is ``depth`` messages ahead overwrites.
    """

    consumes = common = False
    anywhere = True
    written = WRITTEN

    def __init__(self, layer: VmmcLayer, partner: Address, **options: Any) -> None:
        super().__init__(layer, partner, **options)
        self._slots = layer.allocate(self.size * self.depth)
        self._exported = layer.export(self._slots)
        self.imported: ImportedBuffer | None = None
        self._sent = self._received = 0

    @property
    def program_memory(self) -> memoryview:
        """The slots."""
        return self._slots

    def start(self) -> None:
        """Import the partner's slots."""
        self.imported = self.layer.import_buffer(self.partner, max(self.layer.node - 1, 0))

    def started(self) -> bool:
        """Return whether they are imported."""
        imported = self.imported
        if imported is not None and imported.refused:
            self.start()
        return imported is not None and imported.length is not None

    def offer(self, data: memoryview) -> int | None:
        """Deposit the message."""
        if not self.started() or self.imported is None:
            return None
        start = self._sent % self.depth * self.size
        self._sent += 1
        self.layer.send(self.imported, start, data)
        return len(data)

    def unsettled(self) -> int:
        """Number of messages without ack: retransmissions read user memory."""
        return 0 if self.imported is None else self.imported.pending

    def next_piece(self) -> memoryview | None:
        """The slot of the next message."""
        self.layer.check_alive()
        if self._exported.arrived <= self._received:
            return None
        start = self._received % self.depth * self.size
        self._received += 1
        return self._slots[start : start + self.size]
