"""The part of an agent that all endpoints of an application share: its channel, its memory, and their limits.

An application opens endpoints (``served_endpoint.py``), or the card's sides of endpoints whose library it runs itself
(``served_card.py``). Each has a handle, by which records name it, and holds the memory of its unfinished transfers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Final

from mxwire.errors import InvalidRecordError
from mxwire.protocol.agent.records import (
    INLINE_MAXIMUM,
    PLACE,
    AgentHead,
    AgentRecord,
    RecordFlag,
    RecordOutbox,
    partner_number,
)
from mxwire.protocol.agent.remote_segments import RemoteMemory, RemoteSegments, SharedSegments
from mxwire.protocol.card.endpoint import CardEndpoint
from mxwire.protocol.library.endpoint import LENGTH_MAXIMUM
from mxwire.protocol.library.layered_table import LayeredTable
from mxwire.protocol.local_channel import LocalChannel
from mxwire.protocol.node import Node
from mxwire.protocol.peers import Peer
from mxwire.protocol.status import Status

_REQUESTS_MAXIMUM: Final = 1 << 18
"""Maximum number of unfinished requests of an application."""
_SHARED_MAXIMUM: Final = 1024
"""Maximum number of areas of memory that an application shares; further ones are treated like other memory."""
_COLLECTED_MAXIMUM: Final = 64
"""Maximum number of messages that an endpoint collects at a time; a correct application sends one after the other."""
_HELD_MAXIMUM: Final = 1 << 30
"""Maximum number of bytes of the messages of an application that the agent holds until they are sent or passed on."""


class ApplicationChannel:
    """The records to an application, its memory, and the limits of what the agent holds for it.

    ``memory`` is the application's, if the agent may access it. ``take_shared`` returns memory of a length that the
    application has passed to the agent, or None if it has not.
    """

    def __init__(
        self,
        node: Node,
        channel: LocalChannel,
        memory: RemoteMemory | None,
        take_shared: Callable[[int], memoryview | None],
    ) -> None:
        self.node = node
        self.channel = channel
        self.out = RecordOutbox(channel)
        """Records for the application."""
        self.memory = memory
        self.request_count = 0
        """Number of unfinished requests."""
        self.held_bytes = 0
        """Bytes of messages that the agent holds for unfinished requests."""
        self.refused_count = 0
        """Number of requests that were refused because the application has reached a limit."""
        self.now = 0
        """Time of the last turn, in ns."""
        self._take_shared = take_shared
        self._shared: list[tuple[int, memoryview]] = []
        """Address in the application, and shared memory there."""
        self._peers: dict[int, tuple[bytes, str | None, bool, int]] = {}
        """The peers as last reported, by index."""

    @property
    def waiting_count(self) -> int:
        """Number of records that wait for room in the channel."""
        return len(self.out)

    def answer(self, head: AgentHead, **fields: Any) -> None:
        """Answer a question."""
        self.out.put(AgentRecord.ANSWER, number=head.number, **fields)

    def refuse(self, head: AgentHead, status: Status, text: str) -> None:
        """Answer a question with a refusal."""
        data = text.encode("utf-8", "replace")[:INLINE_MAXIMUM]
        self.out.put(AgentRecord.REFUSED, status=status, number=head.number, data=data)

    # Memory.

    def may_hold(self, length: int) -> bool:
        """Return whether the agent may hold ``length`` more bytes of messages; if not, count a refusal."""
        if self.held_bytes + length <= _HELD_MAXIMUM:
            return True
        self.refused_count += 1
        return False

    def may_request(self) -> bool:
        """Return whether the application may have one more unfinished request; if not, count a refusal."""
        if self.request_count < _REQUESTS_MAXIMUM:
            return True
        self.refused_count += 1
        return False

    def share(self, head: AgentHead) -> None:
        """Map memory that the application has passed, which then needs no access through the kernel."""
        view = self._take_shared(head.length)
        if view is None:
            raise InvalidRecordError("shared memory that was not passed, or could be truncated")
        has_room = len(self._shared) < _SHARED_MAXIMUM
        if has_room:
            self._shared.append((head.extra, view))
        self.answer(head, flags=RecordFlag.YES if has_room else 0)

    def segments_at(self, data: bytes | memoryview) -> RemoteSegments | SharedSegments:
        """The memory of the application at the addresses and lengths in ``data``."""
        if len(data) == PLACE.size:
            place, size = PLACE.unpack(data)
            for start, view in self._shared:
                if start <= place and place + size <= start + len(view):
                    return SharedSegments(view[place - start : place - start + size])
        if self.memory is None or len(data) % PLACE.size:
            raise InvalidRecordError("addresses of another length, or without permission")
        try:
            remote = RemoteSegments(self.memory, list(PLACE.iter_unpack(data)))
        except ValueError as error:
            raise InvalidRecordError(str(error)) from None
        if remote.length > LENGTH_MAXIMUM:
            raise InvalidRecordError("memory that is too long")
        return remote

    # Peers.

    def place(self, peer: Peer, number: int) -> int:
        """Peer index and endpoint number in a record, whose peer the application knows from now on."""
        self.introduce(peer)
        return partner_number(peer.index, number)

    def introduce(self, peer: Peer) -> None:
        """Report a peer, unless it is as last reported."""
        facts = (peer.address, peer.name, peer.heard, peer.index_for(0))
        if peer.removed or self._peers.get(peer.index) == facts:
            return
        self._peers[peer.index] = facts
        self.out.put(
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
            self.introduce(peer)


class ServedSide(ABC):
    """An endpoint of an application, or the card's side of one, with the memory of its unfinished transfers by
    number."""

    def __init__(self, client: ApplicationChannel, handle: int, number: int, interface: int) -> None:
        self.client = client
        self.handle = handle
        self.number = number
        """Its endpoint number."""
        self.interface = interface
        """Number of its interface."""
        self.parts: dict[int, bytearray] = {}
        """Messages that are being collected from DATA records, by number."""
        self._held: dict[int, int] = {}
        """Bytes that the agent holds for unfinished transfers."""
        self.remote: LayeredTable[int, RemoteSegments | SharedSegments] = LayeredTable()
        """The memory of unfinished transfers that is the application's."""

    @abstractmethod
    def take(self, head: AgentHead, data: bytes | memoryview) -> None:
        """Take a record of the application.

        Raises :class:`~mxwire.errors.InvalidRecordError` for one that no correct application sends.
        """

    @abstractmethod
    def report(self) -> None:
        """Append records of everything that has changed."""

    def wind_down(self) -> Iterator[None]:
        """End what waits, one request per step, so that :meth:`close` has little to do."""
        return iter(())

    @abstractmethod
    def close(self) -> None:
        """Close it, and release all memory."""

    def collect(self, head: AgentHead, data: bytes | memoryview) -> None:
        """Collect a part of a message whose record follows."""
        memory = self.parts.get(head.number)
        if memory is None:
            if head.extra or head.length > LENGTH_MAXIMUM:
                # The first part was refused.
                return
            # A single message may have any length.
            if self.client.held_bytes and not self.client.may_hold(head.length):
                return
            if len(self.parts) >= _COLLECTED_MAXIMUM:
                raise InvalidRecordError("parts of too many messages")
            memory = self.parts[head.number] = bytearray()
        if head.extra != len(memory) or not len(data) or len(memory) + len(data) > head.length:
            raise InvalidRecordError("data in another order")
        if self.client.held_bytes > len(memory) and not self.client.may_hold(len(data)):
            # Others have taken the room since its first part. Further parts are ignored, as of one that was refused.
            self.discard(head.number)
            return
        memory += data
        self.client.held_bytes += len(data)

    def collected(self, number: int) -> bytearray:
        """Take a message that was collected; its bytes stay counted until :meth:`release`."""
        message = self.parts.pop(number, bytearray())
        self._held[number] = len(message)
        return message

    def content(self, head: AgentHead, data: bytes | memoryview) -> bytes | bytearray | RemoteSegments | SharedSegments:
        """Take the message of a record: its own data, memory of the application, or what was collected before it."""
        if not head.flags & (RecordFlag.DATA | RecordFlag.IN_PLACE):
            return self.collected(head.number)
        self.discard(head.number)
        if head.flags & RecordFlag.DATA:
            return bytes(data)
        return self.place_at(head.number, data)

    def place_at(self, number: int, data: bytes | memoryview) -> RemoteSegments | SharedSegments:
        """The memory of the application at the addresses in ``data``, held for a transfer until :meth:`release`."""
        memory = self.client.segments_at(data)
        self.remote.add(number, memory)
        return memory

    def hold(self, number: int, length: int) -> None:
        """Count the bytes that the agent holds for a transfer, until :meth:`release`."""
        self._held[number] = length
        self.client.held_bytes += length

    def discard(self, number: int) -> None:
        """Forget the parts of a message that were collected."""
        self.client.held_bytes -= len(self.parts.pop(number, b""))

    def release(self, number: int) -> None:
        """Release the memory of a transfer that has ended: the application may use it for something else."""
        self.client.held_bytes -= self._held.pop(number, 0)
        remote = self.remote.pop(number)
        if remote is not None:
            remote.detach()

    def limit_orphans(self, card: CardEndpoint) -> None:
        """Let the running pulls of ``card``, which closes, end within the time limit of the profile.

        With a longer one, which the application may have set, they would hold handles and re-request without it.
        """
        for pull in card.pulls.values():
            pull.limit = min(pull.limit, card.profile.pull_limit)

    def release_all(self) -> None:
        """Release all memory, since the application closes the endpoint. Pulls of a closed endpoint continue
        (R-CLS-08)."""
        for number in list(self.parts):
            self.discard(number)
        for number in [*self._held, *self.remote]:
            self.release(number)
