"""Acknowledging: when a partner is told what has arrived, by a piggyback or by a packet of its own (section 11)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from mxwire.protocol.counters import Counter
from mxwire.protocol.machine import Machine, Row, Table
from mxwire.protocol.sequence import distance
from mxwire.wire.numbers import NO_SESSION
from mxwire.wire.packets import Truc

if TYPE_CHECKING:
    from mxwire.protocol.library.partner import Partner


class AckState(StrEnum):
    """Whether an ack is owed."""

    NOTHING = "nothing owed"
    DELAYED = "delayed"
    IMMEDIATE = "immediate"


class AckEvent(StrEnum):
    """What can happen to an ack."""

    ADVANCED = "few numbers unacked"
    MANY = "threshold reached"
    AT_ONCE = "duplicate or NOTIFY"
    PIGGYBACK = "piggyback sent"
    DUE = "delay over"
    PASS_END = "pass ends"
    CLOSE = "endpoint closes"
    RESET = "partner reset"


ACK: Final = Table(
    "acknowledgement",
    AckState.NOTHING,
    (
        Row(AckState.NOTHING, AckEvent.ADVANCED, AckState.DELAYED, "_delay", ("R-ACK-02",)),
        Row(AckState.DELAYED, AckEvent.ADVANCED, AckState.DELAYED, "", ("R-ACK-02",)),
        Row(AckState.IMMEDIATE, AckEvent.ADVANCED, AckState.IMMEDIATE, "", ("R-ACK-02",)),
        Row(AckState.NOTHING, AckEvent.MANY, AckState.IMMEDIATE, "_hurry", ("R-ACK-02", "R-ACK-07")),
        Row(AckState.DELAYED, AckEvent.MANY, AckState.IMMEDIATE, "_hurry", ("R-ACK-02", "R-ACK-07")),
        Row(AckState.IMMEDIATE, AckEvent.MANY, AckState.IMMEDIATE, "", ("R-ACK-02",)),
        Row(AckState.NOTHING, AckEvent.AT_ONCE, AckState.IMMEDIATE, "_hurry", ("R-ACK-08", "R-ORD-03")),
        Row(AckState.DELAYED, AckEvent.AT_ONCE, AckState.IMMEDIATE, "_hurry", ("R-ACK-08", "R-ORD-03")),
        Row(AckState.IMMEDIATE, AckEvent.AT_ONCE, AckState.IMMEDIATE, "", ("R-ACK-08", "R-ORD-03")),
        Row(AckState.DELAYED, AckEvent.PIGGYBACK, AckState.NOTHING, "", ("R-ACK-03",)),
        Row(AckState.IMMEDIATE, AckEvent.PIGGYBACK, AckState.NOTHING, "", ("R-ACK-03",)),
        Row(AckState.IMMEDIATE, AckEvent.PASS_END, AckState.NOTHING, "_send", ("R-ACK-04", "R-GEN-02")),
        Row(AckState.DELAYED, AckEvent.DUE, AckState.NOTHING, "_send", ("R-ACK-04",)),
        Row(AckState.DELAYED, AckEvent.CLOSE, AckState.NOTHING, "_send", ("R-ACK-09",)),
        Row(AckState.NOTHING, AckEvent.RESET, AckState.NOTHING, "", ("R-CLS-05",)),
        Row(AckState.DELAYED, AckEvent.RESET, AckState.NOTHING, "", ("R-CLS-05",)),
        Row(AckState.IMMEDIATE, AckEvent.RESET, AckState.NOTHING, "", ("R-CLS-05",)),
    ),
)


class Acknowledging(Machine):
    """What one partner is owed."""

    __slots__ = ("partner", "since")

    table = ACK

    def __init__(self, partner: Partner) -> None:
        super().__init__()
        self.partner = partner
        self.since = 0
        """Tick at which the first packet that is not acked yet arrived."""

    def advanced(self) -> None:
        """``rx_done`` has changed (R-ACK-02)."""
        partner = self.partner
        many = distance(partner.rx_done, partner.rx_acked) >= partner.endpoint.profile.ack_threshold
        self.fire(AckEvent.MANY if many else AckEvent.ADVANCED)

    def piggyback(self) -> int:
        """The value for ``lib_piggyack`` of a frame that leaves now; nothing is owed any more (R-ACK-01, R-ACK-03)."""
        partner = self.partner
        if self.state is not AckState.NOTHING:
            self.fire(AckEvent.PIGGYBACK)
        partner.rx_acked = partner.rx_done
        return partner.rx_done

    def _delay(self) -> None:
        self.since = self.partner.endpoint.now_tick
        self.partner.endpoint.delayed_acks.append((self.since, self))

    def _hurry(self) -> None:
        self.partner.endpoint.immediate_acks.append(self)

    def _send(self) -> None:
        """Send a liback (R-ACK-04)."""
        partner = self.partner
        partner.rx_acked = partner.rx_done
        partner.liback_out = (partner.liback_out + 1) & 0xFFFF_FFFF
        session = NO_SESSION if partner.rev is None else partner.rev
        partner.send(
            Counter.SEND_LIBACK,
            Truc(
                **partner.head(),
                session=session,
                liback_lib_seqnum=partner.rx_done,
                liback_session_id=session,
                liback_acknum=partner.liback_out,
                liback_send_seq=partner.rx_done,
            ),
        )
