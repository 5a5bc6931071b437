"""The neighbours of a node: the other nodes of its host, by the places of their endpoints (R-LOC-02)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mxwire.protocol.library.partner import LocalRoutes
from mxwire.protocol.local_channel import ENDPOINT_BITS, LocalChannel, LocalPath
from mxwire.protocol.neighbours import Neighbour
from mxwire.protocol.peers import Peer
from mxwire.protocol.status import Status

if TYPE_CHECKING:
    from mxwire.protocol.card.interface import HostInterface
    from mxwire.protocol.library.endpoint import EngineEndpoint
    from mxwire.protocol.library.partner import Partner
    from mxwire.protocol.node import Node


class Neighbourhood(LocalRoutes):
    """The neighbours of a node, and which of them has which endpoint."""

    def __init__(self, node: Node, path: LocalPath | None) -> None:
        self.node = node
        self.routes: dict[int, Neighbour] = {}
        """The known neighbours by address and endpoint number."""
        self._path = path
        self.neighbours: dict[int, Neighbour] = {}
        """All neighbours, by the identity of their channel."""
        self._own: dict[int, tuple[Peer, HostInterface]] = {}
        """The local interfaces by address."""
        self.refusals: dict[int, tuple[EngineEndpoint, tuple[object, ...]]] = {}
        """The endpoints that could not take the oldest record of a channel, and their states then, by channel."""

    def refuse(self, channel: LocalChannel, endpoint: EngineEndpoint) -> None:
        """Leave the oldest record in a channel, until its endpoint can take it."""
        self.refusals[id(channel)] = endpoint, _intake(endpoint)

    def stuck(self, channel: LocalChannel) -> bool:
        """Return whether the oldest record of a channel would be refused again, because the state of its endpoint has
        not changed."""
        refusal = self.refusals.get(id(channel))
        return refusal is not None and refusal[0].open and refusal[1] == _intake(refusal[0])

    def towards(self, partner: Partner) -> Neighbour | None:
        """The neighbour that has an endpoint of this host open, which is searched for if it is not known."""
        place = partner.there
        found = self.routes.get(place)
        if found is None and self._path is not None and partner.peer.own is not None:
            channel = self._path.reach(partner.peer.own, partner.number)
            if channel is not None:
                found = self.routes[place] = self._neighbour(channel)
        return found

    def learn_route(self, place: int, neighbour: Neighbour) -> None:
        """Send to an endpoint through the neighbour that has sent for it.

        An existing route to the same process is kept, because messages in another channel could overtake those in the
        first one. The last records of a process that has gone do not change a route.
        """
        if neighbour.channel.ended:
            return
        known = self.routes.get(place)
        if known is None or known.channel.ended or known.channel.process != neighbour.channel.process:
            self.routes[place] = neighbour

    def receive(self, channels: Sequence[LocalChannel]) -> None:
        """Take the records of channels that have some, or have ended."""
        for channel in channels:
            if self.refusals:
                self.refusals.pop(id(channel), None)
            self._neighbour(channel).receive()

    def close_endpoint(self, endpoint: EngineEndpoint) -> None:
        """Notify all neighbours that an endpoint closes."""
        for each in self.neighbours.values():
            each.withdraw(endpoint)

    def lose(self, neighbour: Neighbour) -> None:
        """End all unfinished operations with a neighbour whose channel has ended."""
        places = {place for place, each in self.routes.items() if each is neighbour}
        for place in places:
            del self.routes[place]
        neighbour.gone(places)

    def forget(self, neighbour: Neighbour) -> None:
        """Forget a neighbour that has gone, since none of its records are left."""
        self.neighbours.pop(id(neighbour.channel), None)
        self.refusals.pop(id(neighbour.channel), None)
        neighbour.channel.close()

    def unroute(self, place: int, status: Status) -> None:
        """Search for an endpoint again at the next send to it, if its neighbour has refused a message as closed."""
        if status == Status.REMOTE_ENDPOINT_CLOSED:
            self.routes.pop(place, None)

    def endpoint_at(self, place: int) -> EngineEndpoint | None:
        """The open endpoint of this node at an address and number."""
        own = self._interface(place)
        if own is None:
            return None
        card = own[1].endpoints.get(place & ENDPOINT_BITS)
        return None if card is None else self.node.endpoints.get(card)

    def own_peer(self, place: int) -> Peer | None:
        """The local interface at an address, as a peer; a neighbour may not act for another host."""
        own = self._interface(place)
        return None if own is None else own[0]

    def missing(self, place: int) -> Status:
        """The reason why an endpoint cannot be reached (R-EP-01)."""
        known = (place & ENDPOINT_BITS) < self.node.profile.endpoint_maximum
        return Status.REMOTE_ENDPOINT_CLOSED if known else Status.REMOTE_ENDPOINT_BAD_ID

    def _interface(self, place: int) -> tuple[Peer, HostInterface] | None:
        if not self._own:
            for board in self.node.interfaces:
                peer = self.node.peers.by_address(board.address)
                assert peer is not None
                self._own[int.from_bytes(board.address, "big")] = (peer, board)
        return self._own.get(place >> 8)

    def _neighbour(self, channel: LocalChannel) -> Neighbour:
        found = self.neighbours.get(id(channel))
        if found is None:
            found = self.neighbours[id(channel)] = Neighbour(self, channel)
        return found


def _intake(endpoint: EngineEndpoint) -> tuple[object, ...]:
    """Everything that decides whether an endpoint can take a record."""
    matching, room = endpoint.matching, endpoint.card.ring.room
    kept = matching.unexpected, matching.unexpected_bytes, len(matching.offered), matching.posted
    return endpoint.works, room, len(endpoint.partners), kept
