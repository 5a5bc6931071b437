"""Partners: what an endpoint remembers of one remote endpoint (behaviour, section 1)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from mxwire.protocol.counters import Counter
from mxwire.protocol.event import Event, EventKind
from mxwire.protocol.library.acks import AckEvent, Acknowledging
from mxwire.protocol.library.delivery import Delivery, DeliveryEvent
from mxwire.protocol.library.window import Window
from mxwire.protocol.peers import Peer
from mxwire.protocol.sequence import NO_NUMBER, distance, same_session, session_bits, successor
from mxwire.protocol.status import Status
from mxwire.wire.numbers import (
    ABANDONED_DONE,
    ABANDONED_NEXT,
    FIRST_NUMBER,
    NO_SESSION,
    SESSION_NUMBER_MASK,
    SESSION_NUMBER_STEP,
)
from mxwire.wire.packets import Frame

if TYPE_CHECKING:
    from mxwire.protocol.library.connect import Connecting
    from mxwire.protocol.library.endpoint import Endpoint
    from mxwire.protocol.library.reassembly import Reassembly
    from mxwire.protocol.library.sending import LargeSend


class Partner:
    """One remote endpoint, known by peer and endpoint number. Field names are those of the specification."""

    __slots__ = (
        "acks",
        "connects",
        "deliveries",
        "endpoint",
        "epoch",
        "fwd",
        "incomplete",
        "introduced",
        "large_sends",
        "liback_in",
        "liback_out",
        "notifies",
        "number",
        "peer",
        "pending_connects",
        "rev",
        "rx_acked",
        "rx_done",
        "rx_next",
        "tx_next",
        "tx_una",
        "waiting",
        "window",
    )

    def __init__(self, endpoint: Endpoint, peer: Peer, number: int) -> None:
        self.endpoint = endpoint
        self.peer = peer
        self.number = number
        """Its endpoint number."""
        self.fwd: int | None = None
        """Its session id for TINY, SMALL, MEDIUM and RNDV."""
        self.rev: int | None = None
        """Its session id for liback, PULL and NOTIFY."""
        self.tx_next = NO_NUMBER
        self.tx_una = NO_NUMBER
        self.rx_next = FIRST_NUMBER
        self.rx_done = FIRST_NUMBER
        self.rx_acked = FIRST_NUMBER
        self.connects = 0
        self.liback_out = 0
        self.liback_in = 0
        self.epoch = 0
        """Counts resets: what began in another epoch must not go on in this one."""
        self.introduced = False
        """Whether a connect request of ours was answered in this epoch (R-CON-12)."""
        self.deliveries: deque[Delivery] = deque()
        """The numbers from ``tx_una`` to before ``tx_next``, in order."""
        self.waiting: deque[Delivery] = deque()
        """Messages that have no number yet."""
        self.notifies: deque[Delivery] = deque()
        """NOTIFYs that have no number yet; they never wait for a region, so they pass messages that do."""
        self.pending_connects: dict[int, Connecting] = {}
        """Connect requests by ``connect_seqnum``, oldest first; there may be several (R-CON-06)."""
        self.large_sends: dict[tuple[int, int], LargeSend] = {}
        """Sends that wait for their NOTIFY, by region id and use counter."""
        self.incomplete: dict[int, Reassembly] = {}
        """Mediums that miss fragments, by number, oldest first."""
        self.acks = Acknowledging(self)
        self.window = Window(self)

    @property
    def local(self) -> bool:
        """Whether it lives on our own host, so that nothing ever is on the wire (R-LOC-02)."""
        return self.peer.own is not None

    def __repr__(self) -> str:
        """For people who debug."""
        name = self.peer.name or self.peer.address.hex(":")
        return f"<Partner {name}/{self.number} tx {self.tx_una:#x}..{self.tx_next:#x} rx {self.rx_done:#x}>"

    # Sending.

    def head(self) -> dict[str, Any]:
        """The fields that all endpoint packets to this partner begin with; the generation stays undefined (R-EP-03)."""
        interface = self.endpoint.card.interface
        return {
            "dst_mac": self.peer.address,
            "src_mac": interface.address,
            "dst_src_peer_index": self.peer.index_for(interface.number),
            "dst_endpoint": self.number,
            "src_endpoint": self.endpoint.number,
        }

    def send(self, counter: Counter, frame: Frame) -> None:
        """Let a frame leave."""
        self.endpoint.card.interface.send(counter, frame)

    def enqueue(self, delivery: Delivery) -> None:
        """Let a numbered packet leave as soon as it may (R-SEQ-06)."""
        (self.notifies if delivery.uses_reverse_session else self.waiting).append(delivery)
        self.endpoint.flushing[self] = None

    def flush(self) -> bool:
        """Submit what may be submitted, in order; False where something still waits."""
        return self._flush(self.notifies) and self._flush(self.waiting)

    def _flush(self, queue: deque[Delivery]) -> bool:
        while queue:
            if not self._may_submit(queue[0]):
                return False
            self._submit(queue.popleft())
        return True

    def _may_submit(self, delivery: Delivery) -> bool:
        """Whether a number may be used now; there is no other window or credit (R-SEQ-06, R-SND-05)."""
        if distance(self.tx_next, self.tx_una) >= self.endpoint.profile.outstanding_maximum:
            return False
        if not self.introduced and self.endpoint.profile.connects_back:
            self.endpoint.introduce(self)
            return False
        return self.endpoint.provide(delivery)

    def _submit(self, delivery: Delivery) -> None:
        sequence = self.tx_next
        self.tx_next = successor(sequence)
        self.deliveries.append(delivery)
        session = self.rev if delivery.uses_reverse_session else self.fwd
        delivery.fire(DeliveryEvent.SUBMIT, sequence, NO_SESSION if session is None else session)

    # What the partner tells.

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
            if delivery.waits:
                delivery.fire(DeliveryEvent.ACK)
        if self.waiting or self.notifies:
            self.endpoint.flushing[self] = None

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
            next(iter(self.pending_connects.values())).refuse(status)

    def advance(self) -> None:
        """Compute ``rx_done`` anew after a packet was handled, and owe an ack if it moved (R-ACK-02)."""
        done = next(iter(self.incomplete)) if self.incomplete else self.rx_next
        if done != self.rx_done:
            self.rx_done = done
            self.acks.advanced()

    # Ends.

    def adopt_start(self, start: int) -> None:
        """Send from the number that the partner asks for, in its session number (R-CON-05 b, R-CON-10 b, R-SEQ-03)."""
        self.tx_next = self.tx_una = start

    def restart(self) -> None:
        """The partner came back with another session: full reset (R-CLS-05)."""
        self._clear(Status.REMOTE_ENDPOINT_UNREACHABLE)
        self.rx_next = self.rx_done = self.rx_acked = session_bits(self.rx_done) | FIRST_NUMBER
        self.endpoint.tell(Event(EventKind.PARTNER_RESTARTED, partner=self))

    def give_up(self) -> None:
        """The partner has not answered until the limit: as a reset, and with a new session number (R-RTX-05).

        Connects end as unreachable like everything else, since calls here do not block (R-MEA-19).
        """
        self._clear(Status.REMOTE_ENDPOINT_UNREACHABLE)
        upper = (session_bits(self.rx_done) + SESSION_NUMBER_STEP) & SESSION_NUMBER_MASK
        self.rx_next = upper | ABANDONED_NEXT
        self.rx_done = self.rx_acked = upper | ABANDONED_DONE
        self.endpoint.tell(Event(EventKind.PARTNER_LOST, partner=self))

    def forget(self, status: Status) -> None:
        """End everything with this partner (R-CLS-02, R-CLS-03)."""
        self._clear(status)

    def abandon(self, status: Status) -> None:
        """End what has no number yet."""
        ending = [*self.notifies, *self.waiting]
        self.notifies.clear()
        self.waiting.clear()
        for delivery in ending:
            delivery.fire(DeliveryEvent.RESET, status)

    def abandon_incomplete(self, status: Status) -> None:
        """End the mediums that miss fragments."""
        for reassembly in list(self.incomplete.values()):
            reassembly.fail(status)
        self.incomplete.clear()

    def _clear(self, status: Status) -> None:
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
        self.abandon(status)
        for send in list(self.large_sends.values()):
            send.reset(status)
        for connecting in list(self.pending_connects.values()):
            connecting.refuse(status)
        self.abandon_incomplete(status)
        self.endpoint.matching.drop(self)
