"""One frame in its context: what the trackers found out about it before the rules look at it."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from mxwire.rules.state.flows import Connect, Pair
from mxwire.rules.state.hosts import Endpoint
from mxwire.rules.state.streams import Message
from mxwire.rules.state.transfers import Announcement, Block, Transfer
from mxwire.rules.timing import pull_timer_least, resend_delay_least, slack
from mxwire.rules.vantage import LOST, Vantage


class Status(IntEnum):
    """What a frame is to those before it."""

    NEW = 0
    """The first of its kind: a new number, connect, transfer or block."""
    FRAGMENT = 1
    """Another fragment of the same transmission of a MEDIUM."""
    REPEAT = 2
    """Sent again."""
    LATE = 3
    """Seen for the first time although later ones were seen before: the network lost or delayed it on its way here."""
    DUPLICATE = 4
    """A copy that the network made."""
    STALE = 5
    """Belongs to a former session or to nothing known, so that only the frame itself can be judged."""


class Sighting:
    """The frame under judgement. One object serves all frames of a judge, one after the other."""

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
        """How often it is delivered, where ``delivered_ns`` is known."""
        self.lost = False
        self.pair: Pair = None  # type: ignore[assignment]
        """Source to destination; set for every frame that has addresses."""
        self.flow: Any = None
        """Source endpoint to destination endpoint, where the frame names both. In a nack the direction of what was
        refused (None where nothing went that way)."""
        self.back: Any = None
        self.endpoint: Endpoint | None = None
        """The sender's endpoint, where the frame shows its session."""
        self.status = Status.NEW
        self.starts = False
        """The frame begins a new stream of numbers."""
        self.position = 0
        self.message: Message | None = None
        """The known message that it repeats, continues or refuses."""
        self.crc = 0
        """CRC-32 of a fragment's data."""
        self.ack = 0
        self.ack_position: int | None = None
        """Position that it acknowledges, if that speaks of what the other side is sending now."""
        self.connect: Connect | None = None
        self.transfer: Transfer | None = None
        self.block: Block | None = None
        self.place = 0
        """Place of a reply within its block."""
        self.announcement: Announcement | None = None
        self.left_behind = False
        """The announcement is of a former opening of the destination (R-MEA-14)."""
        self.alike: Announcement | None = None
        """With ``left_behind``, the announcement of the present opening that looks like it."""

    def begin(self, time_ns: int, number: int, delivered_ns: int | None, copies: int) -> None:
        """Start with the next frame."""
        self.time_ns = time_ns
        self.number = number
        self.delivered_ns = delivered_ns
        self.copies = copies
        self.lost = delivered_ns == LOST
        self.status = Status.NEW
        self.starts = False
        self.message = None
        self.connect = None
        self.transfer = None
        self.block = None
        self.announcement = None
        self.left_behind = False
        self.alike = None
        self.ack_position = None
