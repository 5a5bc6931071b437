"""The numbered packets between two endpoints: numbers, acks and repetitions (sections 3, 8 and 11 of the examples)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .frames import Dialect, Frame, distance, successor
from .journal import Journal
from .neighbours import Neighbour, Neighbours, Send
from .partner import Outstanding, Partner

RESEND_DELAY = 0.501
ACK_DELAY = 0.016
RESENDS = 20
"""Retransmissions after which the test fails; a real host retransmits more often."""
ACK_AT_ONCE = 4
FOREVER = float("inf")


class Line:
    """The way to the one partner that an endpoint speaks with now."""

    def __init__(
        self,
        send: Send,
        now: Callable[[], float],
        neighbours: Neighbours,
        journal: Journal,
        spoken: Dialect,
        number: int,
        session: int,
    ) -> None:
        self.send = send
        self.now = now
        self.neighbours = neighbours
        self.journal = journal
        self.dialect = spoken
        self.number = number
        """Of our endpoint."""
        self.session = session
        """Of our endpoint."""
        self.outstanding: list[Outstanding] = []
        self.resent = 0
        """Number of retransmissions of the partner and of this host."""
        self.provoking = False
        """True if nacks, or frames to be refused, are expected now; otherwise they are deviations."""
        self._chosen: Partner | None = None
        self._waiting: list[Callable[[], object]] = []
        self._ack_at = FOREVER

    @property
    def partner(self) -> Partner:
        assert self._chosen is not None, "not connected"
        return self._chosen

    def unprovoked(self, subject: str, expected: object, found: object) -> None:
        """Record an event that is wrong unless it was expected."""
        if not self.provoking:
            self.journal.deviation(subject, expected, found)

    def choose(self, partner: Partner) -> None:
        """Set the partner for all further packets."""
        self._chosen = partner

    def partner_of(self, host: Neighbour, frame: Frame) -> Partner | None:
        """The partner, if the frame comes from it; a deviation if not."""
        partner = self._chosen
        if partner is None or (partner.host, partner.endpoint) != (host, frame["src_endpoint"]):
            self.journal.deviation(f"{frame.kind} from", "a partner", "an endpoint that never connected")
            return None
        return partner

    @property
    def settled(self) -> bool:
        return not self.outstanding and not self._waiting

    # --- sending

    def when_connected(self, action: Callable[[], object]) -> None:
        """Call a function as soon as the partner has answered the local request (R-CON-12)."""
        if self.partner.connected:
            action()
        else:
            self._waiting.append(action)

    def connected(self) -> None:
        """The partner has answered."""
        self.partner.connected = True
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each()

    def forget(self) -> None:
        """Note a restart of the partner."""
        self.partner.forget()
        self.outstanding.clear()
        self._waiting.clear()
        self._ack_at = FOREVER

    def number_packets(self, packets: list[tuple[str, dict[str, Any], bytes]]) -> int:
        """Give the next number to packets, each with its fields and data, and send them until they are acked."""
        partner = self.partner
        number = partner.tx_next
        partner.tx_next = successor(number)
        for kind, body, _ in packets:
            body["lib_seqnum"] = number
            body["session"] = partner.rev if kind == "NOTIFY" else partner.fwd
        self.outstanding.append(Outstanding(number, packets))
        self._transmit(self.outstanding[-1])
        return number

    def numbered(self, kind: str, body: dict[str, Any], data: bytes = b"") -> None:
        """Send one packet that has a number; its piggyback is the ack that was due (R-ACK-03)."""
        self.addressed(kind, data, lib_piggyack=self.partner.rx_done, **body)
        self.partner.rx_acked = self.partner.rx_done
        self._ack_at = FOREVER

    def addressed(self, kind: str, data: bytes = b"", **body: Any) -> None:
        """Send a packet to the partner's endpoint."""
        partner = self.partner
        self.send(
            kind,
            partner.host.mac,
            data,
            dst_src_peer_index=partner.host.index,
            dst_endpoint=partner.endpoint,
            src_endpoint=self.number,
            **body,
        )

    def _transmit(self, sent: Outstanding) -> None:
        for kind, body, data in sent.packets:
            self.numbered(kind, body, data)
        sent.sent_at = self.now()
        sent.times += 1

    def _resend(self, sent: Outstanding) -> None:
        if sent.times > RESENDS:
            self.journal.deviation("ack", f"an ack of number {sent.number}", f"none after {sent.times} transmissions")
            self.outstanding.remove(sent)
            return
        self.journal.note("resent", kind=sent.packets[0][0], number=sent.number)
        self.resent += 1
        self._transmit(sent)

    def on_time(self, now: float) -> float:
        """Run expired timers; return the next deadline."""
        if now >= self._ack_at:
            self._send_liback()
        for each in [each for each in self.outstanding if now >= each.sent_at + RESEND_DELAY]:
            self._resend(each)
        return min([each.sent_at + RESEND_DELAY for each in self.outstanding] + [self._ack_at])

    # --- acks

    def acknowledge_now(self) -> None:
        """Send the ack that is due, now (R-ACK-09)."""
        if self._ack_at != FOREVER:
            self._send_liback()

    def schedule_ack(self, *, at_once: bool = False) -> None:
        """``rx_done`` has moved, or an ack was lost (R-ACK-02)."""
        partner = self.partner
        if at_once or distance(partner.rx_done, partner.rx_acked) >= ACK_AT_ONCE:
            self._send_liback()
        elif self._ack_at == FOREVER:
            self._ack_at = self.now() + ACK_DELAY

    def _send_liback(self) -> None:
        partner = self.partner
        partner.liback_out += 1
        partner.rx_acked = partner.rx_done
        self._ack_at = FOREVER
        self.addressed(
            "TRUC",
            session=partner.rev,
            session_id=partner.rev,
            lib_seqnum=partner.rx_done,
            send_seq=partner.rx_done,
            acknum=partner.liback_out,
        )

    def on_liback(self, host: Neighbour, frame: Frame) -> None:
        """R-ACK-06."""
        partner = self.partner_of(host, frame)
        if partner is None:
            return
        self.journal.expect_fields(
            frame, session_id=self.session, send_seq=frame["lib_seqnum"], acknum=partner.liback_in + 1
        )
        if frame["acknum"] > partner.liback_in:
            partner.liback_in = frame["acknum"]
            self.acked(partner, frame["lib_seqnum"], frame.kind)

    def acked(self, partner: Partner, value: int, by: str) -> None:
        """The partner expects this number next (R-ACK-05)."""
        count = distance(value, partner.tx_una)
        if value & 0xC000 != partner.tx_next & 0xC000 or count > distance(partner.tx_next, partner.tx_una):
            possible = f"{partner.tx_una:#06x}..{partner.tx_next:#06x}"
            self.journal.deviation(f"ack by {by}", possible, f"{value:#06x}")
            return
        now = self.now()
        for each in self.outstanding[:]:
            if distance(each.number, partner.tx_una) < count:
                self.outstanding.remove(each)
                after = round((now - each.sent_at) * 1000, 3)
                self.journal.note("acked", kind=each.packets[0][0], number=each.number, by=by, after_ms=after)
        partner.tx_una = value
