"""Service: endpoints that echo or count messages, for many clients at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from mxwire.host.endpoint import Endpoint
from mxwire.host.requests import Pending
from mxwire.protocol import EngineEndpoint, Partner, Request, Status
from mxwire.protocol.library.inbound import Unexpected
from mxwire.protocol.status import SUCCEEDED

LONGEST: Final = 256 << 20
"""Maximum length of a message that is not truncated, in bytes."""
PENDING_MESSAGES: Final = 1024
PENDING_BYTES: Final = 256 << 20
"""Limits of the messages per client that are received but not yet answered; further ones are discarded."""
HELD_BYTES: Final = 1 << 30
"""Limit of the messages of all clients: their number is that of the partners, which only other hosts determine."""
_FEW: Final = 2
"""Number of messages that are always allowed, so that a single message may be longer than the limit."""


@dataclass(slots=True)
class ServiceCounts:
    """Counters of a service or a client."""

    messages: int = 0
    """Messages received."""
    bytes: int = 0
    """Bytes received."""
    answers: int = 0
    """Messages sent back."""
    truncated: int = 0
    """Messages longer than the limit."""
    refused: int = 0
    """Messages discarded because their client does not receive the answers."""
    failed: int = 0
    """Messages that failed during their transfer because their client has gone."""


@dataclass(slots=True, eq=False)
class Client:
    """A remote endpoint that has sent a message."""

    partner: Partner
    endpoint: EngineEndpoint
    """The local endpoint to which the client sends."""
    counts: ServiceCounts = field(default_factory=ServiceCounts)
    arriving: deque[IncomingMessage] = field(default_factory=deque)
    """Messages being received, in the order in which they were matched and will be answered."""
    outgoing: deque[Request] = field(default_factory=deque)
    """Answers that have not ended."""

    def pending(self) -> tuple[int, int]:
        """Number and bytes of its pending messages."""
        while self.outgoing and self.outgoing[0].done:
            self.outgoing.popleft()
        arriving = sum(min(each.request.length, LONGEST) for each in self.arriving if not each.discarded)
        return len(self.arriving) + len(self.outgoing), arriving + sum(each.length for each in self.outgoing)

    def busy(self) -> bool:
        """True if its pending messages reach a limit, so that further ones are discarded."""
        count, size = self.pending()
        return count >= _FEW and (count >= PENDING_MESSAGES or size >= PENDING_BYTES)


@dataclass(slots=True, eq=False)
class IncomingMessage:
    """A message that is being received."""

    request: Request
    memory: bytearray
    discarded: bool = False
    """True if the message is received only to discard it."""


class Service(Pending[None]):
    """Serves endpoints while a caller waits for it; the wait is never over.

    With ``echo`` every message is returned to its sender with its match information, otherwise messages are counted
    and dropped.
    """

    __slots__ = ("_active", "_core", "_endpoints", "_held", "_scratch", "clients", "counts", "echo", "held", "longest")

    def __init__(
        self, endpoints: Sequence[Endpoint], *, echo: bool, longest: int = LONGEST, held: int = HELD_BYTES
    ) -> None:
        self._endpoints = [each.engine for each in endpoints]
        self._core = endpoints[0].host.core
        self.echo = echo
        self.longest = longest
        self.held = held
        """Maximum number of bytes of the messages that wait for all clients together."""
        self.counts = ServiceCounts()
        self.clients: dict[Partner, Client] = {}
        """Clients by partner, in the order of their first messages."""
        self._active: dict[Client, None] = {}
        self._scratch = bytearray(0)
        self._held = 0
        """Bytes of pending messages at most: those at the last count, and all since."""

    def ready(self) -> bool:
        """Receive and answer messages; return False."""
        for endpoint in self._endpoints:
            while (found := endpoint.probe(0, 0)) is not None:
                self._take(endpoint, found)
        for client in list(self._active):
            self._answer(client)
        return False

    def _take(self, endpoint: EngineEndpoint, found: Unexpected) -> None:
        client = self.clients.get(found.partner)
        if client is None:
            client = self.clients[found.partner] = Client(found.partner, endpoint)
            if found.partner.peer.name is None:
                # The client's host has this host in its peer table now, so it will answer a name query that it may have
                # ignored before (R-HOST-04).
                self._core.node.ask_names()
        length = min(found.length, self.longest)
        discarded = client.busy() or (self.echo and not self._has_room(length))
        memory = bytearray(0) if discarded else self._memory(length)
        client.arriving.append(IncomingMessage(endpoint.receive(memory, 0, 0), memory, discarded))
        self._active[client] = None

    def _has_room(self, length: int) -> bool:
        """Return whether a message of ``length`` bytes, which is counted, leaves all clients within the limit."""
        if self._held + length > self.held:
            self._held = sum(each.pending()[1] for each in self.clients.values())
        self._held += length
        return self._held <= self.held

    def _memory(self, length: int) -> bytearray:
        """Memory for a message: separate memory if it is echoed, otherwise memory shared by all messages."""
        if self.echo:
            return bytearray(length)
        if length > len(self._scratch):
            self._scratch = bytearray(length)
        return self._scratch

    def _answer(self, client: Client) -> None:
        while client.arriving and client.arriving[0].request.done:
            self._finish(client, client.arriving.popleft())
        if not client.arriving:
            del self._active[client]

    def _finish(self, client: Client, taken: IncomingMessage) -> None:
        request = taken.request
        fine = request.status in SUCCEEDED
        answered = fine and self.echo and not taken.discarded
        for counts in (self.counts, client.counts):
            counts.messages += fine
            counts.failed += not fine
            counts.bytes += request.transferred
            counts.refused += fine and taken.discarded
            counts.truncated += request.status is Status.MESSAGE_TRUNCATED and not taken.discarded
            counts.answers += answered
        if answered:
            data = memoryview(taken.memory)[: request.transferred]
            client.outgoing.append(client.endpoint.send(client.partner, data, request.match_info))
