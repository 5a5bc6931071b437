"""Partners: two endpoints in the openings that their session ids name, and their packets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from mxwire.analysis.conversations.message import CapturedMessage, Refusal
from mxwire.analysis.conversations.streams import Stream
from mxwire.wire.numbers import NO_SESSION

CONNECTS_KEPT: Final = 64
"""Connects of one conversation that are remembered; the others are counted."""
OPENINGS_KEPT: Final = 4
"""Conversations of the same two endpoints whose late frames are still distinguished."""
STARTS_KEPT: Final = 8


@dataclass(slots=True, eq=False)
class Connect:
    """One connect: the request with its repetitions, and the answer."""

    side: int
    """Which end asked: 0 or 1, as in :attr:`Conversation.flows`."""
    number: int
    """``connect_seqnum``."""
    key: int | None
    """The application key that was presented; None where the request was not seen."""
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
    """The sender's endpoint; None where no frame names it."""
    session: int | None = None
    """Session of the receiving endpoint; None where it was not seen."""
    back: Flow = field(default=None, repr=False)  # type: ignore[assignment]
    """The other direction."""
    stream: Stream | None = None
    former: Stream | None = None
    starts: list[int] = field(default_factory=list)
    """The numbers that the receiver asked the sender to start with, the latest last."""
    restart: bool = False
    """A CONNECT was seen since the stream began, so that the sender may begin again."""
    announced: dict[tuple[int | None, int | None], CapturedMessage] = field(default_factory=dict, repr=False)
    """The large messages of the sender by region and use counter."""
    acked_unseen: int | None = None
    """The last acknowledgement of numbers of which none was seen."""
    unseen: int = 0
    """Numbers that must have been sent before ``stream``, but were not seen."""
    frames: int = 0
    bytes: int = 0
    """On the wire."""
    messages: Counter[str] = field(default_factory=Counter)
    """By kind."""
    message_bytes: int = 0
    """Sum of the known lengths."""
    retransmissions: int = 0
    """Frames that were retransmitted: messages, their fragments, NOTIFYs, and data that was re-requested."""
    re_requests: int = 0
    duplicates: int = 0
    """Copies that the network or the capture made."""
    libacks: int = 0
    nacks: int = 0
    most_outstanding: int = 0
    """The most numbers that were not acknowledged at a time."""
    late: int = 0
    """Frames of messages that had been handed out long before."""

    @property
    def missing(self) -> int:
        """Numbered packets of this direction that were acknowledged or skipped, but not seen."""
        streams = (each.missing for each in (self.stream, self.former) if each is not None)
        return self.unseen + sum(streams)


@dataclass(slots=True, eq=False)
class Conversation:
    """Two endpoints, in the openings that their session ids name."""

    number: int
    first_ns: int
    last_ns: int
    flows: tuple[Flow, Flow] = field(default=(), repr=False)  # type: ignore[assignment]
    """From the end that was seen sending first, and from the other."""
    connects: list[Connect] = field(default_factory=list)
    connect_count: int = 0
    restarted: bool = False
    """Another conversation of the same endpoints follows: one of them was opened again."""

    def session(self, side: int) -> int | None:
        """The session of the end that sends in flow ``side``."""
        return self.flows[1 - side].session

    @property
    def half_seen(self) -> list[str]:
        """Parts of the message that the capture lacks."""
        said = []
        one, other = self.flows
        if not (one.frames and other.frames):
            said.append("one direction only")
        if not self.connect_count and (one.messages or other.messages):
            said.append("no connect seen")
        missing = one.missing + other.missing
        if missing:
            said.append(f"{missing} numbered packets not seen")
        return said

    def connects_of(self, flow: Flow) -> Iterator[Connect]:
        """The connects that the sender of ``flow`` requested."""
        return (each for each in self.connects if each.side == flow.side)

    def connect(self, side: int, number: int) -> Connect | None:
        """The latest connect of an end with a number."""
        for each in reversed(self.connects):
            if each.side == side and each.number == number:
                return each
        return None

    def add(self, connect: Connect) -> None:
        """Remember a connect."""
        self.connect_count += 1
        if len(self.connects) < CONNECTS_KEPT:
            self.connects.append(connect)


@dataclass(slots=True, eq=False)
class PartnerPair:
    """Two endpoint numbers of two hosts, with the conversations of their openings."""

    ends: tuple[tuple[int, int | None], tuple[int, int | None]]
    conversations: list[Conversation] = field(default_factory=list)
    """The latest last."""
    last_ns: int = 0


class EndpointDirection:
    """From one endpoint number to another, whatever their openings."""

    __slots__ = ("flow", "partners", "side")

    def __init__(self, partners: PartnerPair, side: int) -> None:
        self.partners = partners
        self.side = side
        self.flow: Flow = None  # type: ignore[assignment]
        """In the latest conversation."""

    def find(self, session: int) -> Flow | None:
        """The flow to the opening with a session, None if there is none yet."""
        if session == NO_SESSION:
            return self.flow
        unknown: Flow | None = None
        for each in reversed(self.partners.conversations):
            flow = each.flows[self.side]
            if flow.session == session:
                # The latest opening does not know the session yet, so a former one sends, if answers are seen.
                if unknown is None or flow.back.frames:
                    return flow
                break
            if flow.session is None and unknown is None:
                unknown = flow
        if unknown is not None:
            unknown.session = session
        return unknown


def note_start(flow: Flow, start: int) -> None:
    """The sender of a flow is asked to start with a number."""
    if start in flow.starts:
        flow.starts.remove(start)
    flow.starts.append(start)
    del flow.starts[:-STARTS_KEPT]
    flow.restart = True
