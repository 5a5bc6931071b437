"""What the played endpoint and the live one have agreed upon so far: sessions, numbers, acks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from mxwire.protocol.sequence import distance, number, successor
from mxwire.units import MILLISECOND
from mxwire.wire.numbers import FIRST_NUMBER, NUMBER_MASK, RESEND_DELAY, SESSION_NUMBER_MASK

HALF: Final = NUMBER_MASK // 2
OWED: Final = 30 * MILLISECOND
"""So long an ack may wait for the recording to have one."""


@dataclass
class Sent:
    """A numbered message of ours that is on its way."""

    number: int
    """As it is on the wire."""
    frames: list[bytes]
    sent_ns: int


@dataclass
class Pair:
    """One endpoint of the played host and one of the live host. Their numbers are those of the recording."""

    mine: int
    theirs: int
    # What we send.
    their_session: int | None = None
    """The live endpoint's session, once it has told."""
    their_recorded_session: int | None = None
    base: tuple[int, int] | None = None
    """A recorded number of ours, and what it is now: both are where the partner asked us to begin."""
    skipped: list[int] = field(default_factory=list)
    """Recorded numbers after the base that are not sent this time."""
    next: int | None = None
    """What our next number is."""
    recorded_of: dict[int, int] = field(default_factory=dict)
    """The recorded number for each that we have sent."""
    unacked: dict[int, Sent] = field(default_factory=dict)
    # What we receive.
    expected: int = FIRST_NUMBER
    """The next number that we want of theirs."""
    arrived: dict[int, int | None] = field(default_factory=dict)
    """Their numbers that have come, each with the recorded one; None: what came was not in the recording."""
    told: int | None = None
    """The ack that we have sent last."""
    first_of_owed_ns: int | None = None
    """When the first of those frames came that we have not acknowledged."""
    acknum: int = 0
    """How many explicit acks we have sent."""
    incomplete: set[int] = field(default_factory=set)
    """Their medium messages of which fragments are missing."""

    # Ours.

    def begin(self, recorded: int, live: int) -> None:
        """The partner wants our messages from a number on; the recorded one wanted them from another."""
        self.base = recorded, live
        self.next = live
        self.skipped.clear()
        self.recorded_of.clear()
        self.unacked.clear()

    def live_number(self, recorded: int) -> int | None:
        """What a recorded number of ours is now; None where nobody has said where to begin."""
        if self.base is None:
            return None
        origin, start = self.base
        ahead = distance(recorded, origin)
        if ahead > HALF:
            # Before where the partner wants us to begin: it is sent again, as it was.
            return (start & SESSION_NUMBER_MASK) | number(start + ahead)
        less = sum(0 <= distance(each, origin) < ahead for each in self.skipped)
        return (start & SESSION_NUMBER_MASK) | number(start + ahead - less)

    def skip(self, recorded: int) -> None:
        """A recorded number of ours is not sent this time, and those after it move up."""
        if recorded not in self.skipped:
            self.skipped.append(recorded)

    def note_sent(self, recorded: int, live: int, frame: bytes, now: int) -> None:
        """A numbered frame leaves."""
        again = live in self.recorded_of
        self.recorded_of[live] = recorded
        if self.next is None or distance(live, self.next) < HALF:
            self.next = successor(live)
        waiting = self.unacked.get(live)
        if waiting is None and not again:
            self.unacked[live] = Sent(live, [frame], now)
        elif waiting is not None:
            waiting.sent_ns = now
            if frame not in waiting.frames:
                waiting.frames.append(frame)

    def acknowledged(self, value: int) -> None:
        """The partner says what it expects next."""
        for each in [each for each in self.unacked if 0 < distance(value, each) <= HALF]:
            del self.unacked[each]

    def due(self, now: int) -> list[bytes]:
        """What of ours is sent again now."""
        found = [each for each in self.unacked.values() if now - each.sent_ns >= RESEND_DELAY]
        for each in found:
            each.sent_ns = now
        return [frame for each in found for frame in each.frames]

    def deadlines(self) -> list[int]:
        """When something is due: what is sent again, and an ack."""
        times = [each.sent_ns + RESEND_DELAY for each in list(self.unacked.values())[:1]]
        return times if self.first_of_owed_ns is None else [*times, self.first_of_owed_ns + OWED]

    # Theirs.

    def expect_from(self, live: int) -> None:
        """They begin anew, with this number."""
        self.expected = live
        self.arrived.clear()
        self.incomplete.clear()
        self.told = None
        self.acknum = 0
        self.first_of_owed_ns = None

    def arrive(self, live: int, recorded: int | None, now: int, complete: bool = True) -> None:
        """A number of theirs has come."""
        self.arrived.setdefault(live, recorded)
        (self.incomplete.discard if complete else self.incomplete.add)(live)
        while self.expected in self.arrived and self.expected not in self.incomplete:
            self.expected = successor(self.expected)
        if self.first_of_owed_ns is None:
            self.first_of_owed_ns = now

    def ack(self, recorded: int | None = None) -> int:
        """What we say that we expect next: all that has come, or no more than the recorded ack said."""
        if recorded is None:
            return self.expected
        value, held = self.expected, []
        while value != self.told:
            before = (value & SESSION_NUMBER_MASK) | number(value - 1)
            if before not in self.arrived:
                break
            held.append(before)
            value = before
        for each in reversed(held):
            was = self.arrived[each]
            if was is not None and not 0 < distance(recorded, was) <= HALF:
                break
            value = successor(each)
        return value

    def owes_ack(self, now: int) -> bool:
        """Whether an ack has waited for long enough."""
        return self.first_of_owed_ns is not None and now - self.first_of_owed_ns >= OWED

    def note_ack(self, value: int) -> None:
        """An ack has left."""
        self.told = value
        if value == self.expected:
            self.first_of_owed_ns = None
