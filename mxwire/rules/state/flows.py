"""Directions of traffic: from one host to another (pair), and from one endpoint to another (flow)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from mxwire.rules.state.hosts import ObservedEndpoint, ObservedHost
from mxwire.rules.state.streams import ObservedStream
from mxwire.rules.state.transfers import ObservedAnnouncement, ObservedTransfer
from mxwire.wire.dialect import Dialect
from mxwire.wire.numbers import NO_PEER_INDEX, NO_SESSION

ANY_INDEX: Final = -1
"""The sender may have been taught an index before the observation began."""
KNOWN_SESSIONS: Final = 4
KNOWN_STARTS: Final = 8
INDEXES: Final = 8


@dataclass(slots=True, eq=False)
class ObservedConnect:
    """A connect request, with its retransmissions."""

    session: int
    key: int
    start: int
    """The starting number that the request asked the target to use, as of its last transmission."""
    first_ns: int
    last_ns: int
    number: int
    requests: int = 1
    deliveries: int = 1
    exact: bool = True
    replies: int = 0
    nacks: int = 0
    answered: bool = False
    """True if a reply to the request was seen."""
    target_epoch: int = 0
    """Opening of the target at the time of the first request."""
    reply: tuple[int, int] | None = None
    """Target's session and status of the first reply."""
    other_keys: bool = False
    """True if earlier requests of this number with another key may be answered yet."""


@dataclass(slots=True, eq=False)
class KnownSession:
    """Contents of the CONNECTs that taught an endpoint one session of its partner."""

    starts: list[int] = field(default_factory=list)
    """The requested starting numbers, the latest last."""
    by_request: bool = False
    """A CONNECT request taught the session, not only a reply: a real host addresses acks only then (R-CON-12)."""

    def add(self, start: int, by_request: bool) -> None:
        """Remember one more CONNECT with this session."""
        self.by_request = self.by_request or by_request
        if start in self.starts:
            self.starts.remove(start)
        self.starts = [*self.starts[1 - KNOWN_STARTS :], start]


@dataclass(slots=True, eq=False)
class ObservedFlow:
    """From one endpoint to another: all packets of the source, and the state that determines them."""

    pair: ObservedPair
    source: ObservedEndpoint
    destination: ObservedEndpoint
    source_number: int
    epoch: int
    kept_behind: int
    """Messages of its streams that are remembered after they were acknowledged."""
    back: ObservedFlow = field(default=None, repr=False)  # type: ignore[assignment]
    """The flow in the reverse direction."""
    sessions: dict[int, KnownSession] = field(default_factory=dict)
    """Sessions of the destination that it taught the source, the latest last."""
    stream: ObservedStream | None = None
    former: ObservedStream | None = None
    """The previous stream."""
    restart: bool = False
    """A CONNECT was seen since the stream began: the source may have forgotten its partner, and restart its numbers."""
    forgot: bool = False
    """The source has restarted its connect numbers since the stream began: it has forgotten its partner."""
    requested: int | None = None
    """The starting number that the source last requested, in a CONNECT request or reply of its present opening."""
    requested_ns: int = 0
    connects: dict[int, ObservedConnect] = field(default_factory=dict)
    """The source's requests by connect_seqnum."""
    connect_next: int | None = 0
    """Number of its next connect; None if unknown."""
    acknowledged_stream: ObservedStream | None = None
    """The stream of the reverse direction that the following two attributes describe."""
    acknowledged: int | None = None
    """Highest position that the source has acknowledged."""
    acknowledged_ns: int = 0
    acknowledged_number: int = 0
    acknum: int | None = 0
    """Number of the source's last liback; None if unknown."""
    acknum_ns: int = 0
    acknum_session: int | None = None
    acknum_restart: bool = True
    """A CONNECT was seen since the last liback, so that ``acknum`` may start again."""
    loose: bool = False
    """Frames were seen that could not be followed, so that answers to them cannot be judged."""
    replied: ObservedConnect | None = None
    """The source's replies to requests of the destination, which can be refused like requests."""
    announcements: dict[tuple[int, int, int], ObservedAnnouncement] = field(default_factory=dict)
    """The source's large messages by its session at that time, region and counter."""
    unannounced: bool = False
    """A message was sent before the source's own CONNECT (reported once)."""

    @property
    def fresh(self) -> bool:
        """Return whether numbering began under observation: opening either endpoint restarts it."""
        return self.source.fresh or self.destination.fresh

    def announces(self, session: int) -> bool:
        """Return whether all large messages of the source in the opening with this session were seen."""
        return self.source.fresh and session == self.source.session

    def announced(self, session: int, region: int, counter: int) -> ObservedAnnouncement | None:
        """Return the large message that a packet to the source refers to."""
        # A real host without a session for the source names this number (R-CON-12).
        own = self.source.session
        if session == NO_SESSION and own is not None:
            session = own
        # -1: announced before the session of the source was seen.
        return self.announcements.get((session, region, counter)) or self.announcements.get((-1, region, counter))

    def left_behind(self, region: int, counter: int) -> ObservedAnnouncement | None:
        """Return the large message of a former opening of the source that no NOTIFY has ended (R-MEA-14)."""
        for session in reversed(self.source.past):
            announcement = self.announcements.get((session, region, counter))
            if announcement is not None and announcement.notified is None:
                return announcement
        return None

    def renew(self, epoch: int) -> None:
        """Reset the flow for a new opening of the source, which knows only what unanswered requests may still teach
        it."""
        self.epoch = epoch
        self.sessions = {}
        # Nacks and delayed frames may still refer to it.
        self.former = self.stream
        self.stream = None
        self.requested = None
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
                self.learn(each.session, each.start, by_request=True)

    def learn(self, session: int, start: int, by_request: bool) -> None:
        """Remember that the source learned the destination's session and the number to start with."""
        known = self.sessions.pop(session, None) or KnownSession()
        known.add(start, by_request)
        self.sessions[session] = known
        self.restart = True
        if len(self.sessions) > KNOWN_SESSIONS:
            del self.sessions[next(iter(self.sessions))]


@dataclass(slots=True, eq=False)
class ObservedPair:
    """From one host to another."""

    source: ObservedHost
    destination: ObservedHost
    dialect: Dialect
    back: ObservedPair = field(default=None, repr=False)  # type: ignore[assignment]
    plans: dict[type, Any] = field(default_factory=dict, repr=False)
    """Plan per class of frames (:mod:`mxwire.rules.judge`)."""
    flows: dict[int, ObservedFlow] = field(default_factory=dict)
    """By source endpoint x 256 + destination endpoint."""
    indexes: list[int] = field(default_factory=lambda: [NO_PEER_INDEX])
    """Indexes in the destination's table that the source may use, oldest first (wire format, section 5)."""
    taught_ns: list[int | None] = field(default_factory=lambda: [None])
    """Time at which each index reached the source, if known."""
    retaught_ns: int | None = None
    """Time at which the last index last reached the source, if known."""
    lesson: int | None = None
    """The only index that was taught under observation; None before the first, and after a second one."""
    taught: bool = False
    lesson_ns: int = 0
    """Time at which it was last taught."""
    known_ns: int | None = None
    """Time of the first frame from the source to the destination, which shows an entry in the source's peer table."""
    transfers: dict[int, ObservedTransfer] = field(default_factory=dict)
    """Pulls by the source, by handle x 2^32 + magic."""
    queries: dict[int, int] = field(default_factory=dict)
    """HOST_QUERYs sent by the source, by magic."""
    query_index: int | None = None
    """The index that the last of them taught."""
    query_times: tuple[int, int] = (0, 0)
    """Times of the last two queries."""
    query_numbers: tuple[int, int] = (0, 0)
    replies: int = 0

    def forget(self, since_ns: int | None = None) -> None:
        """Reset the pair after a restart of the source; an index taught after ``since_ns`` may have reached the new
        run."""
        kept = since_ns is not None and self.retaught_ns is not None and self.retaught_ns >= since_ns
        self.indexes = [NO_PEER_INDEX, self.indexes[-1]] if kept else [NO_PEER_INDEX]
        self.taught_ns = [None, self.retaught_ns] if kept else [None]
        self.known_ns = None
        self.transfers = {}
        self.queries = {}
        self.query_times = (0, 0)
        self.back.replies = 0

    def teach(self, index: int, delivered_ns: int | None) -> None:
        """Remember that the destination taught the source its index."""
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
