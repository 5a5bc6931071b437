"""The face of all models for benchmarks: whole messages, of lengths that both sides know, between two processes.

A port accepts a message in parts as its library takes them, and receives one as a list of pieces: views of the
library's buffers if it works in place, or of the program's own memory if it is to copy. A server with several partners
receives messages of one packet each, since packets of several partners may alternate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from mxwire.bench.models.layer import Address, DataCount, ModelLayer

Layer_ = TypeVar("Layer_", bound=ModelLayer)


class ModelPort(ABC, Generic[Layer_]):
    """One process and its partner. ``depth`` messages of up to ``size`` bytes may be in flight in one direction.

    With ``copied``, the program's data are in memory of its own, and otherwise where the library wants them.
    """

    replies: ClassVar[bool] = False
    """True if each message is answered by the library."""
    consumes: ClassVar[bool] = True
    """True if the receiver makes a call per message."""
    written: ClassVar[int] = -1
    """Length in bytes of the longest message that a processor writes to the adapter, where the adapter takes messages;
    longer ones are described to it."""
    cuts: ClassVar[bool] = False
    """True if the program cuts messages into packets."""

    anywhere = False
    """True if the library puts received data where the program wants them, which then copies none."""
    common: ClassVar[bool] = True
    """True if one port receives from all partners, in the order of arrival; otherwise each needs a port of its own."""

    def __init__(
        self,
        layer: Layer_,
        partner: Address,
        *,
        copied: bool = False,
        depth: int = 8,
        size: int = 4096,
        partners: Sequence[Address] = (),
    ) -> None:
        self.layer, self.copied, self.size = layer, copied, max(size, 1)
        self.partner = self.source = partner
        """The process to which messages are sent, and the one that has sent the last received data."""
        self.partners = partners or (partner,)
        """All processes that send to this port: several, if the library has ports that are :attr:`common`."""
        # The receiver may still hold a message, and another one may announce that all have been sent.
        self.depth = depth + 2
        self.pieces: list[memoryview] = []
        """The last received message; the pieces are valid until the next call."""
        self.program = DataCount()
        """Copies that the program makes itself, between its memory and buffers of the library."""
        self._left: memoryview | None = None
        self._memory = layer.allocate(self.size)
        self._filled = 0
        self.held: deque[Any] = deque()
        """Buffers of received pieces, which :meth:`release` returns."""

    @property
    def handled(self) -> int:
        """Number of messages that handlers have taken, and the program has not received."""
        return 0

    @property
    def program_memory(self) -> memoryview:
        """The memory of the program into which messages are received."""
        return self._memory

    def start(self) -> None:
        """Do the work that precedes all messages."""

    def started(self) -> bool:
        """Return whether messages may be sent."""
        return True

    def expect(self, size: int) -> None:
        """Prepare the next :meth:`received`, where the library wants receives to be posted."""

    def progress(self) -> None:
        """Let the library handle frames that have arrived, where it does so in calls only."""

    def send(self, data: memoryview) -> None:
        """Begin to send a message; :meth:`sent` continues."""
        self._left = data

    def sent(self) -> bool:
        """Hand more of the message to the library; return whether all of it is.

        If sends are synchronous, the data may be changed then; otherwise once :meth:`unsettled` does not count it.
        """
        while self._left is not None:
            count = self.offer(self._left)
            if count is None:
                return False
            rest = self._left[count:]
            self._left = rest if len(rest) else None
        return self.completed()

    @abstractmethod
    def offer(self, data: memoryview) -> int | None:
        """Hand data to the library; return the number of bytes that it has accepted, None if it takes nothing now."""

    def completed(self) -> bool:
        """Return whether the library has sent the message, after it has accepted all of it."""
        return True

    def unsettled(self) -> int:
        """Number of the last messages whose data must not change yet: the library has not read them, or may again."""
        return 0

    def received(self, size: int) -> bool:
        """Return whether the next message, of ``size`` bytes, has been received into :attr:`pieces`."""
        if not self._filled:
            self.release()
            self.pieces = []
        while True:
            piece = self.next_piece()
            if piece is None:
                return False
            # Both sides know the length: a longer packet is not that of a benchmark.
            piece = piece[: min(size, self.size) - self._filled]
            if self.copied and not self.anywhere and len(piece):
                self.program.copy(self._memory[self._filled :], piece)
            elif len(piece):
                self.pieces.append(piece)
            self._filled += len(piece)
            if self._filled >= size:
                break
        if self.copied and not self.anywhere:
            self.pieces = [self._memory[: self._filled]]
        self._filled = 0
        return True

    def next_piece(self) -> memoryview | None:
        """The next received packet; None if there is none."""
        return None

    def release(self, count: int | None = None) -> None:
        """Return the buffers of the ``count`` oldest pieces (None: of all) to the library."""
        for _ in range(len(self.held) if count is None else count):
            self.take_back(self.held.popleft())

    def take_back(self, buffer: Any) -> None:
        """Return a buffer to the library."""


def content(port: ModelPort[ModelLayer]) -> bytes:
    """Return the last received message of a port."""
    return b"".join(port.pieces)
