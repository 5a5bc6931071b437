"""The numbered packets of one direction, kept in a bounded window."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from mxwire.analysis.conversations.frame_marks import EARLY, GAP, OUT_OF_ORDER
from mxwire.analysis.conversations.message import Acknowledgement, CapturedMessage, NumberedEntry
from mxwire.rules.state.streams import position_of
from mxwire.wire.numbers import NUMBER_MASK, OUTSTANDING_MAXIMUM, SESSION_NUMBER_MASK

KEPT_BEHIND: Final = 256
"""Number of messages of a stream that are remembered after they were reported, to recognise late duplicates."""
KEPT_IN_ALL: Final = 1 << 17
KEPT_LEAST: Final = 8
"""Number of messages that all streams together remember, and the least per stream."""
ENTRIES: Final = OUTSTANDING_MAXIMUM + KEPT_BEHIND
"""Maximum number of entries of a stream."""
_LAP: Final = NUMBER_MASK + 1
"""Positions begin one full range of sequence numbers above zero, so that none is negative."""


@dataclass(slots=True, eq=False, repr=False)
class Stream:
    """Consecutive numbers from one endpoint to another, until one side restarts (R-SEQ-01 to R-SEQ-04)."""

    first: int
    """Position of the first number that was seen or must have been sent."""
    bits: int
    """The session number, in its bits of the sequence number."""
    next: int = field(init=False)
    """Position after the highest known one."""
    expected: int = field(init=False)
    """The receiver has all positions below this one, according to the capture; updated by :meth:`arrival`."""
    confirmed: int = field(init=False)
    """Like ``acked``, but counting only acks that the sender accepts."""
    forgotten: set[int] = field(default_factory=set)
    """Positions that the receiver forgot when it restarted its numbers, and that were not retransmitted since."""
    acked: int = field(init=False)
    """The receiver has acknowledged all positions below this one."""
    ack_value: int = -1
    """The last acknowledgement that advanced ``acked``, as on the wire."""
    last_ack: Acknowledgement | None = None
    entries: dict[int, NumberedEntry] = field(default_factory=dict)
    reported: deque[int] = field(default_factory=deque)
    """Positions of entries whose messages were reported."""
    seen: int = 0
    """Number of distinct sequence numbers seen."""
    in_turn: bool = False
    """True if runs found that entries are in ascending order, those that were reported first, and nothing else changed
    the stream since."""

    def __post_init__(self) -> None:
        """Begin with the first number."""
        self.next = self.expected = self.confirmed = self.acked = self.first

    @property
    def missing(self) -> int:
        """Number of packets that were sent but not seen."""
        return max(self.next - self.first - self.seen, 0)

    def position(self, number: int) -> int:
        """Return the position of a sequence number on the wire."""
        return position_of(number, self.next)

    def arrival(self, position: int) -> int:
        """Return the flags of a new number, before :meth:`add`; call it for every new number or for none."""
        flags = GAP if position > self.next else OUT_OF_ORDER if position < self.next else 0
        entries, expected = self.entries, max(self.expected, self.confirmed)
        while expected in entries:
            expected += 1
        if self.forgotten:
            expected = min(expected, min(self.forgotten))
        if position > expected:
            flags |= EARLY
        elif position == expected:
            expected += 1
        self.expected = expected
        return flags

    def rewind(self, number: int) -> None:
        """Record that the receiver forgot all packets from ``number`` upwards, and expects ``number`` again (D-1)."""
        if not (number ^ self.bits) & SESSION_NUMBER_MASK:
            position = self.position(number)
            self.forgotten = {each for each in self.entries if each >= position}
            self.in_turn = False
            self.expected = min(self.expected, position)
            self.ack_value = -1

    def confirm(self, position: int) -> None:
        """Note an acknowledgement of all numbers below ``position`` that the sender accepts."""
        if position > self.confirmed:
            self.confirmed = position
        if self.forgotten:
            self.forgotten = {each for each in self.forgotten if each >= position}

    def add(self, entry: NumberedEntry) -> NumberedEntry | None:
        """Store a new number; return the oldest entry if there are too many."""
        self.in_turn = False
        position = entry.position
        self.seen += 1
        if position >= self.next:
            self.next = position + 1
        elif position < self.first:
            self.first = position
        if position < self.acked:
            if self.last_ack is None:
                # Without an ack it was only the first number that was seen, and this one precedes it.
                self.acked = self.confirmed = position
            else:
                entry.ack = self.last_ack
        self.entries[position] = entry
        if len(self.entries) > ENTRIES:
            return self.entries.pop(next(iter(self.entries)))
        return None

    def forget_one(self, position: int, kept_behind: int) -> None:
        """Schedule an entry for removal, after ``kept_behind`` more."""
        self.in_turn = False
        self.reported.append(position)
        while len(self.reported) > kept_behind:
            self.entries.pop(self.reported.popleft(), None)

    def advance_one(self, ack: Acknowledgement) -> NumberedEntry | None:
        """Acknowledge the next number; equivalent to :meth:`advance` by one, but faster."""
        self.in_turn = False
        entry = self.entries.get(self.acked)
        self.acked += 1
        self.last_ack = ack
        if self.acked > self.next:
            self.next = self.acked
        return entry

    def advance(self, position: int, ack: Acknowledgement) -> list[NumberedEntry]:
        """Acknowledge all numbers below ``position``; return the entries that had not been acknowledged before."""
        self.in_turn = False
        # Whichever is shorter: a forged ack may skip thousands of numbers.
        if position - self.acked > len(self.entries):
            found = [each for at, each in self.entries.items() if self.acked <= at < position]
        else:
            get = self.entries.get
            found = [each for at in range(self.acked, position) if (each := get(at)) is not None]
        if ack.effective:
            self.acked = position
            self.last_ack = ack
            self.next = max(self.next, position)
        return found


def first_position(number: int) -> int:
    """Return the position of the first sequence number of a stream."""
    return (number & NUMBER_MASK) + _LAP


def stream_at(number: int, starts: int | None) -> Stream:
    """Return a stream with ``number`` as the first one seen, after the receiver requested to begin with ``starts``."""
    bits = number & SESSION_NUMBER_MASK
    low = first_position(number)
    if starts is not None and starts & SESSION_NUMBER_MASK == bits:
        ahead = (number - starts) & NUMBER_MASK
        # Further ahead, the number cannot be one of the first window: the capture began later.
        if ahead < OUTSTANDING_MAXIMUM:
            return Stream(low - ahead, bits)
    return Stream(low, bits)


def stream_of(message: CapturedMessage) -> Stream | None:
    """Return the stream that contains a message; None if it is no longer remembered."""
    both = message.flow.stream, message.flow.former
    return next((each for each in both if each is not None and each.entries.get(message.position) is message), None)
