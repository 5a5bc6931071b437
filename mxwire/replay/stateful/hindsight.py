"""Conclusions about a recorded frame from later frames: how it was answered."""

from __future__ import annotations

from collections.abc import Callable

from mxwire.replay.stateful.records import CARD, NUMBERED, Record
from mxwire.wire.dialect import Dialect
from mxwire.wire.packets import ConnectReply, ConnectRequest, NackLib, NackMcp, Pull, PullReply

NEARBY = 12
"""Number of frames after a frame among which its answer is sought."""


class Hindsight:
    """The answers in a capture."""

    def __init__(self, records: list[Record], dialect: Dialect) -> None:
        """``records`` are those of one host, numbered from 1 without gaps."""
        self.records = records
        self.dialect = dialect

    def sessions(self) -> Callable[[int], int | None]:
        """Return a function that gives the sessions of an endpoint in the order of its openings, as seen in connects.

        Call it with the endpoint's number at each opening; it returns None for a session that no connect shows.
        """
        known: dict[int, list[int]] = {}
        for each in self.records:
            frame = each.frame
            if not each.ours or not isinstance(frame, (ConnectRequest, ConnectReply)):
                continue
            session = frame.src_session_id if isinstance(frame, ConnectRequest) else frame.target_session_id
            sessions = known.setdefault(frame.src_endpoint, [])
            if session not in sessions:
                sessions.append(session)
        return lambda endpoint: known[endpoint].pop(0) if known.get(endpoint) else None

    def answering_session(self, record: Record) -> int | None:
        """Return the session in the answer to a connect request."""
        asked = record.frame
        if not isinstance(asked, ConnectRequest):
            return None
        for other in self._after(record):
            answer = other.frame
            if not other.ours or not isinstance(answer, ConnectReply):
                continue
            if (answer.src_session_id, answer.src_endpoint) == (asked.src_session_id, asked.dst_endpoint):
                return int(answer.target_session_id)
        return None

    def answers_connect(self, record: Record) -> bool:
        """Return whether the library's next frame answers a connect request in the same pass."""
        after = (each.frame for each in self._after(record) if each.ours and not isinstance(each.frame, CARD))
        return isinstance(next(after, None), ConnectReply)

    def refusal(self, record: Record) -> int | None:
        """Return the type of the nack that answers a frame, if any."""
        if isinstance(record.frame, Pull):
            return self._refusal_of_pull(record)
        number = getattr(record.frame, "lib_seqnum", None)
        for other in self._after(record):
            frame = other.frame
            if not isinstance(frame, (*NUMBERED, ConnectRequest, NackLib)) or frame.lib_seqnum != number:
                continue
            if not other.ours and not other.news:
                return None
            if isinstance(frame, NackLib) and other.ours and frame.src_endpoint == record.frame.dst_endpoint:
                return int(frame.nack_type)
        return None

    def _refusal_of_pull(self, record: Record) -> int | None:
        """Return the nack type if a PULL was refused: its handle gets a nack, and no further data."""
        pull = record.frame
        first = pull.frame_index * self.dialect.reply_payload
        for other in self.records[record.number :]:
            frame = other.frame
            if not other.ours:
                continue
            if isinstance(frame, PullReply) and frame.dst_pull_handle == pull.src_pull_handle:
                if first <= frame.msg_offset < first + pull.block_length:
                    return None
            elif isinstance(frame, NackMcp) and frame.src_pull_handle == pull.src_pull_handle:
                return int(frame.nack_type)
        return None

    def _after(self, record: Record) -> list[Record]:
        return self.records[record.number : record.number + NEARBY]
