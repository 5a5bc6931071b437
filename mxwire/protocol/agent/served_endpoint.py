"""An endpoint of an application at an agent, ``match`` progress: card and library run at the agent.

The endpoint is an ordinary one of the agent's node, whose completed requests become records at the end of each step. A
short message is in the record of its send or of its completion. A longer one is sent from and received into the memory
of the application (``remote_segments.py``). Without access to it, a message that is sent is collected from DATA records
before it is handed to the engine; one that is received is collected in memory of the agent, and then passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from mxwire.errors import InvalidRecordError
from mxwire.protocol.agent.records import (
    FORWARDED_EVENTS,
    INLINE_MAXIMUM,
    NO_PARTNER,
    SECONDS,
    UNACKED_ROW,
    AgentHead,
    AgentRecord,
    RecordFlag,
    split_partner,
)
from mxwire.protocol.agent.remote_segments import RemoteSegments, SharedSegments
from mxwire.protocol.agent.served_side import ApplicationChannel, ServedSide
from mxwire.protocol.arguments import Segments
from mxwire.protocol.library.connect import ConnectCall
from mxwire.protocol.library.endpoint import LENGTH_MAXIMUM, EngineEndpoint
from mxwire.protocol.library.inbound import Unexpected
from mxwire.protocol.library.layered_table import LayeredTable
from mxwire.protocol.library.partner import Event, Partner, Request
from mxwire.protocol.library.receive import Receive
from mxwire.protocol.status import SUCCEEDED, EventKind, LocalProtocolError, Status
from mxwire.wire.numbers import NO_PEER_INDEX


class ServedEndpoint(ServedSide):
    """An endpoint of the node that belongs to an application, and its requests by their numbers.

    ``close_engine`` closes the endpoint of the node.
    """

    def __init__(
        self,
        client: ApplicationChannel,
        handle: int,
        engine: EngineEndpoint,
        close_engine: Callable[[EngineEndpoint], None],
    ) -> None:
        super().__init__(client, handle, engine.number, engine.card.port.number)
        self.engine = engine
        self._close_engine = close_engine
        self._out = client.out
        self._requests: LayeredTable[int, Request] = LayeredTable()
        self._transmitted: list[ConnectCall] = []
        """The connects that were transmitted since the last report: of many that wait for an answer, a pass has few."""
        engine.transmitted = self._transmitted
        self._offered: Unexpected | None = None
        """The message with which the application's unexpected handler is called now."""
        self._flush: int | None = None
        """The number of a FLUSH that is not answered."""
        self._unexpected = (0, 0)
        """Number and bytes of unexpected messages, as last reported."""

    def take(self, head: AgentHead, data: bytes | memoryview) -> None:
        """Take a record of the application."""
        call = _CALLS.get(head.kind)
        if call is None:
            raise InvalidRecordError(f"a record of the unknown kind {head.kind}")
        call(self, head, data)

    def wind_down(self) -> Iterator[None]:
        """End what waits, one request per step, so that :meth:`close` has little to do."""
        # The application does not read the results any more.
        self.engine.completions = self.engine.transmitted = None
        for ended in self.engine.wind_down():
            if ended is not None:
                self._forget(ended.context)
            yield
        for number in self._requests:
            request = self._requests.get(number)
            if request is not None and request.done:
                self._forget(number)
                yield

    def close(self) -> None:
        """Close the endpoint of the node, and release all memory."""
        self.client.request_count -= len(self._requests)
        self._requests = LayeredTable()
        self.limit_orphans(self.engine.card)
        self._close_engine(self.engine)
        self.release_all()

    # Requests.

    def _number(self, head: AgentHead) -> bool:
        """Check the number of a new request; return False if the application has too many."""
        if not head.number or self._requests.get(head.number) is not None:
            raise InvalidRecordError("a request with the number of another one")
        if not self.client.may_request():
            self._end(head.number, Status.NO_RESOURCES)
            return False
        return True

    def _post(self, number: int, request: Request) -> None:
        request.context = number
        self._requests.add(number, request)
        self.client.request_count += 1

    def _end(self, number: int, status: Status) -> None:
        """End a request that the engine does not have."""
        self.release(number)
        self._out.put(AgentRecord.COMPLETED, status=status, handle=self.handle, number=number)

    def _partner(self, place: int) -> Partner | None:
        """The partner with a peer index and an endpoint number, if the endpoint has it."""
        engine = self.engine
        index, number = split_partner(place)
        found = engine.partners.get((index, number))
        if found is None and number == engine.number and index <= NO_PEER_INDEX:
            peer = self.client.node.peers.at(index)
            if peer is not None and peer.own == engine.card.port.number:
                return engine.own_partner()
        return found

    def _place(self, partner: Partner | None) -> int:
        return NO_PARTNER if partner is None else self.client.place(partner.peer, partner.number)

    def _connect(self, head: AgentHead, _data: bytes | memoryview) -> None:
        if not self._number(head):
            return
        try:
            request = self.engine.connect(head.peer_index, head.endpoint, head.extra, match_info=head.match_info)
        except LocalProtocolError as error:
            self._end(head.number, error.status)
            return
        self._post(head.number, request)

    def _send(self, head: AgentHead, data: bytes | memoryview) -> None:
        if not self._number(head):
            self.discard(head.number)
            return
        message: Any = self.content(head, data)
        if len(message) != head.length:
            # Its data was too much for the agent.
            self._end(head.number, Status.NO_RESOURCES)
            return
        partner = self._partner(head.partner)
        if partner is None:
            self._end(head.number, Status.REMOTE_ENDPOINT_UNREACHABLE)
            return
        try:
            request = self.engine.send(
                partner, message, head.match_info, synchronous=bool(head.flags & RecordFlag.SYNCHRONOUS)
            )
        except LocalProtocolError as error:
            self._end(head.number, error.status)
            return
        self._post(head.number, request)

    def _receive(self, head: AgentHead, data: bytes | memoryview) -> None:
        if not self._number(head):
            return
        memory: RemoteSegments | SharedSegments | None = None
        if head.flags & RecordFlag.IN_PLACE:
            memory = self.place_at(head.number, data)
        try:
            request = self.engine.receive(memory, head.match_info, head.mask, min(head.length, LENGTH_MAXIMUM))
        except LocalProtocolError as error:
            self._end(head.number, error.status)
            return
        self._post(head.number, request)

    def _claim(self, head: AgentHead, _data: bytes | memoryview) -> None:
        """Post a receive for one unexpected message; its number is in the place of the match information."""
        client, number = self.client, head.match_info
        if head.length > LENGTH_MAXIMUM or self._requests.get(number) is not None:
            raise InvalidRecordError("an impossible claim")
        if not (client.may_request() and client.may_hold(head.length)):
            client.refuse(head, Status.NO_RESOURCES, "the agent has no memory for the message now")
            return
        request = self.engine.claim(bytearray(head.length), head.extra)
        if request is not None:
            self._post(number, request)
            self.hold(number, head.length)
        client.answer(head, flags=0 if request is None else RecordFlag.YES)

    def _return(self, head: AgentHead, data: bytes | memoryview) -> None:
        """Keep a message that a receive of the application had taken, or give it to another one."""
        content = bytes(data) if head.flags & RecordFlag.DATA else bytes(self.parts.get(head.number, b""))
        self.discard(head.number)
        if self.engine.matching.overfull:
            raise InvalidRecordError("more messages returned than receives can have taken")
        partner = self._partner(head.partner)
        if partner is not None and head.length <= LENGTH_MAXIMUM:
            message = Unexpected(partner, head.match_info, head.length, data=content)
            self.engine.take_back(message, min(head.extra, self.engine.matching.arrivals))

    def _probe(self, head: AgentHead, _data: bytes | memoryview) -> None:
        try:
            found = self.engine.probe(head.match_info, head.mask)
        except LocalProtocolError as error:
            self.client.refuse(head, error.status, str(error))
            return
        if found is None:
            self.client.answer(head)
        else:
            place = self._place(found.partner)
            self.client.answer(
                head, flags=RecordFlag.YES, partner=place, match_info=found.match_info, length=found.length
            )

    def _cancel(self, head: AgentHead, _data: bytes | memoryview) -> None:
        request = self._requests.get(head.extra)
        cancelled = isinstance(request, (Receive, ConnectCall)) and self.engine.cancel(request)
        if cancelled:
            self._forget(head.extra)
        self.client.answer(head, flags=RecordFlag.YES if cancelled else 0)

    def _waits(self, head: AgentHead, _data: bytes | memoryview) -> None:
        request = self._requests.get(head.extra)
        waits = isinstance(request, Receive) and request.waiting
        self.client.answer(head, flags=RecordFlag.YES if waits else 0)

    def _forget(self, number: int) -> None:
        if self._requests.pop(number) is not None:
            self.client.request_count -= 1
            self.release(number)

    def _disconnect(self, head: AgentHead, _data: bytes | memoryview) -> None:
        partner = self._partner(head.partner)
        if partner is not None:
            self.engine.disconnect(partner)
            self._report_completed()
        self.client.answer(head)

    def _set_timeout(self, head: AgentHead, data: bytes | memoryview) -> None:
        if len(data) != SECONDS.size:
            raise InvalidRecordError("a time of another length")
        seconds = None if head.flags & RecordFlag.UNLIMITED else float(SECONDS.unpack(data)[0])
        request = self._requests.get(head.extra)
        if head.flags & RecordFlag.ONE_REQUEST and request is None:
            # It has ended.
            return
        try:
            self.engine.set_timeout(seconds, request)
        except LocalProtocolError:
            raise InvalidRecordError("an impossible time") from None

    # Unexpected messages.

    def _handle(self, head: AgentHead, _data: bytes | memoryview) -> None:
        handled = bool(head.flags & RecordFlag.YES)
        if handled:
            self.engine.answers_later = True
        self.engine.handle_unexpected(self._offer if handled else None)

    def _offer(self, message: Unexpected) -> None:
        self._offered = message
        data = message.data if message.data is not None and len(message.data) <= INLINE_MAXIMUM else None
        self._out.put(
            AgentRecord.OFFER,
            flags=0 if data is None else RecordFlag.DATA,
            handle=self.handle,
            partner=self._place(message.partner),
            match_info=message.match_info,
            length=message.length,
            extra=self.engine.matching.identity,
            data=b"" if data is None else data,
        )

    def _resolve(self, head: AgentHead, _data: bytes | memoryview) -> None:
        message, self._offered = self._offered, None
        if message is None:
            raise InvalidRecordError("the result of a handler that was not called")
        self.engine.resolve(message, bool(head.flags & RecordFlag.YES))

    def _suspend(self, head: AgentHead, _data: bytes | memoryview) -> None:
        self.engine.suspended = bool(head.flags & RecordFlag.YES)

    def _take_flush(self, head: AgentHead, _data: bytes | memoryview) -> None:
        self._flush = head.extra

    def _tell_unacked(self, head: AgentHead, _data: bytes | memoryview) -> None:
        rows = [UNACKED_ROW.pack(self._place(each), count) for each, count in self.engine.unacked()]
        # More rows do not fit into a record.
        self.client.answer(head, data=b"".join(rows[: INLINE_MAXIMUM // UNACKED_ROW.size]))

    # Reports.

    def report(self) -> None:
        """Append records of everything that has changed, after a step of the node."""
        self._report_completed()
        matching = self.engine.matching
        unexpected = matching.unexpected, matching.unexpected_bytes
        if unexpected != self._unexpected:
            self._unexpected = unexpected
            self._out.put(AgentRecord.UNEXPECTED, handle=self.handle, length=unexpected[0], extra=unexpected[1])
        for connect in self._transmitted:
            # Those of the engine itself have no number, and one that has just ended is reported already.
            if connect.context is not None and self._requests.get(connect.context) is connect:
                number, transmissions = connect.context, connect.transmissions
                self._out.put(AgentRecord.TRANSMITTED, handle=self.handle, number=number, extra=transmissions)
        self._transmitted.clear()
        if self._flush is not None and self.engine.settled():
            self._out.put(AgentRecord.FLUSHED, handle=self.handle, extra=self._flush)
            self._flush = None

    def _report_completed(self) -> None:
        completions = self.engine.completions
        if completions is None or not len(completions):
            return
        while (request := completions.first()) is not None:
            self.engine.forget(request)
            number = request.context
            if self._requests.get(number) is not request:
                continue
            # Before the request is forgotten, which releases the memory.
            remote = self.remote.get(number)
            self._forget(number)
            self._report_end(number, request, remote)

    def _report_end(self, number: int, request: Request, remote: RemoteSegments | SharedSegments | None) -> None:
        status = request.status
        assert status is not None
        if remote is not None and remote.failed and status in SUCCEEDED:
            status = Status.MESSAGE_ABORTED
        flags, data, position = 0, b"", 0
        if isinstance(request, Receive):
            position = request.position
            if request.starved:
                flags |= RecordFlag.STARVED
            elif status in SUCCEEDED and remote is None:
                memory = request.memory if request.buffer is None else Segments(request.buffer)
                if request.transferred <= INLINE_MAXIMUM:
                    data = memory.copy()[: request.transferred]
                    flags |= RecordFlag.DATA
                else:
                    self._out.put_data(self.handle, number, memory, request.transferred)
        elif isinstance(request, ConnectCall) and request.exhausted:
            flags |= RecordFlag.EXHAUSTED
        self._out.put(
            AgentRecord.COMPLETED,
            status=status,
            flags=flags,
            handle=self.handle,
            number=number,
            partner=self._place(request.partner),
            match_info=request.match_info,
            mask=position,
            length=request.length,
            extra=request.transferred,
            data=data,
        )

    def take_event(self, event: Event) -> None:
        """Pass on an event of the node that concerns this endpoint."""
        request, partner = event.request, event.partner
        if event.kind is EventKind.UNDELIVERED and request is not None:
            # The end of the request itself is reported first.
            self._report_completed()
            self._out.put(
                AgentRecord.LOST,
                status=getattr(request, "late_status", None) or Status.REMOTE_ENDPOINT_UNREACHABLE,
                handle=self.handle,
                partner=self._place(request.partner),
                match_info=request.match_info,
                length=request.length,
            )
        elif event.kind in FORWARDED_EVENTS and partner is not None:
            place, number = self._place(partner), FORWARDED_EVENTS.index(event.kind)
            self._out.put(AgentRecord.EVENT, handle=self.handle, partner=place, extra=number)


_CALLS: Final[dict[int, Callable[[ServedEndpoint, AgentHead, bytes | memoryview], None]]] = {
    AgentRecord.CONNECT: ServedEndpoint._connect,
    AgentRecord.SEND: ServedEndpoint._send,
    AgentRecord.RECEIVE: ServedEndpoint._receive,
    AgentRecord.CLAIM: ServedEndpoint._claim,
    AgentRecord.RETURN: ServedEndpoint._return,
    AgentRecord.PROBE: ServedEndpoint._probe,
    AgentRecord.CANCEL: ServedEndpoint._cancel,
    AgentRecord.WAITING: ServedEndpoint._waits,
    AgentRecord.DISCONNECT: ServedEndpoint._disconnect,
    AgentRecord.TIMEOUT: ServedEndpoint._set_timeout,
    AgentRecord.HANDLE: ServedEndpoint._handle,
    AgentRecord.RESOLVE: ServedEndpoint._resolve,
    AgentRecord.SUSPEND: ServedEndpoint._suspend,
    AgentRecord.FLUSH: ServedEndpoint._take_flush,
    AgentRecord.UNACKED: ServedEndpoint._tell_unacked,
    AgentRecord.DATA: ServedEndpoint.collect,
}
"""The calls by kind of record."""
