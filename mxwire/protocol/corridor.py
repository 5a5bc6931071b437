"""The corridor between the card's side and the library's side of an endpoint: a ring of events one way.

The card puts in what it has accepted, whether or not the application is there to look (R-GEN-01). A frame that finds
the ring full is dropped and counted; retransmission repairs it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mxwire.protocol.peers import Peer
from mxwire.protocol.status import Status
from mxwire.wire.packets import Medium


class Arrival:
    """A frame that passed the card's checks, and the peer that its index designates."""

    __slots__ = ("frame", "peer")

    def __init__(self, peer: Peer, frame: Any) -> None:
        self.peer = peer
        self.frame = frame
        """A :class:`~mxwire.wire.packets.Frame` of a type that goes to the library."""


@dataclass(slots=True)
class Fragments:
    """Several MEDIUM fragments of one message that arrived in a row, not yet copied out of their batch."""

    peer: Peer
    frame: Medium
    """The first of them, without its data."""
    numbers: list[int]
    """``frag_seqnum`` of each."""
    starts: list[int]
    """Where in ``buffer`` the data of each starts."""
    lengths: list[int]
    """``frag_length`` of each."""
    buffer: NDArray[np.uint8]
    surplus: bool = False
    """Whether some were left when the message was complete."""

    def __iter__(self) -> Iterator[Fragments]:
        """The fragments one by one."""
        for number, start, length in zip(self.numbers, self.starts, self.lengths, strict=True):
            yield Fragments(self.peer, self.frame, [number], [start], [length], self.buffer)

    def detach(self) -> None:
        """Copy the data, so that the batch it came in may be used anew."""
        pieces = [self.buffer[start : start + length] for start, length in zip(self.starts, self.lengths, strict=True)]
        self.buffer = np.concatenate(pieces) if pieces else self.buffer[:0]
        ends = np.cumsum(self.lengths)
        self.starts = [int(end) - length for end, length in zip(ends, self.lengths, strict=True)]


@dataclass(slots=True)
class PullEnded:
    """A pull that the card has finished with, one way or the other."""

    context: Any
    """What the library gave when it started the pull."""
    status: Status
    transferred: int
    """Bytes stored; 0 unless the status is success."""


@dataclass(slots=True)
class LocalMessage:
    """A message from an endpoint of the same host; it never was a frame (R-LOC-01, R-LOC-02)."""

    source: Any
    """The sending :class:`~mxwire.protocol.library.local.LocalSend`."""


class Ring:
    """The events that wait for the library, in two queues: arrivals first, then ends of pulls (R-GEN-02).

    ``maximum`` frames have slots. The library gives slots back ``batch`` at a time (R-MEA-17), so that up to
    ``batch`` - 1 of them are neither free nor in use.
    """

    __slots__ = ("_attached", "_batch", "_held", "_read", "ended", "maximum", "received")

    def __init__(self, maximum: int, batch: int = 1) -> None:
        self.maximum = maximum
        # A batch larger than the ring would never be complete; in the real ring it is a quarter.
        self._batch = max(1, min(batch, maximum // 4))
        self.received: deque[Arrival | Fragments | LocalMessage] = deque()
        self.ended: deque[PullEnded] = deque()
        self._held = 0
        """Slots that are not free."""
        self._read = 0
        """Slots among them whose frames the library has read."""
        self._attached = 0
        """Arrivals since the last one that is known not to point into a batch."""

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return bool(self.received or self.ended)

    @property
    def room(self) -> int:
        """Frames that may still arrive before the ring is full."""
        return self.maximum - self._held

    def push(self, event: Arrival | Fragments | LocalMessage) -> bool:
        """Put an arrival in; False where there is no room for its frames."""
        count = len(event.numbers) if type(event) is Fragments else 1
        if self._held + count > self.maximum:
            return False
        self._held += count
        self._attached = self._attached + 1 if self.received else 1
        self.received.append(event)
        return True

    def pop(self) -> Arrival | Fragments | LocalMessage:
        """The oldest arrival."""
        event = self.received.popleft()
        self._read += len(event.numbers) if type(event) is Fragments else 1
        if self._read >= self._batch:
            left = self._read % self._batch
            self._held -= self._read - left
            self._read = left
        return event

    def detach(self) -> None:
        """Copy what still points into a batch."""
        for event in islice(reversed(self.received), self._attached):
            if type(event) is Fragments:
                event.detach()
        self._attached = 0
