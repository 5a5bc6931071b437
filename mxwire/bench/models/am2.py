"""Active Messages II: endpoints with tags, handlers by index, and a network that may lose frames.

The library keeps a copy of each frame until it is acknowledged, which is one copy more than GAM makes, and retransmits.
A message names its tag, which is the key of the endpoint, and the number of a handler; one with a wrong tag or number
is refused. A message that a partner refuses, or does not acknowledge, returns to its sender and runs the error handler.
All nodes are found when the endpoint is opened, and when they appear.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mxwire.bench.models.active_messages import KINDS, TOKENS, ActiveLayer
from mxwire.bench.models.header import ONLY, FrameFlag, FrameKind, ModelFrame
from mxwire.bench.models.layer import BROADCAST, Address, CallError
from mxwire.bench.models.order import ReliableOrder

MEETINGS: Final = 6
"""Questions to all nodes after an endpoint has been opened."""
MEET_AGAIN: Final = 500_000
"""Half of the time in ns after which the first question is repeated; each time it doubles."""
ErrorHandler = Callable[[Address, ModelFrame], object]


class Am2Layer(ActiveLayer):
    """An endpoint with the key ``tag``; partners have tags of their own (:meth:`map`)."""

    name = "am2"
    number = 2
    known_nodes = ()
    shares_node = True

    def __init__(self, *place: Any, tag: int = 0, **options: Any) -> None:
        super().__init__(*place, **options)
        self.order: ReliableOrder = ReliableOrder(self, self._lost)
        self.tag = tag
        self.error_handler: ErrorHandler | None = None
        self._tags: dict[Address, int] = {}
        self._meetings = 0
        self._meet_at: int | None = 0
        self._meet()

    def _meet(self) -> None:
        """Ask all nodes to answer; repeat that a few times, since question and answer may be lost."""
        self._meetings += 1
        last = self._meetings == MEETINGS
        self._meet_at = None if last else self.now + (MEET_AGAIN << self._meetings)
        self.emit((BROADCAST, self.port), ModelFrame(FrameKind.MEET, FrameFlag.FIRST))

    def deadline(self) -> int | None:
        """The earliest question, ack or retransmission that is scheduled."""
        return min((at for at in (self._meet_at, super().deadline()) if at is not None), default=None)

    def expire(self, now: int) -> None:
        """Do what is due."""
        super().expire(now)
        if self._meet_at is not None and self._meet_at <= self.now:
            self._meet()

    def map(self, partner: Address, tag: int) -> None:
        """Enter the tag of a partner into the table of this endpoint."""
        self._tags[partner] = tag

    def move(self, frame: ModelFrame) -> None:
        """Copy the data for retransmission, and write them to the adapter."""
        length = len(frame.data)
        kept = memoryview(bytearray(length))
        self.send_copies.copy(kept, frame.data)
        self.send_copies.note(length)
        self.written.note(length)
        frame.data = kept

    def transmit(self, target: Address, frame: ModelFrame) -> None:
        """Transmit a frame with the tag of its target."""
        frame.key = self._tags.get(target, 0)
        self.order.send(target, frame)

    def take(self, source: Address, frame: ModelFrame) -> None:
        """Meet nodes, and keep the next frame of a partner for a poll if its tag is right."""
        if frame.kind is FrameKind.MEET:
            self.nodes.add(source[0])
            if frame.flags & FrameFlag.FIRST:
                self.emit(source, ModelFrame(FrameKind.MEET))
            return
        if frame.kind not in (*KINDS, FrameKind.ACK, FrameKind.NACK) or not self.order.take(source, frame):
            return
        self.order.accept(source)
        if frame.kind is FrameKind.NACK:
            self._returned(source, frame)
        elif frame.key != self.tag:
            self._refuse(source, frame)
        else:
            self.keep(source, frame)

    def trusted(self, source: Address, frame: ModelFrame, problem: str) -> None:
        """Refuse a frame: no partner is trusted."""
        self._refuse(source, frame)

    def _refuse(self, source: Address, frame: ModelFrame) -> None:
        self.counts["refused"] += 1
        if frame.kind is not FrameKind.REPLY:
            self.transmit(source, ModelFrame(FrameKind.NACK, ONLY, place=frame.place))

    def _returned(self, partner: Address, frame: ModelFrame) -> None:
        """Take back a message that a partner has refused, with its token."""
        if self.tokens.get(partner, TOKENS) >= TOKENS:
            self.counts["refused"] += 1
            return
        self.tokens[partner] += 1
        self.counts["returned"] += 1
        if self.error_handler is not None:
            self.error_handler(partner, frame)

    def _lost(self, partner: Address, frames: list[ModelFrame]) -> None:
        """Return the messages that a partner does not acknowledge to the error handler."""
        self.nodes.discard(partner[0])
        for each in frames:
            self.counts["returned"] += 1
            if self.error_handler is not None:
                self.error_handler(partner, each)
        self.tokens.pop(partner, None)

    def check_target(self, target: Address) -> None:
        """Raise :class:`~mxwire.bench.models.layer.CallError` for a node that has not been found."""
        self.check_alive()
        if target[0] not in self.nodes:
            raise CallError(f"{self.name}: node {target[0]} has not been found")
