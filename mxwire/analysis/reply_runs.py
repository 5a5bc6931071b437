"""Find the runs of PULL_REPLYs in a batch that can be checked as a whole, by array operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import ADDRESS_SIZE
from mxwire.rules.replies import ReplyRun
from mxwire.wire.checks import Reason
from mxwire.wire.codec import Codec
from mxwire.wire.columns import LayoutBlock
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.dialect import PULL_REPLY_DATA_OFFSET
from mxwire.wire.formats import TINY
from mxwire.wire.layout import layout_of

SHORTEST: Final = 3
"""Minimum number of replies per run; shorter runs do not save time."""
_TYPE: Final = "pull_reply"
_NUMBERS: Final = 256
_DATA: Final = layout_of(TINY).header_end
"""Offset of the data of a TINY or SMALL."""


class BatchFrames:
    """The frames of a batch and their properties, by place; read when they are needed."""

    def __init__(self, decoded: DecodedBatch) -> None:
        self._decoded, self._located = decoded, decoded.located

    @cached_property
    def codecs(self) -> list[Codec]:
        """The codec of each frame."""
        return self._decoded.codecs()

    @cached_property
    def _pieces(self) -> tuple[memoryview, list[int], list[int]]:
        return self._located.pieces()

    @property
    def whole(self) -> memoryview:
        """Memory that holds all these frames, as if untagged on Ethernet."""
        return self._pieces[0]

    @property
    def begin(self) -> list[int]:
        """The offset of each frame in ``whole``."""
        return self._pieces[1]

    @property
    def end(self) -> list[int]:
        """The offset after each frame in ``whole``."""
        return self._pieces[2]

    @cached_property
    def time_ns(self) -> list[int]:
        """The times of the frames."""
        values: list[int] = self._located.batch.timestamp_ns.tolist()
        return values

    @cached_property
    def number(self) -> list[int]:
        """The numbers of the frames."""
        values: list[int] = self._located.batch.number.tolist()
        return values

    @cached_property
    def length(self) -> list[int]:
        """Bytes on the wire."""
        values: list[int] = self._located.wire_length.tolist()
        return values

    def raw(self, place: int) -> bytes:
        """The captured bytes of one frame."""
        whole, begin, end = self._pieces
        return whole[begin[place] : end[place]].tobytes()

    def data(self, places: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        """The data of TINYs and SMALLs, as far as it was captured."""
        whole, begin, end = self._pieces
        return [
            whole[begin[place] + _DATA : min(begin[place] + _DATA + length, end[place])].tobytes()
            for place, length in zip(places, lengths, strict=True)
        ]

    def columns(
        self, places: NDArray[np.int64], lengths: NDArray[np.int64], width: int
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The first ``width`` bytes of the data of TINYs and SMALLs, shape (n, width), 0 where there are none; and the
        number of captured bytes of each."""
        held = np.clip(self._located.captured[places] - _DATA, 0, lengths)
        octets = np.zeros((len(places), width), np.uint8)
        heads = self._located.row_bytes[places, _DATA : _DATA + width]
        octets[:, : heads.shape[1]] = heads
        octets[np.arange(width) >= held[:, None]] = 0
        # The rows hold the first bytes only.
        longer = np.flatnonzero(held > heads.shape[1])
        for at, data in zip(longer, self.data(places[longer].tolist(), held[longer].tolist()), strict=True):
            octets[at, : len(data)] = np.frombuffer(data, np.uint8)
        return octets, held

    def addresses(self, places: NDArray[np.intp]) -> list[bytes]:
        """The addresses of senders."""
        return [each.to_bytes(ADDRESS_SIZE, "big") for each in self._located.source[places].tolist()]

    def hosts(self, places: Sequence[int] | slice) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The codes of senders and destinations."""
        assignment = self._decoded.assignment
        return assignment.source[places], assignment.destination[places]


def frames_of(decoded: DecodedBatch) -> BatchFrames:
    """Return the frames of a batch for access by place."""
    return BatchFrames(decoded)


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
