"""Find the runs of PULL_REPLYs in a batch that can be checked as a whole, by array operations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import ADDRESS_SIZE
from mxwire.rules.replies import ReplyRun
from mxwire.wire.checks import Reason
from mxwire.wire.columns import LayoutBlock
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.dialect import PULL_REPLY_DATA_OFFSET

SHORTEST: Final = 3
"""Minimum number of replies per run; shorter runs do not save time."""
_TYPE: Final = "pull_reply"
_NUMBERS: Final = 256


@dataclass(frozen=True, slots=True)
class BatchFrames:
    """The frames of a batch and their properties, by place."""

    whole: memoryview
    """Memory that holds all these frames, as if untagged on Ethernet."""
    begin: list[int]
    end: list[int]
    time_ns: list[int]
    number: list[int]
    length: list[int]
    """Bytes on the wire."""

    def raw(self, place: int) -> bytes:
        """The captured bytes of one frame."""
        return self.whole[self.begin[place] : self.end[place]].tobytes()


def frames_of(decoded: DecodedBatch) -> BatchFrames:
    """Return the frames of a batch for access by place."""
    located = decoded.located
    batch = located.batch
    return BatchFrames(
        *located.pieces(), batch.timestamp_ns.tolist(), batch.number.tolist(), located.wire_length.tolist()
    )


Row = tuple[Any, ...]
"""A run: place of its first frame in the batch, number of frames, and time and fields of the first frame."""


def reply_runs(decoded: DecodedBatch, frames: BatchFrames) -> Iterator[tuple[int, ReplyRun]]:
    """Yield the runs of a batch in order, each with the place of its first frame."""
    rows = [row for block in decoded.columns.of(_TYPE) for row in _rows(decoded, block)]
    for first, count, time_ns, handle, magic, sequence, offset, length in sorted(rows, key=itemgetter(0)):
        head = frames.raw(first)
        end = first + count
        yield (
            first,
            ReplyRun(
                source=head[ADDRESS_SIZE : 2 * ADDRESS_SIZE],
                destination=head[:ADDRESS_SIZE],
                pull=handle << 32 | magic,
                time_ns=time_ns,
                sequence=sequence,
                offset=offset,
                length=length,
                numbers=frames.number[first:end],
                whole=frames.whole,
                begins=frames.begin[first:end],
                ends=frames.end[first:end],
            ),
        )


def _rows(decoded: DecodedBatch, block: LayoutBlock) -> Iterator[Row]:
    """Yield the runs of a block."""
    first, count = _runs(decoded, block)
    place = block.place[first]
    fields = ("dst_pull_handle", "dst_magic", "frame_seqnum", "msg_offset", "frame_length")
    columns = (place, count, decoded.batch.timestamp_ns[place], *(block[each][first] for each in fields))
    return zip(*(each.tolist() for each in columns), strict=True)


def _runs(decoded: DecodedBatch, block: LayoutBlock) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the starts of runs in a block, and their numbers of frames."""
    located, place, length = decoded.located, block.place, block["frame_length"].astype(np.int64)
    whole = (decoded.columns.reason[place] == Reason.NONE) & (
        located.wire_length[place] == length + PULL_REPLY_DATA_OFFSET
    )
    goes_on = whole[1:] & whole[:-1] & (np.diff(place) == 1) & (length[1:] == length[:-1])
    goes_on &= np.diff(block["msg_offset"].astype(np.int64)) == length[:-1]
    goes_on &= (block["frame_seqnum"][:-1].astype(np.int64) + 1) % _NUMBERS == block["frame_seqnum"][1:]
    for same in (block["dst_pull_handle"], block["dst_magic"], located.source[place], located.destination[place]):
        goes_on &= same[1:] == same[:-1]
    # A run begins at a reply that has a continuation and is not itself the continuation of another reply.
    edges = np.flatnonzero(np.diff(goes_on.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
    count = edges[:, 1] - edges[:, 0] + 1
    enough = count >= SHORTEST
    return edges[enough, 0], count[enough]
