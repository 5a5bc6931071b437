"""Directions: from one host to another, and from one endpoint to another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from mxwire.rules.state.hosts import Endpoint, Host
from mxwire.rules.state.streams import Stream
from mxwire.rules.state.transfers import Announcement, Transfer
from mxwire.wire.dialect import Dialect
from mxwire.wire.numbers import NO_PEER_INDEX, NO_SESSION

ANY_INDEX: Final = -1
"""The sender may have been taught before the observation began."""
TOLD_SESSIONS: Final = 4
TOLD_STARTS: Final = 8
INDEXES: Final = 8


@dataclass(slots=True, eq=False)
class Connect:
    """A connect request, with its repetitions."""

    session: int
    key: int
    start: int
    """The number that the target is asked to start with, as last said."""
    first_ns: int
    last_ns: int
    number: int
    requests: int = 1
    deliveries: int = 1
    exact: bool = True
    replies: int = 0
    nacks: int = 0
    answered: bool = False
    """A reply to it was seen."""
    target_epoch: int = 0
    """Opening of the target at the time of the first request."""
    reply: tuple[int, int] | None = None
    """Target's session and status of the first reply."""


@dataclass(slots=True, eq=False)
class Told:
    """What an endpoint was told of one session of its partner."""

    starts: list[int] = field(default_factory=list)
    """The numbers it was asked to start with, the latest last."""
    by_request: bool = False
    """A CONNECT request said so, not only a reply: only then a real host knows where to send acks (R-CON-12)."""

    def add(self, start: int, by_request: bool) -> None:
        """One more CONNECT said so."""
        self.by_request = self.by_request or by_request
        if start in self.starts:
            self.starts.remove(start)
        self.starts = [*self.starts[1 - TOLD_STARTS :], start]


@dataclass(slots=True, eq=False)
class Flow:
    """From one endpoint to another: everything that the source sends, and what it was told before."""

    pair: Pair
    source: Endpoint
    destination: Endpoint
    source_number: int
    destination_number: int
    epoch: int
    back: Flow = field(default=None, repr=False)  # type: ignore[assignment]
    """The other direction."""
    told: dict[int, Told] = field(default_factory=dict)
    """Sessions of the destination that it told the source, the latest last."""
    stream: Stream | None = None
    former: Stream | None = None
    """The stream before."""
    restart: bool = False
    """A CONNECT was seen since the stream began: the source may have forgotten its partner, and start anew."""
    forgot: bool = False
    """The source has counted its connects anew since the stream began: it has forgotten its partner."""
    asked: int | None = None
    """The number that the source has asked for last, in a CONNECT request or reply of its present opening."""
    asked_ns: int = 0
    connects: dict[int, Connect] = field(default_factory=dict)
    """The source's requests by connect_seqnum."""
    connect_next: int | None = 0
    """Number of its next connect; None where it is not known."""
    acknowledged_stream: Stream | None = None
    """The stream of the other direction that the following two speak of."""
    acknowledged: int | None = None
    """Highest position that the source has acknowledged."""
    acknowledged_ns: int = 0
    acknowledged_number: int = 0
    acknum: int | None = 0
    """Of the source's last liback; None where it is not known."""
    acknum_ns: int = 0
    acknum_session: int | None = None
    acknum_restart: bool = True
    """A CONNECT was seen since the last liback, so that counting may begin anew."""
    loose: bool = False
    """Frames were seen that could not be followed: what answers them cannot be judged."""
    replied: Connect | None = None
    """The source's replies to requests of the destination, which may be refused like requests."""
    announcements: dict[tuple[int, int, int], Announcement] = field(default_factory=dict)
    """The source's large messages by its session at that time, region and counter."""
    unannounced: bool = False
    """A message was sent before the source's own CONNECT (noted once)."""

    @property
    def fresh(self) -> bool:
        """Whether its numbers begin under observation: one of the two was opened since, so that both begin anew."""
        return self.source.fresh or self.destination.fresh

    def announces(self, session: int) -> bool:
        """Whether all large messages of the source in the opening with this session were seen."""
        return self.source.fresh and session == self.source.session

    def announced(self, session: int, region: int, counter: int) -> Announcement | None:
        """The large message that a packet to the source speaks of."""
        own = self.source.session
        if session == NO_SESSION and own is not None:
            session = own
        return self.announcements.get((session, region, counter)) or self.announcements.get((-1, region, counter))

    def left_behind(self, region: int, counter: int) -> Announcement | None:
        """The large message of a former opening of the source that no NOTIFY has ended (R-MEA-14)."""
        for session in reversed(self.source.past):
            found = self.announcements.get((session, region, counter))
            if found is not None and found.notified is None:
                return found
        return None

    def renew(self, epoch: int) -> None:
        """The source was opened again, and knows nothing but what requests without an answer may tell it."""
        self.epoch = epoch
        self.told = {}
        self.former = self.stream
        self.stream = None
        self.asked = None
        self.connects = {}
        self.connect_next = 0 if self.source.fresh else None
        self.acknowledged = None
        self.acknowledged_stream = None
        self.acknum = 0 if self.source.fresh else None
        self.acknum_session = None
        self.acknum_restart = True
        self.unannounced = False
        for each in self.back.connects.values():
            # The present opening may be the one that receives it, whichever flow shows that opening first.
            if each.session == self.destination.session and not each.answered:
                self.tell(each.session, each.start, by_request=True)

    def tell(self, session: int, start: int, by_request: bool) -> None:
        """The source learns the destination's session and the number to start with."""
        told = self.told.pop(session, None) or Told()
        told.add(start, by_request)
        self.told[session] = told
        self.restart = True
        if len(self.told) > TOLD_SESSIONS:
            del self.told[next(iter(self.told))]


@dataclass(slots=True, eq=False)
class Pair:
    """From one host to another."""

    source: Host
    destination: Host
    dialect: Dialect
    back: Pair = field(default=None, repr=False)  # type: ignore[assignment]
    plans: dict[type, Any] = field(default_factory=dict, repr=False)
    """What is done with the frames of each class (:mod:`mxwire.rules.plans`)."""
    flows: dict[int, Flow] = field(default_factory=dict)
    """By source endpoint x 256 + destination endpoint."""
    indexes: list[int] = field(default_factory=lambda: [NO_PEER_INDEX])
    """What the source may hold for its index in the destination's table, oldest first (wire format, section 5)."""
    taught_ns: list[int | None] = field(default_factory=lambda: [None])
    """When each of the indexes reached the source, where that is known."""
    retaught_ns: int | None = None
    """When the last index reached the source last, where that is known."""
    lesson: int | None = None
    """The one index that was taught under observation; None before, and once there were others."""
    taught: bool = False
    lesson_ns: int = 0
    """When it was taught last."""
    known_ns: int | None = None
    """When the source first sent something to the destination, and so had it in its peer table."""
    transfers: dict[int, Transfer] = field(default_factory=dict)
    """Pulls by the source, by handle x 2^32 + magic."""
    queries: dict[int, int] = field(default_factory=dict)
    """HOST_QUERYs sent by the source, by magic."""
    query_index: int | None = None
    """What the last of them taught."""
    query_times: tuple[int, int] = (0, 0)
    """Times of the last two queries."""
    query_numbers: tuple[int, int] = (0, 0)
    replies: int = 0

    def forget(self, since_ns: int | None = None) -> None:
        """The source was restarted; what it was taught after ``since_ns`` it may have heard only since then."""
        kept = since_ns is not None and self.retaught_ns is not None and self.retaught_ns >= since_ns
        self.indexes = [NO_PEER_INDEX, self.indexes[-1]] if kept else [NO_PEER_INDEX]
        self.taught_ns = [None, self.retaught_ns] if kept else [None]
        self.known_ns = None
        self.transfers = {}
        self.queries = {}
        self.query_times = (0, 0)
        self.back.replies = 0

    def teach(self, index: int, delivered_ns: int | None) -> None:
        """The destination teaches the source its index."""
        self.retaught_ns = delivered_ns
        if not self.taught:
            self.taught, self.lesson = True, index
        elif self.lesson != index:
            self.lesson = None
        if self.indexes[-1] != index:
            self.indexes.append(index)
            self.taught_ns.append(delivered_ns)
            if len(self.indexes) > INDEXES:
                del self.indexes[0], self.taught_ns[0]
