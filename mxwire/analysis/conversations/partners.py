"""Conversations: two endpoints, each with the session of one opening, and their packets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from mxwire.analysis.conversations.message import CapturedMessage, Refusal
from mxwire.analysis.conversations.streams import Stream
from mxwire.wire.numbers import NO_SESSION

CONNECTS_KEPT: Final = 64
"""Maximum number of connects that are remembered per conversation; all are counted."""
OPENINGS_KEPT: Final = 4
"""Number of recent conversations of the same two endpoints to which late frames can still be assigned."""
STARTS_KEPT: Final = 8


@dataclass(slots=True, eq=False)
class Connect:
    """A connect: the request with its retransmissions, and the reply."""

    side: int
    """The initiator: 0 or 1, as in :attr:`Conversation.flows`."""
    number: int
    """``connect_seqnum``."""
    key: int | None
    """The application key in the request; None if the request was not seen."""
    frame: int
    time_ns: int
    requests: int = 1
    replies: int = 0
    answered_ns: int | None = None
    status: int | None = None
    """Status of the first reply."""
    nack: Refusal | None = None


@dataclass(slots=True, eq=False)
class Flow:
    """One direction of a conversation."""

    conversation: Conversation
    side: int
    address: int
    """The sender's Ethernet address."""
    endpoint: int | None
    """The sender's endpoint; None if no frame contains it."""
    session: int | None = None
    """Session of the receiving endpoint; None if it was not seen."""
    back: Flow = field(default=None, repr=False)  # type: ignore[assignment]
    """The other direction."""
    stream: Stream | None = None
    former: Stream | None = None
    starts: list[int] = field(default_factory=list)
    """The starting sequence numbers that the receiver requested, the latest last."""
    restart: bool = False
    """True if a CONNECT was seen since the stream began, so that the sender may restart its numbers."""
    announced: dict[tuple[int | None, int | None], CapturedMessage] = field(default_factory=dict, repr=False)
    """The large messages of the sender by region and use counter."""
    acked_unseen: int | None = None
    """The last acknowledgement of a direction without any captured numbers."""
    unseen: int = 0
    """Number of packets that must have been sent before ``stream``, but were not seen."""
    frames: int = 0
    bytes: int = 0
    """Bytes on the wire."""
    messages: Counter[str] = field(default_factory=Counter)
    """Number of messages by kind."""
    message_bytes: int = 0
    """Sum of the known lengths."""
    retransmissions: int = 0
    """Number of retransmitted frames: messages, their fragments, NOTIFYs, and re-requested data."""
    re_requests: int = 0
    duplicates: int = 0
    """Duplicates made by the network or by the capture."""
    libacks: int = 0
    nacks: int = 0
    most_outstanding: int = 0
    """Highest number of sequence numbers that were unacknowledged at a time."""
    late: int = 0
    """Number of frames whose message had already been reported."""

    def count(self, time_ns: int, wire_length: int) -> None:
        """Count a frame."""
        self.frames += 1
        self.bytes += wire_length
        self.conversation.last_ns = time_ns

    @property
    def missing(self) -> int:
        """Numbered packets of this direction that were acknowledged or skipped, but not seen."""
        streams = (each.missing for each in (self.stream, self.former) if each is not None)
        return self.unseen + sum(streams)


@dataclass(slots=True, eq=False)
class Conversation:
    """Two endpoints, each with the session of one opening."""

    number: int
    first_ns: int
    last_ns: int
    flows: tuple[Flow, Flow] = field(default=(), repr=False)  # type: ignore[assignment]
    """The flow from the endpoint that was first seen sending, and the opposite flow."""
    connects: list[Connect] = field(default_factory=list)
    connect_count: int = 0
    restarted: bool = False
    """True if another conversation of the same endpoints follows because one of them was reopened."""

    def session(self, side: int) -> int | None:
        """Return the session of the endpoint that sends in flow ``side``."""
        return self.flows[1 - side].session

    @property
    def is_stray(self) -> bool:
        """True if an endpoint is unknown: only data of large messages was captured, and not the requests for it."""
        return any(flow.endpoint is None for flow in self.flows)

    @property
    def half_seen(self) -> list[str]:
        """Parts of the conversation that the capture lacks."""
        remarks = []
        one, other = self.flows
        if not (one.frames and other.frames):
            remarks.append("one direction only")
        if not self.connect_count and (one.messages or other.messages):
            remarks.append("no connect seen")
        missing = one.missing + other.missing
        if missing:
            remarks.append(f"{missing} numbered packets not seen")
        return remarks

    def connects_of(self, flow: Flow) -> Iterator[Connect]:
        """Yield the connects that the sender of ``flow`` requested."""
        return (each for each in self.connects if each.side == flow.side)

    def connect(self, side: int, number: int) -> Connect | None:
        """Return the latest connect of an endpoint with a number."""
        for each in reversed(self.connects):
            if each.side == side and each.number == number:
                return each
        return None

    def add(self, connect: Connect) -> None:
        """Store a connect, if there are fewer than the maximum."""
        self.connect_count += 1
        if len(self.connects) < CONNECTS_KEPT:
            self.connects.append(connect)


@dataclass(slots=True, eq=False)
class PartnerPair:
    """Two endpoint numbers of two hosts, with one conversation per pair of sessions."""

    ends: tuple[tuple[int, int | None], tuple[int, int | None]]
    conversations: list[Conversation] = field(default_factory=list)
    """The conversations in order of appearance; the latest is last."""
    last_ns: int = 0


@dataclass(slots=True, eq=False, repr=False)
class EndpointDirection:
    """The direction from one endpoint number to another, in all sessions."""

    partners: PartnerPair
    side: int
    flow: Flow = None  # type: ignore[assignment]
    """The flow of this direction in the latest conversation."""

    def find(self, session: int) -> Flow | None:
        """Return the flow to the endpoint with ``session``; None if there is none yet."""
        if session == NO_SESSION:
            return self.flow
        unknown: Flow | None = None
        for each in reversed(self.partners.conversations):
            flow = each.flows[self.side]
            if flow.session == session:
                # The latest conversation has no session yet; if an earlier one has this session and was answered, the
                # frame belongs to the earlier one.
                if unknown is None or flow.back.frames:
                    return flow
                break
            if flow.session is None and unknown is None:
                unknown = flow
        if unknown is not None:
            unknown.session = session
        return unknown


def note_start(flow: Flow, start: int) -> None:
    """Record the starting sequence number that is requested of the sender of a flow."""
    # Moved to the end: retransmissions of one CONNECT must not displace the starts of others.
    if start in flow.starts:
        flow.starts.remove(start)
    flow.starts.append(start)
    del flow.starts[:-STARTS_KEPT]
    flow.restart = True
