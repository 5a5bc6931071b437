"""Unanswered frames of the played host, and the answers that it owes to the live host."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from mxwire.protocol.card.replies import message_offset
from mxwire.replay.stateful.conversation import Region, region_of
from mxwire.replay.stateful.expectations import Expectations
from mxwire.replay.stateful.records import Record
from mxwire.units import MILLISECOND, SECOND
from mxwire.wire.dialect import Dialect
from mxwire.wire.numbers import RESEND_DELAY
from mxwire.wire.packets import ConnectReply, ConnectRequest, Notify, Pull, PullReply

AGAIN: Final = SECOND
"""Time without data after which a PULL is retransmitted (R-PUL-07)."""


@dataclass
class PendingFrame:
    """A transmitted frame that has not been answered."""

    frame: bytes
    sent_ns: int
    lacks: set[int] = field(default_factory=set)
    """Of a PULL: offsets in the message of missing data."""


class PendingFrames:
    """Frames of one kind by their keys, each retransmitted every ``delay`` ns until it is answered."""

    def __init__(self, delay: int) -> None:
        self._delay = delay
        self._waiting: dict[tuple[Any, ...], PendingFrame] = {}

    def due(self, now: int) -> list[bytes]:
        """Return the frames to retransmit now."""
        frames = [each for each in self._waiting.values() if now - each.sent_ns >= self._delay]
        for each in frames:
            each.sent_ns = now
        return [each.frame for each in frames]

    def deadlines(self) -> list[int]:
        """Return the times at which the frames are due for retransmission."""
        return [each.sent_ns + self._delay for each in self._waiting.values()]


class OwnPulls(PendingFrames):
    """PULLs of the played host that are not completely answered, by handle, magic and first frame."""

    def __init__(self, expectations: Expectations, dialect: Dialect) -> None:
        super().__init__(AGAIN)
        self._expectations = expectations
        self._dialect = dialect
        self._handles: dict[Region, tuple[int, int]] = {}
        """Handle of the pull of each region of the live host."""

    def note(self, pull: Pull, built: bytes, now: int) -> None:
        """Record the transmission of a PULL, with its bytes as sent."""
        handle = pull.src_pull_handle, pull.src_magic
        self._handles[region_of(pull, pull.src_endpoint, pull.dst_endpoint)] = handle
        lacks = self._expectations.replies_to(pull, message_offset(pull, self._dialect))
        if lacks:
            self._waiting[(*handle, pull.frame_index)] = PendingFrame(built, now, lacks)

    def arrived(self, reply: PullReply) -> None:
        """Record the arrival of a recorded reply."""
        handle = reply.dst_pull_handle, reply.dst_magic
        for place, waiting in list(self._waiting.items()):
            # By handle, since a reply does not name the PULL that requested it.
            if place[:2] == handle:
                waiting.lacks.discard(reply.msg_offset)
                if not waiting.lacks:
                    del self._waiting[place]

    def end(self, notify: Notify) -> None:
        """End the requests for a large message."""
        handle = self._handles.pop(region_of(notify, notify.src_endpoint, notify.dst_endpoint), None)
        for place in [each for each in self._waiting if each[:2] == handle]:
            del self._waiting[place]


EARLY: Final = 30 * MILLISECOND
"""Time that a connect of the live host waits for the position of its answer in the recording."""


class OwnConnects(PendingFrames):
    """Unanswered connects of the played host, by the key of the recorded answer."""

    def __init__(self) -> None:
        super().__init__(RESEND_DELAY)

    def note(self, request: ConnectRequest, built: bytes, now: int) -> None:
        """Record the transmission of a connect, with its bytes as sent."""
        connect = request.src_endpoint, request.dst_endpoint, request.src_session_id, request.connect_seqnum
        self._waiting[(ConnectReply, *connect)] = PendingFrame(built, now)

    def answered(self, key: tuple[Any, ...]) -> bool:
        """Remove the connect that an answer belongs to; return whether there was one."""
        return self._waiting.pop(key, None) is not None

    def refused(self, played: int, live: int) -> tuple[Any, ...] | None:
        """Remove a refused connect between two endpoints; return the key of the answer that it will not receive."""
        key = next((each for each in self._waiting if each[1:3] == (played, live)), None)
        if key is not None:
            del self._waiting[key]
        return key


class ConnectAnswers:
    """Answers of the played host to connects of the live one."""

    def __init__(self, records: list[Record]) -> None:
        self._records = records
        self._given: dict[tuple[int, ...], bytes] = {}
        """Answers given, by the properties that repetitions of a connect share."""
        self._owed: dict[int, int] = {}
        """Arrival times of unanswered connects, by the record of the answer."""
        self._early: set[int] = set()

    def given(self, connect: tuple[int, ...]) -> bytes | None:
        """Return the answer given to a connect, if any."""
        return self._given.get(connect)

    def note(self, connect: tuple[int, ...], built: bytes) -> None:
        """Record the answer to a connect; its repetitions get the same one."""
        self._given[connect] = built

    def owe(self, request: Record, now: int) -> None:
        """Note the arrival of a recorded connect; it is answered at the position of its recorded answer, if any."""
        reply = self._after(request)
        if reply is not None:
            self._owed[reply.number] = now

    def _after(self, request: Record) -> Record | None:
        connect: Any = request.frame
        connect_key = connect.src_endpoint, connect.dst_endpoint, connect.src_session_id, connect.connect_seqnum
        for each in self._records[request.number :]:
            frame = each.frame
            if each.is_played and isinstance(frame, ConnectReply):
                reply_key = frame.dst_endpoint, frame.src_endpoint, frame.src_session_id, frame.connect_seqnum
                if reply_key == connect_key:
                    return each
        return None

    def leaves(self, reply: Record, connect: tuple[int, ...], built: bytes) -> None:
        """Record the transmission of a recorded answer, with its bytes as sent."""
        self._owed.pop(reply.number, None)
        self.note(connect, built)

    def overdue(self, now: int) -> list[Record]:
        """Return answers to give now, ahead of their position.

        The live host may wait for its answer before it sends the frame that the script waits for.
        """
        numbers = [number for number, since in self._owed.items() if now - since >= EARLY]
        for each in numbers:
            del self._owed[each]
        self._early.update(numbers)
        return [self._records[each - 1] for each in numbers]

    def is_early(self, reply: Record) -> bool:
        """Return whether a recorded answer was given ahead of its position."""
        return reply.number in self._early

    def deadlines(self) -> list[int]:
        """Return the times at which answers become overdue."""
        return [each + EARLY for each in self._owed.values()]
