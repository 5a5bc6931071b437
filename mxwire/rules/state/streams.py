"""Streams: the numbered packets of one direction of a connection, and the arithmetic of sequence numbers (R-SEQ-01).

A number on the wire has 16 bits, two of them the session number. A *position* is the same number without wrap-around:
an integer whose lower 14 bits are those on the wire, so that positions can be compared and subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from typing import Final, Self

from mxwire.wire.enums import PacketType
from mxwire.wire.numbers import NUMBER_MASK, OUTSTANDING_MAXIMUM, SESSION_NUMBER_MASK, SESSION_NUMBER_STEP

_HALF: Final = SESSION_NUMBER_STEP // 2


def position_of(number: int, near: int) -> int:
    """Return the position with the lower 14 bits of ``number`` that is closest to the position ``near``."""
    return near + ((number - near + _HALF) & NUMBER_MASK) - _HALF


KEPT_BEHIND: Final = 64
"""Messages that are remembered after they were acknowledged: their sender may not have received the ack yet."""
KEPT_FLOWS: Final = 1 << 10
KEPT_LEAST: Final = 8
"""Number of flows that remember ``KEPT_BEHIND`` messages, and the number that each further flow remembers."""


def kept_behind(flows: int) -> int:
    """Return the number of messages that a new flow remembers, if there are ``flows`` already."""
    return KEPT_BEHIND if flows < KEPT_FLOWS else min(KEPT_LEAST, KEPT_BEHIND)


Content = tuple[int, int, tuple[int, int], tuple[int, int, int], bytes | None]
"""Type, length, match information (of a NOTIFY: region and counter), of a RNDV region, counter and offset, and the
data of a TINY or SMALL."""
NO_REGION: Final = (0, 0, 0)
"""The region of a message that is not a RNDV."""
PACKED: Final = Struct("<QqqiIBB32s")
"""A TINY in a tenth of the memory of its object: match information, time, frame number, ack, session, length, number of
captured bytes, and data."""
UNPACKED: Final = 0xFF
"""Length that stands for a message that is not packed."""
NO_FRAGMENTS: Final[dict[int, tuple[int, int, bool]]] = {}
"""The fragments of a message that is not a MEDIUM."""


@dataclass(slots=True, eq=False)
class ObservedMessage:
    """A numbered packet, or all fragments of a MEDIUM, with the properties that every transmission must repeat."""

    position: int
    session: int
    kind: int
    """Packet type."""
    content: Content
    """Properties that every transmission repeats."""
    first_ns: int
    last_ns: int
    """Time of the last frame of the last transmission."""
    first_number: int
    last_number: int
    transmissions: int = 1
    frames: int = 1
    """Its frames that may have reached the destination, including retransmissions."""
    exact: bool = True
    """True if ``frames`` is exact."""
    nacks: int = 0
    complete: bool = True
    """True if the whole message was seen (and delivered, if known)."""
    acceptable: bool = True
    """False if the message names a session other than the destination's, so that it must be refused."""
    acknowledgement: int = -1
    """The piggyback of the last transmission."""
    fragments: dict[int, tuple[int, int, bool]] = field(default_factory=dict)
    """Of a MEDIUM: length, CRC-32 and whether it may have been delivered, by fragment number."""
    round: int = 0
    """The fragments of the current transmission, as bits."""
    delivered_bytes: int = 0

    @classmethod
    def of_one_frame(
        cls, position: int, session: int, content: Content, time_ns: int, number: int, acknowledgement: int
    ) -> Self:
        """A message in one frame, of a run that is judged by columns."""
        return cls(
            position=position,
            session=session,
            kind=content[0],
            content=content,
            first_ns=time_ns,
            last_ns=time_ns,
            first_number=number,
            last_number=number,
            exact=False,
            acknowledgement=acknowledgement,
            fragments=NO_FRAGMENTS,
        )

    @property
    def length(self) -> int:
        """Bytes of the message; of a NOTIFY the transferred length that it reports."""
        return self.content[1]

    @property
    def match(self) -> tuple[int, int]:
        """Match information; of a NOTIFY the region and its counter."""
        return self.content[2]


@dataclass(slots=True, eq=False)
class ObservedStream:
    """Consecutive numbers from the requested start, until one endpoint resets its state."""

    session: int | None
    """The session that its TINY, SMALL, MEDIUM and RNDV name."""
    first: int
    """Position of its first number."""
    session_bits: int
    """Session number of its numbers: the two upper bits, in place."""
    next: int
    """Position after the highest number seen."""
    complete: int
    """Position of the first number that was not completely received, according to the observation."""
    acknowledged: int
    """Highest observed acknowledgement of the receiver, as a position."""
    floor: int
    """Messages below this position are forgotten."""
    kept_behind: int
    """Messages that are remembered after they were acknowledged; up to twice as many, until they are forgotten."""
    messages: dict[int, ObservedMessage] = field(default_factory=dict)
    """The remembered messages, except those that are only packed: :meth:`message` finds all."""
    packed: bytes = b""
    """Consecutive messages as ``PACKED``."""
    packed_first: int = 0
    """Position of the first of these."""
    adopted: bool = False
    """True if the beginning of the stream was not seen."""

    def add(self, message: ObservedMessage) -> None:
        """Remember a message whose number was not seen before."""
        self.messages[message.position] = message
        if message.position >= self.next:
            self.next = message.position + 1
        if self.next - self.floor > OUTSTANDING_MAXIMUM + KEPT_BEHIND:
            self._forget(self.next - OUTSTANDING_MAXIMUM)

    def message(self, position: int) -> ObservedMessage | None:
        """Return the message at a position; None if it was not seen, or is forgotten."""
        found = self.messages.get(position)
        at = PACKED.size * (position - self.packed_first)
        if found is not None or position < self.floor or not 0 <= at < len(self.packed):
            return found
        match, time_ns, number, ack, session, length, held, data = PACKED.unpack_from(self.packed, at)
        if length == UNPACKED:
            return None
        content = (int(PacketType.TINY), length, (match >> 32, match & 0xFFFF_FFFF), NO_REGION, data[:held])
        found = self.messages[position] = ObservedMessage.of_one_frame(position, session, content, time_ns, number, ack)
        return found

    def pack(self, first: int, packed: bytes) -> None:
        """Remember packed messages from position ``first`` on, which follow all others."""
        end = self.packed_first + len(self.packed) // PACKED.size
        if first != end and end > self.floor:
            self.unpack()
        if self.packed and first == end:
            left = max(self.floor, self.packed_first)
            packed = self.packed[PACKED.size * (left - self.packed_first) :] + packed
            first = left
        self.packed_first, self.packed = first, packed

    def unpack(self) -> None:
        """Create all packed messages."""
        for place in range(len(self.packed) // PACKED.size):
            self.message(self.packed_first + place)
        self.packed_first, self.packed = 0, b""

    def append(self, later: ObservedStream) -> None:
        """Continue with the messages of ``later``, whose first position is ``next``."""
        later.unpack()
        self.messages |= later.messages
        self.next = later.next
        self.settle()
        if later.acknowledged > later.first:
            self.acknowledge(later.acknowledged)

    def settle(self) -> None:
        """Advance ``complete`` over messages that have been seen completely."""
        messages = self.messages
        while (message := messages.get(self.complete)) is not None and message.complete:
            self.complete += 1

    def acknowledge(self, position: int) -> None:
        """Remember the receiver's acknowledgement."""
        if position > self.acknowledged:
            self.acknowledged = position
            # Only if a rule was broken or the capture missed a frame.
            if position > self.complete:
                self.complete = position
                self.next = max(self.next, position)
                self.settle()
            # At twice the number, so that messages are forgotten in groups, not one by one.
            if position - self.floor > 2 * self.kept_behind:
                self._forget(position - self.kept_behind)

    def _forget(self, below: int) -> None:
        for position in range(self.floor, below):
            self.messages.pop(position, None)
        self.floor = below
        self.complete = max(self.complete, below)

    def discard(self) -> None:
        """Forget the messages below ``floor``, after it was moved."""
        for position in [each for each in self.messages if each < self.floor]:
            del self.messages[position]

    def number(self, position: int) -> int:
        """Return a position as a number on the wire."""
        return position & ~SESSION_NUMBER_MASK & 0xFFFF | self.session_bits


def stream_from(number: int, session: int | None, kept: int, *, adopted: bool = False) -> ObservedStream:
    """Return a stream that remembers ``kept`` messages, whose first number is ``number``, 16 bits as on the wire."""
    # One round above 0, so that no position is negative.
    first = (number & ~SESSION_NUMBER_MASK & 0xFFFF) + SESSION_NUMBER_STEP
    return ObservedStream(
        session=session,
        first=first,
        session_bits=number & SESSION_NUMBER_MASK,
        next=first,
        complete=first,
        acknowledged=first,
        floor=first,
        kept_behind=kept,
        adopted=adopted,
    )
