"""Large messages: the announcement in a RNDV, and the blocks that its receiver pulls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

BLOCKS_BEHIND: Final = 8
"""Complete blocks that are remembered behind the oldest incomplete one, for late retransmissions."""
TRANSFERS: Final = 1100
"""Transfers remembered per pair of hosts: a puller has 1024 handles."""
ANNOUNCEMENTS: Final = 1024
"""Large messages remembered per direction of a connection."""


@dataclass(slots=True, eq=False)
class ObservedAnnouncement:
    """A large message that a RNDV offers."""

    length: int
    offset: int
    position: int
    number: int
    """The frame that first announced it."""
    time_ns: int
    notified: int | None = None
    """Position of the NOTIFY that ended it."""
    notified_as: int | None = None
    """Its ``lib_seqnum``."""
    notified_number: int = 0
    notified_ns: int = 0
    perhaps_notified: bool = False
    """A NOTIFY of 0 bytes ended either this message or one of a former opening that looks alike (R-MEA-14)."""
    repeated_delivery: bool = False
    """The receiver's numbers were reset since then, so that the RNDV may be delivered twice (R-CON-12)."""
    transfer: ObservedTransfer | None = None


@dataclass(slots=True, eq=False)
class ObservedBlock:
    """The frames that one PULL requests."""

    index: int
    """Number of its first frame."""
    first_offset: int
    length: int
    frames: int
    start: int
    """Offset of its first byte in the message."""
    last_ns: int
    """Time of the last request."""
    last_number: int
    deliveries: int = 0
    """Number of requests that may have reached the responder."""
    exact: bool = True
    """True if ``deliveries`` is exact."""
    seen: int = 0
    """The frames that were seen (and delivered, if that is known), as bits."""
    answers: list[int] = field(default_factory=list)
    """Number of times that each frame was sent."""
    last_place: int = -1
    """Place of the last reply within the block."""
    data: dict[int, bytes] | None = None
    """Data of the replies by place, while the block is in the window."""
    hurried: bool = False
    """True if the block was re-requested before the timer expired (R-PUL-07)."""
    last_reply: int = 0
    """The frame that held the last reply."""

    @property
    def complete(self) -> bool:
        """True if all frames have been seen."""
        return self.seen == (1 << self.frames) - 1


@dataclass(slots=True, eq=False)
class ObservedTransfer:
    """A pull, from its first PULL on."""

    handle: int
    magic: int
    session: int
    puller: int
    """The endpoint that pulls."""
    owner: int
    """The endpoint that owns the region."""
    region: int
    counter: int
    offset: int
    total: int
    payload: int
    """P of the dialect."""
    per_block: int
    """B of the dialect."""
    epoch: int
    """Opening of the puller's endpoint."""
    first_ns: int
    last_ns: int
    first_number: int
    last_number: int
    lead: int = 0
    """r: offset of the message in its first frame."""
    nacks: int = 0
    taken_as_success: bool = False
    """A NACK_MCP of type 0 refused it, which real hosts take as the end of a complete pull (R-NAK-09)."""
    deliveries: int = 0
    exact: bool = True
    blocks: dict[int, ObservedBlock] = field(default_factory=dict)
    """By number of the block: frame_index / B."""
    oldest: int = 0
    """The first block that is not complete."""
    highest: int = -1
    """The last block that was requested."""
    irregular: bool = False
    """A PULL requested an invalid block: replies of the transfer are not judged."""
    adopted: bool = False
    """True if the beginning of the transfer was not seen."""
    ended: bool = False
    """True if the NOTIFY of the transfer was seen."""
    announcement: ObservedAnnouncement | None = None
    older: ObservedTransfer | None = None
    """Another transfer with the same handle and magic (D-13)."""

    @property
    def block_count(self) -> int:
        """Number of blocks of the whole transfer."""
        return -(-(self.lead + self.total) // (self.payload * self.per_block))

    def settle(self) -> None:
        """Move the window over complete blocks."""
        blocks = self.blocks
        while (block := blocks.get(self.oldest)) is not None and block.complete:
            block.data = None
            self.oldest += 1
            blocks.pop(self.oldest - BLOCKS_BEHIND, None)

    def end(self) -> None:
        """Mark the transfer as ended, and keep only the state that late retransmissions need."""
        self.ended = True
        for block in self.blocks.values():
            block.data = None
