"""Everything the engine reports: the status of requests, kinds of events, and errors of calls.

Calls that the protocol does not allow raise; hostile frames never do.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Any, Final, Protocol

from mxwire.errors import MxwireError


class Status(IntEnum):
    """Status codes, numbered as in Open-MX (behaviour, section 20); missing codes are unused or exist in MX only."""

    SUCCESS = 0
    BAD_ERROR = 1
    ALREADY_INITIALIZED = 3
    NOT_INITIALIZED = 4
    NO_DEVICE = 5
    NO_DRIVER = 6
    ACCESS_DENIED = 7
    BOARD_NOT_FOUND = 8
    BAD_ENDPOINT = 9
    SEGMENTS_BAD_COUNT = 12
    BAD_REQUEST = 13
    BAD_MATCH_MASK = 14
    NO_RESOURCES = 15
    BUSY = 20
    BAD_INFO_KEY = 21
    BAD_INFO_ADDRESS = 22
    BAD_PARAMETER_LIST = 24
    BAD_PARAMETER_KEY = 25
    BAD_PARAMETER_VALUE = 26
    PEER_NOT_FOUND = 28
    TIMEOUT = 30
    REMOTE_ENDPOINT_BAD_ID = 32
    REMOTE_ENDPOINT_CLOSED = 33
    REMOTE_ENDPOINT_BAD_CONNECTION_KEY = 34
    BAD_INFO_LENGTH = 35
    NIC_ID_NOT_FOUND = 36
    BAD_KERNEL_ABI = 37
    BAD_LIB_ABI = 38
    BAD_MATCHING_FOR_CONTEXT_ID_MASK = 42
    CANCELLED = 90
    REMOTE_RDMA_WINDOW_BAD_ID = 91
    REMOTE_ENDPOINT_UNREACHABLE = 92
    REMOTE_ENDPOINT_BAD_SESSION = 93
    MESSAGE_ABORTED = 94
    MESSAGE_TRUNCATED = 95
    NOT_SUPPORTED_IN_HANDLER = 96
    NO_SYSTEM_RESOURCES = 97
    NOT_IMPLEMENTED = 99

    @property
    def text(self) -> str:
        """The name in words, for example ``remote endpoint closed``."""
        return self.name.lower().replace("_", " ")


SUCCEEDED: Final = (Status.SUCCESS, Status.MESSAGE_TRUNCATED)
"""Statuses of a request whose message was transferred, at least as far as there was room."""


class EventKind(StrEnum):
    """Kinds of events that a node reports."""

    COMPLETED = "completed"
    """A request has ended; see its ``status``."""
    FAILED = "failed"
    """A request has ended with an error, at an endpoint that ``reports_failures``; being cancelled is not an error."""
    UNDELIVERED = "undelivered"
    """A send that was reported complete when it was posted was lost afterwards (R-SND-06, R-CLS-02)."""
    PEER_FOUND = "peer found"
    """Discovery has added a host to the peer table (R-DISC-03)."""
    PEERS_FULL = "peers full"
    """The peer table is full for the first time: from now on, hosts that never answer give way to new ones."""
    PEER_NAMED = "peer named"
    """A host has replied with its name (R-HOST-07)."""
    PARTNER_CONNECTED = "partner connected"
    """A remote endpoint has connected to a local one (R-CON-10)."""
    PARTNER_RESTARTED = "partner restarted"
    """A remote endpoint reappeared with another session: all unfinished operations with it have ended (R-CLS-05)."""
    PARTNER_LOST = "partner lost"
    """A remote endpoint did not answer up to the resend limit, and was abandoned (R-RTX-05)."""


class Reporter(Protocol):
    """Report an event to the application: its kind, and the request, partner or peer that it concerns."""

    def __call__(self, kind: EventKind, request: Any = None, *, partner: Any = None, peer: Any = None) -> None:
        """Report the event."""


class LocalProtocolError(MxwireError):
    """A call that the protocol does not allow; nothing has changed.

    ``status`` is the code that an Open-MX application would receive (behaviour, section 20).
    """

    def __init__(self, status: Status, text: str) -> None:
        super().__init__(text)
        self.status = status


class ArgumentTypeError(LocalProtocolError, TypeError):
    """An argument of a type that the call does not take; nothing has changed."""


class ImpossibleEventError(MxwireError):
    """An event for which the table of a state machine has no row: a defect of mxwire itself."""
