"""PM: buffers of the library, filled and read in place; no credits, but refusals.

A sender transmits as it likes, and keeps the buffers that are not acknowledged. A receiver without a free buffer
answers with a nack that names the frame it wants, and drops what follows; when a buffer is free again, an ack lets the
sender go back to that frame. So order is kept, overflow is tolerated, and the sender knows when the network is empty:
then a daemon may switch to another process (gang scheduling), which protects processes from each other without copies.

A refusal also shrinks the sender's window to what the receiver could take, and each window of acks widens it by one
frame. Without that, a sender with a window of 32 and a receiver with 4 buffers transmits each message ten times.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

from mxwire.bench.models.header import ONLY, FrameKind, ModelFrame
from mxwire.bench.models.layer import Address, CallError, ModelLayer, check_writable_memory
from mxwire.bench.models.port import ModelPort

WINDOW: Final = 32
BUFFERS: Final = 16
ACK_EVERY: Final = 4
ACK_DELAY: Final = 100_000
"""Time in ns after which an ack is sent for fewer frames."""


@dataclass(slots=True)
class PmBuffer:
    """A buffer of the library, which the program fills or reads in place."""

    memory: memoryview
    length: int = 0
    source: Address = (0, 0)


@dataclass(slots=True)
class _PmFlow:
    """Frames to and from one partner."""

    next: int = 0
    window: int = WINDOW
    acked_in_window: int = 0
    unacked: deque[tuple[int, PmBuffer, ModelFrame]] = field(default_factory=deque)
    waiting: deque[tuple[PmBuffer, ModelFrame]] = field(default_factory=deque)
    paused: bool = False
    expected: int = 0
    unreported: int = 0
    ack_at: int | None = None
    refused: bool = False
    behind: bool = False
    """True until the refused frame arrives again: others were in flight behind it."""


class PmLayer(ModelLayer):
    """One process with a channel, whose ``key`` its partners must know. ``buffers`` are those for receiving."""

    name = "pm"
    number = 6
    shares_node = True

    def __init__(self, *place: Any, buffers: int = BUFFERS, key: int = 0, **options: Any) -> None:
        super().__init__(*place, **options)
        self.key = key
        self.running = True
        self._flows: dict[Address, _PmFlow] = {}
        self._free = deque(self._buffer() for _ in range(2 * WINDOW))
        self._free_receive: deque[PmBuffer] = deque()
        self._buffers = 0
        self.provide(buffers)
        self._arrived: deque[PmBuffer] = deque()
        self._locked: list[memoryview] = []

    def _buffer(self) -> PmBuffer:
        return PmBuffer(self.allocate(self.payload))

    def _flow(self, partner: Address) -> _PmFlow:
        return self._flows.setdefault(partner, _PmFlow())

    def provide(self, count: int) -> None:
        """Add buffers for receiving."""
        self._buffers += count
        self._free_receive.extend(self._buffer() for _ in range(count))

    def acquire(self) -> PmBuffer | None:
        """A buffer to fill and send; None if all are in flight."""
        self.check_alive()
        return self._free.popleft() if self._free else None

    def send(self, target: Address, buffer: PmBuffer, length: int) -> None:
        """Send a buffer, which returns to the library."""
        self.check_target(target)
        if length > len(buffer.memory):
            raise CallError(f"{self.name}: a message has at most {len(buffer.memory)} bytes")
        buffer.length = length
        frame = ModelFrame(FrameKind.DATA, ONLY, key=self.key, data=buffer.memory[:length])
        self._enqueue(target, buffer, frame)

    def lock(self, memory: memoryview) -> int:
        """Return the number of memory to which partners may write."""
        check_writable_memory(memory)
        self._locked.append(memory)
        return len(self._locked) - 1

    def remote_write(self, target: Address, region: int, offset: int, data: memoryview) -> None:
        """Write to a partner's locked memory, without a call at the receiver; ``data`` must remain unchanged until
        :meth:`drained`."""
        self.check_target(target)
        for start in range(0, max(len(data), 1), self.payload):
            part = data[start : start + self.payload]
            frame = ModelFrame(FrameKind.DEPOSIT, ONLY, place=region, offset=offset + start, key=self.key, data=part)
            self._enqueue(target, PmBuffer(part), frame)

    def drained(self) -> bool:
        """Return whether the partners have all that was sent."""
        return not any(each.unacked or each.waiting for each in self._flows.values())

    def receive(self) -> PmBuffer | None:
        """The next message, in a buffer to read and :meth:`release`; None if there is none."""
        self.check_alive()
        if self._arrived:
            return self._arrived.popleft()
        self._invite(1)
        return None

    def release(self, buffer: PmBuffer) -> None:
        """Return a received buffer to the library."""
        self._free_receive.append(buffer)
        # An invitation per buffer would cost a refusal per message.
        self._invite(max(self._buffers // 2, 1))

    def _invite(self, least: int) -> None:
        """Let refused partners go back if at least some buffers are free."""
        if self.running and len(self._free_receive) >= least:
            for partner, flow in self._flows.items():
                if flow.refused:
                    flow.refused = False
                    self._ack(partner, flow)

    def switch_out(self) -> bool:
        """Stop sending, for another process; return True once the network holds no frames of this one."""
        self.running = False
        return not any(each.unacked for each in self._flows.values())

    def switch_in(self) -> None:
        """Continue to send."""
        self.running = True
        self._invite(1)
        for partner in self._flows:
            self._push(partner)

    def _enqueue(self, target: Address, buffer: PmBuffer, frame: ModelFrame) -> None:
        self._flow(target).waiting.append((buffer, frame))
        self._push(target)

    def _push(self, target: Address) -> None:
        flow = self._flow(target)
        while self.running and not flow.paused and flow.waiting and len(flow.unacked) < flow.window:
            buffer, frame = flow.waiting.popleft()
            flow.unacked.append((flow.next, buffer, frame))
            self._transmit(target, flow.next, frame)
            flow.next += 1

    def _transmit(self, target: Address, number: int, frame: ModelFrame) -> None:
        self.transferred.note(len(frame.data))
        frame.sequence = number
        self.emit(target, frame)

    def take(self, source: Address, frame: ModelFrame) -> None:
        """Take a message, or an answer to messages."""
        if frame.key != self.key:
            self.counts["refused"] += 1
            return
        flow = self._flow(source)
        if frame.kind in (FrameKind.DATA, FrameKind.DEPOSIT):
            self._take_data(source, flow, frame)
        elif frame.kind in (FrameKind.ACK, FrameKind.NACK):
            self._take_answer(source, flow, frame)

    def _take_data(self, source: Address, flow: _PmFlow, frame: ModelFrame) -> None:
        if frame.sequence != flow.expected:
            # Frames behind a refused one are retransmitted; any other gap is a loss.
            if frame.sequence > flow.expected and flow.behind:
                self.counts["dropped behind a nack"] += 1
            else:
                self.fail(f"network error: frame {frame.sequence} of node {source[0]} instead of {flow.expected}")
            return
        if not self.running or (frame.kind is FrameKind.DATA and not self._free_receive):
            if not flow.refused:
                flow.refused = flow.behind = True
                flow.unreported, flow.ack_at = 0, None
                self.counts["nacks"] += 1
                self.emit(source, ModelFrame(FrameKind.NACK, ack=flow.expected, key=self.key))
            return
        self._store(source, frame)
        flow.behind = False
        flow.expected += 1
        flow.unreported += 1
        if flow.unreported >= ACK_EVERY:
            self._ack(source, flow)
        elif flow.ack_at is None:
            flow.ack_at = self.now + ACK_DELAY

    def _store(self, source: Address, frame: ModelFrame) -> None:
        """Transfer data to a buffer, or to locked memory."""
        data = memoryview(frame.data)
        if frame.kind is FrameKind.DATA:
            buffer = self._free_receive.popleft()
            buffer.length, buffer.source = min(len(data), len(buffer.memory)), source
            self.transferred.copy(buffer.memory, data[: buffer.length])
            self._arrived.append(buffer)
        elif frame.place < len(self._locked) and frame.offset + len(data) <= len(self._locked[frame.place]):
            self.transferred.copy(self._locked[frame.place][frame.offset :], data)
        else:
            self.counts["refused"] += 1

    def _ack(self, partner: Address, flow: _PmFlow) -> None:
        flow.unreported, flow.ack_at = 0, None
        self.emit(partner, ModelFrame(FrameKind.ACK, ack=flow.expected, key=self.key))

    def _take_answer(self, source: Address, flow: _PmFlow, frame: ModelFrame) -> None:
        if frame.ack > flow.next:
            self.fail(f"forged frame of node {source[0]}: it acknowledges frame {frame.ack} of {flow.next}")
            return
        while flow.unacked and flow.unacked[0][0] < frame.ack:
            _, buffer, sent = flow.unacked.popleft()
            if sent.kind is FrameKind.DATA:
                self._free.append(buffer)
            flow.acked_in_window += 1
            if flow.acked_in_window >= flow.window:
                flow.acked_in_window = 0
                flow.window = min(flow.window + 1, WINDOW)
        if frame.kind is FrameKind.NACK:
            self.counts["nacks taken"] += 1
            flow.paused = True
            flow.window = max(min(flow.window // 2, flow.window - len(flow.unacked)), 1)
            flow.acked_in_window = 0
        elif flow.paused:
            flow.paused = False
            self._go_back(source, flow)
        self._push(source)

    def _go_back(self, target: Address, flow: _PmFlow) -> None:
        """Retransmit from the refused frame, within the window, which has become smaller."""
        flow.next = flow.unacked[0][0] if flow.unacked else flow.next
        flow.waiting.extendleft((buffer, frame) for _, buffer, frame in reversed(flow.unacked))
        self.counts["retransmitted"] += len(flow.unacked)
        flow.unacked.clear()

    def deadline(self) -> int | None:
        """The earliest ack that is scheduled."""
        return min((each.ack_at for each in self._flows.values() if each.ack_at is not None), default=None)

    def expire(self, now: int) -> None:
        """Send the acks that are due."""
        super().expire(now)
        for partner, flow in self._flows.items():
            if flow.ack_at is not None and flow.ack_at <= self.now:
                self._ack(partner, flow)

    def work(self) -> str:
        """Describe messages without ack."""
        return "" if self.drained() else "messages without ack"


class PmPort(ModelPort[PmLayer]):
    """Messages cut into buffers."""

    cuts = True

    def __init__(self, layer: PmLayer, partner: Address, **options: Any) -> None:
        super().__init__(layer, partner, **options)
        # In place, a message occupies its buffers until the next call.
        layer.provide(self.size // layer.payload)

    def send(self, data: memoryview) -> None:
        """Begin to send a message; the buffers of the last received one return, or two senders could wait for them."""
        self.release()
        super().send(data)

    def offer(self, data: memoryview) -> int | None:
        """Fill a buffer, and send it. In place, the data are those that the program has put there."""
        buffer = self.layer.acquire()
        if buffer is None:
            return None
        part = data[: self.layer.payload]
        if self.copied:
            self.program.copy(buffer.memory, part)
        else:
            buffer.memory[: len(part)] = part
        self.layer.send(self.partner, buffer, len(part))
        return len(part)

    def next_piece(self) -> memoryview | None:
        """The next buffer."""
        buffer = self.layer.receive()
        if buffer is None:
            return None
        self.source = buffer.source
        if self.copied:
            piece = memoryview(bytes(buffer.memory[: buffer.length]))
            self.layer.release(buffer)
            return piece
        self.held.append(buffer)
        return buffer.memory[: buffer.length]

    def take_back(self, buffer: PmBuffer) -> None:
        """Return a buffer."""
        self.layer.release(buffer)
