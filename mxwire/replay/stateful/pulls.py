"""PULLs of the played host, and their retransmission."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from mxwire.protocol.card.replies import message_offset
from mxwire.replay.stateful.conversation import Region, region_of
from mxwire.replay.stateful.expectations import Expectations
from mxwire.units import SECOND
from mxwire.wire.dialect import Dialect
from mxwire.wire.packets import Notify, Pull, PullReply

AGAIN: Final = SECOND
"""Time without data after which a PULL is retransmitted (R-PUL-07)."""


@dataclass
class PendingFrame:
    """A transmitted frame that has not been answered."""

    frame: bytes
    sent_ns: int
    lacks: set[int] = field(default_factory=set)
    """Of a PULL: offsets in the message of the data that has not come."""


class OwnPulls:
    """PULLs of the played host that are not completely answered."""

    def __init__(self, expectations: Expectations, dialect: Dialect) -> None:
        self._expectations = expectations
        self._dialect = dialect
        self._waiting: dict[tuple[int, int, int], PendingFrame] = {}
        """By handle, magic and first frame."""
        self._handles: dict[Region, tuple[int, int]] = {}
        """Handle of the pull of each region of the live host."""

    def note(self, pull: Pull, built: bytes, now: int) -> None:
        """Record the transmission of a PULL, with its bytes as sent."""
        handle = pull.src_pull_handle, pull.src_magic
        self._handles[region_of(pull, pull.src_endpoint, pull.dst_endpoint)] = handle
        lacks = self._expectations.replies_to(pull, message_offset(pull, self._dialect))
        if lacks:
            self._waiting[(*handle, pull.frame_index)] = PendingFrame(built, now, lacks)

    def came(self, reply: PullReply) -> None:
        """Record the arrival of a recorded reply."""
        handle = reply.dst_pull_handle, reply.dst_magic
        for place, waiting in list(self._waiting.items()):
            if place[:2] == handle:
                waiting.lacks.discard(reply.msg_offset)
                if not waiting.lacks:
                    del self._waiting[place]

    def end(self, notify: Notify) -> None:
        """End the requests for a large message."""
        handle = self._handles.pop(region_of(notify, notify.src_endpoint, notify.dst_endpoint), None)
        for place in [each for each in self._waiting if each[:2] == handle]:
            del self._waiting[place]

    def due(self, now: int) -> list[bytes]:
        """Return the PULLs to retransmit now."""
        found = [each for each in self._waiting.values() if now - each.sent_ns >= AGAIN]
        for each in found:
            each.sent_ns = now
        return [each.frame for each in found]

    def deadlines(self) -> list[int]:
        """Return the times at which they are due for retransmission."""
        return [each.sent_ns + AGAIN for each in self._waiting.values()]
