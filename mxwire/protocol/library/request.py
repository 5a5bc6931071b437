"""Requests of an application, and the events that report what happened to them, to peers and to partners."""

from __future__ import annotations

from abc import abstractmethod
from enum import StrEnum
from typing import Any, ClassVar

from mxwire.protocol.library.partner import LibraryEndpoint, Partner
from mxwire.protocol.machine import Machine
from mxwire.protocol.peers import Peer
from mxwire.protocol.status import EventKind, Status


class Event:
    """One reported event, with the request, partner or peer that it concerns."""

    __slots__ = ("kind", "partner", "peer", "request")

    def __init__(
        self, kind: EventKind, request: Request | None = None, partner: Partner | None = None, peer: Peer | None = None
    ) -> None:
        self.kind = kind
        self.request = request
        self.partner = partner
        self.peer = peer

    def __repr__(self) -> str:
        """Show the kind and the object concerned, for debugging."""
        concerned = next((each for each in (self.request, self.partner, self.peer) if each is not None), "")
        return f"<Event {self.kind} {concerned}>"


class RequestKind(StrEnum):
    """Kinds of requests."""

    CONNECT = "connect"
    SEND = "send"
    RECEIVE = "receive"


class Request(Machine):
    """An operation that an application has posted, and that ends with a status."""

    __slots__ = ("context", "endpoint", "length", "match_info", "partner", "status", "transferred")

    kind: ClassVar[RequestKind]

    def __init__(self, endpoint: LibraryEndpoint, partner: Partner | None, match_info: int, length: int) -> None:
        self.state = self.table.initial
        self.endpoint = endpoint
        self.partner = partner
        """The remote endpoint; for a receive, the source of the message, once it is matched."""
        self.match_info = match_info
        """Match information of the message."""
        self.length = length
        """Length of the whole message in bytes."""
        self.status: Status | None = None
        """The result; None until the request has ended."""
        self.transferred = 0
        """Number of bytes transferred."""
        self.context: Any = None
        """Any object of the application."""

    @property
    def done(self) -> bool:
        """True if the request has ended."""
        return self.status is not None

    def finish(self, status: Status, transferred: int = 0) -> None:
        """End the request, and report this to the application."""
        self.status = status
        self.transferred = transferred
        self.endpoint.requests.pop(self, None)
        self.endpoint.report(EventKind.COMPLETED, self)

    def __repr__(self) -> str:
        """Show state, result, match information and length, for debugging."""
        outcome = "pending" if self.status is None else self.status.text
        return f"<{type(self).__name__} {self.state} {outcome} match={self.match_info:#x} length={self.length}>"


class ListedRequest(Request):
    """A request that ends when its endpoint closes; all others end with their partner."""

    __slots__ = ()

    def __init__(self, endpoint: LibraryEndpoint, partner: Partner | None, match_info: int, length: int) -> None:
        super().__init__(endpoint, partner, match_info, length)
        endpoint.requests[self] = None

    @abstractmethod
    def close(self) -> None:
        """End the request, since its endpoint closes."""
