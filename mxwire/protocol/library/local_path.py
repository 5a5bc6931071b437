"""Messages between endpoints of one host, which need no frames (R-LOC-02).

Those of the same node are taken from the ring of the receiver, those of other nodes come from
:mod:`mxwire.protocol.neighbours`. A send is *offered* to its receiver; one that finds no room there is offered again
in the next pass, and later ones to the same partner wait behind it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from typing import Any

from mxwire.protocol.card.endpoint import CardEndpoint
from mxwire.protocol.corridor import SHARED_THRESHOLD, LocalMessage
from mxwire.protocol.library.inbound import Unexpected, take_unmatched
from mxwire.protocol.library.local_send import LocalSend, LocalState
from mxwire.protocol.library.outbound import BufferedSend, medium_threshold
from mxwire.protocol.library.partner import EndpointOwner, LibraryEndpoint, Partner
from mxwire.protocol.peers import Peer, place_of
from mxwire.protocol.status import EventKind, Status


class LocalEndpoint(LibraryEndpoint):
    """The part of an endpoint that exchanges messages with others of its host."""

    def __init__(self, card: CardEndpoint, key: int, owner: EndpointOwner) -> None:
        super().__init__(card, key, owner)
        self.medium_threshold = medium_threshold(card.profile, card.dialect)
        """Maximum length in bytes of a message that is sent as MEDIUM."""
        self.local_sends: deque[LocalSend] = deque()
        self.held_sends: dict[Partner, deque[LocalSend]] = {}
        """Sends to other nodes of this host that wait for room, or for the answer to a connect."""

    @abstractmethod
    def local_peer(self, address: bytes) -> Peer:
        """The peer that is an interface of this host."""

    def local_threshold(self, partner: Partner) -> int:
        """Maximum length in bytes of a message to this host that is buffered (R-LOC-02)."""
        profile = self.profile
        own = partner.number == self.number and partner.peer.own == self.card.port.number
        shortcut = profile.shortcut_to_host or (own and profile.shortcut_to_self)
        return SHARED_THRESHOLD if shortcut else self.medium_threshold

    def take_local(self, event: LocalMessage) -> None:
        """Match a message from an endpoint of the same host."""
        send = event.source
        if not isinstance(send, LocalSend):
            if not send.done and not self.take_from_neighbour(
                send.peer, send.source & 0xFF, send.session, send.match_info, send.data, send
            ):
                send.dropped(Status.NO_RESOURCES)
            return
        if send.state is not LocalState.OFFERED:
            return
        source = self.partner(self.local_peer(send.endpoint.card.port.address), send.endpoint.number)
        assert source is not None
        source.fwd = source.rev = send.endpoint.session
        receive = self.matching.arrive(send.match_info)
        if receive is None:
            held = {"data": send.memory.copy()} if send.buffered else {"local": send}
            if not take_unmatched(Unexpected(source, send.match_info, send.length, **held)):
                send.dropped(Status.NO_RESOURCES)
        elif send.buffered:
            receive.take_message(source, send.match_info, send.memory.copy())
        else:
            receive.take_local(source, send)

    def take_from_neighbour(
        self, peer: Peer, number: int, session: int, match_info: int, data: Any, message: Any
    ) -> bool:
        """Match a message from another node of this host; return False if there is no memory for it.

        ``data`` is a short message in the memory of the channel; None if ``message`` is an offer.
        """
        source = self.partner(peer, number)
        if source is None:
            return False
        self.latest = source
        source.fwd = source.rev = session
        receive = self.matching.arrive(match_info)
        if receive is None:
            if data is None:
                return take_unmatched(Unexpected(source, match_info, message.length, local=message))
            return take_unmatched(Unexpected(source, match_info, len(data), data=bytes(data)))
        if data is None:
            receive.take_local(source, message)
        else:
            receive.take_message(source, match_info, data)
        return True

    def offer_local(self, send: LocalSend) -> bool:
        """Offer a send, unless an earlier one to its partner is held; return False if it must be offered again."""
        held = self.held_sends.get(send.partner) if self.held_sends and send.partner is not None else None
        if held is None:
            return send.offer()
        held.append(send)
        return True

    def hold_send(self, send: LocalSend) -> None:
        """Hold a send to another node of this host until :meth:`release_sends`; later sends wait behind it."""
        assert send.partner is not None
        self.held_sends.setdefault(send.partner, deque()).append(send)

    def release_sends(self) -> None:
        """Offer the sends that were held again, before later ones."""
        held, self.held_sends = self.held_sends, {}
        for queue in held.values():
            self.local_sends.extendleft(reversed(queue))

    def drop_held(self, places: set[int]) -> None:
        """End the sends that were held for endpoints whose process has ended."""
        for partner in [each for each in self.held_sends if place_of(each.peer.address, each.number) in places]:
            for send in self.held_sends.pop(partner):
                send.dropped()

    def report_lost(self, partner: Partner | None, match_info: int, length: int, status: Status) -> None:
        """Report that a message to another node of this host was lost after its send was complete."""
        lost = BufferedSend(self, partner, match_info, length)
        lost.status, lost.transferred, lost.late_status = Status.SUCCESS, length, status
        self.report(EventKind.UNDELIVERED, lost)
