"""The corridor between the card's side and the library's side of an endpoint: a ring of events in one direction.

The card puts accepted frames into it, whether or not the application calls the library (R-GEN-01). A frame that finds
the ring full is dropped and counted; retransmission repairs the loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.native import mypyc_attr
from mxwire.protocol.machine import Queue
from mxwire.protocol.peers import Peer
from mxwire.protocol.status import Status
from mxwire.wire.packets import Medium

SHARED_THRESHOLD: Final = 4096
"""Maximum length in bytes of a buffered message between endpoints of one host (R-LOC-02)."""


class Arrival:
    """A frame that has passed the card's checks, with the peer designated by its index."""

    __slots__ = ("endpoint", "frame", "peer", "piggyback", "sequence")

    def __init__(self, peer: Peer, frame: Any, endpoint: int, sequence: int = 0, piggyback: int = 0) -> None:
        self.peer = peer
        self.frame = frame
        """A :class:`~mxwire.wire.packets.Frame` of a type for the library; None for an :class:`EagerArrival` or
        :class:`LibackArrival`."""
        self.endpoint = endpoint
        """``src_endpoint``."""
        self.sequence = sequence
        """``lib_seqnum``, if the packet has a sequence number."""
        self.piggyback = piggyback
        """``lib_piggyack``, if the packet has a sequence number."""


@mypyc_attr(free_list_len=1)
class EagerArrival(Arrival):
    """A TINY or SMALL, with its message instead of a frame object, because creating the object would take longer than
    all checks."""

    __slots__ = ("data", "match_info")

    def __init__(self, peer: Peer, endpoint: int, sequence: int, piggyback: int, match_info: int, data: bytes) -> None:
        super().__init__(peer, None, endpoint, sequence, piggyback)
        self.match_info = match_info
        self.data = data


@mypyc_attr(free_list_len=1)
class LibackArrival(Arrival):
    """A liback, without a frame object; ``sequence`` is the value that it acks."""

    __slots__ = ("count",)

    def __init__(self, peer: Peer, endpoint: int, sequence: int, count: int) -> None:
        super().__init__(peer, None, endpoint, sequence)
        self.count = count
        """``liback_acknum``."""


class Fragments(Arrival):
    """Consecutive MEDIUM fragments of one message, not yet copied out of their batch."""

    __slots__ = ("buffer", "lengths", "numbers", "starts", "surplus")

    def __init__(
        self,
        peer: Peer,
        frame: Medium,
        numbers: list[int],
        starts: list[int],
        lengths: list[int],
        buffer: NDArray[np.uint8],
    ) -> None:
        # ``frame`` is the first fragment; its data is not used.
        super().__init__(peer, frame, frame.src_endpoint, frame.lib_seqnum, frame.lib_piggyack)
        self.numbers = numbers
        """``frag_seqnum`` of each."""
        self.starts = starts
        """Offset in ``buffer`` of the data of each."""
        self.lengths = lengths
        """``frag_length`` of each."""
        self.buffer = buffer
        self.surplus = False
        """True if fragments remained when the message was complete."""

    def __iter__(self) -> Iterator[Fragments]:
        """Iterate over the fragments, one per item."""
        for number, start, length in zip(self.numbers, self.starts, self.lengths, strict=True):
            yield Fragments(self.peer, self.frame, [number], [start], [length], self.buffer)

    def detach(self) -> None:
        """Copy the data, so that the buffer of the batch may be reused."""
        pieces = [self.buffer[start : start + length] for start, length in zip(self.starts, self.lengths, strict=True)]
        self.buffer = np.concatenate(pieces) if pieces else self.buffer[:0]
        ends = np.cumsum(self.lengths)
        self.starts = [int(end) - length for end, length in zip(ends, self.lengths, strict=True)]


@dataclass(slots=True)
class PullEnded:
    """A pull that has ended on the card's side."""

    context: Any
    """The object that the library passed when it started the pull."""
    status: Status
    transferred: int
    """Bytes stored; 0 unless the status is success."""


@dataclass(slots=True)
class LocalMessage:
    """A message from an endpoint of the same host, which is never a frame (R-LOC-01, R-LOC-02)."""

    source: Any
    """The sending :class:`~mxwire.protocol.library.outbound.LocalSend`, or a
    :class:`~mxwire.protocol.neighbours.NeighbourMessage` of another node."""


class Ring:
    """The events for the library, in two queues: arrivals are handled first, then ended pulls (R-GEN-02).

    The ring has slots for ``maximum`` frames. The library returns slots ``batch`` at a time (R-MEA-17), so up to
    ``batch`` - 1 slots are neither free nor in use.
    """

    __slots__ = ("_attached", "_batch", "_held", "_read", "ended", "maximum", "received")

    def __init__(self, maximum: int, batch: int = 1) -> None:
        self.maximum = maximum
        # A batch larger than the ring would never be complete; in the real ring a batch is a quarter of the slots.
        self._batch = max(1, min(batch, maximum // 4))
        self.received: Queue[Arrival | LocalMessage] = Queue()
        self.ended: Queue[PullEnded] = Queue()
        self._held = 0
        """Number of slots that are not free."""
        self._read = 0
        """Number of these slots whose frames the library has read."""
        self._attached = 0
        """Number of newest arrivals that may point into a batch."""

    def __bool__(self) -> bool:
        """Return whether any event is queued."""
        return bool(self.received.count or self.ended.count)

    @property
    def room(self) -> int:
        """Number of free slots."""
        return self.maximum - self._held

    def push(self, event: Arrival | LocalMessage) -> bool:
        """Append an arrival; return False if there is no room for its frames."""
        count = len(event.numbers) if type(event) is Fragments else 1
        if self._held + count > self.maximum:
            return False
        self._held += count
        self._attached = self._attached + 1 if self.received.count else 1
        self.received.append(event)
        return True

    def pop(self) -> Arrival | LocalMessage:
        """Take the oldest arrival."""
        event = self.received.popleft()
        self._read += len(event.numbers) if type(event) is Fragments else 1
        if self._read >= self._batch:
            left = self._read % self._batch
            self._held -= self._read - left
            self._read = left
        return event

    def detach(self) -> None:
        """Copy the data of arrivals that still point into a batch."""
        count = self.received.count
        for place in range(max(0, count - self._attached), count):
            event = self.received[place]
            if type(event) is Fragments:
                event.detach()
        self._attached = 0
