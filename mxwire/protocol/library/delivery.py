"""A numbered packet on its way: sent with the next number, and again until it is acked (sections 6, 7 and 12).

TINY, SMALL, MEDIUM, RNDV and NOTIFY share one sequence of numbers a direction (R-SEQ-04) and one state machine.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from mxwire.protocol.machine import Machine, Row, Table
from mxwire.protocol.status import Status

if TYPE_CHECKING:
    from mxwire.protocol.library.packets import Packet
    from mxwire.protocol.library.partner import Partner


class DeliveryState(StrEnum):
    """How far a numbered packet is."""

    WAITING = "waiting"
    UNACKED = "unacked"
    DONE = "done"


class DeliveryEvent(StrEnum):
    """What can happen to it."""

    SUBMIT = "submitted"
    DUE = "resend delay over"
    ACK = "acked"
    NACK = "nacked"
    RESET = "partner reset"


DELIVERY: Final = Table(
    "numbered packet",
    DeliveryState.WAITING,
    (
        Row(DeliveryState.WAITING, DeliveryEvent.SUBMIT, DeliveryState.UNACKED, "_submit", ("R-SEQ-06", "R-SND-06")),
        Row(DeliveryState.WAITING, DeliveryEvent.RESET, DeliveryState.DONE, "_lose", ("R-CLS-05",)),
        Row(DeliveryState.UNACKED, DeliveryEvent.DUE, DeliveryState.UNACKED, "_resend", ("R-RTX-01", "R-RTX-02")),
        Row(DeliveryState.UNACKED, DeliveryEvent.ACK, DeliveryState.DONE, "_acked", ("R-ACK-05",)),
        Row(DeliveryState.UNACKED, DeliveryEvent.NACK, DeliveryState.DONE, "_lose", ("R-NAK-05",)),
        Row(DeliveryState.UNACKED, DeliveryEvent.RESET, DeliveryState.DONE, "_lose", ("R-CLS-05", "R-RTX-05")),
    ),
)


class Owner(Protocol):
    """Who wants to know how a delivery fares."""

    def posted(self) -> None:
        """It has been sent for the first time."""

    def acked(self) -> None:
        """The partner has it."""

    def lost(self, status: Status) -> None:
        """The partner will not have it."""


class Delivery(Machine):
    """One number of one direction."""

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

    def __init__(self, partner: Partner, packet: Packet, owner: Owner, maximum: int) -> None:
        self.state = DeliveryState.WAITING
        self.partner = partner
        self.packet: Packet | None = packet
        """What knows how to build its frames.

        None when nothing is sent any more: the queue of resends may hold the delivery until its time has come.
        """
        self.uses_reverse_session = packet.uses_reverse_session
        """Whether it carries the session that the partner uses towards us."""
        self.owner = owner
        self.maximum = maximum
        """Most retransmissions (R-RTX-03)."""
        self.sequence = 0
        """Its number, with session number."""
        self.session = 0
        """The partner's session at the first transmission, kept in all later ones (R-RTX-04)."""
        self.transmissions = 0
        self.resend_tick = 0
        """The tick from which on it is due again."""

    def _submit(self, sequence: int, session: int) -> None:
        self.sequence = sequence
        self.session = session
        self._transmit()
        self.owner.posted()

    def _resend(self) -> None:
        """The same again, with a piggyback of now (R-ACK-03, R-RTX-02)."""
        self._transmit()

    def _transmit(self) -> None:
        self.transmissions += 1
        packet, partner = self.packet, self.partner
        assert packet is not None
        packet.send(self, partner.acks.piggyback())
        if packet.fragmented:
            partner.endpoint.resends.leaving(self)
        else:
            partner.endpoint.resends.sent(self)

    @property
    def exhausted(self) -> bool:
        """Whether it must not be sent once more (R-RTX-03)."""
        return self.transmissions > self.maximum

    @property
    def waits(self) -> bool:
        """Whether it is still to be resent."""
        return self.state is DeliveryState.UNACKED

    def due(self) -> None:
        """The resend delay is over."""
        self.fire(DeliveryEvent.DUE)

    def _acked(self) -> None:
        self.packet = None
        self.owner.acked()

    def _lose(self, status: Status) -> None:
        self.packet = None
        self.owner.lost(status)
