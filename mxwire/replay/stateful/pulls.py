"""PULLs of the played host, and what of them has to be sent again."""

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
"""After so long without data a PULL is sent again (R-PUL-07)."""


@dataclass
class Waiting:
    """A frame of ours that is answered by another one."""

    frame: bytes
    sent_ns: int
    lacks: set[int] = field(default_factory=set)
    """Of a PULL: where in the message the data lies that has not come."""


class OwnPulls:
    """Which PULLs of ours are not answered in full."""

    def __init__(self, expectations: Expectations, dialect: Dialect) -> None:
        self._expectations = expectations
        self._dialect = dialect
        self._waiting: dict[tuple[int, int, int], Waiting] = {}
        """By handle, magic and first frame."""
        self._handles: dict[Region, tuple[int, int]] = {}
        """The handle of our pull of each of their regions."""

    def note(self, pull: Pull, built: bytes, now: int) -> None:
        """A recorded PULL leaves, built as it is now."""
        handle = pull.src_pull_handle, pull.src_magic
        self._handles[region_of(pull, pull.src_endpoint, pull.dst_endpoint)] = handle
        lacks = self._expectations.replies_to(pull, message_offset(pull, self._dialect))
        if lacks:
            self._waiting[(*handle, pull.frame_index)] = Waiting(built, now, lacks)

    def came(self, reply: PullReply) -> None:
        """A recorded reply has come."""
        handle = reply.dst_pull_handle, reply.dst_magic
        for place, waiting in list(self._waiting.items()):
            if place[:2] == handle:
                waiting.lacks.discard(reply.msg_offset)
                if not waiting.lacks:
                    del self._waiting[place]

    def end(self, notify: Notify) -> None:
        """Nothing of a large message is asked for any more."""
        handle = self._handles.pop(region_of(notify, notify.src_endpoint, notify.dst_endpoint), None)
        for place in [each for each in self._waiting if each[:2] == handle]:
            del self._waiting[place]

    def due(self, now: int) -> list[bytes]:
        """What is sent again now."""
        found = [each for each in self._waiting.values() if now - each.sent_ns >= AGAIN]
        for each in found:
            each.sent_ns = now
        return [each.frame for each in found]

    def deadlines(self) -> list[int]:
        """When they are due."""
        return [each.sent_ns + AGAIN for each in self._waiting.values()]
