"""State of the live conversation: its pairs of endpoints, and the translation of recorded values into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from mxwire.protocol.library.reliability import distance, number, successor
from mxwire.replay.stateful.comparison import FieldRelation
from mxwire.replay.stateful.script import ReplayScript
from mxwire.units import MILLISECOND
from mxwire.wire.numbers import FIRST_NUMBER, NO_PEER_INDEX, NO_SESSION, NUMBER_MASK, RESEND_DELAY, SESSION_NUMBER_MASK
from mxwire.wire.packets import ConnectReply, ConnectRequest, Notify, Pull, Rndv

HALF: Final = NUMBER_MASK // 2
OWED: Final = 30 * MILLISECOND
"""Time that an ack waits for its position in the recording."""


@dataclass
class Sent:
    """A numbered message of the played host that has not been acknowledged."""

    number: int
    """Sequence number of the message on the wire."""
    frames: list[bytes]
    sent_ns: int


@dataclass
class EndpointPair:
    """A played endpoint and a live one, identified by their recorded numbers."""

    played: int
    live: int
    # Transmission.
    live_session: int | None = None
    """Session of the live endpoint, once received."""
    live_recorded_session: int | None = None
    base: tuple[int, int] | None = None
    """The initial sequence number that the partner requested, as recorded and at present."""
    skipped: list[int] = field(default_factory=list)
    """Recorded numbers after the base that are left out of the replay."""
    next: int | None = None
    """The next sequence number to send."""
    recorded_of: dict[int, int] = field(default_factory=dict)
    """The recorded number for each number sent."""
    unacked: dict[int, Sent] = field(default_factory=dict)
    # Reception.
    expected: int = FIRST_NUMBER
    """The next expected sequence number."""
    arrived: dict[int, int | None] = field(default_factory=dict)
    """Received sequence numbers, each with the recorded one, or None if the message was not in the recording."""
    acked: int | None = None
    """The last ack sent."""
    first_of_owed_ns: int | None = None
    """Arrival time of the first frame that has not been acknowledged."""
    acknum: int = 0
    """Number of explicit acks sent."""
    incomplete: set[int] = field(default_factory=set)
    """Received MEDIUM messages with missing fragments."""

    # Sequence numbers of the played host.

    def begin(self, recorded: int, live: int) -> None:
        """Set the base: the partner expects ``live`` first; the recorded one expected ``recorded``."""
        self.base = recorded, live
        self.next = live
        self.skipped.clear()
        self.recorded_of.clear()
        self.unacked.clear()

    def live_number(self, recorded: int) -> int | None:
        """Return the present number for a recorded one; None before the partner has announced its first one."""
        if self.base is None:
            return None
        origin, start = self.base
        ahead = distance(recorded, origin)
        if ahead > HALF:
            # Before the base: a retransmission, which keeps its number.
            return (start & SESSION_NUMBER_MASK) | number(start + ahead)
        less = sum(0 <= distance(each, origin) < ahead for each in self.skipped)
        return (start & SESSION_NUMBER_MASK) | number(start + ahead - less)

    def skip(self, recorded: int) -> None:
        """Leave out a recorded number; later ones move up."""
        if recorded not in self.skipped:
            self.skipped.append(recorded)

    def note_sent(self, recorded: int, live: int, frame: bytes, now: int) -> None:
        """Record the transmission of a numbered frame."""
        again = live in self.recorded_of
        self.recorded_of[live] = recorded
        if self.next is None or distance(live, self.next) < HALF:
            self.next = successor(live)
        waiting = self.unacked.get(live)
        if waiting is None and not again:
            self.unacked[live] = Sent(live, [frame], now)
        elif waiting is not None:
            waiting.sent_ns = now
            # All fragments of a MEDIUM message have its number.
            if frame not in waiting.frames:
                waiting.frames.append(frame)

    def acknowledged(self, value: int) -> None:
        """Take an ack: ``value`` is the number that the partner expects next."""
        for each in [each for each in self.unacked if 0 < distance(value, each) <= HALF]:
            del self.unacked[each]

    def due(self, now: int) -> list[bytes]:
        """Return the frames to retransmit now."""
        frames = [each for each in self.unacked.values() if now - each.sent_ns >= RESEND_DELAY]
        for each in frames:
            each.sent_ns = now
        return [frame for each in frames for frame in each.frames]

    def deadlines(self) -> list[int]:
        """Return the times of the next retransmission and the next ack."""
        times = [each.sent_ns + RESEND_DELAY for each in self.unacked.values()]
        return times if self.first_of_owed_ns is None else [*times, self.first_of_owed_ns + OWED]

    # Sequence numbers of the live host.

    def expect_from(self, live: int) -> None:
        """Restart reception at a number."""
        self.expected = live
        self.arrived.clear()
        self.incomplete.clear()
        self.acked = None
        self.acknum = 0
        self.first_of_owed_ns = None

    def arrive(self, live: int, recorded: int | None, now: int, complete: bool = True) -> None:
        """Record the arrival of a sequence number."""
        self.arrived.setdefault(live, recorded)
        (self.incomplete.discard if complete else self.incomplete.add)(live)
        while self.expected in self.arrived and self.expected not in self.incomplete:
            self.expected = successor(self.expected)
        # The oldest frame decides when an ack is due, however many follow it.
        if self.first_of_owed_ns is None:
            self.first_of_owed_ns = now

    def ack(self, recorded: int | None = None) -> int:
        """Return the value of an ack: everything received, but no more than the recorded ack covers."""
        if recorded is None:
            return self.expected
        value, held = self.expected, []
        while value != self.acked:
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
        """Return whether an ack is overdue."""
        return self.first_of_owed_ns is not None and now - self.first_of_owed_ns >= OWED

    def note_ack(self, value: int) -> None:
        """Record the transmission of an ack."""
        self.acked = value
        if value == self.expected:
            self.first_of_owed_ns = None


FIRST_INDEX = 1
_SESSIONS = 0xFFFF_FFFE

Region = tuple[int, int, int, int]
"""Endpoint of the played host, endpoint of the live host, and the recorded number and use counter of a region."""


@dataclass
class LiveConversation:
    """The two hosts now, mapped from the two in the recording."""

    script: ReplayScript
    address: bytes
    """Ethernet address of the played host."""
    other: bytes
    """Ethernet address of the live host."""
    rng: Random
    endpoints: Mapping[int, int] = field(default_factory=dict)
    """Endpoints of the live host by the recorded ones, where they differ."""
    keys: Mapping[int, int] = field(default_factory=dict)
    """Keys of the live host's endpoints by the recorded ones, where they differ."""

    pairs: dict[tuple[int, int], EndpointPair] = field(default_factory=dict)
    played_sessions: dict[int, int] = field(default_factory=dict)
    """Sessions of the played host by the recorded ones."""
    present: dict[int, int] = field(default_factory=dict)
    """The present session of each endpoint of the played host, as sent to the live host."""
    live_sessions: dict[int, int] = field(default_factory=dict)
    """Sessions of the live host by the recorded ones, as received."""
    live_regions: dict[Region, Rndv] = field(default_factory=dict)
    """Large messages that the live host announced, by the recorded region."""
    live_handles: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """Handles and magics of the live host's pulls by the recorded ones."""
    requests: dict[tuple[int, int, int, int], ConnectRequest] = field(default_factory=dict)
    """Connects of the live host, by the played endpoint, the live one, and the recorded session and number."""
    live_numbers: dict[tuple[int, int, int], int] = field(default_factory=dict)
    """Sequence numbers of the live host by pair and recorded number, for messages with the recorded session."""
    live_index: int = NO_PEER_INDEX
    """Index of the played host in the live host's peer table, once received."""

    def __post_init__(self) -> None:
        """Find the index that the played host had assigned to the replaced one."""
        self.index = next(
            (
                int(each.frame.src_dst_peer_index)
                for each in self.script.records
                if each.is_played and hasattr(each.frame, "src_dst_peer_index")
            ),
            FIRST_INDEX,
        )

    def pair(self, played: int, live: int) -> EndpointPair:
        """Return the state of two endpoints, by their recorded numbers."""
        return self.pairs.setdefault((played, live), EndpointPair(played, live))

    def live_endpoint(self, recorded: int) -> int:
        """Return the number of a recorded endpoint of the live host."""
        return self.endpoints.get(recorded, recorded)

    def recorded_endpoint(self, live: int) -> int:
        """Return the recorded number of an endpoint of the live host."""
        return next((old for old, new in self.endpoints.items() if new == live), live)

    def played_session(self, recorded: int) -> int:
        """Return the played host's session for a recorded one; random per replay, so that hosts cannot confuse two
        replays.
        """
        if recorded not in self.played_sessions:
            self.played_sessions[recorded] = self.rng.randint(1, _SESSIONS)
        return self.played_sessions[recorded]

    def recorded_session(self, live: int) -> int | None:
        """Return the recorded session for a present one of the played host."""
        return next((old for old, new in self.played_sessions.items() if new == live), None)

    def live_session(self, recorded: int) -> int | None:
        """Return the live host's session for a recorded one; None if it has not been received."""
        return NO_SESSION if recorded == NO_SESSION else self.live_sessions.get(recorded)

    def connect_of(self, pair: EndpointPair, request: ConnectRequest | ConnectReply) -> tuple[int, ...]:
        """Return the properties shared by repetitions of a connect; its number restarts with the session."""
        present = self.present.get(pair.played, 0)
        return pair.played, pair.live, request.src_session_id, request.connect_seqnum, present

    def key(self, recorded: int) -> int:
        """Return the key for a recorded one."""
        return self.keys.get(recorded, recorded)

    def meaning(self, pair: EndpointPair | None, how: FieldRelation, value: Any) -> Any:
        """Translate a recorded value to the one required now; None if it cannot be determined."""
        if how is FieldRelation.INDEX:
            return self.index if value != NO_PEER_INDEX else None
        if how is FieldRelation.LIVE:
            return self.live_endpoint(value)
        if how is FieldRelation.SESSION:
            return NO_SESSION if value == NO_SESSION else self.played_sessions.get(value)
        if how is FieldRelation.KEY:
            return self.key(value)
        if how is FieldRelation.NUMBER:
            if not number(value) or pair is None:
                return value
            return pair.live_number(value)
        return value


def region_of(frame: Pull | Rndv | Notify, played: int, live: int) -> Region:
    """Return the region that a frame refers to."""
    return played, live, int(frame.pulled_rdma_id), int(frame.pulled_rdma_seqnum)
