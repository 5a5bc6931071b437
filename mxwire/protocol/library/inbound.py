"""Reception: a packet from the ring passes the window, is handled by its type, and MEDIUMs are reassembled.

``Window`` decides by its sequence number whether a packet is handled now, kept for later or dropped, so that each
message is handled once and in order (behaviour, section 8). ``_handle`` and the functions below it match the message
with a receive (sections 9, 13 and 15). ``Reassembly`` collects the fragments of a MEDIUM, which may arrive in any order
(section 10).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from mxwire.protocol.arguments import Segments
from mxwire.protocol.corridor import Arrival, DataArrival, Fragment, NotifyArrival, RndvArrival, match_info_of
from mxwire.protocol.counters import Counter
from mxwire.protocol.library.matching import Keepable
from mxwire.protocol.library.reliability import JUST_BEFORE, AckEvent, distance, successor
from mxwire.protocol.profile import Defect
from mxwire.protocol.state_machine import StateMachine, TransitionTable
from mxwire.protocol.status import Status
from mxwire.wire.numbers import NUMBER_MASK, SESSION_NUMBER_MASK

if TYPE_CHECKING:
    from mxwire.protocol.library.partner import LibraryEndpoint, MessageTarget, Partner

FRAGMENTS_MAXIMUM: Final = 256
"""Number of values of ``frag_seqnum``; a length that needs more fragments is not valid (R-MED-03)."""
_FRAGMENTS_KEPT: Final = 256
"""Maximum number of early fragments per message: ``frag_seqnum`` has no more values."""
_PACKET_SIZE: Final = 64
"""Bytes accounted for an early packet besides its data, so that empty packets are limited too."""


# Messages without a receive.


class Unexpected(Keepable):
    """A message received before a matching receive was posted."""

    __slots__ = ("data", "length", "local", "partner", "reassembly", "rendezvous")

    def __init__(
        self,
        partner: Partner,
        match_info: int,
        length: int,
        *,
        data: bytes | None = None,
        reassembly: Reassembly | None = None,
        rendezvous: RndvArrival | None = None,
        local: Any = None,
    ) -> None:
        super().__init__(match_info)
        self.partner = partner
        self.length = length
        """Length of the whole message in bytes."""
        self.data = data
        """The data of a complete message, or the rest of a message that a receive has truncated and returned; in the
        unexpected handler, also the data of a MEDIUM with a single fragment."""
        self.reassembly = reassembly
        self.rendezvous = rendezvous
        self.local = local
        """The :class:`~mxwire.protocol.library.local_send.LocalSend` of a message from the same host."""

    @property
    def source(self) -> Partner:
        """The partner that has sent it."""
        return self.partner

    @property
    def buffered(self) -> int:
        """Bytes of memory that the message occupies."""
        if self.rendezvous is not None or self.local is not None:
            return 0
        return self.length if self.data is None else len(self.data)


# The receive window.


class WindowPlace(StrEnum):
    """Position of a sequence number relative to the window (R-ORD-03)."""

    NEXT = "next"
    BEHIND = "behind"
    EARLY = "early"
    OBSOLETE = "obsolete"
    JUST_BEFORE = "just before"


class Window:
    """The receive window of one partner, with its early packets; it passes on each packet once and in order
    (R-ORD-05)."""

    __slots__ = ("_bytes", "early", "partner")

    def __init__(self, partner: Partner) -> None:
        self.partner = partner
        self.early: dict[int, list[Arrival]] = {}
        """Early packets by number, in order of arrival."""
        self._bytes = 0

    def clear(self) -> None:
        """Drop the early packets."""
        self.early.clear()
        self._account(-self._bytes)

    def _account(self, size: int) -> None:
        """Add to the memory of early packets, in bytes."""
        self._bytes += size
        self.partner.endpoint.early_bytes += size

    def _take(self, number: int) -> list[Arrival]:
        """Take the early packets with a number."""
        kept = self.early.pop(number & NUMBER_MASK, [])
        self._account(-sum(map(_size, kept)))
        return kept

    def arrive(self, arrival: Arrival) -> None:
        """Take a numbered packet that the card has accepted (R-ORD-02, R-SEQ-07)."""
        partner = self.partner
        if ((arrival.sequence ^ partner.rx_done) | (arrival.piggyback ^ partner.tx_next)) & SESSION_NUMBER_MASK:
            # A packet of another session number, in either direction.
            return
        # Process the piggyback even if the packet will be dropped, because a duplicate may carry a newer ack.
        partner.acknowledge(arrival.piggyback)
        place = self.place(arrival.sequence)
        if place is WindowPlace.NEXT:
            if self._next(arrival) and self.early:
                self._drop_stale(arrival)
                self._drain()
        elif place is WindowPlace.BEHIND:
            self._behind(arrival)
        elif place is WindowPlace.EARLY:
            self._keep(arrival)
        elif place is WindowPlace.JUST_BEFORE:
            # The ack of the newest packet may have been lost.
            self.partner.acks.fire(AckEvent.AT_ONCE)

    def place(self, sequence: int) -> WindowPlace:
        """The position of a sequence number (R-ORD-03)."""
        partner = self.partner
        if sequence == partner.rx_next:
            return WindowPlace.NEXT
        ahead = distance(sequence, partner.rx_done)
        width = distance(partner.rx_next, partner.rx_done)
        if ahead < width:
            return WindowPlace.BEHIND
        if ahead <= width + partner.endpoint.profile.early_window:
            return WindowPlace.EARLY
        return WindowPlace.JUST_BEFORE if ahead == JUST_BEFORE else WindowPlace.OBSOLETE

    def _next(self, arrival: Arrival) -> bool:
        """Handle the next packet in sequence; return False if there is no memory, as if it had been lost.

        The same applies to a packet that would use the last of the 2^14 numbers while a MEDIUM is incomplete: the
        oldest number could no longer be distinguished from the newest (R-SEQ-02).
        """
        partner = self.partner
        if distance(partner.rx_next, partner.rx_done) == NUMBER_MASK or not _handle(partner, arrival):
            return False
        partner.rx_next = successor(partner.rx_next)
        partner.advance()
        # After ``advance``, which owes a delayed ack: this one replaces it.
        if isinstance(arrival, NotifyArrival):
            _hurry_ack_of_notify(partner)
        return True

    def _behind(self, arrival: Arrival) -> None:
        """Take a further fragment of an incomplete MEDIUM; a duplicate is dropped without owing an ack (R-MED-05)."""
        reassembly = self.partner.incomplete.get(arrival.sequence)
        if reassembly is not None and isinstance(arrival, Fragment):
            reassembly.add(arrival)
            self.partner.advance()

    def _keep(self, arrival: Arrival) -> None:
        """Keep an early packet, without an ack; duplicates, and packets for which there is no memory, are dropped."""
        endpoint, size = self.partner.endpoint, _size(arrival)
        if endpoint.early_bytes + size > endpoint.profile.early_bytes_maximum:
            endpoint.card.port.counters[Counter.DROP_EARLY_FULL] += 1
            return
        kept = self.early.setdefault(arrival.sequence & NUMBER_MASK, [])
        if kept and not (isinstance(arrival, Fragment) and isinstance(kept[0], Fragment)):
            return
        if len(kept) < _FRAGMENTS_KEPT and not _is_duplicate(arrival, kept):
            if isinstance(arrival, DataArrival):
                # Only the data is accounted for.
                arrival.detach()
            kept.append(arrival)
            self._account(size)

    def _drop_stale(self, arrival: Arrival) -> None:
        """Handle the early packets with the number of ``arrival``, which has been received again (R-ORD-04)."""
        epoch = self.partner.epoch
        for kept in self._take(arrival.sequence):
            if self.partner.epoch == epoch:
                self._behind(kept)

    def _drain(self) -> None:
        """Handle the early packets that are next in sequence; with D-5 only one number (R-ORD-04)."""
        one_only = self.partner.endpoint.profile.has(Defect.EARLY_DRAINED_BY_ONE)
        while self.early:
            kept = self._take(self.partner.rx_next)
            if not kept:
                return
            epoch = self.partner.epoch
            # Without memory, its other fragments count as lost too; the partner retransmits all of them.
            if not self._next(kept[0]):
                return
            for arrival in kept[1:]:
                # Handling a packet may have reset the partner.
                if self.partner.epoch == epoch:
                    self._behind(arrival)
            if one_only:
                return


def _size(arrival: Any) -> int:
    """Bytes of memory that an early packet occupies."""
    if isinstance(arrival, DataArrival):
        return _PACKET_SIZE + int(arrival.size)
    return _PACKET_SIZE + len(getattr(arrival.frame, "data", b""))


def _is_duplicate(arrival: Arrival, kept: list[Arrival]) -> bool:
    """Return whether a fragment of an early MEDIUM is kept already."""
    if not isinstance(arrival, Fragment):
        return False
    return any(isinstance(each, Fragment) and each.number == arrival.number for each in kept)


# Packets in sequence.


def _handle(partner: Partner, arrival: Arrival) -> bool:
    """Handle a packet in sequence; return False if there is no memory for it, as if it had been lost (R-ORD-03).

    Each type may have any length that its format allows (R-SND-02).
    """
    if isinstance(arrival, DataArrival):
        if isinstance(arrival, Fragment) and not arrival.whole:
            return _handle_medium(partner, arrival)
        info, packet, start, size = arrival.match_info, arrival.packet, arrival.start, arrival.size
    elif isinstance(arrival, RndvArrival):
        return _handle_rendezvous(partner, arrival)
    elif isinstance(arrival, NotifyArrival):
        # End the large send to which region id and use counter belong, if there is one (R-NOT-02).
        send = partner.large_sends.get((arrival.region, arrival.use))
        if send is not None:
            send.notified(arrival.transferred)
        return True
    else:
        frame: Any = arrival.frame
        info, packet, start, size = match_info_of(frame), frame.data, 0, len(frame.data)
    receive = partner.endpoint.matching.arrive(info)
    if receive is None:
        return take_unmatched(Unexpected(partner, info, size, data=packet[start : start + size]))
    receive.take_message(partner, info, packet, start, size)
    return True


def _handle_rendezvous(partner: Partner, arrival: RndvArrival) -> bool:
    """Match a large message, which is pulled only after the match (R-RDV-03, R-MAT-05).

    Each needs a NOTIFY. A partner that acks none of them may not announce more, or they would fill the memory.
    """
    if partner.notifies.count >= partner.endpoint.profile.outstanding_maximum:
        partner.port.counters[Counter.DROP_NOTIFIES_FULL] += 1
        return False
    info = arrival.match_info
    receive = partner.endpoint.matching.arrive(info)
    if receive is None:
        return take_unmatched(Unexpected(partner, info, arrival.length, rendezvous=arrival))
    receive.take_rendezvous(partner, arrival)
    return True


def _handle_medium(partner: Partner, arrival: Fragment) -> bool:
    """Match a MEDIUM when the first of its fragments arrives, whatever its fragment number (R-MED-01)."""
    endpoint = partner.endpoint
    if arrival.length > endpoint.card.dialect.fragment_payload * FRAGMENTS_MAXIMUM:
        return False
    info = arrival.match_info
    reassembly = Reassembly(partner, arrival.sequence, info, arrival.length)
    receive = endpoint.matching.arrive(info)
    if receive is not None:
        receive.take_fragments(partner, info, reassembly)
    else:
        message = Unexpected(partner, info, arrival.length, reassembly=reassembly)
        if endpoint.matching.handler is not None:
            # A fragment other than the first one may also carry the whole message.
            message.data = arrival.data if arrival.size == arrival.length else None
        if not take_unmatched(message):
            return False
        if message.waiting and not endpoint.matching.offered:
            message.data = None
    partner.incomplete[arrival.sequence] = reassembly
    reassembly.add(arrival)
    return True


def _counted(endpoint: LibraryEndpoint, kept: bool) -> bool:
    """Count an unexpected message for which there is no memory."""
    if not kept:
        endpoint.card.port.counters[Counter.DROP_UNEXPECTED_FULL] += 1
    return kept


def take_unmatched(message: Unexpected) -> bool:
    """Take a message without a receive; return False if there is no memory for it, or its partner was disconnected.

    The consumer, then the unexpected handler is called first. Unless one of them consumes the message, matching is
    tried again, since the handler may have posted the receive (R-MAT-06). While messages wait for the handler, others
    do not pass them: the consumer is not called.
    """
    partner = message.partner
    endpoint = partner.endpoint
    matching = endpoint.matching
    consumer = None if message.data is None or matching.offered else matching.consumer
    if consumer is not None and consumer(message):
        message.waiting = False
        return True
    if matching.offered or (matching.handler is not None and matching.deferred):
        return _counted(endpoint, endpoint.put_off(message))
    if matching.handler is None:
        return _counted(endpoint, matching.keep(message))
    epoch = partner.epoch
    consumed = matching.offer(message)
    if partner.epoch != epoch:
        endpoint.drop_claim(message)
        return False
    receive = matching.handled(message, consumed)
    if not consumed and receive is None:
        return _counted(endpoint, matching.keep(message))
    message.waiting = False
    if receive is not None:
        receive.take_unexpected(message)
    else:
        endpoint.answer_consumed(message)
    return True


def _hurry_ack_of_notify(partner: Partner) -> None:
    """Ack a NOTIFY at once, if the dialect or the profile requires it and nothing is incomplete (R-ACK-08)."""
    if partner.incomplete:
        return
    at_once = partner.endpoint.profile.notify_acked_at_once
    if at_once if at_once is not None else partner.endpoint.card.dialect.family == "mxoe":
        partner.acks.fire(AckEvent.AT_ONCE)


# Reassembly.


class ReassemblyState(StrEnum):
    """States of a MEDIUM that is being received."""

    INCOMPLETE = "incomplete"
    COMPLETE = "complete"
    FAILED = "failed"


class ReassemblyEvent(StrEnum):
    """Events of a MEDIUM that is being received."""

    FRAGMENT = "fragment"
    LAST_FRAGMENT = "last fragment"
    RESET = "partner reset"


def _complete(reassembly: Reassembly) -> None:
    del reassembly.partner.incomplete[reassembly.sequence]
    if reassembly.receive is not None:
        reassembly.receive.filled()


def _failed(reassembly: Reassembly, status: Status) -> None:
    if reassembly.receive is not None:
        reassembly.receive.abandoned(status)


REASSEMBLY: Final = TransitionTable(
    "medium",
    ReassemblyState.INCOMPLETE,
    (
        (ReassemblyState.INCOMPLETE, ReassemblyEvent.FRAGMENT, ReassemblyState.INCOMPLETE, None, ("R-MED-05",)),
        (ReassemblyState.INCOMPLETE, ReassemblyEvent.LAST_FRAGMENT, ReassemblyState.COMPLETE, _complete, ("R-MED-04",)),
        (ReassemblyState.INCOMPLETE, ReassemblyEvent.RESET, ReassemblyState.FAILED, _failed, ("R-CLS-05",)),
    ),
)


_FURTHER: Final = REASSEMBLY.row(ReassemblyState.INCOMPLETE, ReassemblyEvent.FRAGMENT)


class Reassembly(StateMachine):
    """One MEDIUM that is being received."""

    __slots__ = ("_kept", "_received", "_seen", "length", "match_info", "memory", "partner", "receive", "sequence")

    table = REASSEMBLY

    def __init__(self, partner: Partner, sequence: int, match_info: int, length: int) -> None:
        super().__init__()
        self.partner = partner
        self.sequence = sequence
        self.match_info = match_info
        self.length = length
        """Length of the whole message in bytes."""
        self.memory: Segments | None = None
        """Destination of the data."""
        self.receive: MessageTarget | None = None
        """The receive that has matched the message, if any."""
        self._seen = 0
        """Bit i is set if fragment i has arrived."""
        self._received = 0
        self._kept: list[tuple[int, bytes]] = []
        """Offset and data of each fragment, until a receive is posted (R-MAT-05)."""

    def add(self, arrival: Fragment) -> None:
        """Take one fragment; any number and any length are valid, even no bytes (R-MEA-13). Duplicates are dropped
        (R-MED-03)."""
        number = arrival.number
        bit = 1 << number
        if self._seen & bit:
            return
        self._seen |= bit
        self._received += arrival.size
        offset = self._offset(arrival.pipeline, number)
        if self.memory is not None:
            self.memory.put(offset, arrival.packet, arrival.start, arrival.size)
        elif self._received <= self.length:
            # More bytes are never complete.
            self._kept.append((offset, arrival.data))
        if self._received == self.length:
            self.fire(ReassemblyEvent.LAST_FRAGMENT)
        else:
            self.follow(_FURTHER)

    def _offset(self, pipeline: int | None, number: int) -> int:
        """Offset of a fragment in the message, in bytes (R-MED-02)."""
        endpoint = self.partner.endpoint
        if pipeline is None or endpoint.profile.pipeline_ignored:
            return number * endpoint.card.dialect.fragment_payload
        return number << pipeline

    def fail(self, status: Status) -> None:
        """End without the missing fragments, since the partner was reset."""
        self.fire(ReassemblyEvent.RESET, status)

    def hand_over(self, receive: MessageTarget) -> None:
        """Continue in the memory of a receive that has matched the message, complete or not."""
        self.memory = receive.memory
        self.receive = receive
        # Only the fragments that have arrived, because other receives may have stored a message in the same memory.
        for offset, data in self._kept:
            receive.memory.put(offset, data)
        self._kept.clear()
        if self.state is ReassemblyState.COMPLETE:
            receive.filled()
