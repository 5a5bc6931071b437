"""Connects: those of the played host until they are answered, and its answers to those of the live one."""

from __future__ import annotations

from typing import Any, Final

from mxwire.replay.stateful.pulls import Waiting
from mxwire.replay.stateful.records import Record
from mxwire.units import MILLISECOND
from mxwire.wire.numbers import RESEND_DELAY
from mxwire.wire.packets import ConnectReply, ConnectRequest

EARLY: Final = 30 * MILLISECOND
"""So long a connect of theirs waits for the place that its answer has in the recording."""


class OwnConnects:
    """Which connects of ours are not answered."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[Any, ...], Waiting] = {}
        """By the key of the recorded answer."""

    def note(self, request: ConnectRequest, built: bytes, now: int) -> None:
        """A recorded connect leaves, built as it is now."""
        about = request.src_endpoint, request.dst_endpoint, request.src_session_id, request.connect_seqnum
        self._waiting[(ConnectReply, *about)] = Waiting(built, now)

    def answered(self, key: tuple[Any, ...]) -> bool:
        """One was answered; returns whether there was one that this answers."""
        return self._waiting.pop(key, None) is not None

    def refused(self, mine: int, theirs: int) -> tuple[Any, ...] | None:
        """One between two endpoints was refused; returns the key of the answer that will not come."""
        key = next((each for each in self._waiting if each[1:3] == (mine, theirs)), None)
        if key is not None:
            del self._waiting[key]
        return key

    def due(self, now: int) -> list[bytes]:
        """What is sent again now."""
        found = [each for each in self._waiting.values() if now - each.sent_ns >= RESEND_DELAY]
        for each in found:
            each.sent_ns = now
        return [each.frame for each in found]

    def deadlines(self) -> list[int]:
        """When they are due."""
        return [each.sent_ns + RESEND_DELAY for each in self._waiting.values()]


class Answers:
    """What we have to say to connects of theirs."""

    def __init__(self, records: list[Record]) -> None:
        self._records = records
        self._said: dict[tuple[int, ...], bytes] = {}
        """By what all repetitions of a connect have in common."""
        self._owed: dict[int, int] = {}
        """When connects of theirs came that are not answered yet, by the record of their answer."""
        self._early: set[int] = set()

    def said(self, connect: tuple[int, ...]) -> bytes | None:
        """What a connect was answered with, if it was."""
        return self._said.get(connect)

    def note(self, connect: tuple[int, ...], built: bytes) -> None:
        """A connect is answered, and its repetitions will be alike."""
        self._said[connect] = built

    def owe(self, request: Record, now: int) -> None:
        """A recorded connect has come: it is answered where its answer stands in the recording, if it has one."""
        reply = self._after(request)
        if reply is not None:
            self._owed[reply.number] = now

    def _after(self, request: Record) -> Record | None:
        asked: Any = request.frame
        wanted = asked.src_endpoint, asked.dst_endpoint, asked.src_session_id, asked.connect_seqnum
        for each in self._records[request.number :]:
            frame = each.frame
            if each.ours and isinstance(frame, ConnectReply):
                about = frame.dst_endpoint, frame.src_endpoint, frame.src_session_id, frame.connect_seqnum
                if about == wanted:
                    return each
        return None

    def leaves(self, reply: Record, connect: tuple[int, ...], built: bytes) -> None:
        """A recorded answer leaves, built as it is now."""
        self._owed.pop(reply.number, None)
        self.note(connect, built)

    def overdue(self, now: int) -> list[Record]:
        """What is said now, before its time: whoever asks may wait for it with what we wait for."""
        found = [number for number, asked in self._owed.items() if now - asked >= EARLY]
        for each in found:
            del self._owed[each]
        self._early.update(found)
        return [self._records[each - 1] for each in found]

    def is_early(self, reply: Record) -> bool:
        """Whether a recorded answer was said before its time."""
        return reply.number in self._early

    def deadlines(self) -> list[int]:
        """When answers are overdue."""
        return [each + EARLY for each in self._owed.values()]
