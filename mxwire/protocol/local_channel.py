"""Channels between the nodes of a host, and their records (R-LOC-02); ``neighbours.py`` explains both."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Any, Final, Protocol

from mxwire.native import quick_struct
from mxwire.protocol.arguments import SEGMENTS_MAXIMUM, Segments
from mxwire.protocol.corridor import SHARED_THRESHOLD

DATA_MAXIMUM: Final = 8 * SHARED_THRESHOLD
"""Bytes of a DATA record: a small part of a channel, so that both sides copy at the same time."""
CARRIED_MAXIMUM: Final = 8 * DATA_MAXIMUM
"""Length in bytes of the longest message whose data follows its OFFER by itself: about as much as a channel holds."""
RECORD_HEAD: Final[Any] = quick_struct(Struct("=BBHI2Q2I3Q"))
"""Kind, status, length of the description in an OFFER, an unused field, source, target, session of the source, session
of the target, number, match information, length. Source and target are an Ethernet address and, in the lowest byte, an
endpoint number."""
RecordHead = tuple[int, int, int, int, int, int, int, int, int, int, int]
ENDPOINT_BITS: Final = 0xFF
"""The bits of a source or target that are the endpoint number."""
_DESCRIPTION_MAXIMUM: Final = 8 + 16 * SEGMENTS_MAXIMUM
RECORD_MAXIMUM: Final[int] = RECORD_HEAD.size + _DESCRIPTION_MAXIMUM + DATA_MAXIMUM
"""Length of the longest record in bytes."""


class RecordKind(IntEnum):
    """Kinds of records; see the table in ``neighbours.py``."""

    CONNECT = 1
    ANSWER = 2
    MESSAGE = 3
    LOST = 4
    OFFER = 5
    ENDED = 6
    PULL = 7
    DATA = 8
    WITHDRAWN = 9


class LocalChannel(Protocol):
    """A connection to another node of this host, for records of up to ``RECORD_MAXIMUM`` bytes."""

    ended: bool
    """True if the neighbour has gone; records that it has sent before can still be taken."""
    process: int
    """Process id of the neighbour, by which two channels to the same process are detected: each side may have opened
    one."""

    def put(self, head: bytes, data: Any = b"") -> bool:
        """Append a record of two parts; return False if there is no room now, or the neighbour has gone.

        When there is room again, the channel is among those that its path reports.
        """

    def peek(self) -> bytes | memoryview | None:
        """The oldest record, valid until :meth:`advance`; None if there is none.

        Raises :class:`~mxwire.errors.InvalidRecordError` if the content of the channel is inconsistent.
        """

    def advance(self) -> None:
        """Remove the record that :meth:`peek` has returned."""

    def settle(self) -> None:
        """Notify the neighbour of the free room, after the last :meth:`advance` of several."""

    def describe(self, memory: Segments, endpoint: int) -> bytes:
        """A description of the memory of an endpoint's message, by which the neighbour can read it."""

    def read(self, described: bytes, memory: Segments, length: int, endpoint: int, offset: int = 0) -> bool:
        """Copy the bytes from ``offset`` up to ``length`` that the neighbour has described into ``memory``; return
        False if that is impossible, or if ``endpoint``, to which they belonged, has withdrawn them."""

    def withdraw(self, endpoint: int) -> None:
        """Make all descriptions for ``endpoint`` void."""

    def unread(self) -> list[bytes]:
        """The records that the neighbour has not taken."""

    def close(self) -> None:
        """End the channel."""


class LocalPath(Protocol):
    """Opens channels to the other nodes of this host."""

    def reach(self, interface: int, endpoint: int) -> LocalChannel | None:
        """A channel to the node that has an endpoint of a local interface open; None if there is no such node."""
