"""Records: the frames of a capture from the point of view of one of its hosts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mxwire.ethernet import SOURCE
from mxwire.frames import FrameBatch
from mxwire.protocol.library.reliability import distance
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import Dialect
from mxwire.wire.numbers import NUMBER_MASK
from mxwire.wire.packets import (
    ConnectReply,
    ConnectRequest,
    Medium,
    NackLib,
    NackMcp,
    Notify,
    Pull,
    PullReply,
    Rndv,
    Small,
    Tiny,
    Truc,
)

NUMBERED = (Tiny, Small, Medium, Rndv, Notify)
"""Frames with a sequence number."""
FOR_LIBRARY = (*NUMBERED, Truc, ConnectRequest, ConnectReply, NackLib)
"""Frames that the card puts into the library's ring; it handles the others itself."""
CARD = (Pull, PullReply, NackMcp)
"""Frames that the card sends by itself during pulls."""


@dataclass
class Record:
    """One frame of a capture."""

    number: int
    time: int
    data: bytes
    length: int
    """Length on the wire; the capture may have truncated it."""
    frame: Any
    ours: bool
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
    found = []
    for index in range(len(batch)):
        data, length = batch.frame(index), int(batch.wire_length[index])
        frame = codec.parse(data.ljust(length, b"\0"))
        time = int(batch.timestamp_ns[index]) + shift
        found.append(Record(index + 1, time, data, length, frame, data[SOURCE] == address))
    _mark_news(found)
    return found


def _mark_news(records: list[Record]) -> None:
    """Distinguish new frames from repetitions."""
    seen: set[tuple[object, ...]] = set()
    openings: dict[tuple[int, int], set[int]] = {}
    for record in records:
        frame = record.frame
        if isinstance(frame, ConnectReply):
            # A request after its answer is a new connect, although numbers restart with each partner.
            asked = (frame.dst_endpoint, frame.src_endpoint)
            seen.discard((not record.ours, ConnectRequest, asked, frame.src_session_id, frame.connect_seqnum))
        elif isinstance(frame, (*NUMBERED, ConnectRequest, Pull)):
            key = (record.ours, *_identity(record, openings))
            record.news = key not in seen
            seen.add(key)


def _identity(record: Record, openings: dict[tuple[int, int], set[int]]) -> tuple[object, ...]:
    """Return the properties that repetitions of a frame share."""
    frame = record.frame
    who = frame.src_endpoint, frame.dst_endpoint
    between = who if record.ours else who[::-1]
    if isinstance(frame, ConnectRequest):
        openings.setdefault(between, set()).add(frame.src_session_id)
        return ConnectRequest, who, frame.src_session_id, frame.connect_seqnum
    # A number is reused after either side has reopened its endpoint.
    opening = len(openings.get(between, ()))
    if isinstance(frame, Pull):
        return Pull, who, opening, frame.src_pull_handle, frame.frame_index
    return None, who, opening, frame.lib_seqnum, frame.frag_seqnum if isinstance(frame, Medium) else 0


def messages(records: list[Record]) -> Callable[[int, int], bytes]:
    """Return a function for the content of the recorded messages, where it is not the default pattern.

    Call it with match information and length of each message, in the order of sending.
    """
    found: list[bytearray] = []
    pulled: dict[tuple[int, int], bytearray] = {}
    large: dict[tuple[int, int, int], bytearray] = {}
    for record in records:
        frame = record.frame
        if record.ours and record.news and isinstance(frame, (Tiny, Small)):
            found.append(bytearray(frame.data))
        elif record.ours and record.news and isinstance(frame, Medium):
            if not frame.frag_seqnum:
                found.append(bytearray())
            found[-1] += frame.data
        elif record.ours and record.news and isinstance(frame, Rndv):
            found.append(bytearray(frame.msg_length))
            large[frame.src_endpoint, frame.pulled_rdma_id, frame.pulled_rdma_seqnum] = found[-1]
        elif not record.ours and isinstance(frame, Pull):
            what = large.get((frame.dst_endpoint, frame.pulled_rdma_id, frame.pulled_rdma_seqnum))
            if what is not None:
                pulled[frame.src_magic, frame.src_pull_handle] = what
        elif record.ours and isinstance(frame, PullReply):
            whole = pulled.get((frame.dst_magic, frame.dst_pull_handle))
            if whole is not None:
                whole[frame.msg_offset : frame.msg_offset + frame.frame_length] = frame.data
    queue = deque(found)
    return lambda _match, length: bytes(queue.popleft()).ljust(length, b"\0")


def acked_by(frame: Any) -> int | None:
    """Return the next expected number in a frame's ack, if it has one."""
    if isinstance(frame, NUMBERED):
        return int(frame.lib_piggyack)
    return int(frame.liback_lib_seqnum) if isinstance(frame, Truc) else None


def covers(value: int, number: int) -> bool:
    """Return whether an ack value covers a sequence number."""
    return 0 < distance(value, number) <= NUMBER_MASK // 2
