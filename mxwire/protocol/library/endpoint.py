"""The library's side of an endpoint, and the calls of an application (behaviour, sections 1 and 4).

Theory of operation
===================

An endpoint is two machines. The *card* (``protocol/card/``) checks frames, answers PULLs, runs pulls and sends nacks at
any time. The *library* (this folder) connects endpoints, numbers and matches messages, acks and retransmits packets,
and runs only while the application allows progress (R-GEN-01). Between them is a ring of events (``corridor.py``), from
the card to the library. The library works in *passes* (:meth:`EngineEndpoint.progress`): the node makes a pass when the
ring has events, or when a frame or a timer is due. Calls of the application only enqueue; nothing is transmitted before
the next pass, so that one piggyback can settle the acks owed for several packets.

One verb per layer: an application *sends* or *receives*, which posts a request; the library *enqueues* a packet and
*assigns* it a number; the packet *emits* its frames to the port; the link *sends* what the node hands out.

Life of a message
-----------------

1. ``EngineEndpoint.send`` checks the arguments and chooses the packet: up to 32 bytes TINY, up to 128 SMALL, up to
   32 KiB MEDIUM, above that, or if synchronous, RNDV (``outbound.py``). It returns a request, and the packet waits as a
   ``Delivery`` in the queue of its partner (``Partner.enqueue``). Without a session the request ends here.
2. The node's ``transmit`` makes a pass. ``Partner.assign`` gives the packet the next sequence number, if fewer than
   8191 are unacked, the partner is connected in both directions, and a RNDV has a region.
3. The delivery changes from *waiting* to *unacked* (``reliability.py``): its packet emits the frames to the port
   (``card/outgoing.py``) with the current piggyback, and enters the queue of retransmissions.
4. A buffered request is now complete (R-SND-06). The application may reuse its memory: the packet holds a copy.
5. The node hands the frames to the link as a batch; payloads of MEDIUMs are copied only now.
6. Every 500 ms without an ack the packet is emitted again, with a new piggyback. After the limit the partner is
   abandoned (``Partner.abandon``), and all unfinished operations with it end as unreachable.
7. The partner's ack, piggybacked or by liback, ends the delivery (``Partner.acknowledge``). A nack ends it as lost: the
   failure of a buffered send is reported to the application by an *undelivered* event.
8. A large send continues: the partner's card pulls the region from this card, without the library of either side. The
   partner's NOTIFY ends the request, with the number of bytes pulled.

Life of a received frame
------------------------

1. The link hands a batch to ``Node.receive``. ``card/bulk.py`` splits it into runs: single frames are parsed one by
   one, runs of bulk packets by columns.
2. The card checks EtherType, destination, format, then source, endpoint and session (``HostInterface.take``). A frame
   that fails is counted and dropped, and for some failures a nack is emitted (R-NAK-01).
3. Packets of the card end here: a PULL queues its replies, a PULL_REPLY is copied into the receive's memory, a
   HOST_QUERY is answered. All others enter the endpoint's ring; if it is full, they are dropped.
4. The node makes a pass. Connect packets, libacks and nacks are handled at once, by type; numbered packets by their
   partner's ``Window``. A packet from an unknown partner is dropped.
5. The window (``inbound.py``) drops packets of another session number, processes the piggyback, and compares the
   number: next, a further fragment, early (kept), or a duplicate (dropped; the newest one hurries the ack).
6. The next packet in sequence is matched with the posted receives (``matching.py``). Its data is copied into the
   receive's memory, or it is kept as an unexpected message, unless the consumer or the unexpected handler takes it.
7. TINY and SMALL complete their receive at once, a MEDIUM with its last fragment. A RNDV starts a pull at the end of
   the pass; the card's event of its end makes the library enqueue a NOTIFY, whose transmission completes the receive.
8. ``rx_done`` advances, and an ack is owed: by the next piggyback, at the end of the pass, or after a short delay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil
from typing import TYPE_CHECKING, Any, Final, NamedTuple, SupportsIndex, TypedDict

from mxwire.protocol.arguments import Segments, checked_integer
from mxwire.protocol.card.endpoint import CardEndpoint
from mxwire.protocol.corridor import LocalMessage
from mxwire.protocol.library.completions import CompletionQueue
from mxwire.protocol.library.connect import ConnectCall
from mxwire.protocol.library.inbound import Unexpected
from mxwire.protocol.library.local_send import LocalSend
from mxwire.protocol.library.matching import ALL_BITS
from mxwire.protocol.library.outbound import (
    AckedSend,
    BufferedSend,
    EagerDelivery,
    LargeSend,
    MediumDelivery,
    RndvPacket,
    fragment_length,
    fragment_pipeline,
)
from mxwire.protocol.library.partner import MessageTarget, Partner, Request
from mxwire.protocol.library.progress import ProgressEndpoint
from mxwire.protocol.library.receive import Receive, enqueue_notify
from mxwire.protocol.library.reliability import AckEvent, AckState, Delivery, DeliveryEvent
from mxwire.protocol.peers import Peer
from mxwire.protocol.status import ArgumentTypeError, LocalProtocolError, Status
from mxwire.units import SECOND
from mxwire.wire.numbers import SMALL_MAXIMUM

if TYPE_CHECKING:
    from mxwire.protocol.node import Node

LENGTH_MAXIMUM: Final = (1 << 32) - 1
"""Maximum length of a message in bytes (wire format, section 7)."""
CONTEXT_BITS_MAXIMUM: Final = 16
KEY_MAXIMUM: Final = 0xFFFF_FFFF
ENDPOINT_NUMBER_MAXIMUM: Final = 0xFF
RESEND_MAXIMUM: Final = 0xFFFF_FFFF
"""Maximum value of a limit of retransmissions: 68 years, at 500 ms each."""

Handler = Callable[[Unexpected], object]
"""An application's unexpected handler: a true result consumes the message (R-MAT-06)."""

Send = BufferedSend | LargeSend | LocalSend
"""The request of a send; ``buffered`` is true if it holds a copy of the data."""


class EndpointOptions(TypedDict, total=False):
    """Options of ``open_endpoint``, each of which may be omitted."""

    session: SupportsIndex | None
    """The session; None, the default: a random one."""
    context_bits: SupportsIndex
    """Number of bits of the match information, 0 (the default) to 16, that the mask of each receive must contain."""
    context_shift: SupportsIndex
    """The lowest of these bits, by default 0."""
    completions: bool
    """True to enter requests that have ended into a queue, from which the application takes them; by default False."""
    acked_sends: bool
    """True to end a send of up to 32 KiB when it is acked; False, the default: when it is transmitted."""


class EndpointSetup(NamedTuple):
    """The key and the options of an endpoint, checked."""

    key: int
    context_bits: int
    context_shift: int
    completions: bool
    acked_sends: bool


class EngineEndpoint(ProgressEndpoint):
    """One open endpoint. Calls take effect at once, but frames are transmitted by the node's next ``transmit``."""

    def __init__(self, node: Node, card: CardEndpoint, setup: EndpointSetup) -> None:
        super().__init__(card, setup.key, node)
        self.node = node
        self.open = True
        self._progressing = True
        self._suspended = False
        self._handling = False
        self.answers_later = False
        """True if the unexpected handler only passes the message on, and :meth:`resolve` is called later."""
        if setup.completions:
            self.completions = CompletionQueue()
        self._acked_sends = setup.acked_sends
        self.neighbourhood = node.neighbourhood
        self._context_mask = ((1 << setup.context_bits) - 1) << setup.context_shift
        dialect, profile = card.dialect, card.profile
        self._pipeline = fragment_pipeline(profile, dialect)
        self._fragment = fragment_length(profile, dialect)
        """Bytes of a full MEDIUM fragment (R-SND-03)."""

    def __repr__(self) -> str:
        """Show interface, number and session, for debugging."""
        return f"<Endpoint {self.card.port.name}/{self.number} session={self.session:#010x}>"

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
        """Connect to endpoint ``number`` of a peer, given as a Peer, by address, host name or index (R-CON-01).

        ``match_info`` is not transmitted: it selects the request in the queue of completed requests. Messages sent to
        its ``partner`` before the request has succeeded are transmitted when it succeeds. Raises
        :class:`~mxwire.protocol.status.LocalProtocolError` for a peer that is not in the table.
        """
        self._must_be_open()
        number = checked_integer("endpoint number", number, ENDPOINT_NUMBER_MAXIMUM)
        key = checked_integer("key", key, KEY_MAXIMUM)
        match_info = checked_integer("match info", match_info, ALL_BITS)
        maximum = self._resends(resend_maximum)
        request = ConnectCall(self._partner(self.node.peer(peer), number), key, maximum, match_info)
        self.connecting.append(request)
        return request

    def own_partner(self) -> Partner:
        """The endpoint itself as a partner, to which it is always connected (R-LOC-01)."""
        self._must_be_open()
        partner = self._partner(self.node.peer(self.card.port.address), self.number)
        partner.fwd = partner.rev = self.session
        return partner

    def send(
        self,
        partner: Partner,
        data: Any,
        match_info: SupportsIndex = 0,
        *,
        synchronous: bool = False,
        resend_maximum: SupportsIndex | None = None,
    ) -> Send:
        """Send a message from any buffer, or a sequence of up to 256 buffers (R-SND-01).

        A synchronous send is complete only when its receiver has matched it. The memory of a large or synchronous send
        must not change until the request is done; other memory may be reused at once.
        Raises :class:`~mxwire.protocol.status.LocalProtocolError` for wrong arguments.
        """
        self._must_be_open()
        self._must_own(partner)
        # As in _checked_match, the usual argument passes without a call.
        if type(match_info) is not int or match_info >> 64:
            match_info = checked_integer("match info", match_info, ALL_BITS)
        maximum = self.resend_maximum if resend_maximum is None else self._resends(resend_maximum)
        local = partner.peer.own is not None
        if not (synchronous or local):
            # Usual messages pass without an object for their memory.
            if type(data) is bytes and (len(data) <= SMALL_MAXIMUM or len(data) <= self.medium_threshold):
                return self._send_buffered(partner, data, match_info, maximum)
            if type(data) is bytearray and len(data) <= self.medium_threshold:
                return self._send_buffered(partner, bytes(data), match_info, maximum)
        memory = data if isinstance(data, Segments) else Segments(data)
        if memory.length > LENGTH_MAXIMUM:
            raise LocalProtocolError(
                Status.BAD_INFO_LENGTH, f"{memory.length} bytes exceed the maximum length of a message"
            )
        if local:
            request = LocalSend(partner, match_info, memory, synchronous=synchronous)
            self.local_sends.append(request)
            return request
        if not synchronous and memory.length <= self.medium_threshold:
            return self._send_buffered(partner, memory.copy(), match_info, maximum)
        packet = RndvPacket(match_info, memory)
        announced = LargeSend(self, partner, packet)
        return self._enqueue(partner, Delivery(partner, packet, announced, maximum), announced)

    def receive(
        self,
        buffer: Any,
        match_info: SupportsIndex = 0,
        mask: SupportsIndex = ALL_BITS,
        maximum: SupportsIndex = LENGTH_MAXIMUM,
    ) -> Receive:
        """Post a receive into any writable buffer, or a sequence of up to 256 buffers (R-MAT-01).

        With ``buffer`` None, memory of the message's length, at most ``maximum`` bytes, is allocated at the match, and
        becomes the ``buffer`` of the request. The receive takes the first message whose match information, masked,
        equals ``match_info``. Raises :class:`~mxwire.protocol.status.LocalProtocolError` for bits outside of the mask,
        or a mask without the context id (R-MAT-04).
        """
        self._must_be_open()
        match_info, mask = self._checked_match(match_info, mask)
        if self._context_mask:
            self._must_contain_context(mask)
        memory = buffer if buffer is None or isinstance(buffer, Segments) else Segments(buffer, writable=True)
        if type(maximum) is not int or not 0 <= maximum <= LENGTH_MAXIMUM:
            maximum = checked_integer("maximum", maximum, LENGTH_MAXIMUM)
        request = Receive(self, memory, match_info, mask, maximum)
        message = self.matching.take(match_info, mask)
        if message is None:
            request.posting = self.matching.post(request, match_info, mask)
        else:
            request.take_unexpected(message)
        return request

    def _must_contain_context(self, mask: int) -> None:
        if self._context_mask & ~mask:
            raise LocalProtocolError(
                Status.BAD_MATCHING_FOR_CONTEXT_ID_MASK, f"mask {mask:#x} does not contain the context id"
            )

    def claim(self, buffer: Any, identity: int) -> Receive | None:
        """Post a receive for one unexpected message, whatever others match; None if it is there no longer.

        Its ``identity`` is that of ``matching`` while the unexpected handler is called with it. The handler may claim
        the message, too, which then counts as not consumed.
        """
        self._must_be_open()
        matching = self.matching
        message = matching.find(identity)
        if message is None or (message is matching.handling and matching.claimant is not None):
            return None
        request = Receive(self, Segments(buffer, writable=True), message.match_info, ALL_BITS, LENGTH_MAXIMUM)
        if matching.claim(request, message):
            request.take_unexpected(message)
        return request

    def probe(self, match_info: SupportsIndex = 0, mask: SupportsIndex = ALL_BITS) -> Unexpected | None:
        """The unexpected message that a receive would take now, or None; it is not removed.

        The mask need not contain the context id: without it, messages of all contexts are considered.
        """
        self._must_be_open()
        match_info, mask = self._checked_match(match_info, mask)
        return self.matching.probe(match_info, mask)

    def cancel(self, request: Request) -> bool:
        """Cancel a receive that is not matched, or a connect that is not answered (R-MSC-02).

        Return False if the request was matched or answered before. A cancelled request does not enter the queue of
        completed requests. Raises :class:`~mxwire.protocol.status.LocalProtocolError` for a send, and for a request of
        another endpoint.
        """
        self._must_be_request(request)
        if not isinstance(request, (Receive, ConnectCall)):
            raise LocalProtocolError(Status.BAD_REQUEST, "a send cannot be cancelled")
        cancelled = request.cancel()
        if cancelled:
            self.forget(request)
        return cancelled

    def forget(self, request: Request) -> None:
        """Ignore the end of a request: it does not enter the queue of completed requests, or is removed from it.

        Call this also after taking the result of a request.
        """
        self._must_be_request(request)
        request.forgotten = True
        if self.completions is not None:
            self.completions.remove(request)

    def completed(self, match_info: SupportsIndex = 0, mask: SupportsIndex = 0) -> Request | None:
        """The first completed request whose match information, masked, equals ``match_info``, or None.

        The request stays in the queue until :meth:`forget`. Requests of all kinds are considered, and contexts as in
        :meth:`probe`. Raises :class:`~mxwire.protocol.status.LocalProtocolError` for an endpoint that was opened
        without the queue.
        """
        self._must_be_open()
        match_info, mask = self._checked_match(match_info, mask)
        if self.completions is None:
            raise LocalProtocolError(
                Status.BAD_REQUEST, f"endpoint {self.number} keeps no completed requests: open it with completions=True"
            )
        return self.completions.first(match_info, mask)

    def is_buffered(self, request: Request) -> bool:
        """Return whether the data of a send was copied at the call, so that its memory may be reused.

        Raises :class:`~mxwire.protocol.status.LocalProtocolError` for a request that is not a send.
        """
        self._must_be_request(request)
        if not isinstance(request, Send):
            raise LocalProtocolError(Status.BAD_REQUEST, f"a {request.kind} has no data to copy")
        return request.buffered

    def set_timeout(self, seconds: float | None, request: Request | None = None) -> None:
        """Set the time for which packets are retransmitted before their partner is abandoned (R-RTX-03).

        The time is rounded up to a number of retransmissions: 0 means none, None the profile's number. It applies to
        all later requests of the endpoint and their pulls, or to one ``request`` and its pull. If a request has reached
        its new limit, its partner is abandoned when the next retransmission is due. Raises
        :class:`~mxwire.protocol.status.LocalProtocolError` for a time that is negative or not a number.
        """
        self._must_be_open()
        interval = self.profile.resend_delay * self.profile.tick
        if seconds is None:
            maximum, limit = self.profile.resend_maximum, self.profile.pull_limit
        else:
            if not isinstance(seconds, (int, float)) or not seconds >= 0:
                raise LocalProtocolError(Status.BAD_REQUEST, f"{seconds!r} is not a time in seconds")
            maximum = ceil(min(seconds * SECOND / interval, RESEND_MAXIMUM))
            limit = maximum * interval
        if request is None:
            self.resend_maximum, self.card.pull_limit = maximum, limit
            return
        self._must_be_request(request)
        if isinstance(request, Receive):
            request.limit_pull(limit)
        elif isinstance(request, ConnectCall):
            request.maximum = maximum
        elif request.partner is not None:
            for delivery in (*request.partner.deliveries, *request.partner.waiting):
                if delivery.owner is request:
                    delivery.maximum = maximum

    @property
    def progressing(self) -> bool:
        """True if the application allows the library to make progress; otherwise only the card works (R-GEN-01).

        With a profile that progresses in the background, the library works in either case.
        """
        return self._progressing

    @progressing.setter
    def progressing(self, progressing: bool) -> None:
        self._progressing = progressing
        self._decide_work()

    @property
    def suspended(self) -> bool:
        """True if the application has suspended the library, including in the background; only the card works."""
        return self._suspended

    @suspended.setter
    def suspended(self, suspended: bool) -> None:
        self._suspended = suspended
        self._decide_work()

    def _decide_work(self) -> None:
        awake = not self._suspended and (self._progressing or self.profile.progress_in_background)
        offers = bool(self.matching.offered)
        self.works = awake and not (offers or self._handling)
        if awake and offers and not self._handling:
            self.node.offering[self] = None
        else:
            self.node.offering.pop(self, None)

    def disconnect(self, partner: Partner) -> None:
        """Forget a partner completely, without a packet to it (R-CLS-03). Native MX keeps the partner."""
        self._must_be_open()
        self._must_own(partner)
        place = (partner.peer.index, partner.number)
        if self.profile.keeps_partner_on_disconnect or self.partners.get(place) is not partner:
            return
        del self.partners[place]
        partner.peer.partners -= 1
        # Otherwise the next packet would find the forgotten partner without a look at the table.
        self.latest = None
        for request in [each for each in self.connecting if each.partner is partner]:
            request.refuse(Status.REMOTE_ENDPOINT_UNREACHABLE)
        for send in [each for each in self.requests if isinstance(each, LocalSend) and each.partner is partner]:
            if send.neighbour is not None and not send.done:
                send.neighbour.withdraw_offer(send)
            send.dropped(Status.REMOTE_ENDPOINT_UNREACHABLE)
        self.held_sends.pop(partner, None)
        partner.forget(Status.REMOTE_ENDPOINT_UNREACHABLE)
        partner.flushing = False

    def handle_unexpected(self, handler: Handler | None) -> None:
        """Set the handler that is called first with each unexpected message, and may consume it (R-MAT-06).

        The handler may make all calls but :meth:`close`, which raises
        :class:`~mxwire.protocol.status.LocalProtocolError`; they make no progress while it runs. If it does not consume
        the message, matching is tried again, since it may have posted the receive. An exception of the handler is
        raised by the node's ``receive`` or ``transmit`` when its work is done; the message then counts as not consumed.
        The caller of the node calls the handler instead if ``node.handler_calls.deferred`` is set: see
        :meth:`next_offer`.
        """
        self._must_be_open()
        if handler is not None and not callable(handler):
            raise LocalProtocolError(Status.BAD_REQUEST, f"{handler!r} cannot be called with a message")
        self.matching.handler = handler

    def wind_down(self) -> Iterator[Request | None]:
        """End the receives and the sends that wait, one per step, so that :meth:`close` afterwards has little to do.

        Yields each request that has ended, or None for a message whose request may have ended before.

        Between two steps other endpoints may work. Messages that are in transfer, or with a neighbour, are left to
        :meth:`close`.
        """
        # Sends first: the end of a connect would end all of those that wait for it.
        for partner in list(self.partners.values()):
            while partner.waiting.count:
                partner.waiting.popleft().fire(DeliveryEvent.RESET, Status.CANCELLED)
                yield None
        for request in self.requests:
            if not request.done and (not isinstance(request, LocalSend) or request.neighbour is None):
                request.close()
                yield request

    def close(self) -> None:
        """Close the endpoint: owed acks are transmitted, unfinished requests end as cancelled (R-CLS-02, R-ACK-09).

        Partners are not notified: there is no packet for this (R-CLS-01).
        """
        if not self.open:
            return
        if self.node.handler_calls.running:
            raise LocalProtocolError(Status.NOT_SUPPORTED_IN_HANDLER, "an unexpected handler may not close an endpoint")
        for partner in list(self.partners.values()):
            if partner.acks.state is AckState.DELAYED:
                partner.acks.fire(AckEvent.CLOSE)
        # Notify the neighbours before any send ends, because its memory may be reused after its end.
        self.neighbourhood.close_endpoint(self)
        self.open = False
        # Before ``detach``, with which the card replaces its ring by one without room.
        waiting = list(self.card.ring.received)
        self.node.detach(self)
        for event in waiting:
            if isinstance(event, LocalMessage):
                event.source.dropped()
        for partner in list(self.partners.values()):
            partner.forget(Status.CANCELLED)
        for request in list(self.requests):
            request.close()
        self.flushing.clear()
        self.starving.clear()
        self.held_sends.clear()
        self.connecting.clear()
        self.immediate_acks.clear()
        self.delayed_acks.clear()

    # Sending.

    def _send_buffered(self, partner: Partner, data: bytes, match_info: int, maximum: int) -> Send:
        """Send a copy of a message, in one TINY or SMALL frame or as a MEDIUM (R-SND-01)."""
        # Two calls of a known class: compiled code calls a class that it does not know with a tuple of arguments.
        if self._acked_sends:
            request: BufferedSend = AckedSend(self, partner, match_info, len(data))
        else:
            request = BufferedSend(self, partner, match_info, len(data))
        if len(data) <= SMALL_MAXIMUM:
            return self._enqueue(partner, EagerDelivery(partner, match_info, data, request, maximum), request)
        fragment, pipeline = self._fragment, self._pipeline
        medium = MediumDelivery(partner, match_info, data, request, maximum, fragment, pipeline)
        return self._enqueue(partner, medium, request)

    def _enqueue(self, partner: Partner, delivery: Delivery, request: BufferedSend | LargeSend) -> Send:
        if partner.fwd is None and not self.connects_to(partner):
            # The partner was abandoned or forgotten since the connect.
            request.lost(Status.REMOTE_ENDPOINT_UNREACHABLE)
        else:
            partner.enqueue(delivery)
        return request

    def connect_back(self, partner: Partner) -> None:
        """Connect to a partner that has connected to this endpoint, before the first message to it (R-CON-12).

        A message could be sent at once (R-CON-11), but the partner could neither ack nor pull it (R-CON-13).
        """
        # A connect of the application that is pending introduces this endpoint as well.
        if not partner.pending_connects:
            self.connecting.append(ConnectCall(partner, self.key, self.resend_maximum, own=True))

    def unacked(self) -> list[tuple[Partner, int]]:
        """The partners that have not acked all messages, each with the number of those."""
        counts = [(each, len(each.deliveries) + len(each.waiting)) for each in self.partners.values()]
        return [each for each in counts if each[1]]

    def settled(self) -> bool:
        """Return whether no message is unacked, or waits for its transmission."""
        if self.local_sends or self.held_sends:
            return False
        return not any(each.deliveries or each.waiting for each in self.partners.values())

    # Deferred calls of the unexpected handler.

    def put_off(self, message: Unexpected) -> bool:
        """Keep a message until the unexpected handler is called for it, and make no progress until then."""
        kept = self.matching.put_off(message)
        self._decide_work()
        return kept

    def next_offer(self) -> Unexpected | None:
        """The first message for which the caller must now call the unexpected handler, and then :meth:`resolve`.

        Messages that match a receive posted since are passed to it without a call. None if there is no message left.
        """
        matching = self.matching
        while matching.offered:
            message = matching.offered[0]
            receive = matching.arrive(message.match_info)
            if receive is None and matching.handler is not None:
                self._handling = True
                matching.handling = message
                self._decide_work()
                return message
            self._settle(message, receive, consumed=False)
        self._decide_work()
        return None

    def resolve(self, message: Unexpected, consumed: bool) -> None:
        """Continue after a call of the unexpected handler, whose result is ``consumed`` (R-MAT-06)."""
        self._handling = False
        # Its partner may have been disconnected.
        if message.waiting:
            self._settle(message, self.matching.handled(message, consumed), consumed=consumed)
        else:
            self.drop_claim(message)
        self._decide_work()

    def _settle(self, message: Unexpected, receive: MessageTarget | None, *, consumed: bool) -> None:
        """Pass a message that was put off to its receive, or keep it unless it was ``consumed``."""
        self.matching.settle(message, keep=receive is None and not consumed)
        if message.reassembly is not None:
            message.data = None
        if receive is not None:
            receive.take_unexpected(message)
        elif consumed:
            self.answer_consumed(message)

    # The local host.

    def local_peer(self, address: bytes) -> Peer:
        """The peer that is an interface of this host."""
        found = self.node.peers.by_address(address)
        return self.node.peer(address) if found is None else found

    def neighbour(self, partner: Partner) -> EngineEndpoint | None:
        """The open endpoint of the same node that a local partner represents."""
        return self.node.endpoint_at(partner.peer, partner.number)

    def answer_consumed(self, message: Unexpected) -> None:
        """Answer a message that the unexpected handler has consumed: a RNDV needs its NOTIFY (R-MAT-06)."""
        if message.rendezvous is not None:
            enqueue_notify(message.partner, message.rendezvous, 0, None)
        elif message.local is not None and not message.local.done:
            # Its sender may have closed, or disconnected, while the handler ran.
            message.local.received(0)

    # Checks of arguments.

    def _must_be_open(self) -> None:
        if not self.open:
            raise LocalProtocolError(Status.BAD_ENDPOINT, f"endpoint {self.number} is closed")

    def _must_be_request(self, request: Request) -> None:
        if not isinstance(request, Request):
            raise LocalProtocolError(Status.BAD_REQUEST, f"{request!r} is not a request")
        if request.endpoint is not self:
            raise LocalProtocolError(Status.BAD_REQUEST, f"{request!r} is a request of another endpoint")

    def _partner(self, peer: Peer, number: int) -> Partner:
        partner = self.partner(peer, number)
        if partner is None:
            raise LocalProtocolError(
                Status.NO_RESOURCES, f"endpoint {self.number} has {len(self.partners)} partners, and no room for more"
            )
        return partner

    def _must_own(self, partner: Partner) -> None:
        if not isinstance(partner, Partner):
            raise ArgumentTypeError(
                Status.BAD_REQUEST,
                f"{partner!r} is not a partner: pass the result of a connect, or the partner of a message",
            )
        if partner.endpoint is not self:
            raise LocalProtocolError(Status.BAD_REQUEST, f"{partner!r} is a partner of another endpoint")

    def _resends(self, maximum: SupportsIndex | None) -> int:
        """The limit of retransmissions of a request (R-RTX-03)."""
        return self.resend_maximum if maximum is None else checked_integer("resend maximum", maximum, RESEND_MAXIMUM)

    def _checked_match(self, value: SupportsIndex, mask: SupportsIndex) -> tuple[int, int]:
        # The usual arguments pass without calls, since every receive is checked: any message, or one with this info.
        if type(value) is int and type(mask) is int and not (mask or value):
            return 0, 0
        if type(value) is int and value >= 0 and mask == ALL_BITS and value <= ALL_BITS:
            return value, ALL_BITS
        if type(value) is not int or type(mask) is not int or (value | mask) >> 64:
            value = checked_integer("match info", value, ALL_BITS)
            mask = checked_integer("match mask", mask, ALL_BITS)
        if value & ~mask:
            raise LocalProtocolError(
                Status.BAD_MATCH_MASK, f"match info {value:#x} has bits outside of the mask {mask:#x}"
            )
        return value, mask
