"""Neighbours: the other nodes of this host, whose endpoints are reached without the wire (R-LOC-02).

Theory of operation
===================

Several processes may share an interface, each with a node of its own. Between two of them is a *channel*, which passes
records in both directions, in order and without loss, while both live (:class:`LocalChannel`). The node is independent
of the kind of channel: between processes it is shared memory (``mxwire.link.local``), in the simulator a queue. The
library treats all partners on its own host alike (``LocalSend`` in ``library/local_send.py``); here, records replace
the direct call of the target.

========== ================================================== ============================================
record     from the initiator of the exchange                 answer
========== ================================================== ============================================
CONNECT    endpoint and key                                   ANSWER: session of the endpoint, or a status
MESSAGE    a message that is buffered, with its data          only if it is refused: LOST
OFFER      a longer or synchronous message: where its data is ENDED: status, and number of bytes taken
           and its first bytes
DATA       bytes that follow those of an OFFER
PULL       (of the receiver) the data of an offered message   DATA, several
           from an offset
WITHDRAWN  an endpoint has closed: its offers are void; or, with
           a number, only this offer is void
========== ================================================== ============================================

A buffered message is complete for its sender when its record is in the channel; there are no acks. The data of an OFFER
reaches its receiver in one of three ways. If a receive matches at once, the data is taken from the OFFER and from DATA,
which follows by itself up to 256 KiB, and is requested with a PULL beyond that: two copies through the channel, which
both processes make at the same time, take half as long as one by the kernel (``benchmarks/local.py``). If the sender
does not run, and the channel stays empty for ``_PATIENCE`` polls, the receiver copies the rest out of the sender's
memory if the channel can (one copy). An unexpected message is copied like this as a whole, or requested with a PULL.

**Order.** The records of one endpoint to another one pass the same channel in the order of the sends. A record that the
target cannot take now, because its library makes no progress and its ring is full, or because the unexpected queue is
full, stays in the channel, like all records behind it. A full channel delays only the sends that pass through it.

**Trust.** A neighbour is another process, which may be killed at any time, and may be hostile. Each number, length and
index in a record is checked; a record that no correct neighbour sends ends the channel. When a channel ends, all
unfinished operations with that neighbour end as REMOTE_ENDPOINT_CLOSED. The records that it had sent before are handled
first, since its sends were complete; those that their target cannot take now are kept, and delay no others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mxwire.errors import InvalidRecordError
from mxwire.protocol.arguments import Segments
from mxwire.protocol.corridor import LocalMessage
from mxwire.protocol.library.partner import LocalRoute, LocalRoutes
from mxwire.protocol.local_channel import (
    CARRIED_MAXIMUM,
    DATA_MAXIMUM,
    ENDPOINT_BITS,
    RECORD_HEAD,
    LocalChannel,
    LocalPath,
    RecordHead,
    RecordKind,
)
from mxwire.protocol.peers import Peer, place_of
from mxwire.protocol.status import Status

if TYPE_CHECKING:
    from mxwire.protocol.card.interface import HostInterface
    from mxwire.protocol.library.connect import ConnectCall
    from mxwire.protocol.library.endpoint import EngineEndpoint
    from mxwire.protocol.library.local_send import LocalSend
    from mxwire.protocol.library.partner import LibraryEndpoint, MessageTarget, Partner
    from mxwire.protocol.node import Node

_PATIENCE: Final = 512
"""Polls of an empty channel for the data of a message before the rest is copied out of the sender's memory: longer than
a sender that runs needs for a record."""
_HEAD: Final[int] = RECORD_HEAD.size
_pack_head: Final[Callable[..., bytes]] = RECORD_HEAD.pack
_read_head: Final[Callable[..., RecordHead]] = RECORD_HEAD.unpack_from
_RECORDS: Final = 256
"""Maximum number of records taken from a neighbour before other neighbours have their turn."""
_QUEUE_MAXIMUM: Final = 65536
"""Maximum number of answers that wait for room in a channel, before a neighbour that does not read them is
abandoned."""
_STATUSES: Final = {int(each): each for each in Status}


# Compiled code looks up a member of an enumeration by its name at each use.
_SUCCESS: Final = Status.SUCCESS
_MESSAGE: Final = int(RecordKind.MESSAGE)
_OFFER: Final = int(RecordKind.OFFER)
_ENDED: Final = int(RecordKind.ENDED)
_DATA: Final = int(RecordKind.DATA)


class NeighbourMessage:
    """A message of a neighbour's endpoint that is not received yet."""

    __slots__ = (
        "_filled",
        "_receive",
        "_wanted",
        "carried",
        "data",
        "described",
        "done",
        "endpoint",
        "length",
        "match_info",
        "neighbour",
        "number",
        "peer",
        "session",
        "source",
        "target",
    )

    def __init__(
        self, neighbour: Neighbour, peer: Peer, head: RecordHead, data: bytes | None, described: bytes
    ) -> None:
        _, _, _, _, source, target, session, _, number, match_info, length = head
        self.neighbour = neighbour
        self.peer = peer
        self.source, self.session = source, session
        """Address and endpoint number of the sender, as in the record, and its session."""
        self.target = target
        """Address and number of the endpoint that it is for."""
        self.number = number
        """The sender's number of an offered message."""
        self.match_info, self.length = match_info, length
        self.data = data
        """The message; None for an offered one."""
        self.done = False
        """True if the sender has withdrawn the message, or has received the answer."""
        self.endpoint: LibraryEndpoint | None = None
        """The target, while the data is being transferred."""
        self.carried: bytes | memoryview = b""
        """The first bytes of an offered message, while its record is handled."""
        self.described = described
        """The place of the data of an offered message, as its sender describes it."""
        self._receive: MessageTarget | None = None
        self._wanted = 0
        self._filled = 0

    def fetch(self, receive: MessageTarget, length: int) -> bool:
        """Copy ``length`` bytes into the memory of a receive; return False if the data will arrive in records."""
        neighbour, first = self.neighbour, self.carried
        if first:
            if len(first) < length:
                neighbour.filling[self.number] = self
                if self.length > CARRIED_MAXIMUM:
                    neighbour.request(self.number, len(first), length)
            self._filled = receive.memory.put(0, first)
            if self._filled >= length:
                return True
        elif not length or neighbour.channel.read(self.described, receive.memory, length, self.source & ENDPOINT_BITS):
            return True
        else:
            # Not entered in ``filling``: the copy out of the sender's memory has just failed, and would fail again.
            neighbour.request(self.number, 0, length)
        self._receive, self._wanted, self.endpoint = receive, length, receive.endpoint
        return False

    def fill(self, offset: int, data: Any) -> None:
        """Take a part of the data, up to the end of the receive; ignore it if no receive waits for it."""
        receive = self._receive
        # A gap would leave old bytes in a message that is then reported as complete.
        if receive is None or offset != self._filled:
            return
        data = data[: self._wanted - offset]
        receive.memory.put(offset, data)
        self._filled += len(data)
        if self._filled == self._wanted:
            self._complete(receive)

    def fetch_rest(self) -> None:
        """Copy the bytes that have not arrived yet out of the sender's memory, if that is possible."""
        receive, described, source = self._receive, self.described, self.source & ENDPOINT_BITS
        if receive is not None and self.neighbour.channel.read(
            described, receive.memory, self._wanted, source, self._filled
        ):
            self._complete(receive)

    def _complete(self, receive: MessageTarget) -> None:
        """End the transfer, since all data is in the memory of the receive."""
        self._receive = None
        receive.filled()
        self.received(self._wanted)

    def received(self, transferred: int) -> None:
        """Answer that ``transferred`` bytes were taken."""
        self._end(_SUCCESS, transferred)

    def dropped(self, status: Status = Status.REMOTE_ENDPOINT_CLOSED) -> None:
        """Answer that the message will not be received."""
        self._end(status, 0)

    def abandon(self, status: Status) -> None:
        """End the transfer, since the sender has withdrawn the message or the receiver closes."""
        self.neighbour.filling.pop(self.number, None)
        receive, self._receive = self._receive, None
        if receive is not None:
            receive.abandoned(status)

    def _end(self, status: Status, transferred: int) -> None:
        if self.done:
            return
        self.done = True
        if self.data is None:
            self.neighbour.offers.pop(self.number, None)
            self.neighbour.filling.pop(self.number, None)
            self.neighbour.answer(_ENDED, self.number, status, transferred)
        else:
            self.neighbour.lose_message(self, status)


class Neighbour(LocalRoute):
    """Another node of this host, and all unfinished operations with its endpoints."""

    def __init__(self, neighbourhood: Neighbourhood, channel: LocalChannel) -> None:
        self.channel = channel
        self._peek: Callable[[], bytes | memoryview | None] = channel.peek
        self._advance: Callable[[], None] = channel.advance
        self.connects: dict[int, ConnectCall] = {}
        """Connects without an answer, by number."""
        self.sends: dict[int, LocalSend] = {}
        """Offered sends without an answer, by number."""
        self.offers: dict[int, NeighbourMessage] = {}
        """Offered messages of the neighbour, by its number."""
        self.filling: dict[int, NeighbourMessage] = {}
        """Those whose data is arriving, the oldest first."""
        self.full = False
        """True if sends wait for room in the channel."""
        self._neighbourhood = neighbourhood
        self._node = neighbourhood.node
        self._source = self._target = 0
        self._endpoint: EngineEndpoint | None = None
        self._peer: Peer | None = None
        """Places of source and target of the newest message, and the target endpoint and source peer there."""
        self._next = 0
        self._queue: deque[bytes] = deque()
        """Answers that wait for room in the channel."""
        self._pushes: deque[tuple[LocalSend, int, int]] = deque()
        """Messages whose data was requested: send, offset of the next byte, number of bytes requested."""
        self._last: list[bytes] = []
        """Records of a neighbour that has gone, which their targets cannot take now."""
        self._gone = False
        """True if its unread messages were reported as lost."""

    # Sending.

    def connect(self, connect: ConnectCall) -> None:
        """Pass on a connect."""
        partner = connect.partner
        assert partner is not None
        self._next += 1
        self.connects[self._next] = connect
        self._put(self._head(RecordKind.CONNECT, partner, self._next, 0, connect.key))

    def send(self, send: LocalSend) -> bool:
        """Pass on a message; return False if there is no room for it now."""
        if self._queue:
            self.full = True
            return False
        partner = send.partner
        assert partner is not None
        if send.buffered:
            head = self._head(RecordKind.MESSAGE, partner, 0, send.match_info, send.length)
            if self.channel.put(head, send.memory.copy()):
                return True
        else:
            described = self.channel.describe(send.memory, send.endpoint.number)
            head = self._head(RecordKind.OFFER, partner, self._next + 1, send.match_info, send.length, len(described))
            carried = min(send.length, DATA_MAXIMUM)
            if self.channel.put(head + described, _part(send.memory, 0, carried)):
                self._next += 1
                send.neighbour, send.number = self, self._next
                self.sends[send.number] = send
                if carried < send.length <= CARRIED_MAXIMUM:
                    self._pushes.append((send, carried, send.length))
                    self._flush()
                return True
        self.full = True
        return False

    def answer(self, kind: int, number: int, status: Status = Status.SUCCESS, length: int = 0) -> None:
        """Send a record that concerns a request of the neighbour by its number."""
        self._put(_pack_head(kind, status, 0, 0, 0, 0, 0, 0, number, 0, length))

    def request(self, number: int, offset: int, end: int) -> None:
        """Request the bytes of an offered message from ``offset`` up to ``end``."""
        self._put(_pack_head(RecordKind.PULL, 0, 0, 0, 0, 0, 0, 0, number, offset, end))

    def lose_message(self, message: NeighbourMessage, status: Status) -> None:
        """Notify the sender of a message that it will not be received, though its send is complete."""
        self._lose(message.source, message.session, message.target, message.match_info, message.length, status)

    def withdraw(self, endpoint: EngineEndpoint) -> None:
        """End everything of a local endpoint that closes."""
        self.channel.withdraw(endpoint.number)
        for message in [each for each in self.offers.values() if each.endpoint is endpoint]:
            message.abandon(Status.CANCELLED)
            message.dropped()
        source = place_of(endpoint.card.port.address, endpoint.number)
        self._put(_pack_head(RecordKind.WITHDRAWN, 0, 0, 0, source, 0, endpoint.session, 0, 0, 0, 0))

    def withdraw_offer(self, send: LocalSend) -> None:
        """Withdraw an offered message, whose memory may be reused; the data of other offers of its endpoint is then
        requested by PULLs."""
        endpoint = send.endpoint
        self.channel.withdraw(endpoint.number)
        source = place_of(endpoint.card.port.address, endpoint.number)
        self._put(_pack_head(RecordKind.WITHDRAWN, 0, 0, 0, source, 0, endpoint.session, 0, send.number, 0, 0))

    def _head(
        self, kind: int, partner: Partner, number: int, match_info: int, length: int, described: int = 0
    ) -> bytes:
        session, known = partner.endpoint.session, partner.fwd or 0
        here, there = partner.here, partner.there
        return _pack_head(kind, 0, described, 0, here, there, session, known, number, match_info, length)

    def _lose(self, source: int, session: int, target: int, match_info: int, length: int, status: Status) -> None:
        self._put(_pack_head(RecordKind.LOST, status, 0, 0, target, source, 0, session, 0, match_info, length))

    def _put(self, record: bytes) -> None:
        if self._queue or not self.channel.put(record):
            self._queue.append(record)

    def _flush(self) -> None:
        """Send the records that have waited for room: answers, requested data, then messages."""
        queue, pushes, channel = self._queue, self._pushes, self.channel
        while queue and channel.put(queue[0]):
            queue.popleft()
        while pushes and not queue:
            send, offset, end = pushes[0]
            count = min(DATA_MAXIMUM, end - offset)
            # The send may have ended since the PULL: its memory belongs to the application again.
            if count <= 0 or send.number not in self.sends:
                pushes.popleft()
                continue
            head = _pack_head(_DATA, 0, 0, 0, 0, 0, 0, 0, send.number, offset, count)
            if not channel.put(head, _part(send.memory, offset, count)):
                return
            pushes[0] = (send, offset + count, end)
        if self.full and not queue:
            self.full = False
            for endpoint in self._node.endpoints.values():
                endpoint.release_sends()

    # Receiving.

    def receive(self) -> None:
        """Take the records that have arrived, up to a number, and use the room that the neighbour has made."""
        channel = self.channel
        if channel.ended:
            self._take_last()
            return
        try:
            taken = 0
            while True:
                record = self._peek()
                if record is None and self.filling:
                    record = self._await_data()
                if record is None or taken == _RECORDS:
                    break
                if not self._take(record):
                    self._refuse(record)
                    break
                self._advance()
                taken += 1
            # Each send that is carried adds itself to ``_pushes`` once; only what exceeds them was requested by PULLs.
            if len(self._queue) > _QUEUE_MAXIMUM or len(self._pushes) > _QUEUE_MAXIMUM + len(self.sends):
                raise InvalidRecordError("the answers are not read")
            channel.settle()
        except InvalidRecordError:
            self._end()
            return
        if self._queue or self._pushes or self.full:
            self._flush()

    def _await_data(self) -> bytes | memoryview | None:
        """The next record; if it does not come soon, copy the rest of all messages whose data is arriving."""
        # First, because a sender that waits for room in the channel would not send during the polls.
        self.channel.settle()
        for _ in range(_PATIENCE):
            record = self._peek()
            if record is not None:
                return record
        # Tried once per message: if its memory cannot be read, DATA records still bring the rest.
        waiting, self.filling = self.filling, {}
        for message in waiting.values():
            message.fetch_rest()
        return None

    def _take_last(self) -> None:
        """Take the last records of a neighbour that has gone, up to a number, and end all unfinished operations with
        it."""
        kept, self._last = self._last, []
        refused: set[int] = set()
        try:
            for place in range(len(kept) + _RECORDS):
                record = kept[place] if place < len(kept) else self._peek()
                if record is None:
                    break
                # The messages to one endpoint stay in order.
                target = _read_head(record)[5] if len(record) >= _HEAD else None
                if target in refused or not self._take(record):
                    assert target is not None
                    if not refused:
                        self._refuse(record)
                    refused.add(target)
                    self._last.append(bytes(record))
                if place >= len(kept):
                    self._advance()
            if self._peek() is not None and len(self._last) <= _QUEUE_MAXIMUM:
                return
            self._neighbourhood.lose(self)
        except InvalidRecordError:
            self._last.clear()
        if not self._last or len(self._last) > _QUEUE_MAXIMUM:
            self._end()

    def _end(self) -> None:
        """End the channel."""
        self._neighbourhood.lose(self)
        self._neighbourhood.forget(self)

    def _refuse(self, record: bytes | memoryview) -> None:
        """Note the state in which an endpoint cannot take a record."""
        endpoint = self._neighbourhood.endpoint_at(_read_head(record)[5])
        if endpoint is not None:
            self._neighbourhood.refuse(self.channel, endpoint)

    def _take(self, record: bytes | memoryview) -> bool:
        """Handle a record; return False if it must stay in the channel."""
        if len(record) < _HEAD:
            raise InvalidRecordError("a record without a whole head")
        head = _read_head(record)
        if head[0] in (_MESSAGE, _OFFER):
            return self._take_message(head, record)
        kind, code, _, _, source, target, from_session, session, number, match, length = head
        if kind == _DATA:
            message = self.offers.get(number)
            if message is not None:
                message.fill(match, record[_HEAD:])
            return True
        status = _STATUSES.get(code)
        if status is None or len(record) != _HEAD:
            raise InvalidRecordError("an unknown status, or data where none belongs")
        if kind == _ENDED:
            self._take_ended(number, status, length)
        elif kind == RecordKind.CONNECT:
            self._take_connect(source, target, number, length)
        elif kind == RecordKind.ANSWER:
            self._take_answer(number, status, session)
        elif kind == RecordKind.LOST:
            self._take_lost(target, session, source, match, length, status)
        elif kind == RecordKind.PULL:
            send = self.sends.get(number)
            if send is not None:
                # Sent at the end of the pass: the sender may learn before that the receiver has copied it by itself.
                self._pushes.append((send, match, min(length, send.length)))
        elif kind == RecordKind.WITHDRAWN:
            self._take_withdrawn(source, from_session, number)
        else:
            raise InvalidRecordError("an unknown kind of record")
        return True

    def _take_message(self, head: RecordHead, record: bytes | memoryview) -> bool:
        """Take a message for an endpoint of this node, or refuse it as the card does (R-NAK-01)."""
        kind, _, described, _, source, target, from_session, session, number, match_info, length = head
        # Behind the description of an offer.
        data = _HEAD if kind == _MESSAGE else _HEAD + described
        buffered, carried = kind == _MESSAGE, len(record) - data
        if not 0 <= carried <= min(length, DATA_MAXIMUM) or (buffered and carried != length):
            raise InvalidRecordError("a message of another length")
        if length >> 32:
            # Lengths have 32 bits on the wire, and in the status of a program in C.
            raise InvalidRecordError("a message that is too long")
        neighbourhood = self._neighbourhood
        endpoint, peer = self._endpoint, self._peer
        if source != self._source or target != self._target or endpoint is None or not endpoint.open:
            endpoint = self._endpoint = neighbourhood.endpoint_at(target)
            peer = self._peer = neighbourhood.own_peer(source)
            self._source, self._target = source, target
        if not buffered and number in self.offers:
            raise InvalidRecordError("an offer with the number of another one")
        if endpoint is None or peer is None or endpoint.session != session:
            if endpoint is None or peer is None:
                status = neighbourhood.missing(target)
            else:
                status = Status.REMOTE_ENDPOINT_BAD_SESSION
            if buffered:
                self._lose(source, from_session, target, match_info, length, status)
            else:
                self.answer(RecordKind.ENDED, number, status)
            return True
        if neighbourhood.routes.get(source) is not self:
            neighbourhood.learn_route(source, self)
        ring = endpoint.card.ring
        # Directly only if the ring is empty: an earlier message of this sender may wait there.
        if endpoint.works and buffered and not ring.received.count:
            return endpoint.take_from_neighbour(
                peer, source & ENDPOINT_BITS, from_session, match_info, record[_HEAD:], None
            )
        # Copies, because the record is valid only until ``advance``, and a message in the ring lives longer.
        kept = bytes(record[data:]) if buffered else None
        # Most messages that are carried as a whole are received at once.
        where = b"" if carried == length else bytes(record[_HEAD:data])
        message = NeighbourMessage(self, peer, head, kept, where)
        if not endpoint.works or ring.received.count:
            taken = endpoint.card.offer(LocalMessage(message))
        else:
            message.carried = record[data:]
            taken = endpoint.take_from_neighbour(peer, source & ENDPOINT_BITS, from_session, match_info, None, message)
            message.carried = b""
        if taken and not buffered and not message.done:
            message.described = bytes(record[_HEAD:data])
            self.offers[number] = message
        return taken

    def _take_connect(self, source: int, target: int, number: int, key: int) -> None:
        endpoint = self._neighbourhood.endpoint_at(target)
        status, session = Status.SUCCESS, 0
        if endpoint is None or self._neighbourhood.own_peer(source) is None:
            status = self._neighbourhood.missing(target)
        elif endpoint.key != key:
            status = Status.REMOTE_ENDPOINT_BAD_CONNECTION_KEY
        else:
            session = endpoint.session
            self._neighbourhood.learn_route(source, self)
        self._put(_pack_head(RecordKind.ANSWER, status, 0, 0, 0, 0, 0, session, number, 0, 0))

    def _take_answer(self, number: int, status: Status, session: int) -> None:
        connect = self.connects.pop(number, None)
        if connect is not None:
            connect.answered(status, session)

    def _take_ended(self, number: int, status: Status, transferred: int) -> None:
        send = self.sends.get(number)
        if send is None:
            return
        if status is _SUCCESS:
            send.received(min(transferred, send.length))
        else:
            assert send.partner is not None
            self._neighbourhood.unroute(send.partner.there, status)
            send.dropped(status)

    def _take_lost(
        self, sender: int, session: int, receiver: int, match_info: int, length: int, status: Status
    ) -> None:
        """Report a message that was complete for its sender, and that its receiver has refused (R-SND-06)."""
        self._neighbourhood.unroute(receiver, status)
        endpoint = self._neighbourhood.endpoint_at(sender)
        peer = self._neighbourhood.own_peer(receiver)
        if endpoint is not None and peer is not None and endpoint.session == session and status != Status.SUCCESS:
            partner = endpoint.partners.get((peer.index, receiver & ENDPOINT_BITS))
            # A buffered message is never longer; the neighbour's number is not trusted.
            endpoint.report_lost(partner, match_info, min(length, DATA_MAXIMUM), status)

    def _take_withdrawn(self, source: int, session: int, number: int) -> None:
        if number:
            offer = self.offers.get(number)
            if offer is not None and offer.source == source:
                self._void(offer)
            return
        if self._neighbourhood.routes.get(source) is self:
            del self._neighbourhood.routes[source]
        for message in list(self.offers.values()):
            if message.source == source and message.session == session:
                self._void(message)

    def _void(self, message: NeighbourMessage) -> None:
        """End an offer of a sender that has gone; an unexpected one stays queued, and is found to be void then."""
        message.done = True
        self.offers.pop(message.number, None)
        message.abandon(Status.REMOTE_ENDPOINT_CLOSED)

    def gone(self, places: set[int]) -> None:
        """End all unfinished operations with the endpoints at ``places``, since the channel has ended; may be
        repeated."""
        self._queue.clear()
        self._pushes.clear()
        for endpoint in list(self._node.endpoints.values()):
            endpoint.drop_held(places)
        for message in list(self.offers.values()):
            self._void(message)
        for connect in list(self.connects.values()):
            connect.answered(Status.REMOTE_ENDPOINT_CLOSED, 0)
        for send in list(self.sends.values()):
            send.dropped()
        if self._gone:
            return
        self._gone = True
        for record in self.channel.unread():
            # The content is not trusted, because the neighbour could write to this memory too.
            if len(record) < _HEAD:
                continue
            kind, _, _, _, source, target, session, _, _, match_info, length = _read_head(record)
            if kind == _MESSAGE:
                self._take_lost(source, session, target, match_info, length, Status.REMOTE_ENDPOINT_CLOSED)


class Neighbourhood(LocalRoutes):
    """The neighbours of a node, and which of them has which endpoint."""

    def __init__(self, node: Node, path: LocalPath | None) -> None:
        self.node = node
        self.routes: dict[int, Neighbour] = {}
        """The known neighbours by address and endpoint number."""
        self._path = path
        self.neighbours: dict[int, Neighbour] = {}
        """All neighbours, by the identity of their channel."""
        self._own: dict[int, tuple[Peer, HostInterface]] = {}
        """The local interfaces by address."""
        self.refusals: dict[int, tuple[EngineEndpoint, tuple[object, ...]]] = {}
        """The endpoints that could not take the oldest record of a channel, and their states then, by channel."""

    def refuse(self, channel: LocalChannel, endpoint: EngineEndpoint) -> None:
        """Leave the oldest record in a channel, until its endpoint can take it."""
        self.refusals[id(channel)] = endpoint, _intake(endpoint)

    def stuck(self, channel: LocalChannel) -> bool:
        """Return whether the oldest record of a channel would be refused again, because the state of its endpoint has
        not changed."""
        refusal = self.refusals.get(id(channel))
        return refusal is not None and refusal[0].open and refusal[1] == _intake(refusal[0])

    def towards(self, partner: Partner) -> Neighbour | None:
        """The neighbour that has an endpoint of this host open, which is searched for if it is not known."""
        place = partner.there
        found = self.routes.get(place)
        if found is None and self._path is not None and partner.peer.own is not None:
            channel = self._path.reach(partner.peer.own, partner.number)
            if channel is not None:
                found = self.routes[place] = self._neighbour(channel)
        return found

    def learn_route(self, place: int, neighbour: Neighbour) -> None:
        """Send to an endpoint through the neighbour that has sent for it.

        An existing route to the same process is kept, because messages in another channel could overtake those in the
        first one. The last records of a process that has gone do not change a route.
        """
        if neighbour.channel.ended:
            return
        known = self.routes.get(place)
        if known is None or known.channel.ended or known.channel.process != neighbour.channel.process:
            self.routes[place] = neighbour

    def receive(self, channels: Sequence[LocalChannel]) -> None:
        """Take the records of channels that have some, or have ended."""
        for channel in channels:
            if self.refusals:
                self.refusals.pop(id(channel), None)
            self._neighbour(channel).receive()

    def close_endpoint(self, endpoint: EngineEndpoint) -> None:
        """Notify all neighbours that an endpoint closes."""
        for each in self.neighbours.values():
            each.withdraw(endpoint)

    def lose(self, neighbour: Neighbour) -> None:
        """End all unfinished operations with a neighbour whose channel has ended."""
        places = {place for place, each in self.routes.items() if each is neighbour}
        for place in places:
            del self.routes[place]
        neighbour.gone(places)

    def forget(self, neighbour: Neighbour) -> None:
        """Forget a neighbour that has gone, since none of its records are left."""
        self.neighbours.pop(id(neighbour.channel), None)
        self.refusals.pop(id(neighbour.channel), None)
        neighbour.channel.close()

    def unroute(self, place: int, status: Status) -> None:
        """Search for an endpoint again at the next send to it, if its neighbour has refused a message as closed."""
        if status == Status.REMOTE_ENDPOINT_CLOSED:
            self.routes.pop(place, None)

    def endpoint_at(self, place: int) -> EngineEndpoint | None:
        """The open endpoint of this node at an address and number."""
        own = self._interface(place)
        if own is None:
            return None
        card = own[1].endpoints.get(place & ENDPOINT_BITS)
        return None if card is None else self.node.endpoints.get(card)

    def own_peer(self, place: int) -> Peer | None:
        """The local interface at an address, as a peer; a neighbour may not act for another host."""
        own = self._interface(place)
        return None if own is None else own[0]

    def missing(self, place: int) -> Status:
        """The reason why an endpoint cannot be reached (R-EP-01)."""
        known = (place & ENDPOINT_BITS) < self.node.profile.endpoint_maximum
        return Status.REMOTE_ENDPOINT_CLOSED if known else Status.REMOTE_ENDPOINT_BAD_ID

    def _interface(self, place: int) -> tuple[Peer, HostInterface] | None:
        if not self._own:
            for board in self.node.interfaces:
                peer = self.node.peers.by_address(board.address)
                assert peer is not None
                self._own[int.from_bytes(board.address, "big")] = (peer, board)
        return self._own.get(place >> 8)

    def _neighbour(self, channel: LocalChannel) -> Neighbour:
        found = self.neighbours.get(id(channel))
        if found is None:
            found = self.neighbours[id(channel)] = Neighbour(self, channel)
        return found


def _part(memory: Segments, offset: int, count: int) -> Any:
    """Bytes of a message, without a copy if it has one segment."""
    if count == memory.length and memory.only is not None:
        return memory.only
    part = memory.part(offset, count)
    if part is None:
        joined = np.empty(count, np.uint8)
        memory.take(offset, joined)
        return joined
    return part


def _intake(endpoint: EngineEndpoint) -> tuple[object, ...]:
    """Everything that decides whether an endpoint can take a record."""
    matching, room = endpoint.matching, endpoint.card.ring.room
    kept = matching.unexpected, matching.unexpected_bytes, len(matching.offered), matching.posted
    return endpoint.works, room, len(endpoint.partners), kept
