"""The agent's side of a channel to an application: its calls, carried out on the agent's node.

``agent_records.py`` describes the records. Each endpoint of the application is an ordinary endpoint of the node, whose
completed requests become records at the end of each step (:meth:`ServedClient.report`). A short message is in the
record of its send or of its completion. A longer one is sent from and received into the memory of the application
(``remote_segments.py``). Without access to it, a message that is sent is collected from DATA records before it is
handed to the engine; one that is received is collected in memory of the agent, and then passed on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from mxwire.errors import InvalidRecordError, MxwireError
from mxwire.protocol.agent_records import (
    AGENT_HEAD_SIZE,
    AGENT_VERSION,
    ANY_ENDPOINT,
    INLINE_MAXIMUM,
    NO_PARTNER,
    OPEN_OPTIONS,
    PLACE,
    SECONDS,
    UNACKED_ROW,
    AgentHead,
    AgentRecord,
    RecordFlag,
    RecordOutbox,
)
from mxwire.protocol.arguments import Segments
from mxwire.protocol.library.connect import ConnectCall
from mxwire.protocol.library.endpoint import LENGTH_MAXIMUM, EngineEndpoint
from mxwire.protocol.library.inbound import Unexpected
from mxwire.protocol.library.partner import Event, Partner, Request
from mxwire.protocol.library.receive import Receive
from mxwire.protocol.neighbours import LocalChannel
from mxwire.protocol.node import Node
from mxwire.protocol.peers import Peer
from mxwire.protocol.remote_segments import RemoteMemory, RemoteSegments, SharedSegments
from mxwire.protocol.status import EventKind, LocalProtocolError, Status
from mxwire.wire.numbers import NO_PEER_INDEX

_RECORDS: Final = 256
"""Maximum number of records taken from an application before others have their turn."""
_WAITING_MAXIMUM: Final = 1 << 17
"""Maximum number of records that wait for room, before an application that does not read them is dropped."""
_REQUESTS_MAXIMUM: Final = 1 << 18
"""Maximum number of unfinished requests of an application."""
_SHARED_MAXIMUM: Final = 1024
"""Maximum number of areas of memory that an application shares; further ones are treated like other memory."""
_STAGED_MAXIMUM: Final = 1 << 30
"""Maximum number of bytes of the messages of an application that the agent holds until they are sent."""
_ENDPOINT: Final = 0xFF
_SUCCEEDED: Final = (Status.SUCCESS, Status.MESSAGE_TRUNCATED)

OpenCall = Callable[..., EngineEndpoint]
"""Opens an endpoint of the node: number (None: any), key, interface, and the options of ``Node.open_endpoint``."""


class ServedEndpoint:
    """An endpoint of the node that belongs to an application, and its requests by their numbers."""

    __slots__ = (
        "connects",
        "engine",
        "flush",
        "handle",
        "held",
        "offered",
        "remote",
        "requests",
        "staged",
        "unexpected",
    )

    def __init__(self, handle: int, engine: EngineEndpoint) -> None:
        self.handle = handle
        self.engine = engine
        self.requests: dict[int, Request] = {}
        self.connects: dict[int, tuple[ConnectCall, int]] = {}
        """Unfinished connects, and their transmissions as last reported."""
        self.staged: dict[int, bytearray] = {}
        """Messages that are being collected from DATA records."""
        self.held: dict[int, int] = {}
        """Bytes of the messages of unfinished sends that were collected."""
        self.remote: dict[int, RemoteSegments | SharedSegments] = {}
        """The memory of unfinished requests that is the application's."""
        self.offered: Unexpected | None = None
        """The message with which the application's unexpected handler is called now."""
        self.flush: int | None = None
        """The number of a FLUSH that is not answered."""
        self.unexpected = (0, 0)
        """Number and bytes of unexpected messages, as last reported."""


class ServedClient:
    """One application that is attached to an agent, on the agent's ``node``.

    ``facts`` describe the host to the application. ``open_endpoint`` and ``close_endpoint`` open and close endpoints of
    the node. ``memory`` is the application's, if the agent may access it. ``take_shared`` returns memory of a length
    that the application has passed to the agent, or None if it has not.
    """

    def __init__(
        self,
        node: Node,
        channel: LocalChannel,
        facts: dict[str, Any],
        open_endpoint: OpenCall,
        close_endpoint: Callable[[EngineEndpoint], None],
        memory: RemoteMemory | None = None,
        take_shared: Callable[[int], memoryview | None] = lambda _length: None,
    ) -> None:
        self.node = node
        self.channel = channel
        self.endpoints: dict[int, ServedEndpoint] = {}
        """Its open endpoints, by handle."""
        self.attached = False
        """True once the application has named its version, and the versions agree."""
        self._facts = facts
        self._open_endpoint = open_endpoint
        self._close_endpoint = close_endpoint
        self._memory = memory
        self._take_shared = take_shared
        self._shared: list[tuple[int, memoryview]] = []
        """Address in the application, and shared memory there."""
        self._out = RecordOutbox(channel)
        self._handles = 0
        self._peers: dict[int, tuple[bytes, str | None, bool, int]] = {}
        """The peers as last reported, by index."""
        self._requests = 0
        """Number of unfinished requests."""
        self._staged = 0
        """Bytes of the messages that the agent holds for unfinished sends."""

    @property
    def request_count(self) -> int:
        """Number of unfinished requests."""
        return self._requests

    @property
    def held_bytes(self) -> int:
        """Bytes of the messages that the agent holds for unfinished sends."""
        return self._staged

    @property
    def waiting_count(self) -> int:
        """Number of records that wait for room in the channel."""
        return len(self._out)

    # Records of the application.

    def receive(self) -> bool:
        """Take the records that have arrived, up to a number; return False if the application must be dropped."""
        channel = self.channel
        try:
            for _ in range(_RECORDS):
                record = channel.peek()
                if record is None:
                    break
                self._take(record)
                channel.advance()
            channel.settle()
        except InvalidRecordError:
            return False
        self._out.flush()
        return not channel.ended and len(self._out) <= _WAITING_MAXIMUM

    def _take(self, record: bytes | memoryview) -> None:
        head = AgentHead(record)
        data = record[AGENT_HEAD_SIZE:]
        if head.kind == AgentRecord.ATTACH:
            self._attach(head, data)
            return
        if not self.attached:
            raise InvalidRecordError("a record before the first one")
        if head.kind == AgentRecord.OPEN:
            self._open(head, data)
        elif head.kind == AgentRecord.ADD_PEER:
            self._add_peer(head, data)
        elif head.kind == AgentRecord.SHARE:
            self._share(head)
        elif head.kind == AgentRecord.NAMES:
            if head.flags & RecordFlag.YES:
                self.node.forget_names()
            self.node.ask_names()
        else:
            call = _CALLS.get(head.kind)
            if call is None:
                raise InvalidRecordError("an unknown kind of record")
            served = self.endpoints.get(head.handle)
            if served is None:
                raise InvalidRecordError("a record of an endpoint that is not open")
            call(self, served, head, data)

    def _attach(self, head: AgentHead, data: bytes | memoryview) -> None:
        if head.number != AGENT_VERSION:
            version = self._facts.get("version", "")
            text = f"mxwire {version}, whose protocol for applications is {AGENT_VERSION}, not {head.number & 0xFFFF}"
            self._refuse(head, Status.BAD_LIB_ABI, text)
            return
        self.attached = True
        self.report_peers()
        flags = 0 if self._memory is None else RecordFlag.IN_PLACE
        self._answer(head, flags=flags, data=json.dumps(self._facts).encode())

    def _answer(self, head: AgentHead, **fields: Any) -> None:
        self._out.put(AgentRecord.ANSWER, number=head.number, **fields)

    def _refuse(self, head: AgentHead, status: Status, text: str) -> None:
        data = text.encode("utf-8", "replace")[:INLINE_MAXIMUM]
        self._out.put(AgentRecord.REFUSED, status=status, number=head.number, data=data)

    def _open(self, head: AgentHead, data: bytes | memoryview) -> None:
        if len(data) != OPEN_OPTIONS.size:
            raise InvalidRecordError("the options of an endpoint have another length")
        key, interface, session, bits, shift, acked, _ = OPEN_OPTIONS.unpack(data)
        number = None if head.extra == ANY_ENDPOINT else head.extra
        try:
            engine = self._open_endpoint(
                number,
                key,
                interface,
                session=None if session == NO_PARTNER else session,
                context_bits=bits,
                context_shift=shift,
                completions=True,
                acked_sends=bool(acked),
            )
        except MxwireError as error:
            self._refuse(head, getattr(error, "status", Status.BAD_ERROR), str(error))
            return
        self._handles += 1
        self.endpoints[self._handles] = ServedEndpoint(self._handles, engine)
        self._answer(head, handle=self._handles, extra=engine.number, length=engine.session)

    def _close(self, served: ServedEndpoint, head: AgentHead, _data: bytes | memoryview) -> None:
        self._drop(served)
        self._answer(head)

    def _drop(self, served: ServedEndpoint) -> None:
        del self.endpoints[served.handle]
        self._requests -= len(served.requests)
        self._staged -= sum(map(len, served.staged.values())) + sum(served.held.values())
        self._close_endpoint(served.engine)
        # Pulls of a closed endpoint continue (R-CLS-08).
        for remote in served.remote.values():
            remote.detach()

    def close(self) -> None:
        """Close all endpoints, and the channel."""
        for served in list(self.endpoints.values()):
            self._drop(served)
        self._out.clear()
        self.channel.close()

    def _share(self, head: AgentHead) -> None:
        view = self._take_shared(head.length)
        if view is None:
            raise InvalidRecordError("shared memory that was not passed, or could be truncated")
        has_room = len(self._shared) < _SHARED_MAXIMUM
        if has_room:
            self._shared.append((head.extra, view))
        self._answer(head, flags=RecordFlag.YES if has_room else 0)

    def _add_peer(self, head: AgentHead, data: bytes | memoryview) -> None:
        address = head.partner.to_bytes(8, "big")[2:]
        try:
            peer = self.node.add_peer(address, bytes(data).decode("utf-8", "replace") or None)
        except MxwireError as error:
            self._refuse(head, getattr(error, "status", Status.BAD_ERROR), str(error))
            return
        self._introduce(peer)
        self._answer(head, extra=peer.index)

    # Requests.

    def _number(self, served: ServedEndpoint, head: AgentHead) -> bool:
        """Check the number of a new request; return False if the application has too many."""
        if head.number in served.requests or not head.number:
            raise InvalidRecordError("a request with the number of another one")
        if self._requests >= _REQUESTS_MAXIMUM:
            self._end(served, head.number, Status.NO_RESOURCES)
            return False
        return True

    def _post(self, served: ServedEndpoint, number: int, request: Request) -> None:
        request.context = number
        served.requests[number] = request
        self._requests += 1

    def _end(self, served: ServedEndpoint, number: int, status: Status) -> None:
        """End a request that the engine does not have."""
        served.remote.pop(number, None)
        self._staged -= served.held.pop(number, 0)
        self._out.put(AgentRecord.COMPLETED, status=status, handle=served.handle, number=number)

    def _partner(self, served: ServedEndpoint, place: int) -> Partner | None:
        """The partner with a peer index and an endpoint number, if the endpoint has it."""
        engine = served.engine
        index, number = place >> 8, place & _ENDPOINT
        found = engine.partners.get((index, number))
        if found is None and number == engine.number and index <= NO_PEER_INDEX:
            peer = self.node.peers.at(index)
            if peer is not None and peer.own == engine.card.port.number:
                return engine.own_partner()
        return found

    def _connect(self, served: ServedEndpoint, head: AgentHead, _data: bytes | memoryview) -> None:
        if not self._number(served, head):
            return
        try:
            request = served.engine.connect(
                head.partner >> 8, head.partner & _ENDPOINT, head.extra, match_info=head.match_info
            )
        except LocalProtocolError as error:
            self._end(served, head.number, error.status)
            return
        self._post(served, head.number, request)
        served.connects[head.number] = request, 0

    def _send(self, served: ServedEndpoint, head: AgentHead, data: bytes | memoryview) -> None:
        if not self._number(served, head):
            self._discard(served, head.number)
            return
        if head.flags & (RecordFlag.DATA | RecordFlag.IN_PLACE):
            self._discard(served, head.number)
        if head.flags & RecordFlag.DATA:
            message: Any = bytes(data)
        elif head.flags & RecordFlag.IN_PLACE:
            message = self._remote(served, head.number, data)
        else:
            message = served.staged.pop(head.number, b"")
            served.held[head.number] = len(message)
        if len(message) != head.length:
            # Its data was too much for the agent.
            self._end(served, head.number, Status.NO_RESOURCES)
            return
        partner = self._partner(served, head.partner)
        if partner is None:
            self._end(served, head.number, Status.REMOTE_ENDPOINT_UNREACHABLE)
            return
        try:
            request = served.engine.send(
                partner, message, head.match_info, synchronous=bool(head.flags & RecordFlag.SYNCHRONOUS)
            )
        except LocalProtocolError as error:
            self._end(served, head.number, error.status)
            return
        self._post(served, head.number, request)

    def _data(self, served: ServedEndpoint, head: AgentHead, data: bytes | memoryview) -> None:
        """Collect a part of a message that is about to be sent or returned."""
        memory = served.staged.get(head.number)
        if memory is None:
            if head.extra or head.length > LENGTH_MAXIMUM:
                # The first part was refused.
                return
            if self._staged + head.length > _STAGED_MAXIMUM and self._staged:
                return
            memory = served.staged[head.number] = bytearray()
        if head.extra != len(memory) or not len(data) or len(memory) + len(data) > head.length:
            raise InvalidRecordError("data in another order")
        if self._staged + len(data) > _STAGED_MAXIMUM and self._staged > len(memory):
            # Others have taken the room since its first part. Further parts are ignored, as of one that was refused.
            self._discard(served, head.number)
            return
        memory += data
        self._staged += len(data)

    def _discard(self, served: ServedEndpoint, number: int) -> None:
        """Forget the parts of a message that were collected."""
        self._staged -= len(served.staged.pop(number, b""))

    def _remote(self, served: ServedEndpoint, number: int, data: bytes | memoryview) -> RemoteSegments | SharedSegments:
        """The memory of the application that a record describes."""
        if len(data) == PLACE.size:
            place, size = PLACE.unpack(data)
            for start, view in self._shared:
                if start <= place and place + size <= start + len(view):
                    shared = SharedSegments(view[place - start : place - start + size])
                    served.remote[number] = shared
                    return shared
        if self._memory is None or len(data) % PLACE.size:
            raise InvalidRecordError("addresses of another length, or without permission")
        try:
            remote = RemoteSegments(self._memory, list(PLACE.iter_unpack(data)))
        except ValueError as error:
            raise InvalidRecordError(str(error)) from None
        if remote.length > LENGTH_MAXIMUM:
            raise InvalidRecordError("memory that is too long")
        served.remote[number] = remote
        return remote

    def _receive(self, served: ServedEndpoint, head: AgentHead, data: bytes | memoryview) -> None:
        if not self._number(served, head):
            return
        try:
            memory = self._remote(served, head.number, data) if head.flags & RecordFlag.IN_PLACE else None
            request = served.engine.receive(memory, head.match_info, head.mask, min(head.length, LENGTH_MAXIMUM))
        except LocalProtocolError as error:
            self._end(served, head.number, error.status)
            return
        self._post(served, head.number, request)

    def _claim(self, served: ServedEndpoint, head: AgentHead, _data: bytes | memoryview) -> None:
        """Post a receive for one unexpected message; its number is in the place of the match information."""
        number = head.match_info
        if head.length > LENGTH_MAXIMUM or number in served.requests:
            raise InvalidRecordError("an impossible claim")
        if self._requests >= _REQUESTS_MAXIMUM or self._staged + head.length > _STAGED_MAXIMUM:
            self._refuse(head, Status.NO_RESOURCES, "the agent has no memory for the message now")
            return
        request = served.engine.claim(bytearray(head.length), head.extra)
        if request is not None:
            self._post(served, number, request)
            served.held[number] = head.length
            self._staged += head.length
        self._answer(head, flags=0 if request is None else RecordFlag.YES)

    def _return(self, served: ServedEndpoint, head: AgentHead, data: bytes | memoryview) -> None:
        """Keep a message that a receive of the application had taken, or give it to another one."""
        if head.flags & RecordFlag.DATA:
            content = bytes(data)
        else:
            content = bytes(served.staged.pop(head.number, b""))
            self._staged -= len(content)
        partner = self._partner(served, head.partner)
        if partner is not None and head.length <= LENGTH_MAXIMUM:
            message = Unexpected(partner, head.match_info, head.length, data=content)
            served.engine.take_back(message, min(head.extra, served.engine.matching.arrivals))

    def _probe(self, served: ServedEndpoint, head: AgentHead, _data: bytes | memoryview) -> None:
        try:
            found = served.engine.probe(head.match_info, head.mask)
        except LocalProtocolError as error:
            self._refuse(head, error.status, str(error))
            return
        if found is None:
            self._answer(head)
        else:
            self._answer(
                head,
                flags=RecordFlag.YES,
                partner=self._place(found.partner),
                match_info=found.match_info,
                length=found.length,
            )

    def _cancel(self, served: ServedEndpoint, head: AgentHead, _data: bytes | memoryview) -> None:
        request = served.requests.get(head.extra)
        cancelled = isinstance(request, (Receive, ConnectCall)) and served.engine.cancel(request)
        if cancelled:
            self._forget(served, head.extra)
        self._answer(head, flags=RecordFlag.YES if cancelled else 0)

    def _waits(self, served: ServedEndpoint, head: AgentHead, _data: bytes | memoryview) -> None:
        request = served.requests.get(head.extra)
        self._answer(head, flags=RecordFlag.YES if isinstance(request, Receive) and request.waiting else 0)

    def _forget(self, served: ServedEndpoint, number: int) -> None:
        if served.requests.pop(number, None) is not None:
            self._requests -= 1
            self._staged -= served.held.pop(number, 0)
            remote = served.remote.pop(number, None)
            if remote is not None:
                remote.detach()
            served.connects.pop(number, None)

    def _disconnect(self, served: ServedEndpoint, head: AgentHead, _data: bytes | memoryview) -> None:
        partner = self._partner(served, head.partner)
        if partner is not None:
            served.engine.disconnect(partner)
            self._report_completed(served)
        self._answer(head)

    def _set_timeout(self, served: ServedEndpoint, head: AgentHead, data: bytes | memoryview) -> None:
        if len(data) != SECONDS.size:
            raise InvalidRecordError("a time of another length")
        seconds = None if head.flags & RecordFlag.UNLIMITED else float(SECONDS.unpack(data)[0])
        request = served.requests.get(head.extra)
        if head.flags & RecordFlag.ONE_REQUEST and request is None:
            # It has ended.
            return
        try:
            served.engine.set_timeout(seconds, request)
        except LocalProtocolError:
            raise InvalidRecordError("an impossible time") from None

    # Unexpected messages.

    def _handle(self, served: ServedEndpoint, head: AgentHead, _data: bytes | memoryview) -> None:
        if head.flags & RecordFlag.YES:
            served.engine.answers_later = True
            served.engine.handle_unexpected(lambda message: self._offer(served, message))
        else:
            served.engine.handle_unexpected(None)

    def _offer(self, served: ServedEndpoint, message: Unexpected) -> None:
        served.offered = message
        data = message.data if message.data is not None and len(message.data) <= INLINE_MAXIMUM else None
        self._out.put(
            AgentRecord.OFFER,
            flags=0 if data is None else RecordFlag.DATA,
            handle=served.handle,
            partner=self._place(message.partner),
            match_info=message.match_info,
            length=message.length,
            extra=served.engine.matching.identity,
            data=b"" if data is None else data,
        )

    def _resolve(self, served: ServedEndpoint, head: AgentHead, _data: bytes | memoryview) -> None:
        message, served.offered = served.offered, None
        if message is None:
            raise InvalidRecordError("the result of a handler that was not called")
        served.engine.resolve(message, bool(head.flags & RecordFlag.YES))

    def _suspend(self, served: ServedEndpoint, head: AgentHead, _data: bytes | memoryview) -> None:
        served.engine.suspended = bool(head.flags & RecordFlag.YES)

    def _take_flush(self, served: ServedEndpoint, head: AgentHead, _data: bytes | memoryview) -> None:
        served.flush = head.extra

    def _tell_unacked(self, served: ServedEndpoint, head: AgentHead, _data: bytes | memoryview) -> None:
        rows = [UNACKED_ROW.pack(self._place(each), count) for each, count in served.engine.unacked()]
        self._answer(head, data=b"".join(rows[: INLINE_MAXIMUM // UNACKED_ROW.size]))

    # Reports.

    def report(self) -> None:
        """Append records of everything that has changed, after a step of the node."""
        for served in self.endpoints.values():
            engine = served.engine
            self._report_completed(served)
            matching = engine.matching
            unexpected = matching.unexpected, matching.unexpected_bytes
            if unexpected != served.unexpected:
                served.unexpected = unexpected
                self._out.put(AgentRecord.UNEXPECTED, handle=served.handle, length=unexpected[0], extra=unexpected[1])
            for number, (connect, before) in served.connects.items():
                if connect.transmissions != before:
                    served.connects[number] = connect, connect.transmissions
                    self._out.put(
                        AgentRecord.TRANSMITTED, handle=served.handle, number=number, extra=connect.transmissions
                    )
            if served.flush is not None and engine.settled():
                self._out.put(AgentRecord.FLUSHED, handle=served.handle, extra=served.flush)
                served.flush = None
        self._out.flush()

    def _report_completed(self, served: ServedEndpoint) -> None:
        engine = served.engine
        completions = engine.completions
        if completions is None or not len(completions):
            return
        while (request := completions.first()) is not None:
            engine.forget(request)
            number = request.context
            if served.requests.get(number) is not request:
                continue
            remote = served.remote.get(number)
            self._forget(served, number)
            self._report_end(served, number, request, remote)

    def _report_end(
        self, served: ServedEndpoint, number: int, request: Request, remote: RemoteSegments | SharedSegments | None
    ) -> None:
        status = request.status
        assert status is not None
        if remote is not None and remote.failed and status in _SUCCEEDED:
            status = Status.MESSAGE_ABORTED
        flags, data, position = 0, b"", 0
        if isinstance(request, Receive):
            position = request.position
            if request.starved:
                flags |= RecordFlag.STARVED
            elif status in _SUCCEEDED and remote is None:
                memory = request.memory if request.buffer is None else Segments(request.buffer)
                if request.transferred <= INLINE_MAXIMUM:
                    data = memory.copy()[: request.transferred]
                    flags |= RecordFlag.DATA
                else:
                    self._out.put_data(served.handle, number, memory, request.transferred)
        elif isinstance(request, ConnectCall) and request.exhausted:
            flags |= RecordFlag.EXHAUSTED
        self._out.put(
            AgentRecord.COMPLETED,
            status=status,
            flags=flags,
            handle=served.handle,
            number=number,
            partner=NO_PARTNER if request.partner is None else self._place(request.partner),
            match_info=request.match_info,
            mask=position,
            length=request.length,
            extra=request.transferred,
            data=data,
        )

    def take_event(self, event: Event) -> None:
        """Pass on an event of the node, if it concerns the application."""
        request, partner = event.request, event.partner
        concerned: Any = request if request is not None else partner
        if concerned is None:
            return
        served = next((each for each in self.endpoints.values() if each.engine is concerned.endpoint), None)
        if served is None:
            return
        if event.kind is EventKind.UNDELIVERED and request is not None:
            # The end of the request itself is reported first.
            self._report_completed(served)
            self._out.put(
                AgentRecord.LOST,
                status=getattr(request, "late_status", None) or Status.REMOTE_ENDPOINT_UNREACHABLE,
                handle=served.handle,
                partner=NO_PARTNER if request.partner is None else self._place(request.partner),
                match_info=request.match_info,
                length=request.length,
            )
        elif event.kind in _FORWARDED and partner is not None:
            self._out.put(
                AgentRecord.EVENT,
                handle=served.handle,
                partner=self._place(partner),
                extra=_FORWARDED.index(event.kind),
            )

    # Peers.

    def _place(self, partner: Partner) -> int:
        """The number of a partner, whose peer the application knows."""
        self._introduce(partner.peer)
        return partner.peer.index << 8 | partner.number

    def _introduce(self, peer: Peer) -> None:
        facts = (peer.address, peer.name, peer.heard, peer.index_for(0))
        if peer.removed or self._peers.get(peer.index) == facts:
            return
        self._peers[peer.index] = facts
        self._out.put(
            AgentRecord.PEER,
            flags=RecordFlag.HEARD if peer.heard else 0,
            number=peer.index,
            partner=int.from_bytes(peer.address, "big"),
            extra=facts[3],
            data=(peer.name or "").encode("utf-8", "replace"),
        )

    def report_peers(self) -> None:
        """Append records of all peers that have changed since the last report."""
        for peer in self.node.peers:
            self._introduce(peer)


_FORWARDED: Final = (EventKind.PARTNER_CONNECTED, EventKind.PARTNER_RESTARTED, EventKind.PARTNER_LOST)
"""Events about a partner, by the number in their record."""
FORWARDED_EVENTS: Final = _FORWARDED

_Call = Callable[[ServedClient, ServedEndpoint, AgentHead, "bytes | memoryview"], None]
_CALLS: Final[dict[int, _Call]] = {
    AgentRecord.CLOSE: ServedClient._close,
    AgentRecord.CONNECT: ServedClient._connect,
    AgentRecord.SEND: ServedClient._send,
    AgentRecord.RECEIVE: ServedClient._receive,
    AgentRecord.CLAIM: ServedClient._claim,
    AgentRecord.RETURN: ServedClient._return,
    AgentRecord.PROBE: ServedClient._probe,
    AgentRecord.CANCEL: ServedClient._cancel,
    AgentRecord.WAITING: ServedClient._waits,
    AgentRecord.DISCONNECT: ServedClient._disconnect,
    AgentRecord.TIMEOUT: ServedClient._set_timeout,
    AgentRecord.HANDLE: ServedClient._handle,
    AgentRecord.RESOLVE: ServedClient._resolve,
    AgentRecord.SUSPEND: ServedClient._suspend,
    AgentRecord.FLUSH: ServedClient._take_flush,
    AgentRecord.UNACKED: ServedClient._tell_unacked,
    AgentRecord.DATA: ServedClient._data,
}
"""The calls of an open endpoint, by kind of record."""
