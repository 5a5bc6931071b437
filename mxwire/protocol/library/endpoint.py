"""The library's side of an endpoint, and what an application calls (behaviour, sections 1 and 4)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

from mxwire.protocol.arguments import checked_integer
from mxwire.protocol.buffers import Segments
from mxwire.protocol.card.endpoint import CardEndpoint
from mxwire.protocol.corridor import Arrival, Fragments, LocalMessage
from mxwire.protocol.errors import ArgumentTypeError, LocalProtocolError
from mxwire.protocol.event import Event
from mxwire.protocol.library import connect, local
from mxwire.protocol.library.acks import AckEvent, Acknowledging, AckState
from mxwire.protocol.library.connect import Connecting
from mxwire.protocol.library.delivery import Delivery
from mxwire.protocol.library.local import LocalSend
from mxwire.protocol.library.matching import ALL_BITS, Handler, Matching, Unexpected
from mxwire.protocol.library.packets import EagerPacket, MediumPacket, RndvPacket
from mxwire.protocol.library.partner import Partner
from mxwire.protocol.library.receiving import Receiving, Unclaimed, notify_later
from mxwire.protocol.library.request import ListedRequest, Request
from mxwire.protocol.library.resends import Resends
from mxwire.protocol.library.sending import BufferedSend, LargeSend
from mxwire.protocol.peers import Peer
from mxwire.protocol.status import Status
from mxwire.wire.enums import NackType
from mxwire.wire.formats import MEDIUM_MXOE
from mxwire.wire.numbers import SMALL_MAXIMUM
from mxwire.wire.packets import ConnectReply, ConnectRequest, NackLib, Truc

if TYPE_CHECKING:
    from mxwire.protocol.node import Node

LENGTH_MAXIMUM: Final = (1 << 32) - 1
"""Longest message in bytes (wire format, section 7)."""
CONTEXT_BITS_MAXIMUM: Final = 16
KEY_MAXIMUM: Final = 0xFFFF_FFFF
ENDPOINT_NUMBER_MAXIMUM: Final = 0xFF
RESEND_MAXIMUM: Final = 0xFFFF_FFFF
"""More retransmissions than anybody waits for."""

_NACKS: Final = {
    NackType.BAD_ENDPT: Status.REMOTE_ENDPOINT_BAD_ID,
    NackType.ENDPT_CLOSED: Status.REMOTE_ENDPOINT_CLOSED,
    NackType.BAD_SESSION: Status.REMOTE_ENDPOINT_BAD_SESSION,
}
_INTRODUCED: Final = (Status.SUCCESS, Status.REMOTE_ENDPOINT_BAD_CONNECTION_KEY, *_NACKS.values())
"""How a connect back may end so that what has waited for it is sent."""


class Endpoint:
    """One open endpoint. Calls take effect at once or, where a frame must leave, at the node's next ``transmit``."""

    def __init__(self, node: Node, card: CardEndpoint, key: int, *, context_bits: int, context_shift: int) -> None:
        self.node = node
        self.tell: Callable[[Event], None] = node.tell
        """Lets the application know."""
        self.card = card
        self.key = key
        """What a connect request must present (R-EP-04)."""
        self.number = card.number
        self.session = card.session
        """Random number of this opening (R-EP-02)."""
        self.profile = node.profile
        self.resend_maximum = node.profile.resend_maximum
        """Retransmissions of one request, unless it asks for others (R-RTX-03)."""
        self.open = True
        self.progressing = True
        """Whether the application lets the library work; while it does not, only the card does (R-GEN-01)."""
        self.partners: dict[tuple[int, int], Partner] = {}
        """Remote endpoints by peer index and endpoint number."""
        self.requests: dict[ListedRequest, None] = {}
        """What has not ended yet, and does not end with a partner, in the order of the calls."""
        self.matching = Matching(node.profile, node.handler_calls)
        self.matching.consumed = self._consumed
        self.resends = Resends(node.profile)
        self.delayed_acks: deque[tuple[int, Acknowledging]] = deque()
        self.immediate_acks: list[Acknowledging] = []
        self.flushing: dict[Partner, None] = {}
        """Partners with numbered packets that wait to be submitted."""
        self.starving: dict[Partner, None] = {}
        """Partners whose next message waits for a region, in the order in which they have begun to."""
        self._fed: Partner | None = None
        """The one of them whose turn it is."""
        self.connecting: deque[Connecting] = deque()
        self.local_sends: deque[LocalSend] = deque()
        self.pull_starts: deque[Receiving] = deque()
        self.pulling: dict[Receiving, None] = {}
        self.rendezvous = 0
        """RNDVs that wait for their NOTIFY."""
        self.early_bytes = 0
        """Bytes of early packets that are kept, of all partners."""
        self.now_tick = 0
        self._tick, self._ack_delay = node.profile.tick, node.profile.ack_delay
        self._context_mask = ((1 << context_bits) - 1) << context_shift

    def __repr__(self) -> str:
        """For people who debug."""
        return f"<Endpoint {self.card.interface.name}/{self.number} session={self.session:#010x}>"

    # What an application calls.

    def connect(
        self,
        peer: Peer | bytes | str | SupportsIndex,
        number: SupportsIndex,
        key: SupportsIndex,
        *,
        resend_maximum: SupportsIndex | None = None,
    ) -> Connecting:
        """Connect to endpoint ``number`` of a peer, given as such, by address, host name or index (R-CON-01).

        What is sent to its ``partner`` meanwhile leaves when the request has succeeded. Raises
        :class:`~mxwire.protocol.errors.LocalProtocolError` for a peer that is not in the table.
        """
        self._must_be_open()
        number = checked_integer("endpoint number", number, ENDPOINT_NUMBER_MAXIMUM)
        key = checked_integer("key", key, KEY_MAXIMUM)
        maximum = self._resends(resend_maximum)
        partner = self.partner(self.node.peer(peer), number)
        if partner is None:
            raise LocalProtocolError(
                Status.NO_RESOURCES, f"endpoint {self.number} has {len(self.partners)} partners, and no room for more"
            )
        request = Connecting(partner, key, maximum)
        self.connecting.append(request)
        return request

    def send(
        self,
        partner: Partner,
        data: Any,
        match_info: SupportsIndex = 0,
        *,
        synchronous: bool = False,
        resend_maximum: SupportsIndex | None = None,
    ) -> Request:
        """Send a message: any buffer, or a sequence of up to 256 (R-SND-01).

        A synchronous send is complete only when the receiver has matched it. Memory of a large or synchronous send
        must stay as it is until the request is done; that of others may be used anew at once.
        Raises :class:`~mxwire.protocol.errors.LocalProtocolError` for wrong arguments.
        """
        self._must_be_open()
        self._must_be_ours(partner)
        match_info = checked_integer("match info", match_info, ALL_BITS)
        maximum = self._resends(resend_maximum)
        if type(data) is bytes and len(data) <= SMALL_MAXIMUM and not (synchronous or partner.local):
            return self._send_eager(partner, data, match_info, maximum)
        memory = Segments(data)
        if memory.length > LENGTH_MAXIMUM:
            raise LocalProtocolError(Status.BAD_INFO_LENGTH, f"{memory.length} bytes are more than a message can have")
        if partner.local:
            request = LocalSend(partner, match_info, memory, synchronous=synchronous)
            self.local_sends.append(request)
            return request
        if synchronous or memory.length > self.medium_threshold:
            return self._send_large(partner, memory, match_info, maximum)
        return self._send_buffered(partner, memory, match_info, maximum)

    def receive(self, buffer: Any, match_info: SupportsIndex = 0, mask: SupportsIndex = ALL_BITS) -> Receiving:
        """Post a receive into any writable buffer, or a sequence of up to 256 (R-MAT-01).

        With ``buffer`` None, memory of the message's length is allocated at the match: the request's ``buffer``.
        It takes the first message whose match information, masked, equals ``match_info``.
        Raises :class:`~mxwire.protocol.errors.LocalProtocolError` for a value outside of the mask, or a mask that
        the context ids do not allow (R-MAT-04).
        """
        self._must_be_open()
        self._must_not_be_in_handler()
        match_info, mask = self._checked_match(match_info, mask)
        memory = None if buffer is None else Segments(buffer, writable=True)
        request = Receiving(self, memory, match_info, mask)
        message = self.matching.post(request)
        if message is not None:
            request.waiting = False
            request.take_unexpected(message)
        return request

    def probe(self, match_info: SupportsIndex = 0, mask: SupportsIndex = ALL_BITS) -> Unexpected | None:
        """The unexpected message that a receive would take now, or None; it stays where it is."""
        self._must_be_open()
        match_info, mask = self._checked_match(match_info, mask)
        return self.matching.probe(match_info, mask)

    def cancel(self, request: Request) -> bool:
        """Cancel a receive that is not matched, or a connect that is not answered (R-MSC-02).

        False where it is too late. Raises :class:`~mxwire.protocol.errors.LocalProtocolError` for a send, and for a
        request of another endpoint.
        """
        if not isinstance(request, Request):
            raise LocalProtocolError(Status.BAD_REQUEST, f"{request!r} is no request")
        if request.endpoint is not self:
            raise LocalProtocolError(Status.BAD_REQUEST, f"{request!r} is a request of another endpoint")
        if not isinstance(request, (Receiving, Connecting)):
            raise LocalProtocolError(Status.BAD_REQUEST, "a send cannot be cancelled")
        return request.cancel()

    def disconnect(self, partner: Partner) -> None:
        """Forget a partner completely; it is not told (R-CLS-03). Native MX keeps it."""
        self._must_be_open()
        self._must_not_be_in_handler()
        self._must_be_ours(partner)
        place = (partner.peer.index, partner.number)
        if self.profile.keeps_partner_on_disconnect or self.partners.get(place) is not partner:
            return
        del self.partners[place]
        for request in [each for each in self.connecting if each.partner is partner]:
            request.refuse(Status.REMOTE_ENDPOINT_UNREACHABLE)
        partner.forget(Status.REMOTE_ENDPOINT_UNREACHABLE)
        self.flushing.pop(partner, None)

    def handle_unexpected(self, handler: Handler | None) -> None:
        """Set the handler that sees each unexpected message first, and may consume it (R-MAT-06).

        It may send, but not receive, disconnect or close: that raises
        :class:`~mxwire.protocol.errors.LocalProtocolError`. What it raises comes out of the node's ``receive`` or
        ``transmit`` when their work is done; the message then counts as not consumed.
        """
        self._must_be_open()
        if handler is not None and not callable(handler):
            raise LocalProtocolError(Status.BAD_REQUEST, f"{handler!r} cannot be called with a message")
        self.matching.handler = handler

    def close(self) -> None:
        """Close the endpoint: owed acks are sent, everything unfinished ends as cancelled (R-CLS-02, R-ACK-09).

        No partner is told: there is no packet for it (R-CLS-01).
        """
        if not self.open:
            return
        self._must_not_be_in_handler()
        for partner in list(self.partners.values()):
            if partner.acks.state is AckState.DELAYED:
                partner.acks.fire(AckEvent.CLOSE)
        self.open = False
        waiting = list(self.card.ring.received)
        self.node.detach(self)
        self.card.close()
        for event in waiting:
            if isinstance(event, LocalMessage):
                event.source.dropped()
        for partner in list(self.partners.values()):
            partner.forget(Status.CANCELLED)
        for request in list(self.requests):
            request.close()
        self.flushing.clear()
        self.starving.clear()
        self.connecting.clear()
        self.immediate_acks.clear()
        self.delayed_acks.clear()

    # Sending.

    @property
    def medium_threshold(self) -> int:
        """Longest message that is sent as MEDIUM, in bytes (R-SND-01)."""
        return min(self.profile.medium_threshold, self._fragment * self.card.dialect.fragments_maximum)

    @property
    def _fragment(self) -> int:
        """Bytes of a full MEDIUM fragment (R-SND-03)."""
        pipeline = self._pipeline
        return self.card.dialect.fragment_payload if pipeline is None else 1 << pipeline

    @property
    def _pipeline(self) -> int | None:
        dialect = self.card.dialect
        if dialect.medium_format is not MEDIUM_MXOE:
            return None
        return self.profile.fragment_pipeline or dialect.fragment_payload.bit_length() - 1

    def _send_buffered(self, partner: Partner, memory: Segments, match_info: int, maximum: int) -> Request:
        data = memory.copy()
        if len(data) <= SMALL_MAXIMUM:
            return self._send_eager(partner, data, match_info, maximum)
        request = BufferedSend(self, partner, match_info, len(data))
        packet = MediumPacket(match_info, data, self._fragment, self._pipeline)
        return self._enqueue(partner, packet, request, maximum)

    def _send_eager(self, partner: Partner, data: bytes, match_info: int, maximum: int) -> Request:
        """A message that fits into one TINY or SMALL frame (R-SND-01)."""
        request = BufferedSend(self, partner, match_info, len(data))
        return self._enqueue(partner, EagerPacket(match_info, data), request, maximum)

    def _send_large(self, partner: Partner, memory: Segments, match_info: int, maximum: int) -> Request:
        packet = RndvPacket(match_info, memory)
        return self._enqueue(partner, packet, LargeSend(self, partner, packet), maximum)

    def _enqueue(self, partner: Partner, packet: Any, request: Any, maximum: int) -> Request:
        if partner.fwd is None and not self.connects_to(partner):
            # It was given up or forgotten since.
            request.lost(Status.REMOTE_ENDPOINT_UNREACHABLE)
        else:
            partner.enqueue(Delivery(partner, packet, request, maximum))
        result: Request = request
        return result

    def connects_to(self, partner: Partner) -> bool:
        """Whether a connect to a partner is under way."""
        waiting = (each for each in self.connecting if each.partner is partner)
        return bool(partner.pending_connects) or any(each.status is None for each in waiting)

    def provide(self, delivery: Delivery) -> bool:
        """Whether a delivery has all it needs to be submitted: a session, and a region if it is a RNDV."""
        if delivery.partner.fwd is None:
            return False
        owner = delivery.owner
        if not isinstance(owner, LargeSend):
            return True
        partner = delivery.partner
        if not self.region_to_be_had or (self.starving and self._fed is not partner):
            self.starving[partner] = None
            return False
        owner.provide_region()
        return True

    @property
    def region_to_be_had(self) -> bool:
        """Whether another large send may be announced now (R-RDV-05)."""
        return self.rendezvous < self.profile.rendezvous_maximum and self.card.regions.available

    def _feed(self) -> None:
        """Let those go on that have waited for a region longest, as far as there are any."""
        while self.starving and self.region_to_be_had:
            self._fed = next(iter(self.starving))
            del self.starving[self._fed]
            self._fed.flush()
        self._fed = None

    # Connecting back.

    def introduce(self, partner: Partner) -> None:
        """Connect to a partner that has connected to us, before anything is sent to it (R-CON-12).

        It could be sent to at once (R-CON-11), but could not ack what is sent, nor pull (R-CON-13).
        """
        if not partner.pending_connects:
            self.connecting.append(Connecting(partner, self.key, self.resend_maximum, own=True))

    def introduced(self, partner: Partner, status: Status) -> None:
        """The connect back was answered. A refused key does no harm, since the partner knows us now (D-2); nor does a
        nack, which may be a late one for something else (R-NAK-06): what waits is sent, and finds out."""
        if status in _INTRODUCED:
            partner.introduced = True
            self.flushing[partner] = None

    # The progress pass.

    def progress(self, now: int) -> None:
        """One pass, in the order of R-GEN-02."""
        self.now_tick = self.resends.tick = now // self._tick
        ring = self.card.ring
        while ring.received:
            self._handle(ring.pop())
        self.resends.left()
        if ring.ended:
            self._finish_pulls()
        if self.resends.any_due:
            self._resend()
        if self.connecting or self.flushing or self.starving or self.pull_starts or self.local_sends:
            self._submit(now)
        if self.immediate_acks or self.delayed_acks:
            self._acknowledge()

    def _handle(self, event: Arrival | Fragments | LocalMessage) -> None:
        if isinstance(event, LocalMessage):
            local.arrive(self, event)
            return
        handle = _BY_TYPE.get(type(event.frame))
        if handle is not None:
            handle(self, event)
            return
        partner = self.partners.get((event.peer.index, event.frame.src_endpoint))
        # An unknown partner is dropped silently (R-ORD-01).
        if partner is not None:
            partner.window.arrive(event)

    def _take_request(self, event: Arrival) -> None:
        connect.requested(self, event.peer, event.frame)

    def _take_reply(self, event: Arrival) -> None:
        partner = self.partners.get((event.peer.index, event.frame.src_endpoint))
        if partner is not None:
            connect.replied(partner, event.frame)

    def _take_liback(self, event: Arrival) -> None:
        partner = self.partners.get((event.peer.index, event.frame.src_endpoint))
        if partner is not None:
            partner.liback(event.frame.liback_lib_seqnum, event.frame.liback_acknum)

    def _take_nack(self, event: Arrival) -> None:
        """A refusal; from a partner never seen, or of an unknown type, it is ignored (R-NAK-04, R-NAK-07, R-MEA-12)."""
        partner = self.partners.get((event.peer.index, event.frame.src_endpoint))
        status = _NACKS.get(event.frame.nack_type)
        if partner is not None and status is not None:
            partner.refused(event.frame.lib_seqnum, status)

    def _finish_pulls(self) -> None:
        ended = self.card.ring.ended
        while ended:
            event = ended.popleft()
            event.context.pull_ended(event.status, event.transferred)

    def _resend(self) -> None:
        for each in self.resends.take_due():
            if not each.waits:
                # Its partner was given up a moment ago.
                continue
            if each.exhausted:
                assert isinstance(each, (Delivery, Connecting))
                assert each.partner is not None
                each.partner.give_up()
            else:
                each.due()

    def _submit(self, now: int) -> None:
        """What waits to leave: connects, messages, starts of pulls."""
        while True:
            while self.connecting:
                self.connecting.popleft().submit()
            waiting, self.flushing = self.flushing, {}
            for partner in waiting:
                partner.flush()
            if self.starving:
                self._feed()
            while self.local_sends and self.local_sends[0].submit():
                self.local_sends.popleft()
            while self.pull_starts and self.card.slots.available:
                self.pull_starts.popleft().start(now)
            if not (self.connecting or self.flushing):
                break

    def _acknowledge(self) -> None:
        immediate, self.immediate_acks = self.immediate_acks, []
        for acks in immediate:
            if acks.state is AckState.IMMEDIATE:
                acks.fire(AckEvent.PASS_END)
        delayed = self.delayed_acks
        while delayed and self.now_tick >= delayed[0][0] + self._ack_delay:
            since, acks = delayed.popleft()
            if acks.state is AckState.DELAYED and acks.since == since:
                acks.fire(AckEvent.DUE)

    @property
    def works(self) -> bool:
        """Whether the library works now, or sleeps with its application (R-GEN-01)."""
        return self.progressing or self.profile.progress_in_background

    def deadline(self) -> int | None:
        """When the library wants to be called again, in ns; 0 where something waits already."""
        if self.eager():
            return 0
        if not self.works:
            return None
        resend = self.resends.deadline()
        delayed = self.delayed_acks
        while delayed and not (delayed[0][1].state is AckState.DELAYED and delayed[0][1].since == delayed[0][0]):
            delayed.popleft()
        if not delayed:
            return resend
        ack = (delayed[0][0] + self._ack_delay) * self._tick
        return ack if resend is None else min(ack, resend)

    def overdue(self, now: int) -> bool:
        """Whether the library wants to be called by now."""
        due = self.deadline()
        return due is not None and due <= now

    def eager(self) -> bool:
        """Whether something waits that the library would do at once, if it was called."""
        if not self.works:
            return False
        ring = self.card.ring
        if ring.received or ring.ended or self.connecting or self.flushing or self.local_sends or self.immediate_acks:
            return True
        return bool((self.pull_starts and self.card.slots.available) or (self.starving and self.region_to_be_had))

    # Partners.

    def partner(self, peer: Peer, number: int) -> Partner | None:
        """The partner with a peer and endpoint number, new if need be; None where there is no room for it."""
        found = self.partners.get((peer.index, number))
        if found is None and len(self.partners) < self.profile.partner_maximum:
            found = self.partners[peer.index, number] = Partner(self, peer, number)
        return found

    # Our own host.

    @property
    def own_peer(self) -> Peer:
        """The peer that our own interface is."""
        return self.node.peer(self.card.interface.address)

    def neighbour(self, partner: Partner) -> Endpoint | None:
        """The open endpoint of our own host that a local partner stands for."""
        return self.node.endpoint_at(partner.peer, partner.number)

    def local_connect(self, partner: Partner, key: int) -> Status:
        """Connect to an endpoint of our own host: nothing is on the wire (R-CON-07, R-LOC-02)."""
        target = self.neighbour(partner)
        if target is None:
            too_big = partner.number >= self.profile.endpoint_maximum
            return Status.REMOTE_ENDPOINT_BAD_ID if too_big else Status.REMOTE_ENDPOINT_CLOSED
        if target.key != key:
            return Status.REMOTE_ENDPOINT_BAD_CONNECTION_KEY
        partner.fwd = partner.rev = target.session
        return Status.SUCCESS

    def deliver_local(self, source: Partner, send: LocalSend) -> None:
        """Match a message from our own host."""
        receive = self.matching.arrive(send.match_info)
        if receive is None:
            held = {"data": send.memory.copy()} if send.buffered else {"local": send}
            if not self.matching.keep(Unexpected(source, send.match_info, send.length, **held)):
                send.dropped(Status.NO_RESOURCES)
        elif send.buffered:
            receive.take_message(source, send.match_info, send.memory.copy())
        else:
            receive.take_local(source, send)

    # Odds and ends.

    def _consumed(self, message: Unexpected) -> None:
        """The unexpected handler has taken a message: a RNDV is answered all the same (R-MAT-06)."""
        if message.rendezvous is not None:
            notify_later(message.partner, message.rendezvous, 0, Unclaimed())
        elif message.local is not None:
            message.local.received(0)

    def _must_be_open(self) -> None:
        if not self.open:
            raise LocalProtocolError(Status.BAD_ENDPOINT, f"endpoint {self.number} is closed")

    def _must_not_be_in_handler(self) -> None:
        if self.node.handler_calls.running:
            raise LocalProtocolError(
                Status.NOT_SUPPORTED_IN_HANDLER, "an unexpected handler may not receive, disconnect or close"
            )

    def _must_be_ours(self, partner: Partner) -> None:
        if not isinstance(partner, Partner):
            raise ArgumentTypeError(
                Status.BAD_REQUEST,
                f"{partner!r} is not a partner: pass the result of a connect, or the partner of a message",
            )
        if partner.endpoint is not self:
            raise LocalProtocolError(Status.BAD_REQUEST, f"{partner!r} is a partner of another endpoint")

    def _resends(self, maximum: SupportsIndex | None) -> int:
        """The limit of retransmissions of one request (R-RTX-03)."""
        return self.resend_maximum if maximum is None else checked_integer("resend maximum", maximum, RESEND_MAXIMUM)

    def _checked_match(self, value: SupportsIndex, mask: SupportsIndex) -> tuple[int, int]:
        value = checked_integer("match info", value, ALL_BITS)
        mask = checked_integer("match mask", mask, ALL_BITS)
        if value & ~mask:
            raise LocalProtocolError(
                Status.BAD_MATCH_MASK, f"match info {value:#x} has bits outside of the mask {mask:#x}"
            )
        if self._context_mask & ~mask:
            raise LocalProtocolError(
                Status.BAD_MATCHING_FOR_CONTEXT_ID_MASK, f"mask {mask:#x} leaves out bits of the context id"
            )
        return value, mask


_BY_TYPE: Final[dict[type, Callable[[Endpoint, Any], None]]] = {
    ConnectRequest: Endpoint._take_request,
    ConnectReply: Endpoint._take_reply,
    Truc: Endpoint._take_liback,
    NackLib: Endpoint._take_nack,
}
