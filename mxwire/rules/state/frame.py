"""One frame in its context: the conclusions of the trackers, as input to the rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from mxwire.rules.state.flows import ObservedConnect, ObservedPair
from mxwire.rules.state.hosts import ObservedEndpoint
from mxwire.rules.state.streams import ObservedMessage
from mxwire.rules.state.transfers import ObservedAnnouncement, ObservedBlock, ObservedTransfer
from mxwire.rules.vantage import LOST, Vantage, pull_timer_least, resend_delay_least, slack


class FrameStatus(IntEnum):
    """Relation of a frame to those before it."""

    NEW = 0
    """The first of its kind: a new number, connect, transfer or block."""
    FRAGMENT = 1
    """Another fragment of the same transmission of a MEDIUM."""
    REPEAT = 2
    """A retransmission."""
    LATE = 3
    """Seen for the first time although later ones were seen before: the network lost or delayed it before
    observation."""
    DUPLICATE = 4
    """A duplicate made by the network."""
    STALE = 5
    """Belongs to a former session or to nothing known, so that only the frame itself can be judged."""


@dataclass(slots=True, eq=False)
class JudgedFrame:
    """The frame under judgement. One object serves all frames of a judge in turn, to save the allocation per frame."""

    vantage: Vantage
    within_reordering: int = field(init=False)
    """Times that differ by less than this, in nanoseconds, may be in the wrong order."""
    resend_delay: int = field(init=False)
    """The least time between two transmissions, in nanoseconds (R-RTX-01)."""
    pull_timer: int = field(init=False)
    """The least silence before the pull timer expires, in nanoseconds (R-PUL-08)."""
    time_ns: int = 0
    number: int = 0
    frame: Any = None
    length: int = 0
    """Bytes of the frame on the wire."""
    delivered_ns: int | None = None
    arrivals: int = 1
    """Number of times that it is delivered, if ``delivered_ns`` is known."""
    lost: bool = False
    pair: ObservedPair = None  # type: ignore[assignment]
    """The pair from source to destination; set for every frame with addresses."""
    flow: Any = None
    """Source endpoint to destination endpoint, if the frame names both. For a nack, the direction of the refused packet
    (None if no packet went in that direction)."""
    back: Any = None
    endpoint: ObservedEndpoint | None = None
    """The sender's endpoint, if the frame contains its session."""
    status: FrameStatus = FrameStatus.NEW
    starts: bool = False
    """True if the frame is the first of a new stream of numbers."""
    position: int = 0
    message: ObservedMessage | None = None
    """The known message that it retransmits, continues or refuses."""
    crc: int = 0
    """CRC-32 of a fragment's data."""
    ack: int = 0
    ack_position: int | None = None
    """Position that the frame acknowledges, if it refers to the current stream of the reverse direction."""
    connect: ObservedConnect | None = None
    transfer: ObservedTransfer | None = None
    block: ObservedBlock | None = None
    place: int = 0
    """Index of a reply within its block."""
    announcement: ObservedAnnouncement | None = None
    left_behind: bool = False
    """The announcement is of a former opening of the destination (R-MEA-14)."""
    alike: ObservedAnnouncement | None = None
    """With ``left_behind``, the announcement of the present opening that looks like it."""

    def __post_init__(self) -> None:
        """Derive the periods from the vantage."""
        self.within_reordering = slack(self.vantage)
        self.resend_delay = resend_delay_least(self.vantage)
        self.pull_timer = pull_timer_least(self.vantage)

    def begin(self, time_ns: int, number: int, delivered_ns: int | None, arrivals: int) -> None:
        """Reset the conclusions for the next frame."""
        self.time_ns = time_ns
        self.number = number
        self.delivered_ns = delivered_ns
        self.arrivals = arrivals
        self.lost = delivered_ns == LOST
        self.status = FrameStatus.NEW
        self.starts = False
        self.message = None
        self.connect = None
        self.transfer = None
        self.block = None
        self.announcement = None
        self.left_behind = False
        self.alike = None
        self.ack_position = None
