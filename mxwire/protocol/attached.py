"""The application's side of a channel to an agent: a node whose endpoints pass all calls to the agent.

``agent_records.py`` describes the records. An :class:`AttachedNode` has the peers of the agent, with their indexes, and
endpoints with the calls, requests and partners of every endpoint, so that all kinds of hosts use it like another node.
It has no frames and no timers: requests end by records. A call whose result the application needs at once (an open,
a probe, a cancellation) waits for the agent's answer, by ``wait``, which the caller of the node provides.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any, Final, SupportsIndex

from mxwire.errors import InvalidRecordError, MxwireError
from mxwire.frames import FrameBatch
from mxwire.protocol.agent_records import (
    AGENT_HEAD_SIZE,
    AGENT_VERSION,
    ANY_ENDPOINT,
    INLINE_MAXIMUM,
    NO_PARTNER,
    OPEN_OPTIONS,
    PLACE,
    SECONDS,
    UNACKED_ROW,
    AgentEndedError,
    AgentHead,
    AgentRecord,
    AgentRefusalError,
    RecordFlag,
    RecordOutbox,
)
from mxwire.protocol.arguments import Segments, checked_integer, ethernet_address
from mxwire.protocol.card.endpoint import CardEndpoint
from mxwire.protocol.card.outgoing import FEW
from mxwire.protocol.library.connect import ConnectCall, ConnectEvent
from mxwire.protocol.library.endpoint import LENGTH_MAXIMUM, EngineEndpoint, Handler, Send
from mxwire.protocol.library.inbound import Unexpected
from mxwire.protocol.library.matching import HandlerCalls, Matching
from mxwire.protocol.library.outbound import LocalEvent, LocalSend
from mxwire.protocol.library.partner import LibraryEndpoint, MessageTarget, Partner, Request
from mxwire.protocol.library.receive import Receive, ReceiveEvent
from mxwire.protocol.neighbours import LocalChannel
from mxwire.protocol.node import Node
from mxwire.protocol.peers import Peer
from mxwire.protocol.profile import OPEN_MX_1_5, Profile, profile_by_name
from mxwire.protocol.served import FORWARDED_EVENTS
from mxwire.protocol.status import EventKind, LocalProtocolError, Status
from mxwire.wire.dialect import as_dialect
from mxwire.wire.numbers import NO_PEER_INDEX

_ENDPOINT: Final = 0xFF
_RECORDS: Final = 4096
"""Maximum number of records taken before the caller of the node has its turn."""
_NO_FRAMES: Final[list[bytes]] = []
_SUCCEEDED: Final = (Status.SUCCESS, Status.MESSAGE_TRUNCATED)


class AgentFacts:
    """The properties of an agent's host, as the agent describes them.

    Raises :class:`~mxwire.errors.InvalidRecordError` for a description of another form.
    """

    __slots__ = ("addresses", "dialect", "interfaces", "mtus", "name", "profile", "version")

    def __init__(self, data: bytes) -> None:
        try:
            facts = json.loads(data)
            self.version = str(facts["version"])
            self.name = str(facts["name"])
            """Host name without the number of an interface."""
            self.interfaces = [str(each) for each in facts["interfaces"]]
            self.addresses = [ethernet_address(bytes.fromhex(each)) for each in facts["addresses"]]
            self.mtus = [int(each) for each in facts["mtus"]]
            self.dialect = as_dialect(str(facts["dialect"]))
            self.profile: Profile = _profile(str(facts["profile"]))
        except (ValueError, KeyError, TypeError, MxwireError) as error:
            raise InvalidRecordError(f"the agent describes itself in another form: {error!r}") from None
        if not len(self.interfaces) == len(self.addresses) == len(self.mtus) or not self.interfaces:
            raise InvalidRecordError("the agent describes its interfaces incompletely")


def _profile(name: str) -> Profile:
    try:
        return profile_by_name(name)
    except MxwireError:
        # A profile that a program of the agent has made: the application uses only its limits.
        return OPEN_MX_1_5


class AttachedSend(LocalSend):
    """A send that the agent carries out."""

    __slots__ = ()

    def __init__(
        self, partner: Partner, match_info: int, memory: Segments, *, synchronous: bool, buffered: bool
    ) -> None:
        super().__init__(partner, match_info, memory, synchronous=synchronous)
        self.buffered = buffered
        self.fire(LocalEvent.OFFER)

    def ended(self, status: Status, transferred: int) -> None:
        """End the send with the agent's status."""
        if self.can(LocalEvent.RECEIVED):
            self.fire(LocalEvent.RECEIVED, status, transferred)


class AttachedReceive(Receive):
    """A receive that the agent has posted."""

    __slots__ = ("allocates", "number")

    def __init__(
        self, endpoint: LibraryEndpoint, memory: Segments | None, value: int, mask: int, maximum: int, number: int
    ) -> None:
        super().__init__(endpoint, memory, value, mask, maximum)
        self.allocates = memory is None
        """True if its memory is still to be allocated, when the message arrives."""
        self.number = number

    @property
    def waiting(self) -> bool:
        """True until it has ended: only the agent knows whether it is matched."""
        return self.status is None

    def is_matched(self) -> bool:
        """Return whether it has taken a message, which may still be in transfer."""
        return self.status is not None or not _at_agent(self.endpoint).still_waits(self)

    def cancel(self) -> bool:
        """Cancel the receive; return False if it is matched already (R-MSC-02)."""
        if self.status is not None or not _at_agent(self.endpoint).cancels(self.number):
            return False
        self.fire(ReceiveEvent.CANCEL, Status.CANCELLED, 0)
        return True

    def close(self) -> None:
        """End the receive, since its endpoint closes."""
        if self.can(ReceiveEvent.CLOSE):
            self.fire(ReceiveEvent.CLOSE, Status.CANCELLED, 0)

    def ended(self, status: Status, transferred: int) -> None:
        """End the receive with the agent's status."""
        if self.can(ReceiveEvent.MESSAGE):
            self.fire(ReceiveEvent.MESSAGE, status, transferred)


class AttachedConnect(ConnectCall):
    """A connect that the agent carries out."""

    __slots__ = ("given_up", "request_number")

    def __init__(self, partner: Partner, key: int, match_info: int, number: int) -> None:
        super().__init__(partner, key, 0, match_info)
        self.request_number = number
        self.given_up = False
        """True if it has ended at the resend limit."""

    @property
    def exhausted(self) -> bool:
        """True if the limit of retransmissions was reached (R-RTX-03)."""
        return self.given_up

    def cancel(self) -> bool:
        """Cancel the connect; return False if it has been answered (R-MSC-02)."""
        if not self.can(ConnectEvent.CANCEL) or not _at_agent(self.endpoint).cancels(self.request_number):
            return False
        self.fire(ConnectEvent.CANCEL, Status.CANCELLED)
        return True

    def ended(self, status: Status, transferred: int) -> None:
        """End the connect with the agent's status."""
        if self.can(ConnectEvent.LOCAL):
            self.fire(ConnectEvent.LOCAL, status)


AttachedRequest = AttachedSend | AttachedReceive | AttachedConnect


class AttachedMatching(Matching[MessageTarget, Unexpected]):
    """The numbers of messages at the agent's endpoint, as last reported."""

    def __init__(self, profile: Profile, calls: HandlerCalls) -> None:
        super().__init__(profile, calls)
        self.kept = 0
        self.kept_bytes = 0
        self.offered_identity = 0

    @property
    def unexpected(self) -> int:
        """Number of unexpected messages."""
        return self.kept

    @property
    def unexpected_bytes(self) -> int:
        """Number of bytes buffered for unexpected messages."""
        return self.kept_bytes

    @property
    def identity(self) -> int:
        """The identity of the message for which the handler is being called, at the agent."""
        return self.offered_identity


class AttachedEndpoint(EngineEndpoint):
    """An endpoint whose card and library are in an agent."""

    def __init__(
        self,
        node: AttachedNode,
        card: CardEndpoint,
        key: int,
        handle: int,
        *,
        context_bits: int,
        context_shift: int,
        completions: bool,
        acked_sends: bool,
    ) -> None:
        super().__init__(
            node,
            card,
            key,
            context_bits=context_bits,
            context_shift=context_shift,
            completions=completions,
            acked_sends=acked_sends,
        )
        self.agent = node
        self.handle = handle
        self.reports = AttachedMatching(node.profile, node.handler_calls)
        self.matching = self.reports
        self.pending: dict[int, AttachedRequest] = {}
        """The requests that the agent has not ended, by number."""
        self._suspension = False
        """The suspension that the agent knows."""
        self._offer: Unexpected | None = None
        """The message for which the unexpected handler must be called."""
        self._calls = 0
        """Number of calls that may lead to packets that need an ack."""
        self._settled_calls = 0
        """Number of those that the agent has reported as acked."""
        self._flushing = False

    # Calls of an application.

    def connect(
        self,
        peer: Peer | bytes | str | SupportsIndex,
        number: SupportsIndex,
        key: SupportsIndex,
        *,
        match_info: SupportsIndex = 0,
        resend_maximum: SupportsIndex | None = None,
    ) -> ConnectCall:
        """Connect to endpoint ``number`` of a peer; see :meth:`EngineEndpoint.connect`."""
        self._must_be_open()
        number = checked_integer("endpoint number", number, _ENDPOINT)
        key = checked_integer("key", key, 0xFFFF_FFFF)
        match_info = checked_integer("match info", match_info, (1 << 64) - 1)
        partner = self._partner(self.agent.peer(peer), number)
        request_number = self.agent.next_number()
        request = AttachedConnect(partner, key, match_info, request_number)
        self.pending[request_number] = request
        self.agent.out.put(
            AgentRecord.CONNECT,
            handle=self.handle,
            number=request_number,
            partner=_place(partner),
            match_info=match_info,
            extra=key,
        )
        return request

    def send(
        self,
        partner: Partner,
        data: Any,
        match_info: SupportsIndex = 0,
        *,
        synchronous: bool = False,
        resend_maximum: SupportsIndex | None = None,
    ) -> Send:
        """Send a message; see :meth:`EngineEndpoint.send`."""
        self._must_be_open()
        self._must_own(partner)
        match_info = checked_integer("match info", match_info, (1 << 64) - 1)
        memory = Segments(data)
        length = memory.length
        if length > LENGTH_MAXIMUM:
            raise LocalProtocolError(Status.BAD_INFO_LENGTH, f"{length} bytes exceed the maximum length of a message")
        local = partner.peer.own is not None
        threshold = self.local_threshold(partner) if local else self.medium_threshold
        buffered = not synchronous and length <= threshold
        request = AttachedSend(partner, match_info, memory, synchronous=synchronous, buffered=buffered)
        number = self.agent.next_number()
        self.pending[number] = request
        self._calls += 1
        flags = RecordFlag.SYNCHRONOUS if synchronous else 0
        if self.partners.get((partner.peer.index, partner.number)) is not partner:
            # Its messages would go to a partner that has the same name since.
            del self.pending[number]
            request.dropped(Status.REMOTE_ENDPOINT_UNREACHABLE)
            return request
        out, places = self.agent.out, self.agent.describe(memory)
        if places:
            flags |= RecordFlag.IN_PLACE
        elif length <= INLINE_MAXIMUM:
            flags |= RecordFlag.DATA
        else:
            out.put_data(self.handle, number, memory, length)
        out.put(
            AgentRecord.SEND,
            flags=flags,
            handle=self.handle,
            number=number,
            partner=_place(partner),
            match_info=match_info,
            length=length,
            data=memory.copy() if length <= INLINE_MAXIMUM else places,
        )
        return request

    def receive(
        self,
        buffer: Any,
        match_info: SupportsIndex = 0,
        mask: SupportsIndex = (1 << 64) - 1,
        maximum: SupportsIndex = LENGTH_MAXIMUM,
    ) -> Receive:
        """Post a receive; see :meth:`EngineEndpoint.receive`."""
        self._must_be_open()
        match_info, mask = self._checked_match(match_info, mask)
        self._must_contain_context(mask)
        memory = None if buffer is None else Segments(buffer, writable=True)
        maximum = checked_integer("maximum", maximum, LENGTH_MAXIMUM)
        number = self.agent.next_number()
        request = AttachedReceive(self, memory, match_info, mask, maximum, number)
        self.pending[number] = request
        self._calls += 1
        places = b"" if memory is None else self.agent.describe(memory)
        self.agent.out.put(
            AgentRecord.RECEIVE,
            flags=RecordFlag.IN_PLACE if places else 0,
            handle=self.handle,
            number=number,
            match_info=match_info,
            mask=mask,
            length=maximum if memory is None else memory.length,
            data=places,
        )
        return request

    def claim(self, buffer: Any, identity: int) -> Receive | None:
        """Post a receive for one unexpected message; see :meth:`EngineEndpoint.claim`."""
        self._must_be_open()
        memory = Segments(buffer, writable=True)
        number = self.agent.next_number()
        request = AttachedReceive(self, memory, 0, 0, LENGTH_MAXIMUM, number)
        self.pending[number] = request
        posted = False
        try:
            answer, _ = self.agent.ask(
                AgentRecord.CLAIM, handle=self.handle, match_info=number, extra=identity, length=memory.length
            )
            posted = bool(answer.flags & RecordFlag.YES)
        finally:
            if not posted:
                del self.pending[number]
                request.forgotten = True
                request.close()
        return request if posted else None

    def probe(self, match_info: SupportsIndex = 0, mask: SupportsIndex = (1 << 64) - 1) -> Unexpected | None:
        """The unexpected message that a receive would take now, or None; see :meth:`EngineEndpoint.probe`."""
        self._must_be_open()
        match_info, mask = self._checked_match(match_info, mask)
        if not self.reports.kept:
            return None
        answer, _ = self.agent.ask(AgentRecord.PROBE, handle=self.handle, match_info=match_info, mask=mask)
        partner = self._partner_at(answer.partner) if answer.flags & RecordFlag.YES else None
        return None if partner is None else Unexpected(partner, answer.match_info, answer.length)

    def cancels(self, number: int) -> bool:
        """Return whether the agent has cancelled the request with a number."""
        if number not in self.pending:
            return False
        answer, _ = self.agent.ask(AgentRecord.CANCEL, handle=self.handle, extra=number)
        if not answer.flags & RecordFlag.YES:
            return False
        self.pending.pop(number, None)
        return True

    def still_waits(self, request: AttachedReceive) -> bool:
        """Return whether a receive waits for a message at the agent."""
        answer, _ = self.agent.ask(AgentRecord.WAITING, handle=self.handle, extra=request.number)
        return bool(answer.flags & RecordFlag.YES)

    def set_timeout(self, seconds: float | None, request: Request | None = None) -> None:
        """Set the time of retransmissions; see :meth:`EngineEndpoint.set_timeout`."""
        super().set_timeout(seconds, request)
        number = next((place for place, each in self.pending.items() if each is request), 0)
        if request is not None and not number:
            return
        self.agent.out.put(
            AgentRecord.TIMEOUT,
            flags=(RecordFlag.ONE_REQUEST if number else 0) | (RecordFlag.UNLIMITED if seconds is None else 0),
            handle=self.handle,
            extra=number,
            data=SECONDS.pack(0.0 if seconds is None else seconds),
        )

    def _decide_work(self) -> None:
        """Have the agent suspend or resume the library."""
        suspension = self.suspended or not (self.progressing or self.profile.progress_in_background)
        if suspension != self._suspension and self.open:
            self._suspension = suspension
            self.agent.out.put(AgentRecord.SUSPEND, flags=RecordFlag.YES if suspension else 0, handle=self.handle)

    def disconnect(self, partner: Partner) -> None:
        """Forget a partner; see :meth:`EngineEndpoint.disconnect`."""
        self._must_be_open()
        self._must_own(partner)
        self.agent.ask(AgentRecord.DISCONNECT, handle=self.handle, partner=_place(partner))
        super().disconnect(partner)

    def take_back(self, message: Unexpected, position: int) -> None:
        """Return a message that a receive had taken to the agent."""
        data = message.data or b""
        number = self.agent.next_number()
        inline = len(data) <= INLINE_MAXIMUM
        if not inline:
            self.agent.out.put_data(self.handle, number, Segments(data), len(data))
        self.agent.out.put(
            AgentRecord.RETURN,
            flags=RecordFlag.DATA if inline else 0,
            handle=self.handle,
            number=number,
            partner=_place(message.partner),
            match_info=message.match_info,
            length=message.length,
            extra=position,
            data=data if inline else b"",
        )

    def unacked(self) -> list[tuple[Partner, int]]:
        """The partners that have not acked all messages, each with the number of those."""
        _, data = self.agent.ask(AgentRecord.UNACKED, handle=self.handle)
        if len(data) % UNACKED_ROW.size:
            raise InvalidRecordError("rows of another length")
        rows = [(self._partner_at(place), count) for place, count in UNACKED_ROW.iter_unpack(data)]
        return [(partner, count) for partner, count in rows if partner is not None]

    def settled(self) -> bool:
        """Return whether the agent has reported that nothing is unacked since the last call that may need an ack."""
        if self._settled_calls == self._calls:
            return True
        if not self._flushing:
            self._flushing = True
            self.agent.out.put(AgentRecord.FLUSH, handle=self.handle, extra=self._calls)
        return False

    def close(self) -> None:
        """Close the endpoint; its requests end as cancelled. The agent does not use their memory any more."""
        if not self.open:
            return
        if not self.agent.ended:
            # Its messages that are not in the channel yet would delay the end.
            self.agent.out.drop(self.handle)
            # If the agent ends now, it does not use the memory either.
            with suppress(MxwireError):
                self.agent.ask(AgentRecord.CLOSE, handle=self.handle)
        self.agent.forget_endpoint(self)
        super().close()
        self.pending.clear()

    # The unexpected handler.

    def handle_unexpected(self, handler: Handler | None) -> None:
        """Set the unexpected handler; see :meth:`EngineEndpoint.handle_unexpected`."""
        super().handle_unexpected(handler)
        flags = 0 if handler is None else RecordFlag.YES
        self.agent.out.put(AgentRecord.HANDLE, flags=flags, handle=self.handle)

    def next_offer(self) -> Unexpected | None:
        """The message for which the caller must now call the unexpected handler, and then :meth:`resolve`."""
        self.agent.offering.pop(self, None)
        message, self._offer = self._offer, None
        if message is not None and self.matching.handler is None:
            self.resolve(message, consumed=False)
            return None
        return message

    def resolve(self, message: Unexpected, consumed: bool) -> None:
        """Pass the result of the unexpected handler to the agent."""
        if self.open and not self.agent.ended:
            self.agent.out.put(AgentRecord.RESOLVE, flags=RecordFlag.YES if consumed else 0, handle=self.handle)

    # Records of the agent.

    def take_record(self, head: AgentHead, data: bytes | memoryview) -> None:
        """Take a record that concerns this endpoint."""
        kind = head.kind
        if kind == AgentRecord.COMPLETED:
            self._complete(head, data)
        elif kind == AgentRecord.DATA:
            self._fill(head, data)
        elif kind == AgentRecord.UNEXPECTED:
            self.reports.kept, self.reports.kept_bytes = head.length, head.extra
        elif kind == AgentRecord.OFFER:
            partner = self._partner_at(head.partner)
            content = bytes(data) if head.flags & RecordFlag.DATA else None
            if partner is None:
                raise InvalidRecordError("a message of an unknown peer")
            self.reports.offered_identity = head.extra
            self._offer = Unexpected(partner, head.match_info, head.length, data=content)
            self.agent.offering[self] = None
        elif kind == AgentRecord.FLUSHED:
            self._flushing = False
            self._settled_calls = max(self._settled_calls, min(head.extra, self._calls))
        elif kind == AgentRecord.TRANSMITTED:
            request = self.pending.get(head.number)
            if isinstance(request, AttachedConnect):
                request.transmissions = head.extra
        elif kind == AgentRecord.LOST:
            partner = None if head.partner == NO_PARTNER else self._partner_at(head.partner)
            self.report_lost(partner, head.match_info, head.length, head.status)
        elif kind == AgentRecord.EVENT:
            if head.extra >= len(FORWARDED_EVENTS):
                raise InvalidRecordError("an unknown event")
            partner, event = self._partner_at(head.partner), FORWARDED_EVENTS[head.extra]
            if partner is not None and event is not EventKind.PARTNER_CONNECTED:
                partner.epoch += 1
            self.report(event, partner=partner)
        else:
            raise InvalidRecordError("an unknown kind of record")

    def _complete(self, head: AgentHead, data: bytes | memoryview) -> None:
        request = self.pending.pop(head.number, None)
        if request is None:
            # It was cancelled, or its endpoint closes.
            return
        if head.length > LENGTH_MAXIMUM or head.extra > head.length:
            raise InvalidRecordError("a message that is too long")
        if isinstance(request, AttachedReceive):
            if head.partner != NO_PARTNER:
                request.partner = self._partner_at(head.partner)
                request.match_info, request.length, request.position = head.match_info, head.length, head.mask
            if head.flags & RecordFlag.STARVED:
                request.buffer = bytearray()
            elif head.flags & RecordFlag.DATA and head.status in _SUCCEEDED:
                self._store(request, 0, data, len(data))
        elif isinstance(request, AttachedConnect):
            request.given_up = bool(head.flags & RecordFlag.EXHAUSTED)
        request.ended(head.status, head.extra)

    def _fill(self, head: AgentHead, data: bytes | memoryview) -> None:
        request = self.pending.get(head.number)
        if isinstance(request, AttachedReceive):
            if head.length > LENGTH_MAXIMUM or head.extra + len(data) > head.length:
                raise InvalidRecordError("data outside of its message")
            self._store(request, head.extra, data, head.length)

    def _store(self, request: AttachedReceive, offset: int, data: bytes | memoryview, total: int) -> None:
        if request.allocates:
            request.allocates = False
            try:
                request.buffer = bytearray(total)
            except MemoryError:
                request.buffer = bytearray()
            request.memory = Segments(request.buffer, writable=True)
        request.memory.put(offset, data)

    def abandon(self, status: Status) -> None:
        """End all requests, since the agent has ended."""
        pending, self.pending = self.pending, {}
        for request in pending.values():
            request.ended(status, 0)

    def _partner_at(self, place: int) -> Partner | None:
        peer = self.agent.peers.entries.get(place >> 8)
        return None if peer is None else self.partner(peer, place & _ENDPOINT)

    def _must_contain_context(self, mask: int) -> None:
        if self._context_mask and self._context_mask & ~mask:
            raise LocalProtocolError(
                Status.BAD_MATCHING_FOR_CONTEXT_ID_MASK, f"mask {mask:#x} does not contain the context id"
            )


def _at_agent(endpoint: LibraryEndpoint) -> AttachedEndpoint:
    assert isinstance(endpoint, AttachedEndpoint)
    return endpoint


def _place(partner: Partner) -> int:
    return partner.peer.index << 8 | partner.number


class AgentIndexes:
    """The indexes of peers, which the agent chooses: the :class:`~mxwire.protocol.peers.Sharing` of a node that is
    attached to it."""

    def __init__(self) -> None:
        self.indexes: dict[bytes, int] = {}

    def place_of(self, address: bytes) -> int | None:
        """The index that the agent has reported."""
        return self.indexes.get(address)

    def leave(self, address: bytes) -> None:
        """Forget a peer."""
        self.indexes.pop(address, None)

    def index_of(self, address: bytes) -> int | None:
        """None: all peers of the agent are in the table of the node."""
        return None

    def address_at(self, index: int) -> bytes | None:
        """None: all peers of the agent are in the table of the node."""
        return None

    def news(self) -> Sequence[bytes]:
        """No addresses: the agent reports new peers."""
        return ()

    def name_of(self, address: bytes) -> str | None:
        """None: the agent reports the names."""
        return None

    def learn(self, address: bytes, name: str | None) -> None:
        """Do nothing: the agent learns the names."""

    def may_query(self, interface: int, address: bytes, now: int, interval: int) -> bool:
        """False: the agent queries."""
        return False

    def elsewhere(self, interface: int, endpoint: int) -> bool:
        """False: no frame arrives here."""
        return False

    def speaks(self, interface: int) -> bool:
        """False: the agent answers for the interface."""
        return False


def _ignore_end(_: AgentEndedError) -> None:
    """Do nothing: there is no host yet."""


class AttachedNode(Node):
    """A node whose endpoints are at an agent, behind ``channel``.

    ``wait`` returns when the channel has records or has ended, and raises an error if the agent does not answer;
    ``agent`` names the agent in errors.
    Raises :class:`~mxwire.protocol.status.LocalProtocolError` if the agent refuses, for example because its version is
    another one.
    """

    def __init__(self, channel: LocalChannel, wait: Callable[[], None], agent: str) -> None:
        self.ended = False
        """True if the agent has ended, or the host has left it."""
        self.channel = channel
        self.out = RecordOutbox(channel)
        """Records for the agent."""
        self.wait = wait
        self.on_end: Callable[[AgentEndedError], object] = _ignore_end
        """Called before a question raises the error, so that the host ends with it."""
        self.agent = agent
        self._shared: list[tuple[int, int]] = []
        """Address and length of memory that the agent has mapped too."""
        self.in_place = False
        """True if the agent can access the memory of this process."""
        self._numbers = 0
        self._answers: dict[int, tuple[AgentHead, bytes]] = {}
        self._early: list[tuple[AgentHead, bytes]] = []
        """Peers that were reported before the node was complete, and records of endpoints that are being opened."""
        self._attached: dict[int, AttachedEndpoint] = {}
        """The open endpoints by handle."""
        self._handle = 0
        self._news = False
        """True if records were taken outside of :meth:`receive_local`, whose effects the caller has not seen."""
        self._complete = False
        self._indexes = AgentIndexes()
        self.facts = self._attach_to_agent()
        facts = self.facts
        for head, _ in self._early:
            self._indexes.indexes[_address(head)] = head.number
        super().__init__(
            facts.addresses,
            facts.name,
            dialect=facts.dialect,
            profile=facts.profile,
            rng=Random(0),
            sharing=self._indexes,
            report_completed=False,
        )
        self._complete = True
        for head, data in self._early:
            self._take_peer(head, data)
        self._early.clear()

    def _attach_to_agent(self) -> AgentFacts:
        number = self.next_number()
        self.out.put(AgentRecord.ATTACH, number=AGENT_VERSION)
        # The number of this record is the version, which the answer repeats.
        assert number == AGENT_VERSION
        answer, data = self._answer_to(number)
        self.in_place = bool(answer.flags & RecordFlag.IN_PLACE)
        return AgentFacts(data)

    def describe(self, memory: Segments) -> bytes:
        """Addresses and lengths of the segments of a long message, for the agent; empty if it cannot access them."""
        if memory.length <= INLINE_MAXIMUM or not (self.in_place or self._shared):
            return b""
        places = [each for each in memory.places() if each[1]]
        if not self.in_place and not (len(places) == 1 and self._is_shared(*places[0])):
            return b""
        return b"".join(PLACE.pack(*each) for each in places)

    def _is_shared(self, place: int, size: int) -> bool:
        return any(start <= place and place + size <= start + length for start, length in self._shared)

    def share(self, place: int, length: int) -> bool:
        """Announce memory at an address, whose descriptor the caller has passed to the agent; return False if the agent
        does not map it, since it has mapped too many areas."""
        # Without waiting, more descriptors could be passed than the agent keeps until it takes their records.
        answer, _ = self.ask(AgentRecord.SHARE, extra=place, length=length)
        mapped = bool(answer.flags & RecordFlag.YES)
        if mapped:
            self._shared.append((place, length))
        return mapped

    # Records.

    def next_number(self) -> int:
        """A number for a request or a question."""
        self._numbers += 1
        return self._numbers

    def ask(self, kind: AgentRecord, **fields: Any) -> tuple[AgentHead, bytes]:
        """Ask the agent, and wait for its answer.

        Raises :class:`~mxwire.protocol.status.LocalProtocolError` if it refuses, and
        :class:`~mxwire.protocol.agent_records.AgentEndedError` or the error of ``wait`` if it has ended.
        """
        number = self.next_number()
        self.out.put(kind, number=number, **fields)
        return self._answer_to(number)

    def _answer_to(self, number: int) -> tuple[AgentHead, bytes]:
        while number not in self._answers:
            try:
                self._must_not_have_ended()
            except AgentEndedError as error:
                self.on_end(error)
                raise
            self.wait()
            self._take_all()
            self._news = True
        head, data = self._answers.pop(number)
        if head.kind == AgentRecord.REFUSED:
            raise AgentRefusalError(head.status, data.decode("utf-8", "replace"))
        return head, data

    def receive_local(self, channels: Sequence[LocalChannel], now: int) -> None:
        """Take the records of the agent.

        Raises :class:`~mxwire.protocol.agent_records.AgentEndedError` if the agent has ended.
        """
        self._take_all()
        self._must_not_have_ended()

    def _must_not_have_ended(self) -> None:
        if self.ended:
            raise AgentEndedError(
                f"endpoint closed: {self.agent} has ended; open the host again to attach to another agent"
            )

    def _take_all(self) -> None:
        channel = self.channel
        try:
            for _ in range(_RECORDS):
                record = channel.peek()
                if record is None:
                    break
                self._take(record)
                channel.advance()
            else:
                return
            channel.settle()
        except InvalidRecordError:
            channel.ended = True
        self.out.flush()
        if channel.ended:
            self.leave()

    def _take(self, record: bytes | memoryview) -> None:
        head = AgentHead(record)
        data = record[AGENT_HEAD_SIZE:]
        if head.kind in (AgentRecord.ANSWER, AgentRecord.REFUSED):
            self._answers[head.number] = head, bytes(data)
        elif head.kind == AgentRecord.PEER:
            if head.number >= NO_PEER_INDEX or head.partner >> 48:
                raise InvalidRecordError("an impossible peer")
            if self._complete:
                self._take_peer(head, data)
            else:
                self._early.append((head, bytes(data)))
        else:
            endpoint = self._attached.get(head.handle)
            if endpoint is not None:
                endpoint.take_record(head, data)
            elif head.handle > self._handle:
                # Its endpoint is being opened.
                self._early.append((head, bytes(data)))

    def _take_peer(self, head: AgentHead, data: bytes | memoryview) -> None:
        address, index = _address(head), head.number
        before = self.peers.entries.get(index)
        if before is not None and before.address != address:
            self.peers.withdraw(before)
        self._indexes.indexes[address] = index
        peer = self.peers.by_address(address)
        if peer is None:
            peer = self.peers.enter(address)
            if peer is None:
                return
            self.report(EventKind.PEER_FOUND, peer=peer)
        name = bytes(data).decode("utf-8", "replace") or None
        if name != peer.name:
            peer.name = name
            if name is not None:
                self.report(EventKind.PEER_NAMED, peer=peer)
        peer.heard = bool(head.flags & RecordFlag.HEARD)
        if peer.own is None and head.extra < NO_PEER_INDEX:
            peer.reverse[0] = head.extra

    def leave(self) -> None:
        """End all requests and the channel, since the agent has ended, or is left."""
        if self.ended:
            return
        self.ended = True
        for endpoint in list(self._attached.values()):
            endpoint.abandon(Status.REMOTE_ENDPOINT_CLOSED)
        self.channel.close()

    # Calls of hosts.

    def open_endpoint(
        self,
        number: SupportsIndex,
        key: SupportsIndex = 0,
        *,
        interface: int = 0,
        session: SupportsIndex | None = None,
        context_bits: SupportsIndex = 0,
        context_shift: SupportsIndex = 0,
        completions: bool = False,
        acked_sends: bool = False,
    ) -> EngineEndpoint:
        """Open an endpoint at the agent; see :meth:`Node.open_endpoint`. With the number ``ANY_ENDPOINT`` the agent
        chooses a free one."""
        board = self._board(interface)
        number = checked_integer("endpoint number", number, ANY_ENDPOINT, Status.BAD_ENDPOINT)
        if number in board.endpoints:
            raise LocalProtocolError(Status.BUSY, f"endpoint {number} of {board.name} is open already")
        key = checked_integer("key", key, 0xFFFF_FFFF)
        bits = checked_integer("context bits", context_bits, 64, Status.BAD_PARAMETER_VALUE)
        shift = checked_integer("context shift", context_shift, 64, Status.BAD_PARAMETER_VALUE)
        own = NO_PARTNER if session is None else checked_integer("session", session, NO_PARTNER - 1)
        answer, _ = self.ask(
            AgentRecord.OPEN,
            extra=number,
            data=OPEN_OPTIONS.pack(key, interface, own, bits, shift, int(acked_sends), 0),
        )
        self._handle = answer.handle
        return super().open_endpoint(
            answer.extra,
            key,
            interface=interface,
            session=answer.length,
            context_bits=bits,
            context_shift=shift,
            completions=completions,
            acked_sends=acked_sends,
        )

    def make_endpoint(
        self, card: CardEndpoint, key: int, context_bits: int, context_shift: int, completions: bool, acked_sends: bool
    ) -> EngineEndpoint:
        """The endpoint with the card's side ``card``, whose handle the agent has just answered."""
        made = AttachedEndpoint(
            self,
            card,
            key,
            self._handle,
            context_bits=context_bits,
            context_shift=context_shift,
            completions=completions,
            acked_sends=acked_sends,
        )
        self._attached[self._handle] = made
        early, self._early = self._early, []
        for head, data in early:
            if head.handle == self._handle:
                made.take_record(head, data)
        return made

    def forget_endpoint(self, endpoint: AttachedEndpoint) -> None:
        """Take no more records for an endpoint."""
        self._attached.pop(endpoint.handle, None)

    def add_peer(self, address: bytes, name: str | None = None) -> Peer:
        """Add a peer to the agent's table; see :meth:`Node.add_peer`."""
        address = ethernet_address(address)
        known = self.peers.entries.get(self._indexes.indexes.get(address, NO_PEER_INDEX))
        if known is not None and (name is None or known.name == name):
            return known
        self.ask(
            AgentRecord.ADD_PEER, partner=int.from_bytes(address, "big"), data=(name or "").encode("utf-8", "replace")
        )
        # The agent has reported the peer before the answer.
        return self.peers.add(address)

    def discover_peer(self, address: bytes) -> Peer | None:
        """The peer at an address, if the agent has it."""
        return self.peers.by_address(address)

    def ask_names(self) -> None:
        """Have the agent query all nameless peers again."""
        self.out.put(AgentRecord.NAMES)

    def forget_names(self) -> None:
        """Have the agent forget all host names, and query them again."""
        self.out.put(AgentRecord.NAMES, flags=RecordFlag.YES)

    # Frames and time: the node has neither.

    def transmit_few(
        self, now: int, interface: int = 0, timely: bool = True, limit: int = FEW
    ) -> list[bytes] | FrameBatch:
        """Return no frames."""
        self._news = False
        return _NO_FRAMES

    def eager(self) -> bool:
        """Return whether a handler waits for its call, or the caller has not seen all that has changed."""
        return self._news or len(self.offering) > 0

    def busy(self) -> bool:
        """Return whether the caller has not seen all that has changed."""
        return self._news

    def deadline(self) -> int | None:
        """0 if the caller has not seen all that has changed; None otherwise."""
        return 0 if self._news or self.offering else None


def _address(head: AgentHead) -> bytes:
    return head.partner.to_bytes(8, "big")[2:]
