"""Serving: endpoints that answer whoever sends to them, many clients at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from mxwire.host.endpoint import Endpoint
from mxwire.host.pending import Pending
from mxwire.protocol import Endpoint as EngineEndpoint
from mxwire.protocol import Partner, Request, Status
from mxwire.protocol.library.matching import Unexpected

LONGEST: Final = 256 << 20
"""Longest message that is taken whole, in bytes."""
PENDING_MESSAGES: Final = 1024
PENDING_BYTES: Final = 256 << 20
"""What one client may have on its way through us; what is more is taken, and thrown away."""
_FEW: Final = 2


@dataclass(slots=True)
class Counts:
    """What was served."""

    messages: int = 0
    """Messages received."""
    bytes: int = 0
    """Bytes received."""
    answers: int = 0
    """Messages sent back."""
    truncated: int = 0
    """Messages that were longer than what is taken."""
    refused: int = 0
    """Messages that were thrown away: their client does not take our answers."""
    failed: int = 0
    """Messages, or answers, that ended in the middle: their client has gone."""


@dataclass(slots=True, eq=False)
class Client:
    """One remote endpoint that has sent something."""

    partner: Partner
    counts: Counts = field(default_factory=Counts)
    arriving: deque[Taking] = field(default_factory=deque)
    """What is being received, in the order of its matching: so is it answered."""
    leaving: deque[Request] = field(default_factory=deque)
    """What was answered."""

    def busy(self) -> bool:
        """Whether it has so much on its way through us that more is thrown away."""
        while self.leaving and self.leaving[0].done:
            self.leaving.popleft()
        count = len(self.arriving) + len(self.leaving)
        if count < _FEW:
            return False
        size = sum(each.request.length for each in self.arriving) + sum(each.length for each in self.leaving)
        return count >= PENDING_MESSAGES or size >= PENDING_BYTES


@dataclass(slots=True, eq=False)
class Taking:
    """A message that is being received."""

    request: Request
    memory: bytearray
    thrown: bool = False
    """Whether it was only taken to be rid of it."""


class Service(Pending[None]):
    """Serves some endpoints while it is waited for; the wait is never over.

    With ``echo`` every message is sent back to its sender with its match information, otherwise all are only counted.
    """

    __slots__ = ("_active", "_core", "_endpoints", "_scratch", "clients", "counts", "echo", "longest")

    def __init__(self, endpoints: Sequence[Endpoint], *, echo: bool, longest: int = LONGEST) -> None:
        self._endpoints = [each.engine for each in endpoints]
        self._core = endpoints[0].host.core
        self.echo = echo
        self.longest = longest
        self.counts = Counts()
        self.clients: dict[Partner, Client] = {}
        """Who has sent something, in the order of their first messages."""
        self._active: dict[Client, None] = {}
        self._scratch = bytearray(0)

    def ready(self) -> bool:
        """Take what has come, and answer what has arrived. Never."""
        for endpoint in self._endpoints:
            while (found := endpoint.probe(0, 0)) is not None:
                self._take(endpoint, found)
        for client in list(self._active):
            self._answer(client)
        return False

    def _take(self, endpoint: EngineEndpoint, found: Unexpected) -> None:
        client = self.clients.get(found.partner)
        if client is None:
            client = self.clients[found.partner] = Client(found.partner)
            if found.partner.peer.name is None:
                # It knows us now, which it may not have when it was asked before (R-HOST-04).
                self._core.node.ask_names()
        thrown = client.busy()
        memory = bytearray(0) if thrown else self._memory(min(found.length, self.longest))
        client.arriving.append(Taking(endpoint.receive(memory, 0, 0), memory, thrown))
        self._active[client] = None

    def _memory(self, length: int) -> bytearray:
        """Where a message goes: one of its own to be sent back, or one for all."""
        if self.echo:
            return bytearray(length)
        if length > len(self._scratch):
            self._scratch = bytearray(length)
        return self._scratch

    def _answer(self, client: Client) -> None:
        while client.arriving and client.arriving[0].request.done:
            self._finished(client, client.arriving.popleft())
        if not client.arriving:
            del self._active[client]

    def _finished(self, client: Client, taken: Taking) -> None:
        request = taken.request
        fine = request.status in (Status.SUCCESS, Status.MESSAGE_TRUNCATED)
        answered = fine and self.echo and not taken.thrown
        for counts in (self.counts, client.counts):
            counts.messages += fine
            counts.failed += not fine
            counts.bytes += request.transferred
            counts.refused += fine and taken.thrown
            counts.truncated += request.status is Status.MESSAGE_TRUNCATED and not taken.thrown
            counts.answers += answered
        if answered:
            data = memoryview(taken.memory)[: request.transferred]
            client.leaving.append(client.partner.endpoint.send(client.partner, data, request.match_info))
