"""Numbers of frames between two ports, and the three answers to a number that does not follow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from mxwire.bench.models.header import FrameKind, ModelFrame

if TYPE_CHECKING:
    from mxwire.bench.models.layer import Address, ModelLayer

WINDOW: Final = 32
"""Frames without ack."""
ACK_EVERY: Final = 8
ACK_DELAY: Final = 100_000
"""Time in ns after which an ack is sent for fewer frames."""
RESEND: Final = 2_000_000
"""Time in ns without ack after which an adapter retransmits."""
TRIES: Final = 50
"""Retransmissions without an answer before the partner counts as lost."""


class UncheckedOrder:
    """Numbers that are only counted: a gap is a loss."""

    resend = RESEND
    """Time in ns without ack after which frames are retransmitted, where they are."""

    def __init__(self, layer: ModelLayer) -> None:
        self._layer = layer
        self.expected: dict[Address, int] = {}
        self._next: dict[Address, int] = {}

    def send(self, target: Address, frame: ModelFrame) -> None:
        """Number a frame, and transmit it."""
        frame.sequence = self._next.get(target, 0)
        self._next[target] = frame.sequence + 1
        self._layer.emit(target, frame)

    def take(self, source: Address, frame: ModelFrame) -> bool:
        """Return whether to handle a received frame."""
        expected = self.expected.get(source, 0)
        if frame.sequence < expected:
            self._layer.counts["duplicate"] += 1
        else:
            self._layer.counts["lost"] += frame.sequence - expected
            self.expected[source] = frame.sequence + 1
        return True

    def skip(self, source: Address, frame: ModelFrame) -> None:
        """Note a frame that the network has dropped, as the receiver knows."""
        self.expected[source] = frame.sequence + 1

    def deadline(self) -> int | None:
        """The time in ns at which :meth:`expire` has something to do; None if there is no such time."""
        return None

    def expire(self) -> None:
        """Do the work that is due."""

    def work(self) -> str:
        """Describe frames that are not acknowledged; empty if there are none."""
        return ""


class CheckedOrder(UncheckedOrder):
    """Numbers of a network that is trusted: one that does not follow is a catastrophe."""

    def take(self, source: Address, frame: ModelFrame) -> bool:
        """Return True for the next frame; otherwise end the layer."""
        expected = self.expected.get(source, 0)
        if frame.sequence == expected:
            self.expected[source] = expected + 1
            return True
        self._layer.fail(f"network error: frame {frame.sequence} of node {source[0]} instead of {expected}")
        return False


@dataclass(slots=True)
class _OrderedFlow:
    """Frames to and from one partner."""

    next: int = 0
    unacked: deque[tuple[int, ModelFrame, Callable[[], object] | None]] = field(default_factory=deque)
    waiting: deque[tuple[ModelFrame, Callable[[], object] | None]] = field(default_factory=deque)
    resend_at: int | None = None
    tries: int = 0
    owed: int = 0
    ack_at: int | None = None


class ReliableOrder(UncheckedOrder):
    """Acks and retransmission, go-back-n. A frame's data are read again for a retransmission: a copy of them is the
    caller's affair, as is a frame that it refuses to take for now.

    ``lost`` is called with the partner and the frames that are abandoned after :data:`TRIES` retransmissions.
    """

    def __init__(self, layer: ModelLayer, lost: Callable[[Address, list[ModelFrame]], object]) -> None:
        super().__init__(layer)
        self._lost = lost
        self._flows: dict[Address, _OrderedFlow] = {}

    def _flow(self, partner: Address) -> _OrderedFlow:
        return self._flows.setdefault(partner, _OrderedFlow())

    def room(self, target: Address) -> bool:
        """Return whether a frame would be transmitted at once."""
        flow = self._flow(target)
        return not flow.waiting and len(flow.unacked) < WINDOW

    def send(self, target: Address, frame: ModelFrame, acked: Callable[[], object] | None = None) -> None:
        """Transmit a frame when the window has room; call ``acked`` once it has been acknowledged."""
        self._flow(target).waiting.append((frame, acked))
        self._push(target)

    def _push(self, target: Address) -> None:
        flow = self._flow(target)
        while flow.waiting and len(flow.unacked) < WINDOW:
            frame, acked = flow.waiting.popleft()
            flow.unacked.append((flow.next, frame, acked))
            flow.next += 1
            self._transmit(target, flow, flow.unacked[-1][0], frame)
        if flow.unacked and flow.resend_at is None:
            flow.resend_at = self._layer.now + self.resend

    def _transmit(self, target: Address, flow: _OrderedFlow, number: int, frame: ModelFrame) -> None:
        flow.owed, flow.ack_at = 0, None
        self._layer.emit(target, replace(frame, sequence=number, ack=self.expected.get(target, 0)))

    def take(self, source: Address, frame: ModelFrame) -> bool:
        """Return True for the next frame, after handling its ack. The caller calls :meth:`accept` if it takes it."""
        flow = self._flow(source)
        if frame.ack > flow.next:
            self._layer.counts["forged"] += 1
            return False
        # The partner is there, even if it refuses a frame.
        flow.tries = 0
        progress = False
        while flow.unacked and flow.unacked[0][0] < frame.ack:
            acked = flow.unacked.popleft()[2]
            progress = True
            if acked is not None:
                acked()
        if progress:
            flow.resend_at = self._layer.now + self.resend if flow.unacked else None
            self._push(source)
        if frame.kind is FrameKind.ACK:
            return False
        expected = self.expected.get(source, 0)
        if frame.sequence == expected:
            return True
        self._layer.counts["duplicate" if frame.sequence < expected else "out of order"] += 1
        # The partner may have lost the ack.
        self._owe(flow)
        return False

    def accept(self, source: Address) -> None:
        """Count the frame for which :meth:`take` has returned True as received."""
        self.expected[source] = self.expected.get(source, 0) + 1
        flow = self._flow(source)
        flow.owed += 1
        self._owe(flow)
        if flow.owed >= ACK_EVERY:
            self._ack(source, flow)

    def refuse(self, source: Address) -> None:
        """Leave the frame for which :meth:`take` has returned True to a retransmission."""
        self._ack(source, self._flow(source))

    def _owe(self, flow: _OrderedFlow) -> None:
        if flow.ack_at is None:
            flow.ack_at = self._layer.now + ACK_DELAY

    def _ack(self, partner: Address, flow: _OrderedFlow) -> None:
        flow.owed, flow.ack_at = 0, None
        self._layer.emit(partner, ModelFrame(FrameKind.ACK, ack=self.expected.get(partner, 0)))

    def deadline(self) -> int | None:
        """The earliest ack or retransmission that is scheduled."""
        flows = self._flows.values()
        return min((at for each in flows for at in (each.resend_at, each.ack_at) if at is not None), default=None)

    def expire(self) -> None:
        """Send the acks that are due, and retransmit."""
        for partner, flow in list(self._flows.items()):
            if flow.ack_at is not None and flow.ack_at <= self._layer.now:
                self._ack(partner, flow)
            if flow.resend_at is not None and flow.resend_at <= self._layer.now:
                self._resend(partner, flow)

    def _resend(self, partner: Address, flow: _OrderedFlow) -> None:
        flow.tries += 1
        if flow.tries > TRIES:
            frames = [frame for _, frame, _ in flow.unacked] + [frame for frame, _ in flow.waiting]
            flow.unacked.clear()
            flow.waiting.clear()
            flow.resend_at = None
            self._lost(partner, frames)
            return
        flow.resend_at = self._layer.now + self.resend
        for number, frame, _ in flow.unacked:
            self._layer.counts["retransmitted"] += 1
            self._transmit(partner, flow, number, frame)

    def work(self) -> str:
        """Describe frames that are not acknowledged."""
        count = sum(len(each.unacked) + len(each.waiting) for each in self._flows.values())
        return f"{count} without ack" if count else ""
