"""The agent's side of a channel to an application: its calls, carried out on the agent's node.

``records.py`` describes the records. This file has those of the application as a whole; those of an endpoint are in
``served_endpoint.py``, and those of one whose library runs in the application in ``served_card.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from mxwire.errors import InvalidRecordError, MxwireError
from mxwire.ethernet import ETHERTYPE, ETHERTYPE_MXOE, HEADER_SIZE, SOURCE
from mxwire.protocol.agent.progress import AgentProgress
from mxwire.protocol.agent.records import (
    AGENT_HEAD_SIZE,
    AGENT_VERSION,
    ANY_ENDPOINT,
    INLINE_MAXIMUM,
    NO_PARTNER,
    OPEN_OPTIONS,
    PLACE,
    TOKEN,
    AgentHead,
    AgentRecord,
    RecordFlag,
)
from mxwire.protocol.agent.remote_segments import RemoteMemory
from mxwire.protocol.agent.served_card import ServedCard
from mxwire.protocol.agent.served_endpoint import ServedEndpoint
from mxwire.protocol.agent.served_side import ApplicationChannel, ServedSide
from mxwire.protocol.agent.tokens import MOVE_MAXIMUM, TokenTable
from mxwire.protocol.arguments import Segments
from mxwire.protocol.library.endpoint import EngineEndpoint
from mxwire.protocol.library.partner import Event
from mxwire.protocol.local_channel import LocalChannel
from mxwire.protocol.node import Node
from mxwire.protocol.status import LocalProtocolError, Status
from mxwire.wire.enums import PacketType
from mxwire.wire.formats import TINY
from mxwire.wire.layout import TYPE_OFFSET, layout_of
from mxwire.wire.numbers import NO_SESSION

_RECORDS: Final = 256
"""Maximum number of records taken from an application before others have their turn."""
_MOVED_MAXIMUM: Final = 4 << 20
"""Bytes moved between applications, after which others have their turn: some 2 ms."""
_ANSWERS_MAXIMUM: Final = 64
"""Maximum number of records that wait for room, beyond which no more data is put into answers."""
_WAITING_MAXIMUM: Final = 1 << 17
"""Maximum number of records that wait for room, before an application that does not read them is dropped."""
# Bounds, not slice objects, which mypyc cannot apply to bytes.
_FROM: Final[int] = SOURCE.start
_BODY: Final[int] = ETHERTYPE.stop
_SOURCE: Final[int] = layout_of(TINY).by_name["src_endpoint"].offset
_ETHERTYPE: Final = ETHERTYPE_MXOE.to_bytes(2, "big")
_LIBRARY_TYPES: Final = frozenset(
    int(each)
    for each in (
        PacketType.CONNECT,
        PacketType.TINY,
        PacketType.SMALL,
        PacketType.MEDIUM,
        PacketType.RNDV,
        PacketType.NOTIFY,
        PacketType.TRUC,
    )
)
"""The types of the packets that a library emits; all others are the card's."""

OpenCall = Callable[..., EngineEndpoint]
"""Opens an endpoint of the node: number (None: any), key, interface, and the options of ``Node.open_endpoint``."""


class ServedClient(ApplicationChannel):
    """One application that is attached to an agent, on the agent's ``node``.

    ``facts`` describe the host to the application. ``open_endpoint`` and ``close_endpoint`` open and close endpoints of
    the node. ``tokens`` are those of all applications of the agent. ``memory`` is the application's, if the agent may
    access it. ``take_shared`` returns memory of a length that the application has passed to the agent, or None if it
    has not.
    """

    def __init__(
        self,
        node: Node,
        channel: LocalChannel,
        facts: dict[str, Any],
        open_endpoint: OpenCall,
        close_endpoint: Callable[[EngineEndpoint], None],
        tokens: TokenTable,
        memory: RemoteMemory | None = None,
        take_shared: Callable[[int], memoryview | None] = lambda _length: None,
    ) -> None:
        super().__init__(node, channel, memory, take_shared)
        self.sides: dict[int, ServedSide] = {}
        """Its open endpoints, and card's sides of endpoints, by handle."""
        self.attached = False
        """True once the application has named its version, and the versions agree."""
        self.fault = ""
        """The reason why the application must be dropped."""
        self._facts = facts
        self._open_endpoint = open_endpoint
        self._close_endpoint = close_endpoint
        self._tokens = tokens
        self._moved = 0
        """Bytes moved in this turn."""
        self._cards: dict[tuple[int, int], ServedCard] = {}
        """The card's sides by interface and endpoint number."""
        self._handles = 0

    @property
    def progress(self) -> AgentProgress:
        """Progress of its endpoints."""
        return AgentProgress.CARD if self._cards else AgentProgress.MATCH

    # Records of the application.

    def receive(self, now: int) -> bool:
        """Take the records that have arrived, up to a number; return False, with the reason in ``fault``, if the
        application must be dropped. ``now`` is the time in ns."""
        channel, self.now, self._moved = self.channel, now, 0
        try:
            # Unlike the application's loop (``node.py``), this one has a fault to report, and bounds what it does.
            for _ in range(_RECORDS):
                record = channel.peek()
                if record is None or self._moved >= _MOVED_MAXIMUM:
                    break
                self._take(record)
                channel.advance()
            channel.settle()
        except InvalidRecordError as error:
            self.fault = f"has sent an impossible record ({error})"
            return False
        self.out.flush()
        if channel.ended:
            self.fault = "has ended"
        elif len(self.out) > _WAITING_MAXIMUM:
            self.fault = f"reads no records ({len(self.out)} wait)"
        return not self.fault

    def _take(self, record: bytes | memoryview) -> None:
        head = AgentHead(record)
        data = record[AGENT_HEAD_SIZE:]
        if head.kind == AgentRecord.ATTACH:
            self._attach(head)
            return
        if not self.attached:
            raise InvalidRecordError("a record before the first one")
        call = _CALLS.get(head.kind)
        if call is not None:
            call(self, head, data)
            return
        side = self.sides.get(head.handle)
        if side is None:
            raise InvalidRecordError(f"a record of kind {head.kind} for an endpoint that is not open")
        if head.kind == AgentRecord.CLOSE:
            self._drop(side)
            self.answer(head)
        else:
            side.take(head, data)

    def _attach(self, head: AgentHead) -> None:
        if head.number != AGENT_VERSION:
            version = self._facts.get("version", "")
            text = f"mxwire {version}, whose protocol for applications is {AGENT_VERSION}, not {head.number & 0xFFFF}"
            self.refuse(head, Status.BAD_LIB_ABI, text)
            return
        self.attached = True
        # Before the answer: the application makes its node of the peers that precede it.
        self.report_peers()
        flags = 0 if self.memory is None else RecordFlag.IN_PLACE
        self.answer(head, flags=flags, data=json.dumps(self._facts).encode())

    def _open(self, head: AgentHead, data: bytes | memoryview) -> None:
        if len(data) != OPEN_OPTIONS.size:
            raise InvalidRecordError("the options of an endpoint have another length")
        key, interface, session, bits, shift, acked, _ = OPEN_OPTIONS.unpack(data)
        side: ServedSide
        try:
            if head.flags & RecordFlag.CARD:
                side = self._open_card(head.extra, interface, session)
            else:
                engine = self._open_endpoint(
                    None if head.extra == ANY_ENDPOINT else head.extra,
                    key,
                    interface,
                    session=None if session == NO_PARTNER else session,
                    context_bits=bits,
                    context_shift=shift,
                    completions=True,
                    acked_sends=bool(acked),
                )
                session = engine.session
                side = ServedEndpoint(self, self._handles + 1, engine, self._close_endpoint)
        except MxwireError as error:
            self.refuse(head, getattr(error, "status", Status.BAD_ERROR), str(error))
            return
        self._handles += 1
        self.sides[self._handles] = side
        slots = side.card.ring.maximum if isinstance(side, ServedCard) else 0
        self.answer(head, handle=self._handles, extra=side.number, length=session, mask=slots)

    def _open_card(self, number: int, interface: int, session: int) -> ServedCard:
        interfaces = self.node.interfaces
        if interface >= len(interfaces) or session >= NO_SESSION:
            raise LocalProtocolError(Status.BOARD_NOT_FOUND, f"the agent has no interface {interface}")
        if number >= self.node.profile.endpoint_maximum or number in interfaces[interface].endpoints:
            raise LocalProtocolError(Status.BUSY, f"endpoint {number} is open already, or too high: choose another")
        side = ServedCard(self, self._handles + 1, interfaces[interface].open(number, session))
        self._cards[interface, number] = side
        return side

    def _drop(self, side: ServedSide) -> None:
        del self.sides[side.handle]
        self._cards.pop((side.interface, side.number), None)
        side.close()

    def leave(self) -> Iterator[None]:
        """Close the channel at once, and all endpoints in steps, since the end of many requests would delay others."""
        self.out.clear()
        self.channel.close()
        self._tokens.forget(self)
        for each in list(self.sides.values()):
            yield from each.wind_down()
            self._drop(each)
            yield

    def close(self) -> None:
        """Close the channel and all endpoints."""
        for _ in self.leave():
            pass

    def _share(self, head: AgentHead, _data: bytes | memoryview) -> None:
        self.share(head)

    def _names(self, head: AgentHead, _data: bytes | memoryview) -> None:
        if head.flags & RecordFlag.YES:
            self.node.forget_names()
        self.node.ask_names()

    def _add_peer(self, head: AgentHead, data: bytes | memoryview) -> None:
        try:
            peer = self.node.add_peer(head.address, bytes(data).decode("utf-8", "replace") or None)
        except MxwireError as error:
            self.refuse(head, getattr(error, "status", Status.BAD_ERROR), str(error))
            return
        # Before the answer, after which the application looks the peer up.
        self.introduce(peer)
        self.answer(head, extra=peer.index)

    def _transmit(self, head: AgentHead, data: bytes | memoryview) -> None:
        """Queue a frame of the application's library, from one of its endpoints to a peer."""
        node, interface, frame = self.node, head.extra, bytes(data)
        if len(frame) <= _SOURCE or (interface, frame[_SOURCE]) not in self._cards:
            raise InvalidRecordError("a frame of an endpoint that is not open")
        port = node.interfaces[interface]
        # With another source or type it could act for another host, or for the card.
        if frame[_FROM:_BODY] != port.address + _ETHERTYPE or frame[TYPE_OFFSET] not in _LIBRARY_TYPES:
            raise InvalidRecordError("a frame that is not one of a library")
        if len(frame) > HEADER_SIZE + self._facts["mtus"][interface]:
            raise InvalidRecordError("a frame that is longer than the MTU")
        peer = node.peers.by_address(frame[:_FROM])
        if peer is not None:
            # In a full table, the peers of partners are the last to be replaced.
            peer.talked = True
            port.outgoing.put(frame)

    # Memory for other applications.

    @property
    def region_count(self) -> int:
        """Number of regions that it has registered."""
        return self._tokens.count(self)

    def _register(self, head: AgentHead, data: bytes | memoryview) -> None:
        memory = self.segments_at(data)
        token = self._tokens.register(self, memory, len(data) // PLACE.size) if memory.length else 0
        if token:
            self.answer(head, match_info=token)
        else:
            self.refused_count += 1
            text = "the agent has too many segments of regions of this application" if memory.length else "empty region"
            self.refuse(head, Status.NO_RESOURCES, text)

    def _deregister(self, head: AgentHead, data: bytes | memoryview) -> None:
        if len(data) % TOKEN.size:
            raise InvalidRecordError("tokens of another length")
        self.answer(head, length=sum(self._tokens.deregister(self, token) for (token,) in TOKEN.iter_unpack(data)))

    def _move(self, head: AgentHead, data: bytes | memoryview) -> None:
        """Put data into a region, or get data out of it."""
        puts, length, begin = head.kind == AgentRecord.PUT, head.length, head.mask
        if length > MOVE_MAXIMUM:
            raise InvalidRecordError("more data than one record moves")
        memory: Segments
        if head.flags & RecordFlag.IN_PLACE:
            memory = self.segments_at(data)
        elif puts:
            memory = Segments(bytes(data))
        elif self.waiting_count < _ANSWERS_MAXIMUM:
            memory = Segments(bytearray(min(length, INLINE_MAXIMUM)), writable=True)
        else:
            self.refused_count += 1
            self.refuse(head, Status.NO_RESOURCES, "the application does not read the answers to its accesses")
            return
        if begin + length > memory.length:
            raise InvalidRecordError("an access to shorter memory")
        self._moved += length
        try:
            (self._tokens.put if puts else self._tokens.get)(head.match_info, head.extra, memory, begin, length)
        except LocalProtocolError as error:
            self.refuse(head, error.status, str(error))
            return
        answers = not puts and not head.flags & RecordFlag.IN_PLACE
        self.answer(head, data=memory.copy() if answers else b"")

    # Reports.

    def report(self) -> None:
        """Append records of everything that has changed, after a step of the node."""
        for each in self.sides.values():
            each.report()
        self.out.flush()

    def take_event(self, event: Event) -> None:
        """Pass on an event of the node, if it concerns the application."""
        concerned: Any = event.request if event.request is not None else event.partner
        if concerned is None:
            return
        for side in self.sides.values():
            if isinstance(side, ServedEndpoint) and side.engine is concerned.endpoint:
                side.take_event(event)
                return


_CALLS: Final[dict[int, Callable[[ServedClient, AgentHead, bytes | memoryview], None]]] = {
    AgentRecord.OPEN: ServedClient._open,
    AgentRecord.ADD_PEER: ServedClient._add_peer,
    AgentRecord.SHARE: ServedClient._share,
    AgentRecord.NAMES: ServedClient._names,
    AgentRecord.REGISTER: ServedClient._register,
    AgentRecord.DEREGISTER: ServedClient._deregister,
    AgentRecord.PUT: ServedClient._move,
    AgentRecord.GET: ServedClient._move,
    AgentRecord.FRAME: ServedClient._transmit,
}
"""The calls that concern no endpoint, by kind of record."""
