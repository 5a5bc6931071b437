"""The pass of an endpoint: all that its library does while the application allows progress (behaviour, section 1).

Order of a pass
---------------

Arrivals, ended pulls, retransmissions, new packets, acks (R-GEN-02). Acks are last because any packet emitted before
settles them by its piggyback; new packets come after arrivals because an ack may have made room, and a receive that
matched may have a NOTIFY to send.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mxwire.protocol.card.endpoint import CardEndpoint
from mxwire.protocol.corridor import LibackArrival, LocalMessage
from mxwire.protocol.library.connect import NACKS, ConnectCall, take_reply, take_request
from mxwire.protocol.library.local_path import LocalEndpoint
from mxwire.protocol.library.outbound import LargeSend
from mxwire.protocol.library.partner import EndpointOwner, Partner
from mxwire.protocol.library.reliability import AckEvent, AckState, Delivery
from mxwire.wire.packets import ConnectReply, ConnectRequest, NackLib, Truc


class ProgressEndpoint(LocalEndpoint):
    """The part of an endpoint that makes the passes."""

    def __init__(self, card: CardEndpoint, key: int, owner: EndpointOwner) -> None:
        super().__init__(card, key, owner)
        self.works = True
        """True if the library works now; False while it is stopped because the application makes no calls (R-GEN-01) or
        a handler is running."""
        self.starving: dict[Partner, None] = {}
        """Partners whose next message waits for a region, in order of waiting time, longest first."""
        self._fed: Partner | None = None
        """The partner among them that may take a region now."""
        self._tick = self.profile.tick

    def progress(self, now: int) -> None:
        """Make one pass, in the order of R-GEN-02."""
        self.now_tick = self.resends.tick = now // self._tick
        ring = self.card.ring
        offered = self.matching.offered
        # A message that waits for the unexpected handler stops the others, which stay in the ring, in order.
        while ring.received.count and not offered:
            event = ring.pop()
            if isinstance(event, LocalMessage):
                self.take_local(event)
                continue
            frame = event.frame
            # Before the search for its partner, which the request may create (R-CON-10).
            if frame is not None and type(frame) is ConnectRequest:
                take_request(self, event.peer, frame)
                continue
            partner = self.latest
            if partner is None or partner.peer is not event.peer or partner.number != event.endpoint:
                partner = self.partners.get((event.peer.index, event.endpoint))
                if partner is not None and partner.peer is not event.peer:
                    # The frame is from before another host got the index of its source.
                    partner = None
                self.latest = partner
            # A packet from an unknown partner is dropped silently (R-ORD-01).
            if partner is None:
                continue
            if type(event) is LibackArrival:
                partner.liback(event.sequence, event.count)
                continue
            take = None if frame is None else _UNNUMBERED.get(type(frame))
            if take is None:
                partner.window.arrive(event)
            else:
                take(partner, frame)
        self.resends.end_transmission()
        while ring.ended.count:
            ended = ring.ended.popleft()
            ended.context.pull_ended(ended.status, ended.transferred)
        if self.resends.soonest <= self.now_tick:
            self._retransmit()
        # New packets can cause others: an answered connect releases the messages that wait for it, and a message to a
        # new partner starts a connect back.
        flushing = self.flushing
        while self.connecting.count or flushing.count or self.starving or self.pull_starts.count or self.local_sends:
            while self.connecting.count:
                self.connecting.popleft().emit()
            for _ in range(flushing.count):
                # An event may close the endpoint, which clears the queue.
                if not flushing.count:
                    break
                partner = flushing.popleft()
                if partner.flushing:
                    partner.flushing = False
                    partner.assign()
            if self.starving:
                self._feed()
            while self.local_sends and self.offer_local(self.local_sends[0]):
                self.local_sends.popleft()
            while self.pull_starts.count and self.card.slots.available:
                self.pull_starts.popleft().start(now)
            # The other queues may wait for a region, for room in a ring or for a handle, which another iteration cannot
            # provide.
            if not (self.connecting.count or flushing.count):
                break
        self._acknowledge()

    def _retransmit(self) -> None:
        for each in self.resends.take_due():
            if not each.waits:
                # Its partner was abandoned earlier in this loop.
                continue
            if each.exhausted:
                assert isinstance(each, (Delivery, ConnectCall))
                assert each.partner is not None
                each.partner.abandon()
            else:
                each.due()

    def _acknowledge(self) -> None:
        if self.immediate_acks:
            immediate, self.immediate_acks = self.immediate_acks, []
            for acks in immediate:
                if acks.state is AckState.IMMEDIATE:
                    acks.fire(AckEvent.PASS_END)
        if self.delayed_acks.soonest <= self.now_tick:
            while (due := self.delayed_acks.take_due(self.now_tick)) is not None:
                due.fire(AckEvent.DUE)

    def deadline(self) -> int | None:
        """Time of the next pass, in ns; 0 if work is waiting already, None if no pass is needed."""
        if self.eager():
            return 0
        if not self.works:
            return None
        resend = self.resends.deadline()
        delayed = self.delayed_acks.deadline()
        if delayed is None:
            return resend
        ack = delayed * self._tick
        return ack if resend is None else min(ack, resend)

    def overdue(self, now: int) -> bool:
        """Return whether the next pass is due at time ``now``."""
        due = self.deadline()
        return due is not None and due <= now

    def eager(self) -> bool:
        """Return whether a pass would have work at once."""
        if not self.works:
            return False
        ring = self.card.ring
        if ring.received.count or ring.ended.count or self.connecting.count or self.flushing.count:
            return True
        if self.local_sends or self.immediate_acks:
            return True
        if self.pull_starts.count and self.card.slots.available:
            return True
        return len(self.starving) > 0 and self.region_available

    def provide(self, delivery: Delivery) -> bool:
        """True if a delivery has all that it needs to be transmitted: a session, and a region if it is a RNDV."""
        if delivery.partner.fwd is None:
            return False
        owner = delivery.owner
        if not isinstance(owner, LargeSend):
            return True
        partner = delivery.partner
        if not self.region_available or (self.starving and self._fed is not partner):
            self.starving[partner] = None
            return False
        owner.provide_region()
        return True

    @property
    def region_available(self) -> bool:
        """True if another large send may be announced now (R-RDV-05)."""
        return self.rendezvous < self.profile.rendezvous_maximum and self.card.regions.available

    def _feed(self) -> None:
        """Offer free regions to the partners that have waited longest, one after another."""
        while self.starving and self.region_available:
            self._fed = next(iter(self.starving))
            del self.starving[self._fed]
            self._fed.assign()
        self._fed = None


def _take_liback(partner: Partner, frame: Truc) -> None:
    partner.liback(frame.liback_lib_seqnum, frame.liback_acknum)


def _take_nack(partner: Partner, frame: NackLib) -> None:
    """Take a nack; unknown types are ignored (R-NAK-04, R-NAK-07, R-MEA-12)."""
    status = NACKS.get(frame.nack_type)
    if status is not None:
        partner.refused(frame.lib_seqnum, status)


_UNNUMBERED: Final[dict[type, Callable[[Partner, Any], None]]] = {
    ConnectReply: take_reply,
    Truc: _take_liback,
    NackLib: _take_nack,
}
"""The functions for packets of a known partner without a sequence number; all others pass its window."""
