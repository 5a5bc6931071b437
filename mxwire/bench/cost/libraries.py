"""The classic libraries in virtual time: the models of :mod:`mxwire.bench.models` on hosts with the costs of a table.

Theory of operation
===================

A rank runs the layer and the port of a model, the same objects as live. A call of the program is a task of the rank's
core, which pays for the work that the layer counts in it: bytes that it copies, bytes that it reads from the adapter
word by word, and bytes that it writes to the adapter word by word, or in lines if the library combines writes. A frame
is handed to the adapter at the moment of the call at which the layer emits it, so the adapter transfers the first
packet of a message while the core copies the second.

The adapter is the layer's queue of outgoing frames. Its processor and its one DMA engine serve a frame at a time, of
each direction in turn: for an outgoing frame a transfer of the data that the core has not written, then the link, one
frame after another; for one that has arrived a transfer to memory, and the layer, which may stop the link. The frames
that a layer emits then, such as acks, take no time of the core. If a layer copies data when they arrive, the processor
does so in its next call.

A call that cannot end yet is repeated when a frame has arrived, or when the adapter has taken one; until then the core
is idle. No library progresses while its program works.

Two costs are not counted but follow from the facts of a library: protection, which the core pays per message or the
adapter per frame, and retransmission by the firmware. The rest is the model itself: its packets, tokens, credits, acks,
announcements and windows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mxwire.bench.cost.processor import ModelCore
from mxwire.bench.cost.ranks import ModelFabric, ModelOperation, ModelRank
from mxwire.bench.cost.tables import Costs
from mxwire.bench.imb.communicator import Buffer, flat
from mxwire.bench.models.catalogue import Model, model_of
from mxwire.bench.models.header import HEADER, FrameKind, ModelFrame, packed
from mxwire.bench.models.port import content
from mxwire.bench.models.wire import RESET, AdapterInlet
from mxwire.simulation.schedule import Schedule
from mxwire.units import MILLISECOND

WORD: Final = 4
LINE: Final = 32
"""Bytes of a cache line, which write combining transfers at once."""
_KIND_OFFSET: Final = 1
_RESEND: Final = 50 * MILLISECOND
"""Time after which frames are retransmitted: a window of them waits for the adapter in turn with those that arrive."""
_OUT, _IN = range(2)
"""Directions of frames at an adapter."""
_FOR_ADAPTERS: Final = frozenset((FrameKind.ACK, FrameKind.NACK))
"""Frames that no host reads."""


class _SendQueue(deque[tuple[int, ModelFrame]]):
    """Frames of a layer that its adapter has not transmitted yet; ``emit`` is called with each."""

    def __init__(self, emit: Callable[[ModelFrame], object]) -> None:
        super().__init__()
        self._emit = emit

    def append(self, item: tuple[int, ModelFrame]) -> None:
        """Hand a frame to the adapter."""
        super().append(item)
        self._emit(item[1])


@dataclass(slots=True)
class _Call:
    """A call of the program; ``attempt`` returns True once it can end."""

    attempt: Callable[[], bool]
    operation: ModelOperation
    begun: bool = False


class LibraryRank(ModelRank):
    """One of two processes that use a library, and its adapter. ``delay`` is added to the transit of each frame."""

    def __init__(
        self,
        rank: int,
        schedule: Schedule,
        costs: Costs,
        model: Model,
        *,
        copied: bool,
        size: int,
        depth: int,
        delay: float,
    ) -> None:
        super().__init__(rank, 2, schedule, ModelCore(), costs)
        facts = model.facts
        self._facts = facts
        self.layer = model.layer(rank)
        self.layer.order.resend = _RESEND
        self.port = model.port(self.layer, (1 - rank, 0), copied=copied, size=size, depth=depth)
        self.peer: LibraryRank = self
        by_adapter = facts.protection == "v2p"
        self._message = costs.call + (0.0 if by_adapter or facts.protection == "none" else costs.protection)
        self._frame = costs.firmware + (costs.protection if by_adapter else 0.0)
        self._frame += costs.reliability if facts.reliability == "firmware" else 0.0
        self._asks = facts.model == "RPC"
        # A sender that is occupied until the message is delivered.
        self._until_delivered = facts.stages[3] == "o_s"
        self._transit = costs.adapter_send + delay
        self._inlet = AdapterInlet()
        self._inlet.attach(self.layer)
        self._sends: deque[_Call] = deque()
        self._receives: deque[_Call] = deque()
        self._calling = self._sending = self._planned = False
        self._moved = (0, 0, 0, 0, 0, 0)
        self._handed = 0
        """Time at which the core has handed the last frame to the adapter."""
        self._link = 0.0
        """Time at which the link is free."""
        self._jobs: tuple[deque[tuple[int, Callable[[], object]]], ...] = deque(), deque()
        """Frames that wait for the adapter, as times and continuations, by direction."""
        self._direction, self._serving = _OUT, False
        self._held = 0
        """Delivered frames that the partner waits for, until the layer has taken them."""
        self._due: int | None = None

    def connect(self, peer: LibraryRank) -> None:
        """Set the partner, and do what precedes all messages."""
        self.peer = peer
        emitted, self.layer.outgoing = self.layer.outgoing, _SendQueue(self._emit)
        self.layer.outgoing.extend(emitted)
        for _, frame in emitted:
            self._emit(frame)
        self.port.start()
        self._watch()

    # Calls of the program

    def isend(self, target: int, data: Buffer, tag: int = 0) -> ModelOperation:
        """Hand a message to the library; done when its memory may be changed."""
        del target, tag
        call = _Call(lambda: self._attempt_send(call, flat(data)), ModelOperation())
        self.core.run(self.schedule.now, self._message, "library")
        self._sends.append(call)
        self._wake()
        return call.operation

    def irecv(self, source: int, data: Buffer, tag: int = 0) -> ModelOperation:
        """Receive a message."""
        del source, tag
        call = _Call(lambda: self._attempt_receive(flat(data)), ModelOperation())
        self._receives.append(call)
        self._wake()
        return call.operation

    def _attempt_send(self, call: _Call, data: memoryview) -> bool:
        if not call.begun:
            if not self.port.started():
                return False
            call.begun = True
            self.port.send(data)
        return self.port.sent()

    def _attempt_receive(self, data: memoryview) -> bool:
        self.port.expect(len(data))
        if not self.port.received(len(data)):
            return False
        data[:] = content(self.port)
        return True

    def _wake(self) -> None:
        """Repeat the calls as soon as the core is free."""
        if not self._planned and (self._sends or self._receives):
            self._planned = True
            self.schedule.at(self.core.free_at, self._call)

    def _call(self) -> None:
        self._planned = False
        now = self.schedule.now
        if self.core.free_at > now:
            self._wake()
            return
        self.layer.now = now
        self._calling = True
        for calls in (self._receives, self._sends):
            self._sending = calls is self._sends
            if calls and calls[0].attempt():
                self._charge()
                if not self._sending:
                    self.core.run(now, self._message, "library")
                self.schedule.at(self.core.free_at, self._end, calls.popleft().operation)
                # The next call need not wait for an event.
                self._wake()
            self._charge()
        self._calling = False
        self._settle()

    def _end(self, operation: ModelOperation) -> None:
        operation.done = True
        self.check()

    def _charge(self) -> int:
        """Charge the core for the data that the library has moved; return the number of bytes written."""
        layer, costs = self.layer, self.costs
        moved = (
            layer.written.length,
            layer.send_copies.length,
            layer.receive_copies.length,
            self.port.program.length,
            layer.counts["replies"],
            layer.read.length,
        )
        if moved == self._moved:
            return 0
        written, sent, received, own, replies, read = (new - old for new, old in zip(moved, self._moved, strict=True))
        self._moved = moved
        # Writing data to the adapter is the copy.
        cold = max(sent - written, 0) + (own if self._sending else 0)
        warm = received + (0 if self._sending else own)
        cost = cold * costs.copy_cold + warm * costs.copy_warm + replies * costs.call + self._written(written)
        cost += -(-read // WORD) * costs.pio_read
        self.core.run(self.schedule.now, cost, "library")
        return written

    def _written(self, length: int) -> float:
        """The time in which the core writes ``length`` bytes to the adapter."""
        if self._facts.combines:
            return -(-length // LINE) * self.costs.pio_line
        return -(-length // WORD) * self.costs.pio_word

    # The adapter

    def _emit(self, frame: ModelFrame) -> None:
        """Hand a frame to the adapter: now, or at its moment of the call."""
        length, ready = len(frame.data), self.schedule.now
        if self._calling:
            length -= min(self._charge(), length)
            cost = self._written(HEADER.size) + (self.costs.request if self._asks else 0.0)
            ready = self.core.run(ready, cost, "library")
        if self._calling or length:
            # The adapter's own frames without data overtake those that the core is still preparing.
            self._handed = ready = max(ready, self._handed)
        self.schedule.at(ready, self._transmit, packed(self.layer.number, frame), length)

    def _transmit(self, raw: bytes, length: int) -> None:
        """Transfer ``length`` bytes of a frame from memory, and send it."""
        if not length:
            self.release()
        cost = self._frame + (self.costs.dma_start if length else 0.0) + length * self.costs.to_adapter
        self._serve(_OUT, cost, lambda: self._send(raw, length))

    def _send(self, raw: bytes, length: int) -> None:
        """Put a frame on the link, after its transfer."""
        now = self.schedule.now
        begun = now - length * self.costs.to_adapter if self._facts.immediate else now
        self._link = max(max(begun, self._link) + len(raw) * 8e9 / self.costs.line, now)
        # A sender whose message must be delivered waits for the transfer of its memory only.
        held = bool(length) and self._until_delivered
        self.schedule.at(round(self._link + self._transit), self.peer.arrive, raw, held)
        if length and not held:
            self.release()

    def release(self) -> None:
        """Forget a frame that has left."""
        self.layer.outgoing.popleft()
        self._wake()

    def arrive(self, raw: bytes, held: bool) -> None:
        """Transfer a frame to memory, unless it is for the adapter; a sender waits until it is taken if ``held``."""
        cost = self._frame
        # The data that the core reads remain in the adapter.
        if raw[_KIND_OFFSET] not in _FOR_ADAPTERS and len(raw) - HEADER.size > self._facts.reads:
            cost += self.costs.dma_start + len(raw) * self.costs.from_adapter
        self._serve(_IN, cost, lambda: self._deliver(raw, held))

    def _serve(self, direction: int, cost: float, end: Callable[[], object]) -> None:
        """Occupy the adapter for a time, in turn with frames of the other direction, and call ``end``."""
        self._jobs[direction].append((round(cost), end))
        self._next()

    def _next(self) -> None:
        other = 1 - self._direction
        direction = other if self._jobs[other] else self._direction
        if self._serving or not self._jobs[direction]:
            return
        self._serving, self._direction = True, direction
        cost, end = self._jobs[direction].popleft()
        self.schedule.at(self.schedule.now + cost, self._served, end)

    def _served(self, end: Callable[[], object]) -> None:
        self._serving = False
        end()
        self._next()

    def _deliver(self, raw: bytes, held: bool) -> None:
        self._held += held
        self._inlet.arrive(self.peer.rank, raw, self.schedule.now)
        self._settle()
        self._wake()

    def _settle(self) -> None:
        """Hand over what the layer takes now, and note when it has something to do next."""
        received = self.layer.counts["frames received"]
        self._inlet.advance(self.schedule.now)
        if self._inlet.stopped_at is None:
            held, self._held = self._held, 0
            for _ in range(held):
                self.peer.release()
        if self.layer.counts["frames received"] > received:
            self._wake()
        self._watch()

    def _watch(self) -> None:
        """Schedule the next deadline of the layer, or the reset of the stopped link."""
        stopped = self._inlet.stopped_at
        due = [
            each for each in (self.layer.deadline(), None if stopped is None else stopped + RESET) if each is not None
        ]
        if due and (self._due is None or min(due) < self._due):
            self._due = min(due)
            self.schedule.at(self._due, self._expire, self._due)

    def _expire(self, due: int) -> None:
        if due != self._due:
            return
        self._due = None
        self.layer.expire(self.schedule.now)
        self._settle()
        self._wake()


class LibraryFabric(ModelFabric):
    """Two ranks with one of the models, named as a carrier; ``depth`` messages of up to ``size`` bytes in flight."""

    def __init__(self, costs: Costs, carrier: str, *, size: int, depth: int, delay: float = 0.0) -> None:
        super().__init__()
        model, copied = model_of(carrier)
        ranks = [
            LibraryRank(rank, self.schedule, costs, model, copied=copied, size=size, depth=depth, delay=delay)
            for rank in range(2)
        ]
        for each in ranks:
            each.connect(ranks[1 - each.rank])
        self.ranks.extend(ranks)

    @property
    def cores(self) -> list[list[ModelCore]]:
        """The core of each host."""
        return [[each.core] for each in self.ranks]
