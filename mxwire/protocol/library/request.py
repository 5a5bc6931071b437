"""Requests: what an application has asked for, and how it ended."""

from __future__ import annotations

from abc import abstractmethod
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from mxwire.protocol.event import Event, EventKind
from mxwire.protocol.machine import Machine
from mxwire.protocol.status import Status

if TYPE_CHECKING:
    from mxwire.protocol.library.endpoint import Endpoint
    from mxwire.protocol.library.partner import Partner


class RequestKind(StrEnum):
    """What was asked for."""

    CONNECT = "connect"
    SEND = "send"
    RECEIVE = "receive"


class Request(Machine):
    """Something an application waits for."""

    __slots__ = ("context", "endpoint", "length", "match_info", "partner", "status", "transferred")

    kind: ClassVar[RequestKind]

    def __init__(self, endpoint: Endpoint, partner: Partner | None, match_info: int, length: int) -> None:
        self.state = self.table.initial
        self.endpoint = endpoint
        self.partner = partner
        """The other side; of a receive, who sent the message that it took."""
        self.match_info = match_info
        """Match information of the message."""
        self.length = length
        """Length of the whole message in bytes."""
        self.status: Status | None = None
        """How it ended; None while it has not."""
        self.transferred = 0
        """Bytes that were really transferred."""
        self.context: Any = None
        """Whatever the application likes to keep here."""

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self.status is not None

    def finish(self, status: Status, transferred: int = 0) -> None:
        """End it and tell the application."""
        self.status = status
        self.transferred = transferred
        if self.endpoint.node.tells_completed:
            self.endpoint.tell(Event(EventKind.COMPLETED, self))

    def __repr__(self) -> str:
        """For people who debug."""
        outcome = "pending" if self.status is None else self.status.text
        return f"<{type(self).__name__} {self.state} {outcome} match={self.match_info:#x} length={self.length}>"


class ListedRequest(Request):
    """A request that its endpoint has to end when it closes; all others end with their partner."""

    __slots__ = ()

    def __init__(self, endpoint: Endpoint, partner: Partner | None, match_info: int, length: int) -> None:
        super().__init__(endpoint, partner, match_info, length)
        endpoint.requests[self] = None

    def finish(self, status: Status, transferred: int = 0) -> None:
        """End it and tell the application."""
        self.strike()
        super().finish(status, transferred)

    def strike(self) -> None:
        """It has ended: the endpoint need not mind it any more."""
        self.endpoint.requests.pop(self, None)

    @abstractmethod
    def close(self) -> None:
        """Its endpoint is closed."""
