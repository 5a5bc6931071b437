"""A node whose endpoints have only their card's side in an agent, ``card`` progress: the library runs here.

The node and its endpoints are ordinary ones, which progress when the application makes calls. Only the card is
elsewhere: the frames that a pass emits become FRAME records, accepted frames and ended pulls come from records into the
ring, and pulls and regions are announced to the agent. ``served_card.py`` is the other side. Messages to other
endpoints of this host take the local path of the node, past the agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from mxwire.errors import InvalidRecordError
from mxwire.frames import FrameBatch
from mxwire.protocol.agent.node import AgentNode
from mxwire.protocol.agent.records import (
    OPEN_OPTIONS,
    PULL_SOURCE,
    AgentHead,
    AgentRecord,
    RecordFlag,
    partner_number,
    region_number,
)
from mxwire.protocol.agent.served_card import arrival_of
from mxwire.protocol.arguments import Segments
from mxwire.protocol.card.endpoint import CardEndpoint
from mxwire.protocol.card.interface import HostInterface
from mxwire.protocol.card.outgoing import FEW
from mxwire.protocol.card.pull import PullSource, PullTransfer
from mxwire.protocol.card.replies import Region, RegionTable
from mxwire.protocol.corridor import PullEnded, Ring
from mxwire.protocol.counters import Counter
from mxwire.protocol.library.endpoint import EndpointSetup, EngineEndpoint
from mxwire.protocol.library.receive import Receive
from mxwire.protocol.local_channel import LocalChannel
from mxwire.protocol.status import Status
from mxwire.wire.packets import ConnectReply, ConnectRequest

_NO_FRAMES: Final[list[bytes]] = []
_ALL: Final = 1 << 30
"""A number of frames that no pass reaches."""


class AnnouncedRegions(RegionTable):
    """The regions of an endpoint, each announced to its card's side at the agent."""

    def __init__(self, maximum: int, first_use: int, card: DistantCard) -> None:
        super().__init__(maximum, first_use)
        self._card = card

    def register(self, memory: Segments, offset: int, partner: bytes) -> Region:
        """Make a message available for pulling; see :meth:`RegionTable.register`."""
        region = super().register(memory, offset, partner)
        card = self._card
        card.agent.put_message(
            AgentRecord.ANNOUNCE,
            memory,
            memory.length,
            handle=card.handle,
            number=card.agent.next_number(),
            partner=int.from_bytes(partner, "big"),
            mask=region_number(region.number, region.use),
            extra=offset,
        )
        return region

    def release(self, region: Region) -> None:
        """Free a region: from now on PULLs of it are refused."""
        super().release(region)
        card = self._card
        # The requests of an endpoint that closes end after its card's side has.
        if not card.closed:
            card.agent.out.put(AgentRecord.WITHDRAW, handle=card.handle, mask=region_number(region.number))


class DistantCard(CardEndpoint):
    """The part of an endpoint's card that is beside its library: the ring. The rest is at the agent, under a handle."""

    def __init__(self, agent: CardNode, card: CardEndpoint, handle: int, slots: int) -> None:
        super().__init__(card.port, card.number, card.session, card.slots, card.timers, card._ready, card._rng)
        self.agent = agent
        self.handle = handle
        self.closed = False
        """True after the card's side at the agent has closed: it takes no more records."""
        self.regions = AnnouncedRegions(self.profile.region_maximum, self.profile.region_first_use, self)
        self._limits: dict[int, int] = {}
        """The time limit of each pull, as the agent knows it."""
        self._arrived = 0
        """Number of arrivals whose slots the agent counts as in use."""
        self._batch = max(1, slots // 4)
        """Slots that are returned together, of the ``slots`` at the agent (R-MEA-17)."""

    def start_pull(self, source: PullSource, memory: Segments, total: int, context: Any, now: int) -> PullTransfer:
        """Have the agent pull ``total`` bytes into ``memory``."""
        pull = PullTransfer(self, self.slots.take(), source, memory, total, context)
        # Not by its handle, since announcements have numbers of the same kind.
        number = self.agent.next_number()
        self.pulls[number] = pull
        self._limits[number] = pull.limit
        places = self.agent.describe(memory)
        self.agent.out.put(
            AgentRecord.PULL,
            flags=RecordFlag.IN_PLACE if places else 0,
            handle=self.handle,
            number=number,
            partner=partner_number(source.peer.index, source.endpoint),
            length=total,
            data=PULL_SOURCE.pack(source.session, source.region, source.use, source.offset, pull.limit) + places,
        )
        return pull

    def take_record(self, head: AgentHead, data: bytes | memoryview) -> None:
        """Take a record of the card's side at the agent."""
        if head.kind == AgentRecord.ARRIVED:
            self._take_arrival(head, data)
            return
        if head.kind == AgentRecord.FAILED:
            region = self.regions.at(head.region)
            if region is not None and region.use == head.use:
                region.failed = True
            return
        pull = self.pulls.get(head.number)
        if pull is None:
            raise InvalidRecordError("a pull that is not running")
        if head.kind == AgentRecord.DATA:
            if head.extra + len(data) > pull.total:
                raise InvalidRecordError("data outside of its message")
            pull.memory.put(head.extra, data)
        elif head.kind == AgentRecord.PULL_ENDED:
            if head.extra > pull.total:
                raise InvalidRecordError("a pull that is too long")
            del self.pulls[head.number], self._limits[head.number]
            self.slots.give_back(pull.handle)
            self.ring.ended.append(PullEnded(pull.context, head.status, head.extra))
            self.announce()
        else:
            raise InvalidRecordError("an unknown kind of record")

    def _take_arrival(self, head: AgentHead, data: bytes | memoryview) -> None:
        peer = self.agent.peers.entries.get(head.peer_index)
        if peer is None:
            raise InvalidRecordError("a frame of an unknown peer")
        arrival = arrival_of(peer, head, data, self.port.codec)
        if isinstance(arrival.frame, (ConnectRequest, ConnectReply)):
            peer.learn(self.port.number, arrival.frame.src_dst_peer_index)
        self._arrived += 1
        if self.ring.push(arrival):
            self.announce()
        else:
            # Messages from this host may have filled it.
            self.port.counters[Counter.DROP_RING_FULL] += 1

    @property
    def unsettled(self) -> bool:
        """True if the agent does not know a time limit, or the slots of frames that were taken."""
        if self._arrived >= self._batch and not self.ring.received.count:
            return True
        return bool(self.pulls) and any(self._limits[each] != pull.limit for each, pull in self.pulls.items())

    def settle(self) -> None:
        """Report to the agent what it does not know."""
        if self._arrived >= self._batch and not self.ring.received.count:
            self.agent.out.put(AgentRecord.TAKEN, handle=self.handle, extra=self._arrived)
            self._arrived = 0
        for number, pull in self.pulls.items():
            if self._limits[number] != pull.limit:
                self._limits[number] = pull.limit
                self.agent.out.put(AgentRecord.LIMIT, handle=self.handle, number=number, extra=pull.limit)

    def close(self) -> None:
        """Accept no more events. The agent does not use the memory of pulls and regions any more."""
        self.ring = Ring(0)
        self.closed = True
        for pull in self.pulls.values():
            self.slots.give_back(pull.handle)
        self.pulls.clear()
        self.agent.close_side(self.handle)


class CardNode(AgentNode):
    """A node whose endpoints have their card's side at an agent; parameters are those of :class:`AgentNode`."""

    def make_endpoint(
        self, board: HostInterface, number: int, session: int | None, setup: EndpointSetup
    ) -> EngineEndpoint:
        """The library's side of an endpoint, whose card's side opens at the agent in the place of one here."""
        card = self._open_card(board, number, session)
        shape = board.number, card.session, setup.context_bits, setup.context_shift
        options = OPEN_OPTIONS.pack(setup.key, *shape, 0, 0)
        try:
            answer, _ = self.ask(AgentRecord.OPEN, flags=RecordFlag.CARD, extra=number, data=options)
        except BaseException:
            board.close(card)
            raise
        distant = DistantCard(self, card, answer.handle, answer.mask)
        board.endpoints[number] = distant
        made = EngineEndpoint(self, distant, setup)
        self.enter_side(answer.handle, distant)
        return made

    def detach(self, endpoint: EngineEndpoint) -> None:
        """Remove an endpoint that closes, after its last frames were passed on."""
        port = endpoint.card.port
        self._pass_frames(port.number, port.outgoing.take(0, 0, _ALL))
        super().detach(endpoint)

    def abandon(self) -> None:
        """End all requests, since the agent has ended, or is left."""
        for endpoint in list(self.endpoints.values()):
            status = Status.REMOTE_ENDPOINT_CLOSED
            for connect in endpoint.connecting:
                connect.refuse(status)
            for partner in list(endpoint.partners.values()):
                partner.forget(status)
            for request in list(endpoint.requests):
                if isinstance(request, Receive):
                    request.close(status)
                else:
                    request.close()

    def receive_local(self, channels: Sequence[LocalChannel], now: int) -> None:
        """Take the records of the agent, and of other nodes of this host."""
        super().receive_local(channels, now)
        if not self.handler_calls.running:
            self.neighbourhood.receive([each for each in channels if each is not self.channel])
            self.advance(now)
        self._settle()

    def transmit_few(
        self, now: int, interface: int = 0, timely: bool = True, limit: int = FEW
    ) -> list[bytes] | FrameBatch:
        """Pass the frames to the agent, and return none."""
        # A list, however many there are: each frame becomes a record.
        frames = super().transmit_few(now, interface, timely, _ALL)
        self._pass_frames(interface, frames)
        self._settle()
        return _NO_FRAMES

    def _pass_frames(self, interface: int, frames: list[bytes] | FrameBatch) -> None:
        if isinstance(frames, list):
            for frame in frames:
                self.out.put(AgentRecord.FRAME, extra=interface, data=frame)

    def _cards(self) -> list[DistantCard]:
        return [each for each in self.endpoints if isinstance(each, DistantCard)]

    def _settle(self) -> None:
        for each in self._cards():
            each.settle()

    def deadline(self) -> int | None:
        """Latest time of the next call of ``transmit``; see :meth:`Node.deadline`."""
        if any(each.unsettled for each in self._cards()):
            return 0
        return super().deadline()
