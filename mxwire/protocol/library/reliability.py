"""Reliability: sequence numbers, retransmission until a packet is acked, and acks of received packets.

Four parts share this file, since each depends on the others:

* the arithmetic of sequence numbers (``successor``, ``distance`` …; section 6);
* a ``Delivery`` is one sequence number of one direction: transmitted with that number, retransmitted every 500 ms
  (``resend_delay``), done when an ack covers it (behaviour, sections 7 and 12);
* ``ResendQueue`` is the queue of all packets that wait for an answer, in order of their deadlines;
* an ``OwedAck`` decides when a partner is acked: by a piggyback, by a liback at the end of the pass, or by a liback
  after a short delay (section 11).

TINY, SMALL, MEDIUM, RNDV and NOTIFY share one sequence of numbers per direction (R-SEQ-04).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.protocol.profile import Profile
from mxwire.protocol.state_machine import StateMachine, TransitionTable
from mxwire.protocol.status import Status
from mxwire.wire.enums import PacketType, TrucType
from mxwire.wire.numbers import LIBACK_LENGTH, NO_SESSION, NUMBER_MASK, SESSION_NUMBER_MASK

if TYPE_CHECKING:
    from mxwire.protocol.library.partner import Partner, Request


# Sequence numbers: 14 bits of number below two bits of session number. All values are the 16-bit integers of
# ``lib_seqnum`` and ``lib_piggyack``.

NO_NUMBER: Final = 0xFFFF
"""The number before the connect; no packet matches its session number 3 (R-SEQ-07)."""
JUST_BEFORE: Final = NUMBER_MASK
"""The distance from a number to the one before it."""


def number(value: int) -> int:
    """S(x): the sequence number without its session number (R-SEQ-01)."""
    return value & NUMBER_MASK


def session_bits(value: int) -> int:
    """N(x): the session number in its place (R-SEQ-01)."""
    return value & SESSION_NUMBER_MASK


def successor(value: int) -> int:
    """The next number: 0x3FFF is followed by 0, and nothing is carried into the session number (R-SEQ-01)."""
    return (value & SESSION_NUMBER_MASK) | ((value + 1) & NUMBER_MASK)


def distance(later: int, earlier: int) -> int:
    """The distance from ``earlier`` to ``later``, modulo 2^14, regardless of session numbers (R-SEQ-02)."""
    return (later - earlier) & NUMBER_MASK


def same_session(one: int, other: int) -> bool:
    """Return whether two values have the same session number (R-SEQ-07)."""
    return not (one ^ other) & SESSION_NUMBER_MASK


_TRUC: Final = int(PacketType.TRUC)
_ACK_TYPE: Final = int(TrucType.ACK)
_NEVER: Final = 1 << 60
"""A tick that is not reached."""


# Acknowledgements.


class AckState(StrEnum):
    """States of an owed ack."""

    NOTHING = "nothing owed"
    DELAYED = "delayed"
    IMMEDIATE = "immediate"


class AckEvent(StrEnum):
    """Events of an owed ack."""

    ADVANCED = "few numbers unacked"
    MANY = "threshold reached"
    AT_ONCE = "duplicate or NOTIFY"
    PIGGYBACK = "piggyback sent"
    DUE = "delay over"
    PASS_END = "pass ends"
    CLOSE = "endpoint closes"
    RESET = "partner reset"


# Every message uses these members; module constants avoid a lookup in the enumeration.
_NOTHING_OWED: Final = AckState.NOTHING
_DELAYED: Final = AckState.DELAYED
_ADVANCED: Final = AckEvent.ADVANCED
_MANY: Final = AckEvent.MANY
_PIGGYBACK: Final = AckEvent.PIGGYBACK


def _delay(ack: OwedAck) -> None:
    endpoint = ack.partner.endpoint
    ack.since = endpoint.now_tick
    endpoint.delayed_acks.add(ack)


def _hurry(ack: OwedAck) -> None:
    ack.partner.endpoint.immediate_acks.append(ack)


def _emit_liback(ack: OwedAck) -> None:
    """Emit a liback (R-ACK-04)."""
    partner = ack.partner
    partner.rx_acked = partner.rx_done
    # The first is 1: a receiver ignores a count that does not exceed the last one, from 0 (R-ACK-06).
    partner.liback_out = (partner.liback_out + 1) & 0xFFFF_FFFF
    partner.port.liback.sent.count += 1
    partner.port.outgoing.put(_liback(partner))


def _liback(partner: Partner) -> bytes:
    """Build the next liback. The part of the header that all libacks to a partner share is packed once."""
    port = partner.port
    session = NO_SESSION if partner.rev is None else partner.rev
    index = partner.peer.index_for(port.number)
    if index != partner.liback_index or session != partner.liback_session:
        partner.liback_index, partner.liback_session = index, session
        source = (partner.peer.address, port.address, ETHERTYPE_MXOE, index, _TRUC)
        partner.liback_head = port.liback.head(
            *source, partner.number, partner.endpoint.number, LIBACK_LENGTH, session, _ACK_TYPE
        )
    sequence = partner.rx_done
    return port.liback.pack(partner.liback_head, sequence, session, partner.liback_out, sequence, b"")


ACK: Final = TransitionTable(
    "acknowledgement",
    AckState.NOTHING,
    (
        (AckState.NOTHING, AckEvent.ADVANCED, AckState.DELAYED, _delay, ("R-ACK-02",)),
        (AckState.DELAYED, AckEvent.ADVANCED, AckState.DELAYED, None, ("R-ACK-02",)),
        # Not back to a delay: the reason for haste remains until the end of the pass.
        (AckState.IMMEDIATE, AckEvent.ADVANCED, AckState.IMMEDIATE, None, ("R-ACK-02",)),
        (AckState.NOTHING, AckEvent.MANY, AckState.IMMEDIATE, _hurry, ("R-ACK-02", "R-ACK-07")),
        (AckState.DELAYED, AckEvent.MANY, AckState.IMMEDIATE, _hurry, ("R-ACK-02", "R-ACK-07")),
        (AckState.IMMEDIATE, AckEvent.MANY, AckState.IMMEDIATE, None, ("R-ACK-02",)),
        (AckState.NOTHING, AckEvent.AT_ONCE, AckState.IMMEDIATE, _hurry, ("R-ACK-08", "R-ORD-03")),
        (AckState.DELAYED, AckEvent.AT_ONCE, AckState.IMMEDIATE, _hurry, ("R-ACK-08", "R-ORD-03")),
        (AckState.IMMEDIATE, AckEvent.AT_ONCE, AckState.IMMEDIATE, None, ("R-ACK-08", "R-ORD-03")),
        (AckState.DELAYED, AckEvent.PIGGYBACK, AckState.NOTHING, None, ("R-ACK-03",)),
        (AckState.IMMEDIATE, AckEvent.PIGGYBACK, AckState.NOTHING, None, ("R-ACK-03",)),
        (AckState.IMMEDIATE, AckEvent.PASS_END, AckState.NOTHING, _emit_liback, ("R-ACK-04", "R-GEN-02")),
        (AckState.DELAYED, AckEvent.DUE, AckState.NOTHING, _emit_liback, ("R-ACK-04",)),
        (AckState.DELAYED, AckEvent.CLOSE, AckState.NOTHING, _emit_liback, ("R-ACK-09",)),
        (AckState.NOTHING, AckEvent.RESET, AckState.NOTHING, None, ("R-CLS-05",)),
        (AckState.DELAYED, AckEvent.RESET, AckState.NOTHING, None, ("R-CLS-05",)),
        (AckState.IMMEDIATE, AckEvent.RESET, AckState.NOTHING, None, ("R-CLS-05",)),
    ),
)


_FIRST_OWED: Final = ACK.row(_NOTHING_OWED, _ADVANCED)
_SETTLED: Final = ACK.row(_DELAYED, _PIGGYBACK)


class OwedAck(StateMachine):
    """The ack owed to one partner."""

    __slots__ = ("partner", "queued", "since")

    table = ACK

    def __init__(self, partner: Partner) -> None:
        super().__init__()
        self.partner = partner
        self.since = 0
        """Tick of arrival of the first packet that is not acked yet."""
        self.queued = _NEVER
        """Its tick among the delayed acks; _NEVER if it is not among them."""

    def advanced(self) -> None:
        """Owe an ack, since ``rx_done`` has changed (R-ACK-02)."""
        partner = self.partner
        many = distance(partner.rx_done, partner.rx_acked) >= partner.endpoint.profile.ack_threshold
        if self.state is _NOTHING_OWED and not many:
            self.follow(_FIRST_OWED)
            _delay(self)
        else:
            self.fire(_MANY if many else _ADVANCED)

    def piggyback(self) -> int:
        """Return ``lib_piggyack`` for a frame that is emitted now, which settles the ack (R-ACK-01, R-ACK-03)."""
        partner = self.partner
        if self.state is _DELAYED:
            self.follow(_SETTLED)
        elif self.state is not _NOTHING_OWED:
            self.fire(_PIGGYBACK)
        # Even with nothing owed: the threshold counts from the last value that the partner was sent (R-ACK-03).
        partner.rx_acked = partner.rx_done
        return partner.rx_done


class DelayedAcks:
    """The delayed acks of an endpoint, in order of the ticks since which they are owed.

    Entries are not removed when an ack is settled; they are skipped when their time comes.
    """

    def __init__(self, profile: Profile) -> None:
        self._delay = profile.ack_delay
        self._queue: deque[tuple[int, OwedAck]] = deque()
        self.soonest = _NEVER
        """The tick in which the first of the queue is due."""

    def __iter__(self) -> Iterator[OwedAck]:
        """Iterate over the entries, settled acks included."""
        return iter([ack for _, ack in self._queue])

    def add(self, ack: OwedAck) -> None:
        """Queue an ack that is owed from now on."""
        # The entry of a settled ack is still queued. In the same tick, it serves for the next ack too.
        if ack.queued != ack.since:
            ack.queued = ack.since
            self._queue.append((ack.since, ack))
            self.soonest = min(self.soonest, ack.since + self._delay)

    def deadline(self) -> int | None:
        """The tick in which the next ack is due."""
        while self._queue:
            since, ack = self._queue[0]
            if ack.state is AckState.DELAYED and ack.since == since:
                return self.soonest
            self._remove_first()
        return None

    def take_due(self, tick: int) -> OwedAck | None:
        """Take the next ack that is due."""
        while self.soonest <= tick:
            since, ack = self._queue[0]
            self._remove_first()
            if ack.state is AckState.DELAYED and ack.since == since:
                return ack
        return None

    def clear(self) -> None:
        """Remove all entries."""
        while self._queue:
            self._remove_first()

    def _remove_first(self) -> None:
        queue = self._queue
        queue.popleft()[1].queued = _NEVER
        self.soonest = queue[0][0] + self._delay if queue else _NEVER


# Retransmission.


class Resendable(Protocol):
    """A delivery or a connect request."""

    resend_tick: int

    @property
    def waits(self) -> bool:
        """True if it waits for an answer."""

    @property
    def exhausted(self) -> bool:
        """True if the limit of retransmissions is reached."""

    def due(self) -> None:
        """Retransmit."""


_CROWD: Final = 128
"""Number of entries of one tick from which entries are removed: twice the number that an application usually has in
flight."""


class _Resends:
    """The entries of one tick, in order."""

    __slots__ = ("crowd", "entries", "first", "tick")

    def __init__(self, tick: int) -> None:
        self.tick = tick
        """The tick in which they are retransmitted."""
        self.entries: list[Resendable] = []
        self.first = 0
        """Number of entries at the start that no longer wait."""
        self.crowd = _CROWD
        """Number of entries at which those that no longer wait are removed."""

    def is_due(self, each: Resendable) -> bool:
        """Return whether an entry is due for retransmission in this tick; False if it was retransmitted after it was
        queued here."""
        if isinstance(each, Delivery):
            # Compiled code reads the attributes of a known class directly.
            return each.state is _UNACKED and each.resend_tick == self.tick
        return each.waits and each.resend_tick == self.tick

    def thin(self) -> None:
        """Remove the entries that no longer wait. Each entry is examined once or twice, because half of the list is new
        each time."""
        self.entries = [each for each in self.entries[self.first :] if self.is_due(each)]
        self.first = 0
        self.crowd = max(_CROWD, 2 * len(self.entries))

    def waits(self) -> bool:
        """Return whether any entry waits for an answer."""
        while self.first < len(self.entries):
            if self.is_due(self.entries[self.first]):
                return True
            self.first += 1
        return False


class ResendQueue:
    """The queue of retransmissions of an endpoint, in constant time per entry (R-RTX-01, R-RTX-02).

    The resend delay is the same for all, so the order of transmission is the order of the deadlines: a plain queue
    suffices. Entries are not removed when an ack arrives; they are skipped when their time comes. Entries of a busy
    tick are removed during the tick, because otherwise all messages of the last half second would stay in memory.
    """

    def __init__(self, profile: Profile) -> None:
        self._tick_length = profile.tick
        self._delay = profile.resend_delay
        self._queue: deque[_Resends] = deque()
        self._newest: _Resends | None = None
        """The last tick of the queue."""
        self.soonest = _NEVER
        """The tick of the first of the queue: an entry may be due if it is not later than ``tick``."""
        self._in_transmission: list[Delivery] = []
        self.due = 0
        """Number of entries that were due so far."""
        self.tick = 0
        """The current tick."""

    def __len__(self) -> int:
        """Number of entries that wait for an answer."""
        return sum(each.waits for resends in self._queue for each in resends.entries) + len(self._in_transmission)

    def sent(self, each: Resendable) -> int:
        """Queue an entry that has just been transmitted; return its ``resend_tick``, for the caller to set."""
        tick, newest = self.tick + self._delay, self._newest
        if newest is None or newest.tick != tick:
            newest = self._newest = _Resends(tick)
            self._queue.append(newest)
            self.soonest = min(self.soonest, tick)
        elif len(newest.entries) >= newest.crowd:
            newest.thin()
        newest.entries.append(each)
        return tick

    def begin_transmission(self, each: Delivery) -> None:
        """Note an entry in transmission, whose resend delay starts when its last fragment has been handed to the link
        (R-RTX-02)."""
        self._in_transmission.append(each)

    def end_transmission(self) -> None:
        """Queue the entries in transmission, whose frames have been handed to the link.

        Called when the node's frames are taken; and in each pass, so that an endpoint whose frames were taken between
        two passes, or not at all, does not wait without limit.
        """
        if self._in_transmission:
            for each in self._in_transmission:
                each.resend_tick = self.sent(each)
            self._in_transmission.clear()

    def deadline(self) -> int | None:
        """Time of the next retransmission, in ns."""
        while self._queue and not self._queue[0].waits():
            self._remove_first()
        return self.soonest * self._tick_length if self._queue else None

    def take_due(self) -> list[Resendable]:
        """Take the entries that are due now."""
        found: list[Resendable] = []
        while self.soonest <= self.tick:
            due = self._queue[0]
            found += [each for each in due.entries if due.is_due(each)]
            self._remove_first()
        self.due += len(found)
        return found

    def _remove_first(self) -> None:
        queue = self._queue
        queue.popleft()
        if queue:
            self.soonest = queue[0].tick
        else:
            self._newest, self.soonest = None, _NEVER


# Numbered packets.


class DeliveryState(StrEnum):
    """States of a numbered packet."""

    WAITING = "waiting"
    UNACKED = "unacked"
    DONE = "done"


class DeliveryEvent(StrEnum):
    """Events of a numbered packet."""

    ASSIGNED = "number assigned"
    DUE = "resend delay over"
    ACK = "acked"
    NACK = "nacked"
    RESET = "partner reset"


_UNACKED: Final = DeliveryState.UNACKED


class NumberedPacket(ABC):
    """The contents of a delivery: a packet with a sequence number, which builds its own frames."""

    __slots__ = ()

    @abstractmethod
    def emit(self, delivery: Delivery, piggyback: int) -> bool:
        """Build its frames, and queue them at the port; return whether they may be handed to the link only later, as
        fragments are."""


def _emit(delivery: Delivery) -> None:
    """Emit the packet, with the current piggyback (R-ACK-03, R-RTX-02)."""
    delivery.transmissions += 1
    partner = delivery.partner
    if delivery.emit(partner.acks.piggyback()):
        partner.endpoint.resends.begin_transmission(delivery)
    else:
        delivery.resend_tick = partner.endpoint.resends.sent(delivery)


def _acked(delivery: Delivery) -> None:
    delivery.release()
    if delivery.owner is not None:
        delivery.owner.acked()


def _lose(delivery: Delivery, status: Status) -> None:
    delivery.release()
    if delivery.owner is not None:
        delivery.owner.lost(status)


DELIVERY: Final = TransitionTable(
    "numbered packet",
    DeliveryState.WAITING,
    (
        (DeliveryState.WAITING, DeliveryEvent.ASSIGNED, DeliveryState.UNACKED, _emit, ("R-SEQ-06", "R-SND-06")),
        (DeliveryState.WAITING, DeliveryEvent.RESET, DeliveryState.DONE, _lose, ("R-CLS-05",)),
        (DeliveryState.UNACKED, DeliveryEvent.DUE, DeliveryState.UNACKED, _emit, ("R-RTX-01", "R-RTX-02")),
        (DeliveryState.UNACKED, DeliveryEvent.ACK, DeliveryState.DONE, _acked, ("R-ACK-05",)),
        (DeliveryState.UNACKED, DeliveryEvent.NACK, DeliveryState.DONE, _lose, ("R-NAK-05",)),
        (DeliveryState.UNACKED, DeliveryEvent.RESET, DeliveryState.DONE, _lose, ("R-CLS-05", "R-RTX-05")),
    ),
)


_ASSIGNED: Final = DELIVERY.row(DeliveryState.WAITING, DeliveryEvent.ASSIGNED)
_ACKED: Final = DELIVERY.row(DeliveryState.UNACKED, DeliveryEvent.ACK)


class Delivery(StateMachine):
    """One sequence number of one direction, with the packet that carries it."""

    __slots__ = (
        "maximum",
        "owner",
        "packet",
        "partner",
        "resend_tick",
        "sequence",
        "session",
        "transmissions",
        "uses_reverse_session",
    )

    table = DELIVERY

    def __init__(
        self,
        partner: Partner,
        packet: NumberedPacket | None,
        owner: Request | None,
        maximum: int,
        uses_reverse_session: bool = False,
    ) -> None:
        self.state, self.rows = DELIVERY.initial, DELIVERY.first
        self.partner = partner
        self.packet = packet
        """The packet; None once it is done, and for a delivery that is its own packet."""
        self.uses_reverse_session = uses_reverse_session
        """True if the packet carries the session of the reverse direction, since it answers a message."""
        self.owner = owner
        """The request that is notified of its progress; None for a NOTIFY without a receive."""
        self.maximum = maximum
        """Maximum number of retransmissions (R-RTX-03)."""
        self.sequence = 0
        """The sequence number, with its session number."""
        self.session = 0
        """The partner's session at the first transmission, kept in all later ones (R-RTX-04)."""
        self.transmissions = 0
        self.resend_tick = 0
        """Tick of the next retransmission."""

    @property
    def exhausted(self) -> bool:
        """True if the limit of retransmissions is reached (R-RTX-03)."""
        return self.transmissions > self.maximum

    @property
    def waits(self) -> bool:
        """True if the packet waits for its ack."""
        return self.state is _UNACKED

    def emit(self, piggyback: int) -> bool:
        """Build the frames of the packet, as :meth:`NumberedPacket.emit`."""
        assert self.packet is not None
        return self.packet.emit(self, piggyback)

    def release(self) -> None:
        """Release the packet: the queue of retransmissions may hold the delivery for longer."""
        self.packet = None

    def assigned(self) -> None:
        """Transmit the packet, since it has its number."""
        self.follow(_ASSIGNED)
        _emit(self)

    def acked(self) -> None:
        """End the delivery, since the partner has acked it."""
        self.follow(_ACKED)
        _acked(self)

    def due(self) -> None:
        """Retransmit, since the resend delay is over."""
        self.fire(DeliveryEvent.DUE)
