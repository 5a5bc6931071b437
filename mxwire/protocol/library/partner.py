"""Partners and requests: the state of one remote endpoint, and the state that all partners of a local endpoint share.

Theory of operation
===================

A partner is the local state of one remote endpoint: its sessions, the sequence numbers of both directions, and all
unfinished operations with it (behaviour, section 1). Field names are those of the specification.

*Sessions.* ``fwd`` is the session that the partner expects in messages to it (TINY, SMALL, MEDIUM, RNDV), ``rev`` the
one in packets that answer its messages (liback, PULL, NOTIFY). They are learnt by different packets: ``fwd`` from the
reply to a connect request, ``rev`` from the partner's own request. A partner can therefore be reachable in one
direction only, and an endpoint connects back before its first message (R-CON-12).

*Sending.* ``tx_next`` is the next number to assign, ``tx_una`` the oldest that is not acked; ``deliveries`` holds those
between, in order. New messages are enqueued in ``waiting`` and receive a number only when they may be transmitted:
when fewer than 8191 are unacked, when the connect back is answered, and, for a RNDV, when a region is free. NOTIFYs
have a queue of their own. A NOTIFY never needs a region, and releases one at the partner: if it waited behind a RNDV
that needs a region, two endpoints that exchange large messages could block each other.

*Receiving.* ``rx_next`` is the next number expected, ``rx_done`` the oldest that is not complete (an incomplete MEDIUM
holds it back), ``rx_acked`` the value acked last. ``Window`` (inbound.py) moves them, ``OwedAck`` (reliability.py)
decides when they are acked.

*Session numbers.* The two upper bits of a sequence number identify a run of numbers between the same two sessions.
Packets with other bits are dropped, so that packets from before a reset have no effect after it (R-SEQ-07).

*Resets.* There are three, and they differ in the numbers that they leave behind:

* ``restart``: the partner has reappeared with another session. Reception starts from the first number again, in the
  same session number (R-CLS-05).
* ``abandon``: the partner has not answered up to the limit. The session number advances, since packets of the old one
  may still be in the network, and unusual numbers mark the partner as abandoned (R-RTX-05).
* ``forget``: the local endpoint disconnects or closes.

All of them end all unfinished operations (``_clear``). The order matters: sessions and numbers are reset first, since
requests that end read them (a connect that ends without a session abandons the messages that wait for it). ``epoch``
counts resets; work that spans a reset (a pull, a run of early packets) compares it and stops.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum
from typing import Any, ClassVar, Protocol

from mxwire.protocol.arguments import Segments
from mxwire.protocol.card.endpoint import CardEndpoint
from mxwire.protocol.corridor import RndvArrival
from mxwire.protocol.library.completions import CompletionQueue
from mxwire.protocol.library.inbound import Reassembly, Unexpected, Window
from mxwire.protocol.library.layered_table import LayeredTable
from mxwire.protocol.library.matching import HandlerCalls, Matching
from mxwire.protocol.library.reliability import (
    NO_NUMBER,
    AckEvent,
    DelayedAcks,
    Delivery,
    DeliveryEvent,
    OwedAck,
    ResendQueue,
    distance,
    same_session,
    session_bits,
    successor,
)
from mxwire.protocol.peers import Peer, place_of
from mxwire.protocol.state_machine import Queue, StateMachine, TransitionTable
from mxwire.protocol.status import EventKind, Reporter, Status
from mxwire.wire.numbers import (
    ABANDONED_DONE,
    ABANDONED_NEXT,
    FIRST_NUMBER,
    NO_SESSION,
    SESSION_NUMBER_MASK,
    SESSION_NUMBER_STEP,
)

# Requests.


class Event:
    """One reported event, with the request, partner or peer that it concerns."""

    __slots__ = ("kind", "partner", "peer", "request")

    def __init__(
        self, kind: EventKind, request: Request | None = None, partner: Partner | None = None, peer: Peer | None = None
    ) -> None:
        self.kind = kind
        self.request = request
        self.partner = partner
        self.peer = peer

    def __repr__(self) -> str:
        """Show the kind and the object concerned, for debugging."""
        concerned = next((each for each in (self.request, self.partner, self.peer) if each is not None), "")
        return f"<Event {self.kind} {concerned}>"


class RequestKind(StrEnum):
    """Kinds of requests."""

    CONNECT = "connect"
    SEND = "send"
    RECEIVE = "receive"


class Request(StateMachine):
    """An operation that an application has posted, and that ends with a status."""

    __slots__ = ("context", "endpoint", "forgotten", "length", "match_info", "partner", "status", "transferred")

    kind: ClassVar[RequestKind]

    def __init__(
        self,
        table: TransitionTable,
        endpoint: LibraryEndpoint,
        partner: Partner | None,
        match_info: int,
        length: int,
    ) -> None:
        # Like StateMachine's constructor, but with the table of the class as an argument: compiled code looks up an
        # attribute of a class by its name.
        self.state, self.rows = table.initial, table.first
        self.endpoint = endpoint
        self.partner = partner
        """The remote endpoint; for a receive, the source of the message, once it is matched."""
        self.match_info = match_info
        """Match information of the message."""
        self.length = length
        """Length of the whole message in bytes."""
        self.status: Status | None = None
        """The result; None until the request has ended."""
        self.transferred = 0
        """Number of bytes transferred."""
        self.context: Any = None
        """Any object of the application."""
        self.forgotten = False
        """True if the end of the request is not reported to the application."""

    @property
    def done(self) -> bool:
        """True if the request has ended."""
        return self.status is not None

    def finish(self, status: Status, transferred: int = 0) -> None:
        """End the request, and report this to the application."""
        # The status is last: another thread that sees it may take the result at once.
        self.transferred = transferred
        self.status = status
        endpoint = self.endpoint
        if isinstance(self, ListedRequest):
            endpoint.requests.pop(self)
        if endpoint.completions is not None and not self.forgotten:
            endpoint.completions.add(self)
        if status and endpoint.reports_failures and status is not Status.CANCELLED:
            endpoint.report(EventKind.FAILED, self)
        if endpoint.report_completed:
            endpoint.report(EventKind.COMPLETED, self)

    # The progress of its delivery, which concerns only some requests.

    def posted(self) -> None:
        """Note the first transmission of its packet."""

    def acked(self) -> None:
        """Note that the partner has its packet."""

    def lost(self, status: Status) -> None:
        """Note that the partner will not have its packet."""

    def __repr__(self) -> str:
        """Show state, result, match information and length, for debugging."""
        outcome = "pending" if self.status is None else self.status.text
        return f"<{type(self).__name__} {self.state} {outcome} match={self.match_info:#x} length={self.length}>"


class ListedRequest(Request):
    """A request that ends when its endpoint closes; all others end with their partner."""

    __slots__ = ()

    def __init__(
        self,
        table: TransitionTable,
        endpoint: LibraryEndpoint,
        partner: Partner | None,
        match_info: int,
        length: int,
    ) -> None:
        super().__init__(table, endpoint, partner, match_info, length)
        endpoint.requests.add(self, self)

    @abstractmethod
    def close(self) -> None:
        """End the request, since its endpoint closes."""


class MessageTarget(ListedRequest):
    """A posted receive: the methods that are called when a message has matched it."""

    __slots__ = ("memory",)

    memory: Segments

    @abstractmethod
    def take_message(
        self, partner: Partner, match_info: int, data: bytes | memoryview, start: int = 0, size: int = -1
    ) -> None:
        """Take a message that is complete: ``size`` bytes of ``data`` from ``start``, by default all."""

    @abstractmethod
    def take_fragments(self, partner: Partner, match_info: int, reassembly: Reassembly) -> None:
        """Take a MEDIUM whose first fragment has arrived."""

    @abstractmethod
    def take_rendezvous(self, partner: Partner, arrival: RndvArrival) -> None:
        """Take a message that must be pulled."""

    @abstractmethod
    def take_unexpected(self, message: Unexpected) -> None:
        """Take a message that was offered to the unexpected handler, or kept, before the receive was posted."""

    @abstractmethod
    def take_local(self, partner: Partner, send: Any) -> None:
        """Take a large message from the same host."""

    @abstractmethod
    def filled(self) -> None:
        """Note that all fragments have arrived."""

    @abstractmethod
    def abandoned(self, status: Status) -> None:
        """Note that the missing fragments will not arrive."""


# The state that partners share.


class AwaitedConnect(Protocol):
    """A connect request without an answer."""

    status: Status | None

    @property
    def partner(self) -> Partner | None:
        """The remote endpoint."""

    def emit(self) -> None:
        """Emit the first request."""

    def refuse(self, status: Status) -> None:
        """End the request without an answer."""


class PullableSend(Protocol):
    """A large send whose receiver pulls the message."""

    @property
    def requested(self) -> int:
        """Number of bytes requested by the receiver."""

    def notified(self, transferred: int) -> None:
        """Note the NOTIFY of the receiver."""

    def reset(self, status: Status) -> None:
        """End the send, since the partner was reset."""


class DeferredPull(Protocol):
    """A receive whose pull waits for a handle."""

    def start(self, now: int) -> None:
        """Begin the pull."""


class LocalRoute(ABC):
    """Another node of this host, which is reached without the wire; see ``neighbours.py``."""

    @abstractmethod
    def send(self, send: Any) -> bool:
        """Pass on a message; return False if there is no room for it now."""

    @abstractmethod
    def connect(self, connect: Any) -> None:
        """Pass on a connect."""


class LocalRoutes(ABC):
    """The other nodes of this host."""

    @abstractmethod
    def towards(self, partner: Partner) -> LocalRoute | None:
        """The route to the node on which a partner on this host is open."""

    @abstractmethod
    def close_endpoint(self, endpoint: Any) -> None:
        """Notify all nodes that an endpoint closes."""


class EndpointOwner(Protocol):
    """The node of an endpoint."""

    report_completed: bool
    """True if the end of a request is an event."""
    handler_calls: HandlerCalls

    @property
    def report(self) -> Reporter:
        """Reports an event to the application."""


class LibraryEndpoint(ABC):
    """The state of the library's side of an endpoint that partners and requests share; see ``endpoint.py``."""

    neighbourhood: LocalRoutes
    """The other nodes of this host."""

    def __init__(self, card: CardEndpoint, key: int, owner: EndpointOwner) -> None:
        profile = card.profile
        self.card = card
        self.key = key
        """The key that a connect request must present (R-EP-04)."""
        self.number = card.number
        self.session = card.session
        """Random number of this opening (R-EP-02)."""
        self.profile = profile
        self.report = owner.report
        """Reports an event to the application."""
        self.report_completed = owner.report_completed
        """True if the end of a request is an event."""
        self.reports_failures = False
        """True if the end of a request with an error is reported by a separate event."""
        self.completions: CompletionQueue[Request] | None = None
        """The requests that have ended, for an application that takes them from a queue."""
        self.transmitted: list[Any] | None = None
        """The connects that were transmitted, for an owner that reports and removes them."""
        self.resend_maximum = profile.resend_maximum
        """Maximum number of retransmissions per request, unless the request sets its own (R-RTX-03)."""
        self.now_tick = 0
        """Tick of the current pass."""
        self.partners: dict[tuple[int, int], Partner] = {}
        """Remote endpoints by peer index and endpoint number."""
        self.latest: Partner | None = None
        """The partner that has sent the newest message, which is the most likely source of the next one."""
        self.requests: LayeredTable[Any, Any] = LayeredTable()
        """The unfinished ``ListedRequest`` objects, each by itself."""
        self.matching: Matching[MessageTarget, Unexpected] = Matching(profile, owner.handler_calls)
        self.resends = ResendQueue(profile)
        self.delayed_acks = DelayedAcks(profile)
        self.immediate_acks: list[OwedAck] = []
        self.flushing: Queue[Partner] = Queue()
        """Partners with packets that wait for a sequence number: see :meth:`Partner.flush`. Those that are not
        ``flushing`` any more were disconnected."""
        self.connecting: Queue[AwaitedConnect] = Queue()
        """Connects whose request is not emitted yet."""
        self.pull_starts: Queue[DeferredPull] = Queue()
        """Receives whose pull is not started yet."""
        self.pulling: dict[DeferredPull, None] = {}
        """Receives whose pull is not finished; an ordered set."""
        self.rendezvous = 0
        """Number of RNDVs that wait for their NOTIFY."""
        self.early_bytes = 0
        """Bytes of early packets of all partners."""

    def partner(self, peer: Peer, number: int) -> Partner | None:
        """The partner with a peer and an endpoint number, created if necessary; None if there is no room for it."""
        latest = self.latest
        if latest is not None and latest.peer is peer and latest.number == number:
            return latest
        found = self.partners.get((peer.index, number))
        if found is None and len(self.partners) < self.profile.partner_maximum:
            found = self.partners[peer.index, number] = Partner(self, peer, number)
            peer.partners += 1
            peer.talked = True
        return found

    def connects_to(self, partner: Partner) -> bool:
        """Return whether a connect to a partner is pending."""
        waiting = (each for each in self.connecting if each.partner is partner)
        return bool(partner.pending_connects) or any(each.status is None for each in waiting)

    @abstractmethod
    def connect_back(self, partner: Partner) -> None:
        """Connect to a partner that has connected to this endpoint, before the first message to it (R-CON-12)."""

    @abstractmethod
    def provide(self, delivery: Delivery) -> bool:
        """True if a delivery has all that it needs to be transmitted: a session, and a region if it is a RNDV."""

    @abstractmethod
    def put_off(self, message: Unexpected) -> bool:
        """Keep a message until the unexpected handler is called for it, and make no progress until then.

        Return False if there is no memory for it.
        """

    @abstractmethod
    def answer_consumed(self, message: Unexpected) -> None:
        """Answer a message that the unexpected handler has consumed: a RNDV needs its NOTIFY (R-MAT-06)."""

    def take_back(self, message: Unexpected, position: int) -> None:
        """Pass a message that a receive had taken to the next one that matches, or keep it before all messages that
        were kept after ``position``."""
        following = self.matching.arrive(message.match_info)
        if following is not None:
            following.take_unexpected(message)
        else:
            self.matching.put_back(message, position)

    def drop_claim(self, message: Unexpected) -> None:
        """End the receive that has claimed a message, since the message's partner was disconnected."""
        claimant = self.matching.handled(message, consumed=True)
        if claimant is not None:
            claimant.close()

    @abstractmethod
    def local_threshold(self, partner: Partner) -> int:
        """Maximum length in bytes of a message to this host that is buffered (R-LOC-02)."""

    @abstractmethod
    def neighbour(self, partner: Partner) -> LibraryEndpoint | None:
        """The open endpoint of the same node that a local partner stands for."""

    @abstractmethod
    def hold_send(self, send: Any) -> None:
        """Hold a send to another node of this host until :meth:`release_sends`; later sends wait behind it."""

    @abstractmethod
    def release_sends(self) -> None:
        """Offer the sends that were held again."""


class Partner:
    """One remote endpoint, identified by peer and endpoint number."""

    __slots__ = (
        "acks",
        "connects",
        "context",
        "deliveries",
        "eager_index",
        "endpoint",
        "epoch",
        "flushing",
        "fwd",
        "here",
        "incomplete",
        "introduced",
        "large_sends",
        "liback_head",
        "liback_in",
        "liback_index",
        "liback_out",
        "liback_session",
        "medium_head",
        "notifies",
        "number",
        "peer",
        "pending_connects",
        "port",
        "rev",
        "rx_acked",
        "rx_done",
        "rx_next",
        "small_head",
        "there",
        "tiny_head",
        "tx_next",
        "tx_una",
        "waiting",
        "window",
    )

    def __init__(self, endpoint: LibraryEndpoint, peer: Peer, number: int) -> None:
        self.endpoint = endpoint
        self.port = endpoint.card.port
        """The local interface."""
        self.here = place_of(self.port.address, endpoint.number)
        self.there = place_of(peer.address, number)
        """Interface and number of both endpoints, for the local path."""
        self.peer = peer
        self.number = number
        """Its endpoint number."""
        self.context: Any = None
        """Any object of the application; it stays when the remote endpoint restarts."""
        self.fwd: int | None = None
        """Its session for TINY, SMALL, MEDIUM and RNDV."""
        self.rev: int | None = None
        """Its session for liback, PULL and NOTIFY."""
        self.tx_next = NO_NUMBER
        self.tx_una = NO_NUMBER
        self.rx_next = FIRST_NUMBER
        self.rx_done = FIRST_NUMBER
        self.rx_acked = FIRST_NUMBER
        self.connects = 0
        """Number of connect requests, modulo 256."""
        self.liback_out = 0
        self.liback_in = 0
        self.epoch = 0
        """Number of resets."""
        self.introduced = False
        """True if a connect request of this endpoint was answered in this epoch (R-CON-12)."""
        self.deliveries: Queue[Delivery] = Queue()
        """The numbers from ``tx_una`` to before ``tx_next``, in order."""
        self.waiting: Queue[Delivery] = Queue()
        """Messages without a number."""
        self.notifies: Queue[Delivery] = Queue()
        """NOTIFYs without a number."""
        self.flushing = False
        """True if the next pass assigns numbers to its packets."""
        self.pending_connects: dict[int, AwaitedConnect] = {}
        """Connect requests by ``connect_seqnum``, oldest first; there may be several (R-CON-06)."""
        self.large_sends: dict[tuple[int, int], PullableSend] = {}
        """Sends that wait for their NOTIFY, by region id and use counter."""
        self.incomplete: dict[int, Reassembly] = {}
        """MEDIUMs with missing fragments, by number, oldest first."""
        self.eager_index = -1
        """The index of the local host in the packed headers below."""
        self.tiny_head = self.small_head = self.medium_head = b""
        """The first part of the headers of TINYs and SMALLs, which is the same in all packets to this partner."""
        self.liback_index = self.liback_session = -1
        """The index of the local host, and the partner's session, in the packed header below."""
        self.liback_head = b""
        """The first part of the headers of libacks."""
        self.acks = OwedAck(self)
        self.window = Window(self)

    @property
    def local(self) -> bool:
        """True if the endpoint is on the same host, so that messages to it are not transmitted on the wire
        (R-LOC-02)."""
        return self.peer.own is not None

    def __repr__(self) -> str:
        """Show name and numbers, for debugging."""
        name = self.peer.name or self.peer.address.hex(":")
        return f"<Partner {name}/{self.number} tx {self.tx_una:#x}..{self.tx_next:#x} rx {self.rx_done:#x}>"

    # Sending.

    def head(self) -> dict[str, Any]:
        """The first fields of all endpoint packets to this partner; the generation stays undefined (R-EP-03)."""
        return {
            "dst_mac": self.peer.address,
            "src_mac": self.port.address,
            "dst_src_peer_index": self.peer.index_for(self.port.number),
            "dst_endpoint": self.number,
            "src_endpoint": self.endpoint.number,
        }

    def enqueue(self, delivery: Delivery) -> None:
        """Queue a numbered packet until it may have a number (R-SEQ-06)."""
        (self.notifies if delivery.uses_reverse_session else self.waiting).append(delivery)
        self.flush()

    def flush(self) -> None:
        """Assign numbers to the queued packets in the next pass."""
        if not self.flushing:
            self.flushing = True
            self.endpoint.flushing.append(self)

    def assign(self) -> None:
        """Assign numbers to the queued packets that may be transmitted, in order, and transmit them.

        NOTIFYs go first. The first packet that has to wait stops all others: a message never overtakes another.
        """
        endpoint, queue = self.endpoint, self.notifies
        while queue.count or queue is not self.waiting:
            if not queue.count:
                queue = self.waiting
                continue
            delivery = queue[0]
            # There is no other window or credit than the number of unacked packets (R-SEQ-06, R-SND-05).
            if distance(self.tx_next, self.tx_una) >= endpoint.profile.outstanding_maximum:
                return
            if not self.introduced and endpoint.profile.connects_back:
                endpoint.connect_back(self)
                return
            if not endpoint.provide(delivery):
                return
            queue.popleft()
            self.deliveries.append(delivery)
            delivery.sequence = self.tx_next
            self.tx_next = successor(self.tx_next)
            session = self.rev if delivery.uses_reverse_session else self.fwd
            # Without ``rev`` a real endpoint transmits this number too, and the partner refuses it (R-CON-12).
            delivery.session = NO_SESSION if session is None else session
            delivery.assigned()
            if delivery.owner is not None:
                delivery.owner.posted()

    # Acks and nacks.

    def acknowledge(self, value: int) -> None:
        """Process an ack value: all numbers before it have arrived (R-ACK-05)."""
        una = self.tx_una
        if value == una:
            return
        count = distance(value, una)
        if count == 0 or count > distance(self.tx_next, una):
            return
        self.tx_una = value
        for _ in range(count):
            delivery = self.deliveries.popleft()
            # A nacked delivery keeps its place here, but is done.
            if delivery.waits:
                delivery.acked()
        if self.waiting.count or self.notifies.count:
            self.flush()

    def liback(self, value: int, count: int) -> None:
        """Process an explicit ack; old ones and those of another session number are ignored (R-ACK-06)."""
        if not same_session(value, self.tx_next) or count <= self.liback_in:
            return
        self.liback_in = count
        self.acknowledge(value)

    def refused(self, sequence: int, status: Status) -> None:
        """Process a NACK_LIB; the partner is not reset (R-NAK-05, R-NAK-06, R-NAK-10, R-CON-15)."""
        if same_session(sequence, self.tx_next):
            place = distance(sequence, self.tx_una)
            if place < len(self.deliveries) and self.deliveries[place].waits:
                self.deliveries[place].fire(DeliveryEvent.NACK, status)
                return
        if self.pending_connects:
            # The oldest, because a nack does not name the connect that it refuses (R-NAK-06).
            next(iter(self.pending_connects.values())).refuse(status)

    def advance(self) -> None:
        """Update ``rx_done`` after a packet was handled, and owe an ack if it moved (R-ACK-02)."""
        done = next(iter(self.incomplete)) if self.incomplete else self.rx_next
        if done != self.rx_done:
            self.rx_done = done
            self.acks.advanced()

    # Resets.

    def adopt_start(self, start: int) -> None:
        """Send from the number that the partner requests, in its session number (R-CON-05 b, R-CON-10 b, R-SEQ-03)."""
        self.tx_next = self.tx_una = start

    def restart(self) -> None:
        """Reset completely, since the partner reappeared with another session (R-CLS-05)."""
        self._clear(Status.REMOTE_ENDPOINT_UNREACHABLE)
        self.rx_next = self.rx_done = self.rx_acked = session_bits(self.rx_done) | FIRST_NUMBER
        self.endpoint.report(EventKind.PARTNER_RESTARTED, partner=self)

    def abandon(self) -> None:
        """Abandon a partner that did not answer up to the limit, and start a new session number (R-RTX-05).

        Connects end as unreachable like all other requests, since calls of the engine do not block (R-MEA-19).
        """
        self._clear(Status.REMOTE_ENDPOINT_UNREACHABLE)
        upper = (session_bits(self.rx_done) + SESSION_NUMBER_STEP) & SESSION_NUMBER_MASK
        self.rx_next = upper | ABANDONED_NEXT
        self.rx_done = self.rx_acked = upper | ABANDONED_DONE
        self.endpoint.report(EventKind.PARTNER_LOST, partner=self)

    def forget(self, status: Status) -> None:
        """End all operations with this partner (R-CLS-02, R-CLS-03)."""
        self._clear(status)

    def abandon_waiting(self, status: Status) -> None:
        """End the packets without a number."""
        ending = [*self.notifies, *self.waiting]
        self.notifies.clear()
        self.waiting.clear()
        for delivery in ending:
            delivery.fire(DeliveryEvent.RESET, status)

    def abandon_incomplete(self, status: Status) -> None:
        """End the MEDIUMs with missing fragments."""
        for reassembly in list(self.incomplete.values()):
            reassembly.fail(status)
        self.incomplete.clear()

    def _clear(self, status: Status) -> None:
        # Sessions and numbers first: requests that end below read them.
        self.epoch += 1
        self.introduced = False
        self.fwd = self.rev = None
        self.tx_next = self.tx_una = NO_NUMBER
        self.liback_in = self.liback_out = self.connects = 0
        self.acks.fire(AckEvent.RESET)
        self.window.clear()
        numbered = list(self.deliveries)
        self.deliveries.clear()
        for delivery in numbered:
            if delivery.waits:
                delivery.fire(DeliveryEvent.RESET, status)
        self.abandon_waiting(status)
        for send in list(self.large_sends.values()):
            send.reset(status)
        for connecting in list(self.pending_connects.values()):
            connecting.refuse(status)
        self.abandon_incomplete(status)
        for message in self.endpoint.matching.drop(self):
            if message.local is not None:
                message.local.dropped()
