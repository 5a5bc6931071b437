"""The frames of a capture, as one of its hosts sees them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mxwire.ethernet import SOURCE
from mxwire.frames import FrameBatch
from mxwire.protocol.sequence import distance
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
"""What carries a sequence number."""
FOR_LIBRARY = (*NUMBERED, Truc, ConnectRequest, ConnectReply, NackLib)
"""What the card puts into the library's ring; the rest it deals with itself."""
CARD = (Pull, PullReply, NackMcp)
"""What the card sends for itself in pulls."""


@dataclass
class Record:
    """One frame of a capture."""

    number: int
    time: int
    data: bytes
    length: int
    """On the wire; the capture may have cut it."""
    frame: Any
    ours: bool
    """Whether the host that the node stands for sent it."""
    news: bool = False
    """Whether it is the first with its number, or the first of its connect."""

    @property
    def cut(self) -> int:
        """How many bytes the capture has cut off."""
        return self.length - len(self.data)

    @property
    def whole(self) -> bytes:
        """The frame, with zeros where the capture has cut it off."""
        return self.data.ljust(self.length, b"\0")


def read(batch: FrameBatch, dialect: Dialect, address: bytes, shift: int = 0) -> list[Record]:
    """The frames of a capture as the host with ``address`` has part in them, ``shift`` ns later than recorded."""
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
    """Tell repeated frames from new ones."""
    seen: set[tuple[object, ...]] = set()
    openings: dict[tuple[int, int], set[int]] = {}
    for record in records:
        frame = record.frame
        if isinstance(frame, ConnectReply):
            # What is asked again after its answer is another connect: the numbers start anew with each partner.
            asked = (frame.dst_endpoint, frame.src_endpoint)
            seen.discard((not record.ours, ConnectRequest, asked, frame.src_session_id, frame.connect_seqnum))
        elif isinstance(frame, (*NUMBERED, ConnectRequest, Pull)):
            key = (record.ours, *_identity(record, openings))
            record.news = key not in seen
            seen.add(key)


def _identity(record: Record, openings: dict[tuple[int, int], set[int]]) -> tuple[object, ...]:
    """What a frame that comes again has in common with the first one."""
    frame = record.frame
    who = frame.src_endpoint, frame.dst_endpoint
    between = who if record.ours else who[::-1]
    if isinstance(frame, ConnectRequest):
        openings.setdefault(between, set()).add(frame.src_session_id)
        return ConnectRequest, who, frame.src_session_id, frame.connect_seqnum
    # A number comes again when either side has opened its endpoint anew.
    opening = len(openings.get(between, ()))
    if isinstance(frame, Pull):
        return Pull, who, opening, frame.src_pull_handle, frame.frame_index
    return None, who, opening, frame.lib_seqnum, frame.frag_seqnum if isinstance(frame, Medium) else 0


def messages(records: list[Record]) -> Callable[[int, int], bytes]:
    """What the host really sent, message by message, where no pattern tells it.

    To be called with match information and length of each message, in the order of their sending.
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
    """The number that a frame says is expected next, if it says so."""
    if isinstance(frame, NUMBERED):
        return int(frame.lib_piggyack)
    return int(frame.liback_lib_seqnum) if isinstance(frame, Truc) else None


def covers(value: int, number: int) -> bool:
    """Whether an ack value covers a sequence number."""
    return 0 < distance(value, number) <= NUMBER_MASK // 2
