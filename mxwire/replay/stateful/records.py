"""Records: the frames of a capture from the point of view of one of its hosts, and how they were answered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mxwire.ethernet import SOURCE
from mxwire.frames import FrameBatch
from mxwire.protocol.library.reliability import distance
from mxwire.wire import packets
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import Dialect
from mxwire.wire.numbers import NUMBER_MASK

NUMBERED = (packets.Tiny, packets.Small, packets.Medium, packets.Rndv, packets.Notify)
"""Frames with a sequence number."""
FOR_LIBRARY = (*NUMBERED, packets.Truc, packets.ConnectRequest, packets.ConnectReply, packets.NackLib)
"""Frames that the card puts into the library's ring; it handles the others itself."""
_ANSWERED = (*NUMBERED, packets.ConnectRequest, packets.NackLib)
"""Frames with a number that a nack may answer, and the nack."""


@dataclass
class Record:
    """One frame of a capture."""

    number: int
    time: int
    data: bytes
    length: int
    """Length on the wire; the capture may have truncated it."""
    frame: Any
    is_played: bool
    """True if the played host sent it."""
    news: bool = False
    """True if it is new: not a repetition of a number or of a connect."""

    @property
    def cut(self) -> int:
        """Number of bytes that the capture cut off."""
        return self.length - len(self.data)

    @property
    def whole(self) -> bytes:
        """The frame, with zeros for bytes that the capture cut off."""
        return self.data.ljust(self.length, b"\0")


def read(batch: FrameBatch, dialect: Dialect, address: bytes, shift: int = 0) -> list[Record]:
    """Return the frames of a capture that the host with ``address`` sends or receives, shifted by ``shift`` ns."""
    codec = codec_of(dialect)
    records = []
    for index in range(len(batch)):
        data, length = batch.frame(index), int(batch.wire_length[index])
        frame = codec.parse(data.ljust(length, b"\0"))
        time = int(batch.timestamp_ns[index]) + shift
        records.append(Record(index + 1, time, data, length, frame, data[SOURCE] == address))
    _mark_news(records)
    return records


def _mark_news(records: list[Record]) -> None:
    """Mark each frame as new or as a repetition."""
    seen: set[tuple[object, ...]] = set()
    openings: dict[tuple[int, int], set[int]] = {}
    for record in records:
        frame = record.frame
        if isinstance(frame, packets.ConnectReply):
            # A request after its answer is a new connect, although numbers restart with each partner.
            pair = (frame.dst_endpoint, frame.src_endpoint)
            seen.discard(
                (not record.is_played, packets.ConnectRequest, pair, frame.src_session_id, frame.connect_seqnum)
            )
        elif isinstance(frame, (*NUMBERED, packets.ConnectRequest, packets.Pull)):
            key = (record.is_played, *_identity(record, openings))
            record.news = key not in seen
            seen.add(key)


def _identity(record: Record, openings: dict[tuple[int, int], set[int]]) -> tuple[object, ...]:
    """Return the properties that repetitions of a frame share."""
    frame = record.frame
    who = frame.src_endpoint, frame.dst_endpoint
    between = who if record.is_played else who[::-1]
    if isinstance(frame, packets.ConnectRequest):
        openings.setdefault(between, set()).add(frame.src_session_id)
        return packets.ConnectRequest, who, frame.src_session_id, frame.connect_seqnum
    # A number is reused after either side has reopened its endpoint.
    opening = len(openings.get(between, ()))
    if isinstance(frame, packets.Pull):
        return packets.Pull, who, opening, frame.src_pull_handle, frame.frame_index
    return None, who, opening, frame.lib_seqnum, frame.frag_seqnum if isinstance(frame, packets.Medium) else 0


def messages(records: list[Record]) -> Callable[[int, int], bytes]:
    """Return a function for the content of the recorded messages, where it is not the default pattern.

    Call it with match information and length of each message, in the order of sending.
    """
    messages: list[bytearray] = []
    pulled: dict[tuple[int, int], bytearray] = {}
    large: dict[tuple[int, int, int], bytearray] = {}
    for record in records:
        frame = record.frame
        if record.is_played and record.news and isinstance(frame, (packets.Tiny, packets.Small)):
            messages.append(bytearray(frame.data))
        elif record.is_played and record.news and isinstance(frame, packets.Medium):
            if not frame.frag_seqnum:
                messages.append(bytearray())
            messages[-1] += frame.data
        elif record.is_played and record.news and isinstance(frame, packets.Rndv):
            messages.append(bytearray(frame.msg_length))
            large[frame.src_endpoint, frame.pulled_rdma_id, frame.pulled_rdma_seqnum] = messages[-1]
        elif not record.is_played and isinstance(frame, packets.Pull):
            what = large.get((frame.dst_endpoint, frame.pulled_rdma_id, frame.pulled_rdma_seqnum))
            if what is not None:
                pulled[frame.src_magic, frame.src_pull_handle] = what
        elif record.is_played and isinstance(frame, packets.PullReply):
            whole = pulled.get((frame.dst_magic, frame.dst_pull_handle))
            if whole is not None:
                whole[frame.msg_offset : frame.msg_offset + frame.frame_length] = frame.data
    queue = deque(messages)
    return lambda _match, length: bytes(queue.popleft()).ljust(length, b"\0")


def own_session(frame: packets.ConnectRequest | packets.ConnectReply) -> int:
    """Return the session of the sender of a connect or of its answer."""
    return int(frame.src_session_id if isinstance(frame, packets.ConnectRequest) else frame.target_session_id)


def acked_by(frame: packets.Frame) -> int | None:
    """Return the next expected number in a frame's ack, if it has one."""
    if isinstance(frame, NUMBERED):
        return int(frame.lib_piggyack)
    return int(frame.liback_lib_seqnum) if isinstance(frame, packets.Truc) else None


def covers(value: int, number: int) -> bool:
    """Return whether an ack value covers a sequence number."""
    return 0 < distance(value, number) <= NUMBER_MASK // 2


NEARBY = 12
"""Number of frames after a frame that are searched for its answer."""


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
            if not each.is_played or not isinstance(frame, (packets.ConnectRequest, packets.ConnectReply)):
                continue
            sessions = known.setdefault(frame.src_endpoint, [])
            if own_session(frame) not in sessions:
                sessions.append(own_session(frame))
        return lambda endpoint: known[endpoint].pop(0) if known.get(endpoint) else None

    def answering_session(self, record: Record) -> int | None:
        """Return the session in the answer to a connect request."""
        request = record.frame
        if not isinstance(request, packets.ConnectRequest):
            return None
        for other in self.after(record):
            answer = other.frame
            if not other.is_played or not isinstance(answer, packets.ConnectReply):
                continue
            if (answer.src_session_id, answer.src_endpoint) == (request.src_session_id, request.dst_endpoint):
                return int(answer.target_session_id)
        return None

    def refusal(self, record: Record) -> int | None:
        """Return the type of the nack that answers a frame, if any."""
        if isinstance(record.frame, packets.Pull):
            return self._refusal_of_pull(record)
        number = getattr(record.frame, "lib_seqnum", None)
        for other in self.after(record):
            frame = other.frame
            if not isinstance(frame, _ANSWERED) or frame.lib_seqnum != number:
                continue
            if not other.is_played and not other.news:
                return None
            if (
                isinstance(frame, packets.NackLib)
                and other.is_played
                and frame.src_endpoint == record.frame.dst_endpoint
            ):
                return int(frame.nack_type)
        return None

    def _refusal_of_pull(self, record: Record) -> int | None:
        """Return the nack type if a PULL was refused: its handle gets a nack, and no further data."""
        pull = record.frame
        first = pull.frame_index * self.dialect.reply_payload
        for other in self.records[record.number :]:
            frame = other.frame
            if not other.is_played:
                continue
            if isinstance(frame, packets.PullReply) and frame.dst_pull_handle == pull.src_pull_handle:
                if first <= frame.msg_offset < first + pull.block_length:
                    return None
            elif isinstance(frame, packets.NackMcp) and frame.src_pull_handle == pull.src_pull_handle:
                return int(frame.nack_type)
        return None

    def after(self, record: Record) -> list[Record]:
        """Return the frames that are searched for the answer to a frame."""
        return self.records[record.number : record.number + NEARBY]
