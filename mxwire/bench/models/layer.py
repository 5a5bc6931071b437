"""The common base of the models: a layer with calls, frames and the time in, frames and deadlines out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from mxwire.bench.errors import SilenceError
from mxwire.bench.models.header import PAYLOAD, FrameFlag, ModelFrame, unpacked
from mxwire.bench.models.order import CheckedOrder, UncheckedOrder
from mxwire.errors import MxwireError

Address = tuple[int, int]
"""A node and a port of it."""
BROADCAST: Final = 0xFFFF
"""The node number of a frame to all nodes."""


class CallError(MxwireError):
    """A call that the interface of a library forbids."""


class CatastropheError(SilenceError):
    """An error that a library detects and does not survive: it delivers no more messages."""


@dataclass(slots=True)
class DataCount:
    """Data that were moved in one manner."""

    calls: int = 0
    length: int = 0
    """Bytes."""

    def note(self, length: int) -> None:
        """Count a move of ``length`` bytes."""
        self.calls += 1
        self.length += length

    def copy(self, target: memoryview, source: memoryview | bytes) -> None:
        """Move ``source`` to the beginning of ``target``, and count that."""
        target[: len(source)] = source
        self.note(len(source))


def check_writable_memory(memory: memoryview) -> None:
    """Raise :class:`CallError` for memory into which nothing can be received."""
    if memory.readonly:
        raise CallError("received data need memory that can be written")


class ModelLayer(ABC):
    """One process that uses a library: the base of all models.

    ``nodes`` are the nodes that are known from the beginning, and ``payload`` is that of its frames; None: as
    :attr:`known_nodes` and :attr:`frame_payload`. A layer that has failed refuses all calls and frames.
    """

    name: ClassVar[str]
    number: ClassVar[int]
    """Number in the header."""
    known_nodes: ClassVar[tuple[int, ...]] = (0, 1)
    frame_payload: ClassVar[int] = PAYLOAD
    shares_node: ClassVar[bool] = False
    """True if several processes of a node may use the library."""

    def __init__(
        self, node: int, port: int = 0, nodes: Iterable[int] | None = None, payload: int | None = None
    ) -> None:
        self.node, self.port, self.payload = node, port, payload or self.frame_payload
        self.nodes = set(self.known_nodes if nodes is None else nodes)
        self.now = 0
        """The time in ns, of the last frame or deadline."""
        self.outgoing: deque[tuple[int, ModelFrame]] = deque()
        """Frames to transmit, each with the number of a node."""
        self.send_copies, self.receive_copies = DataCount(), DataCount()
        """Copies of the library, for sending and for receiving."""
        self.written, self.read, self.transferred, self.translated = (DataCount() for _ in range(4))
        """Data that a processor wrote to the adapter, or read from it; that the adapter transferred; and of these, user
        memory."""
        self.counts: Counter[str] = Counter()
        self.catastrophe = ""
        """The reason why the layer has ended; empty if it has not."""
        self.order: UncheckedOrder = CheckedOrder(self)

    @staticmethod
    def allocate(length: int) -> memoryview:
        """Memory of ``length`` bytes for data that the adapter transfers."""
        return memoryview(bytearray(length))

    @abstractmethod
    def take(self, source: Address, frame: ModelFrame) -> None:
        """Handle a received frame, on the adapter: no code of the program runs, unless a call of it is under way."""

    def accept(self, node: int, raw: memoryview, now: int) -> None:
        """Check and handle the bytes of a frame that a node has sent."""
        self.now = max(self.now, now)
        found = unpacked(raw)
        if self.catastrophe or found is None or found[0] != self.number:
            self.counts["ignored"] += 1
            return
        self.counts["frames received"] += 1
        self.take((node, found[1].source_port), found[1])

    def ready(self, frame: ModelFrame) -> bool:
        """Return whether the adapter takes a frame now; otherwise the sender's link stops."""
        return True

    def reset(self, source: Address, frame: ModelFrame) -> None:
        """Note that a reset of the stopped link has dropped a frame."""
        self.counts["lost by reset"] += 1
        self.order.skip(source, frame)

    def cut(self, data: memoryview) -> Iterator[tuple[int, memoryview, FrameFlag]]:
        """The frames of a message: offsets, contents and flags; they are transferred from user memory."""
        for start in range(0, max(len(data), 1), self.payload):
            part = data[start : start + self.payload]
            self.transferred.note(len(part))
            self.translated.note(len(part))
            flags = FrameFlag.NONE if start else FrameFlag.FIRST
            yield start, part, flags | (FrameFlag.LAST if start + len(part) == len(data) else FrameFlag.NONE)

    def emit(self, target: Address, frame: ModelFrame) -> None:
        """Transmit a frame."""
        frame.source_port, frame.target_port = self.port, target[1]
        self.outgoing.append((target[0], frame))
        self.counts["frames sent"] += 1

    def deadline(self) -> int | None:
        """The time in ns at which :meth:`expire` has something to do; None if there is no such time."""
        return self.order.deadline()

    def expire(self, now: int) -> None:
        """Do the work that is due at a time."""
        self.now = max(self.now, now)
        if not self.catastrophe:
            self.order.expire()

    def work(self) -> str:
        """Describe the work that waits for frames of other nodes; empty if there is none."""
        return self.order.work()

    def fail(self, reason: str) -> None:
        """End the layer with a named catastrophe; the first one counts."""
        self.catastrophe = self.catastrophe or reason
        self.counts["catastrophes"] += 1

    def check_alive(self) -> None:
        """Raise :class:`CatastropheError` if the layer has ended."""
        if self.catastrophe:
            raise CatastropheError(f"{self.name} of node {self.node}: {self.catastrophe}")

    def check_target(self, target: Address) -> None:
        """Raise :class:`CallError` for a node that is not known, :class:`CatastropheError` if the layer has ended."""
        self.check_alive()
        if target[0] not in self.nodes:
            raise CallError(f"{self.name}: node {target[0]} is not in the table of nodes")
