"""The corridor between the card's side and the library's side of an endpoint: a ring of events in one direction.

The card puts accepted frames into it, whether or not the application calls the library (R-GEN-01). A frame that finds
the ring full is dropped and counted; retransmission repairs the loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from mxwire.native import mypyc_attr
from mxwire.protocol.peers import Peer
from mxwire.protocol.state_machine import Queue
from mxwire.protocol.status import Status
from mxwire.wire.packets import Medium, Notify, Rndv

SHARED_THRESHOLD: Final = 4096
"""Maximum length in bytes of a buffered message between endpoints of one host (R-LOC-02)."""


class Arrival:
    """A frame that has passed the card's checks, with the peer designated by its index."""

    __slots__ = ("endpoint", "frame", "peer", "piggyback", "sequence")

    def __init__(self, peer: Peer, frame: Any, endpoint: int, sequence: int = 0, piggyback: int = 0) -> None:
        self.peer = peer
        self.frame = frame
        """A :class:`~mxwire.wire.packets.Frame` of a type for the library; None for an arrival of a class below."""
        self.endpoint = endpoint
        """``src_endpoint``."""
        self.sequence = sequence
        """``lib_seqnum``, if the packet has a sequence number."""
        self.piggyback = piggyback
        """``lib_piggyack``, if the packet has a sequence number."""


class DataArrival(Arrival):
    """A packet with data of a message, without a frame object, because creating the object would take longer than all
    checks."""

    __slots__ = ("match_info", "packet", "size", "start")

    def __init__(
        self,
        peer: Peer,
        endpoint: int,
        sequence: int,
        piggyback: int,
        match_info: int,
        packet: bytes,
        start: int,
        size: int,
    ) -> None:
        super().__init__(peer, None, endpoint, sequence, piggyback)
        self.match_info = match_info
        self.packet = packet
        """The frame, of which the data is a part, so that it is copied only once: into the memory of a receive."""
        self.start = start
        """Offset of the data in ``packet``, in bytes."""
        self.size = size
        """Bytes of the data."""

    @property
    def data(self) -> bytes:
        """A copy of the data."""
        return self.packet[self.start : self.start + self.size]

    def detach(self) -> None:
        """Release the frame, and keep only the data: a frame may be much longer than its data."""
        self.packet, self.start = self.data, 0


# mypyc keeps one freed object per class, so that single frames, as in a ping-pong, allocate none.
@mypyc_attr(free_list_len=1)
class EagerArrival(DataArrival):
    """A TINY or SMALL."""

    __slots__ = ()


@mypyc_attr(free_list_len=1)
class LibackArrival(Arrival):
    """A liback, without a frame object; ``sequence`` is the value that it acks."""

    __slots__ = ("count",)

    def __init__(self, peer: Peer, endpoint: int, sequence: int, count: int) -> None:
        super().__init__(peer, None, endpoint, sequence)
        self.count = count
        """``liback_acknum``."""


@mypyc_attr(free_list_len=1)
class Fragment(DataArrival):
    """A MEDIUM fragment."""

    __slots__ = ("length", "number", "pipeline")

    def __init__(
        self,
        peer: Peer,
        endpoint: int,
        sequence: int,
        piggyback: int,
        match_info: int,
        length: int,
        pipeline: int | None,
        number: int,
        packet: bytes,
        start: int,
        size: int,
    ) -> None:
        super().__init__(peer, endpoint, sequence, piggyback, match_info, packet, start, size)
        self.length = length
        """Length of the whole message in bytes."""
        self.pipeline = pipeline
        """``frag_pipeline``; None if the format has no such field."""
        self.number = number
        """``frag_seqnum``."""

    @property
    def whole(self) -> bool:
        """True if the fragment is its message, as a SMALL is."""
        return self.number == 0 and self.size == self.length


@mypyc_attr(free_list_len=1)
class RndvArrival(Arrival):
    """A RNDV, without a frame object."""

    __slots__ = ("length", "match_info", "offset", "region", "use")

    def __init__(
        self,
        peer: Peer,
        endpoint: int,
        sequence: int,
        piggyback: int,
        match_info: int,
        length: int,
        region: int,
        use: int,
        offset: int,
    ) -> None:
        super().__init__(peer, None, endpoint, sequence, piggyback)
        self.match_info = match_info
        self.length = length
        """``msg_length`` in bytes."""
        self.region = region
        """``pulled_rdma_id``."""
        self.use = use
        """``pulled_rdma_seqnum``."""
        self.offset = offset
        """``pulled_rdma_offset`` in bytes."""


@mypyc_attr(free_list_len=1)
class NotifyArrival(Arrival):
    """A NOTIFY, without a frame object."""

    __slots__ = ("region", "transferred", "use")

    def __init__(
        self, peer: Peer, endpoint: int, sequence: int, piggyback: int, region: int, use: int, transferred: int
    ) -> None:
        super().__init__(peer, None, endpoint, sequence, piggyback)
        self.region = region
        """``pulled_rdma_id``."""
        self.use = use
        """``pulled_rdma_seqnum``."""
        self.transferred = transferred
        """``total_length`` in bytes."""


def match_info_of(frame: Any) -> int:
    """The 64 bits of match information of a message."""
    info: int = (frame.match_a << 32) | frame.match_b
    return info


def fragment_of(peer: Peer, frame: Medium) -> Fragment:
    """The arrival of a parsed MEDIUM fragment."""
    return Fragment(
        peer,
        frame.src_endpoint,
        frame.lib_seqnum,
        frame.lib_piggyack,
        match_info_of(frame),
        frame.length,
        frame.frag_pipeline,
        frame.frag_seqnum,
        frame.data,
        0,
        len(frame.data),
    )


def rndv_of(peer: Peer, frame: Rndv) -> RndvArrival:
    """The arrival of a parsed RNDV."""
    return RndvArrival(
        peer,
        frame.src_endpoint,
        frame.lib_seqnum,
        frame.lib_piggyack,
        match_info_of(frame),
        frame.msg_length,
        frame.pulled_rdma_id,
        frame.pulled_rdma_seqnum,
        frame.pulled_rdma_offset,
    )


def notify_of(peer: Peer, frame: Notify) -> NotifyArrival:
    """The arrival of a parsed NOTIFY."""
    return NotifyArrival(
        peer,
        frame.src_endpoint,
        frame.lib_seqnum,
        frame.lib_piggyack,
        frame.pulled_rdma_id,
        frame.pulled_rdma_seqnum,
        frame.total_length,
    )


class PullEnded:
    """A pull that has ended on the card's side."""

    __slots__ = ("context", "status", "transferred")

    def __init__(self, context: Any, status: Status, transferred: int) -> None:
        self.context = context
        """The object that the library passed when it started the pull."""
        self.status = status
        self.transferred = transferred
        """Bytes stored; 0 unless the status is success."""


@dataclass(slots=True)
class LocalMessage:
    """A message from an endpoint of the same host, which is never a frame (R-LOC-01, R-LOC-02)."""

    source: Any
    """The sending :class:`~mxwire.protocol.library.local_send.LocalSend`, or a
    :class:`~mxwire.protocol.neighbours.NeighbourMessage` of another node."""


class Ring:
    """The events for the library, in two queues: arrivals are handled first, then ended pulls (R-GEN-02).

    The ring has slots for ``maximum`` frames. The library returns slots ``batch`` at a time (R-MEA-17), so up to
    ``batch`` - 1 slots are neither free nor in use.
    """

    __slots__ = ("_batch", "_held", "_read", "ended", "maximum", "received")

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

    def __bool__(self) -> bool:
        """Return whether any event is queued."""
        return bool(self.received.count or self.ended.count)

    @property
    def room(self) -> int:
        """Number of free slots."""
        return self.maximum - self._held

    def push(self, event: Arrival | LocalMessage) -> bool:
        """Append an arrival; return False if there is no room."""
        if self._held == self.maximum:
            return False
        self._held += 1
        self.received.append(event)
        return True

    def pop(self) -> Arrival | LocalMessage:
        """Take the oldest arrival."""
        event = self.received.popleft()
        self._read += 1
        if self._read >= self._batch:
            left = self._read % self._batch
            self._held -= self._read - left
            self._read = left
        return event

    def return_slots(self, count: int) -> bool:
        """Free the slots of arrivals that were taken from the queue without :meth:`pop`; return False, and do nothing,
        if there are fewer."""
        if count > self._held - self.received.count:
            return False
        self._held -= count
        return True
