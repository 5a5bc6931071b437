"""An endpoint of an application whose card and library are in an agent: it passes all calls to the agent.

Requests end by records. A call whose result the application needs at once (a probe, a cancellation) waits for the
agent's answer. ``served_endpoint.py`` is the other side.
"""

from __future__ import annotations

from typing import Any, SupportsIndex

from mxwire.errors import InvalidRecordError
from mxwire.protocol.agent.node import AgentNode
from mxwire.protocol.agent.records import (
    FORWARDED_EVENTS,
    NO_PARTNER,
    SECONDS,
    UNACKED_ROW,
    AgentHead,
    AgentRecord,
    RecordFlag,
    partner_number,
    split_partner,
)
from mxwire.protocol.arguments import Segments, checked_integer
from mxwire.protocol.card.endpoint import CardEndpoint
from mxwire.protocol.library.connect import ConnectCall, ConnectEvent
from mxwire.protocol.library.endpoint import (
    ENDPOINT_NUMBER_MAXIMUM,
    KEY_MAXIMUM,
    LENGTH_MAXIMUM,
    EndpointSetup,
    EngineEndpoint,
    Handler,
    Send,
)
from mxwire.protocol.library.inbound import Unexpected
from mxwire.protocol.library.local_send import LocalEvent, LocalSend
from mxwire.protocol.library.matching import ALL_BITS, HandlerCalls, Matching
from mxwire.protocol.library.partner import LibraryEndpoint, MessageTarget, Partner, Request
from mxwire.protocol.library.receive import Receive, ReceiveEvent
from mxwire.protocol.peers import Peer
from mxwire.protocol.profile import Profile
from mxwire.protocol.status import SUCCEEDED, EventKind, LocalProtocolError, Status


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

    def close(self, status: Status = Status.CANCELLED) -> None:
        """End the receive, since its endpoint closes."""
        if self.can(ReceiveEvent.CLOSE):
            self.fire(ReceiveEvent.CLOSE, status, 0)

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

    def __init__(self, node: AgentNode, card: CardEndpoint, setup: EndpointSetup, handle: int) -> None:
        super().__init__(node, card, setup)
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
        number = checked_integer("endpoint number", number, ENDPOINT_NUMBER_MAXIMUM)
        key = checked_integer("key", key, KEY_MAXIMUM)
        match_info = checked_integer("match info", match_info, ALL_BITS)
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
        match_info = checked_integer("match info", match_info, ALL_BITS)
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
        place, kind = _place(partner), AgentRecord.SEND
        self.agent.put_message(
            kind, memory, length, flags=flags, handle=self.handle, number=number, partner=place, match_info=match_info
        )
        return request

    def receive(
        self,
        buffer: Any,
        match_info: SupportsIndex = 0,
        mask: SupportsIndex = ALL_BITS,
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
        # Before the question, because the message may arrive before its answer.
        self.pending[number] = request
        posted = False
        try:
            posted = self.agent.confirms(
                AgentRecord.CLAIM, handle=self.handle, match_info=number, extra=identity, length=memory.length
            )
        finally:
            if not posted:
                del self.pending[number]
                request.forgotten = True
                request.close()
        return request if posted else None

    def probe(self, match_info: SupportsIndex = 0, mask: SupportsIndex = ALL_BITS) -> Unexpected | None:
        """The unexpected message that a receive would take now, or None; see :meth:`EngineEndpoint.probe`."""
        self._must_be_open()
        match_info, mask = self._checked_match(match_info, mask)
        # Saves the round trip to the agent while no message waits there.
        if not self.reports.kept:
            return None
        answer, _ = self.agent.ask(AgentRecord.PROBE, handle=self.handle, match_info=match_info, mask=mask)
        partner = self._partner_at(answer.partner) if answer.flags & RecordFlag.YES else None
        return None if partner is None else Unexpected(partner, answer.match_info, answer.length)

    def cancels(self, number: int) -> bool:
        """Return whether the agent has cancelled the request with a number."""
        if number not in self.pending:
            return False
        if not self.agent.confirms(AgentRecord.CANCEL, handle=self.handle, extra=number):
            return False
        self.pending.pop(number, None)
        return True

    def still_waits(self, request: AttachedReceive) -> bool:
        """Return whether a receive waits for a message at the agent."""
        return self.agent.confirms(AgentRecord.WAITING, handle=self.handle, extra=request.number)

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
        self.agent.put_message(
            AgentRecord.RETURN,
            Segments(message.data or b""),
            message.length,
            handle=self.handle,
            number=self.agent.next_number(),
            partner=_place(message.partner),
            match_info=message.match_info,
            extra=position,
            kept=False,
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
        # Before the requests end, because their memory may be reused from then on.
        self.agent.close_side(self.handle)
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
                # Callers that wait for this partner compare epochs to notice its reset.
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
            elif head.flags & RecordFlag.DATA and head.status in SUCCEEDED:
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
        index, number = split_partner(place)
        peer = self.agent.peers.entries.get(index)
        return None if peer is None else self.partner(peer, number)


def _at_agent(endpoint: LibraryEndpoint) -> AttachedEndpoint:
    assert isinstance(endpoint, AttachedEndpoint)
    return endpoint


def _place(partner: Partner) -> int:
    return partner_number(partner.peer.index, partner.number)
