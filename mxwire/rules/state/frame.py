"""One frame in its context: the conclusions of the trackers, as input to the rules."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from mxwire.rules.state.flows import ObservedConnect, ObservedPair
from mxwire.rules.state.hosts import ObservedEndpoint
from mxwire.rules.state.streams import ObservedMessage
from mxwire.rules.state.transfers import ObservedAnnouncement, ObservedBlock, ObservedTransfer
from mxwire.rules.timing import pull_timer_least, resend_delay_least, slack
from mxwire.rules.vantage import LOST, Vantage


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


class JudgedFrame:
    """The frame under judgement. One object serves all frames of a judge in turn, to save the allocation per frame."""

    __slots__ = (
        "ack",
        "ack_position",
        "alike",
        "announcement",
        "back",
        "block",
        "connect",
        "copies",
        "crc",
        "delivered_ns",
        "endpoint",
        "flow",
        "frame",
        "left_behind",
        "length",
        "lost",
        "message",
        "number",
        "pair",
        "place",
        "position",
        "pull_timer",
        "resend_delay",
        "starts",
        "status",
        "time_ns",
        "transfer",
        "vantage",
        "within_reordering",
    )

    def __init__(self, vantage: Vantage) -> None:
        self.vantage = vantage
        self.within_reordering = slack(vantage)
        """Times that differ by less than this, in nanoseconds, may be in the wrong order."""
        self.resend_delay = resend_delay_least(vantage)
        """The least time between two transmissions, in nanoseconds (R-RTX-01)."""
        self.pull_timer = pull_timer_least(vantage)
        """The least silence before the pull timer expires, in nanoseconds (R-PUL-08)."""
        self.time_ns = 0
        self.number = 0
        self.frame: Any = None
        self.length = 0
        """Bytes of the frame on the wire."""
        self.delivered_ns: int | None = None
        self.copies = 1
        """Number of times that it is delivered, if ``delivered_ns`` is known."""
        self.lost = False
        self.pair: ObservedPair = None  # type: ignore[assignment]
        """Source to destination; set for every frame with addresses."""
        self.flow: Any = None
        """Source endpoint to destination endpoint, if the frame names both. For a nack, the direction of the refused
        packet (None if no packet went in that direction)."""
        self.back: Any = None
        self.endpoint: ObservedEndpoint | None = None
        """The sender's endpoint, if the frame shows its session."""
        self.status = FrameStatus.NEW
        self.starts = False
        """The frame is the first of a new stream of numbers."""
        self.position = 0
        self.message: ObservedMessage | None = None
        """The known message that it retransmits, continues or refuses."""
        self.crc = 0
        """CRC-32 of a fragment's data."""
        self.ack = 0
        self.ack_position: int | None = None
        """Position that it acknowledges, if it refers to the current stream of the reverse direction."""
        self.connect: ObservedConnect | None = None
        self.transfer: ObservedTransfer | None = None
        self.block: ObservedBlock | None = None
        self.place = 0
        """Index of a reply within its block."""
        self.announcement: ObservedAnnouncement | None = None
        self.left_behind = False
        """The announcement is of a former opening of the destination (R-MEA-14)."""
        self.alike: ObservedAnnouncement | None = None
        """With ``left_behind``, the announcement of the present opening that looks like it."""

    def begin(self, time_ns: int, number: int, delivered_ns: int | None, copies: int) -> None:
        """Reset the conclusions for the next frame."""
        self.time_ns = time_ns
        self.number = number
        self.delivered_ns = delivered_ns
        self.copies = copies
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
