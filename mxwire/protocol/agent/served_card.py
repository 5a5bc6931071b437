"""The card's side of an application's endpoint at an agent, ``card`` progress: the library runs in the application.

The agent checks frames, answers PULLs from the regions that the application has announced, and runs its pulls, whether
or not the application makes a call. Accepted frames leave the ring as ARRIVED records, but keep their slots until the
application has handled them (TAKEN): an application that makes no calls loses frames when the ring is full, as beside a
real card. ``attached_card.py`` is the other side.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from mxwire.errors import InvalidRecordError
from mxwire.protocol.agent.records import PULL_SOURCE, AgentHead, AgentRecord, RecordFlag, region_number
from mxwire.protocol.agent.remote_segments import RemoteSegments, SharedSegments
from mxwire.protocol.agent.served_side import ApplicationChannel, ServedSide
from mxwire.protocol.arguments import Segments
from mxwire.protocol.card.endpoint import CardEndpoint
from mxwire.protocol.card.pull import PullSource
from mxwire.protocol.card.replies import Region
from mxwire.protocol.corridor import (
    Arrival,
    EagerArrival,
    Fragment,
    LibackArrival,
    NotifyArrival,
    PullEnded,
    RndvArrival,
)
from mxwire.protocol.library.endpoint import LENGTH_MAXIMUM
from mxwire.protocol.peers import Peer
from mxwire.protocol.status import Status
from mxwire.wire.codec import Codec, Malformed

_SLOT: Final = 0xFF
_OFFSET: Final = 0xFFFF
_FRAME, _EAGER, _LIBACK, _FRAGMENT, _RNDV, _NOTIFY = range(6)
"""Kinds of arrivals, in the flags of their records."""


def arrival_fields(arrival: Arrival, codec: Codec) -> dict[str, Any]:
    """The fields of the record of an arrival, except its place."""
    number = arrival.sequence << 16 | arrival.piggyback
    if isinstance(arrival, EagerArrival):
        return {"flags": _EAGER, "number": number, "match_info": arrival.match_info, "data": arrival.data}
    if isinstance(arrival, LibackArrival):
        return {"flags": _LIBACK, "number": number, "extra": arrival.count}
    if isinstance(arrival, Fragment):
        return {
            "flags": _FRAGMENT,
            "number": number,
            "match_info": arrival.match_info,
            "mask": 0 if arrival.pipeline is None else arrival.pipeline + 1,
            "length": arrival.length,
            "extra": arrival.number,
            "data": arrival.data,
        }
    if isinstance(arrival, RndvArrival):
        return {
            "flags": _RNDV,
            "number": number,
            "match_info": arrival.match_info,
            "mask": region_number(arrival.region, arrival.use),
            "length": arrival.length,
            "extra": arrival.offset,
        }
    if isinstance(arrival, NotifyArrival):
        mask = region_number(arrival.region, arrival.use)
        return {"flags": _NOTIFY, "number": number, "mask": mask, "length": arrival.transferred}
    return {"flags": _FRAME, "number": number, "data": codec.build(arrival.frame)}


def arrival_of(peer: Peer, head: AgentHead, data: bytes | memoryview, codec: Codec) -> Arrival:
    """The arrival that a record describes; raise :class:`~mxwire.errors.InvalidRecordError` if there is none."""
    kind, number, region, use = head.flags, head.endpoint, head.region, head.use
    if max(region, use) > _SLOT or head.length > LENGTH_MAXIMUM or head.extra > _OFFSET:
        raise InvalidRecordError("an arrival that no frame can be")
    sequence, piggyback = head.number >> 16 & 0xFFFF, head.number & 0xFFFF
    if kind == _EAGER:
        return EagerArrival(peer, number, sequence, piggyback, head.match_info, bytes(data), 0, len(data))
    if kind == _LIBACK:
        return LibackArrival(peer, number, sequence, head.extra)
    if kind == _FRAGMENT:
        pipeline = head.mask - 1 if head.mask else None
        info, length, place, size = head.match_info, head.length, head.extra, len(data)
        return Fragment(peer, number, sequence, piggyback, info, length, pipeline, place, bytes(data), 0, size)
    if kind == _RNDV:
        info, length, offset = head.match_info, head.length, head.extra
        return RndvArrival(peer, number, sequence, piggyback, info, length, region, use, offset)
    if kind == _NOTIFY:
        return NotifyArrival(peer, number, sequence, piggyback, region, use, head.length)
    frame = codec.parse(bytes(data))
    if kind != _FRAME or isinstance(frame, Malformed):
        raise InvalidRecordError("an arrival of an unknown kind")
    return Arrival(peer, frame, number, sequence, piggyback)


class ServedCard(ServedSide):
    """The card's side of an endpoint that belongs to an application."""

    def __init__(self, client: ApplicationChannel, handle: int, card: CardEndpoint) -> None:
        super().__init__(client, handle, card.number, card.port.number)
        self.card = card
        # It has no library in this process to which it could be ready.
        card.ready = True
        self._waiting: deque[tuple[int, PullSource, Segments, int, int]] = deque()
        """Pulls that wait for a handle: number, source, memory, bytes and time limit."""
        self._pulling: set[int] = set()
        """Numbers of the pulls that have not ended."""
        self._regions: dict[int, int] = {}
        """Number of the announcement of each region, by which its memory is held."""

    def take(self, head: AgentHead, data: bytes | memoryview) -> None:
        """Take a record of the application."""
        call = _CALLS.get(head.kind)
        if call is None:
            raise InvalidRecordError(f"a record of the unknown kind {head.kind}")
        call(self, head, data)

    def close(self) -> None:
        """Close the card's side; its running pulls continue as orphans without memory (R-CLS-08)."""
        self.limit_orphans(self.card)
        self.client.node.interfaces[self.interface].close(self.card)
        self.release_all()

    def report(self) -> None:
        """Append records of the frames that were accepted, and of the pulls that have ended."""
        ring, client = self.card.ring, self.client
        while ring.received.count:
            arrival = ring.received.popleft()
            if isinstance(arrival, NotifyArrival):
                self._report_failure(arrival)
            if isinstance(arrival, Arrival):
                fields = arrival_fields(arrival, self.card.port.codec)
                place = client.place(arrival.peer, arrival.endpoint)
                client.out.put(AgentRecord.ARRIVED, handle=self.handle, partner=place, **fields)
        while ring.ended.count:
            self._pull_ended(ring.ended.popleft())
        self._start_waiting()

    def _report_failure(self, notify: NotifyArrival) -> None:
        """Report before a NOTIFY that the memory of its region could not be read, so that the send does not succeed."""
        memory = self.remote.get(self._regions.get(notify.region, 0))
        if memory is not None and memory.failed:
            number = region_number(notify.region, notify.use)
            self.client.out.put(AgentRecord.FAILED, handle=self.handle, mask=number)

    def _pull_ended(self, ended: PullEnded) -> None:
        number, memory = ended.context
        status, transferred = ended.status, ended.transferred
        if status is Status.SUCCESS and isinstance(memory, (RemoteSegments, SharedSegments)):
            if memory.failed:
                status, transferred = Status.MESSAGE_ABORTED, 0
        elif status is Status.SUCCESS:
            self.client.out.put_data(self.handle, number, memory, transferred)
        self._end_pull(number, status, transferred)

    def _end_pull(self, number: int, status: Status, transferred: int = 0) -> None:
        self._pulling.discard(number)
        self.release(number)
        self.client.out.put(AgentRecord.PULL_ENDED, status=status, handle=self.handle, number=number, extra=transferred)

    def _taken(self, head: AgentHead, _data: bytes | memoryview) -> None:
        if not self.card.ring.return_slots(head.extra):
            raise InvalidRecordError("more frames were taken than have arrived")

    def _must_be_new(self, number: int) -> None:
        """Raise unless neither a pull nor an announcement has this number, by which the memory of both is held."""
        if number in self._pulling or number in self._regions.values():
            raise InvalidRecordError("the number of another pull or announcement")

    def _pull(self, head: AgentHead, data: bytes | memoryview) -> None:
        """Pull a message into the memory of the application, or, without access to it, of the agent."""
        total = head.length
        self._must_be_new(head.number)
        if not 0 < total <= LENGTH_MAXIMUM:
            raise InvalidRecordError("an impossible pull")
        if len(data) < PULL_SOURCE.size or len(self._pulling) >= self.card.profile.pull_maximum:
            raise InvalidRecordError("a pull without a source, or more of them than handles")
        session, region, use, offset, limit = PULL_SOURCE.unpack_from(data)
        self._pulling.add(head.number)
        peer = self.client.node.peers.at(head.peer_index)
        if peer is None:
            # It has just left the table.
            self._end_pull(head.number, Status.REMOTE_ENDPOINT_UNREACHABLE)
            return
        memory: Segments
        if head.flags & RecordFlag.IN_PLACE:
            memory = self.place_at(head.number, data[PULL_SOURCE.size :])
        elif self.client.may_hold(total):
            memory = Segments(bytearray(total), writable=True)
            self.hold(head.number, total)
        else:
            self._end_pull(head.number, Status.NO_RESOURCES)
            return
        if memory.length < total:
            raise InvalidRecordError("a pull into shorter memory")
        source = PullSource(peer, head.endpoint, session, region, use, offset)
        self._waiting.append((head.number, source, memory, total, limit))
        self._start_waiting()

    def _start_waiting(self) -> None:
        """Start pulls while there are handles, of which orphans of an earlier endpoint may hold some."""
        while self._waiting and self.card.slots.available:
            number, source, memory, total, limit = self._waiting.popleft()
            pull = self.card.start_pull(source, memory, total, (number, memory), self.client.now)
            pull.limit = limit

    def _limit(self, head: AgentHead, _data: bytes | memoryview) -> None:
        for pull in self.card.pulls.values():
            if pull.context[0] == head.number:
                pull.limit = head.extra
                return
        for place, (number, source, memory, total, _) in enumerate(self._waiting):
            if number == head.number:
                self._waiting[place] = number, source, memory, total, head.extra
                return

    def _announce(self, head: AgentHead, data: bytes | memoryview) -> None:
        """Make a message available for pulling; its region has the number that the library has chosen."""
        number, use = head.region, head.use
        self._must_be_new(head.number)
        if head.length > LENGTH_MAXIMUM or head.extra > _OFFSET:
            raise InvalidRecordError("an impossible announcement")
        content = self.content(head, data)
        memory = content if isinstance(content, Segments) else Segments(content)
        region = Region(number, use & _SLOT, head.extra, memory, head.address)
        if not number < self.card.profile.region_maximum or not self.card.regions.adopt(region):
            raise InvalidRecordError("a region that is in use")
        self._regions[number] = head.number
        if memory.length != head.length:
            # Its data was too much for the agent; its PULLs are refused.
            self._withdraw(head, b"")

    def _withdraw(self, head: AgentHead, _data: bytes | memoryview) -> None:
        held = self._regions.pop(head.region, None)
        if held is not None:
            self.card.regions.withdraw(head.region)
            self.release(held)


_CALLS: Final[dict[int, Callable[[ServedCard, AgentHead, bytes | memoryview], None]]] = {
    AgentRecord.TAKEN: ServedCard._taken,
    AgentRecord.PULL: ServedCard._pull,
    AgentRecord.LIMIT: ServedCard._limit,
    AgentRecord.ANNOUNCE: ServedCard._announce,
    AgentRecord.WITHDRAW: ServedCard._withdraw,
    AgentRecord.DATA: ServedCard.collect,
}
"""The calls by kind of record."""
