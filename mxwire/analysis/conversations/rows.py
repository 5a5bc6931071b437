"""Convert the columns of a batch to rows, one per frame, and to runs of replies, as the trackers need them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from operator import itemgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.wire.checks import Reason
from mxwire.wire.columns import LayoutBlock
from mxwire.wire.decoder import DecodedBatch

Row = tuple[Any, ...]
"""Place in the batch, handler, time in ns, frame number, bytes on the wire, key of the direction, and the fields of
:data:`FIELDS`; for a PULL also the index of its dialect among those of the batch."""
Handler = Callable[[Row], None]
ReplyKey = tuple[int, int, int]
"""Addresses of replier and puller, and handle x 2^32 + magic."""
DirectionKey = tuple[int, int]
"""Address and endpoint of the sender and endpoint of the receiver, packed into one number; address of the receiver."""

MATCH: Final = "match"
_NUMBERED: Final = ("lib_seqnum", "lib_piggyack", "session")
_CONNECT: Final = ("target_recv_seqnum_start", "connect_seqnum")
_REGION: Final = ("pulled_rdma_id", "pulled_rdma_seqnum")
_HANDLE: Final = ("src_pull_handle", "src_magic")
_BLOCK: Final = ("first_frame_offset", "block_length", "frame_index")
FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "tiny": (*_NUMBERED, "length", MATCH),
    "small": (*_NUMBERED, "length", MATCH),
    "medium": (*_NUMBERED, "length", MATCH, "frag_seqnum", "frag_length"),
    "rndv": (*_NUMBERED, "msg_length", MATCH, *_REGION, "pulled_rdma_offset"),
    "notify": (*_NUMBERED, "total_length", *_REGION),
    "truc": ("session", "liback.type", "length", "liback.session_id", "liback.lib_seqnum"),
    "pull": ("session", "total_length", *_REGION, "pulled_rdma_offset", *_HANDLE, *_BLOCK),
    "connect_request": ("src_session_id", "app_key", *_CONNECT),
    "connect_reply": ("src_session_id", "target_session_id", *_CONNECT, "connect_status_code"),
    "nack_lib": ("nack_type", "lib_seqnum"),
    "nack_mcp": ("nack_type", *_HANDLE),
    "host_reply": (),
}
"""Fields that the trackers need, by layout."""
CHUNK: Final = 2048
"""Number of frames that are converted at a time."""
FIRST_REPLY: Final = "first reply"
"""Name of the handler for replies to a request that was not seen; it is called for the first of these replies."""


@dataclass(slots=True, eq=False)
class Replies:
    """The PULL_REPLYs of a batch that answer one pull, in order; arrays of shape (n,)."""

    key: ReplyKey
    place: NDArray[np.intp]
    time_ns: NDArray[np.int64]
    number: NDArray[np.int64]
    wire_length: NDArray[np.int64]
    offset: NDArray[np.int64]
    """Offset of the data in the message."""
    length: NDArray[np.int64]
    dialect: int
    """Index of their dialect among those of the batch."""
    done: int = 0
    """Number of replies that were processed."""


class LayoutRows:
    """The well-formed frames of one block, as columns and as rows; arrays of shape (n,)."""

    def __init__(self, decoded: DecodedBatch, block: LayoutBlock, handler: Handler) -> None:
        reason = decoded.columns.reason[block.place]
        self._good = None if not reason.any() else np.flatnonzero(reason == Reason.NONE)
        self._decoded, self._block, self._handler = decoded, block, handler
        self.name = block.layout.name
        self.place = self._of(block.place)

    def _of(self, array: NDArray[Any]) -> NDArray[Any]:
        return array if self._good is None else array[self._good]

    @cached_property
    def common(self) -> tuple[NDArray[Any], ...]:
        """Time, frame number, bytes on the wire, and the two parts of the key of the direction."""
        decoded, block, place = self._decoded, self._block, self.place
        located, batch = decoded.located, decoded.batch
        source = located.source[place]
        if "src_endpoint" in block.names and "dst_endpoint" in block.names:
            ends = block["src_endpoint"].astype(np.uint64) << np.uint64(8) | block["dst_endpoint"]
            source = source << np.uint64(16) | self._of(ends)
        return (
            batch.timestamp_ns[place],
            batch.number[place],
            located.wire_length[place],
            source,
            located.destination[place],
        )

    @cached_property
    def fields(self) -> tuple[NDArray[Any], ...]:
        """The fields of :data:`FIELDS`."""
        block = self._block
        found = [
            self._of(block.joined("match_a", "match_b") if each == MATCH else block[each]) for each in FIELDS[self.name]
        ]
        if self.name == "pull":
            found.append(self._decoded.assignment.which[self.place])
        return tuple(found)

    def rows(self, start: int, end: int) -> Iterable[Row]:
        """Return the rows of the frames at the places from ``start`` to ``end`` (exclusive) of the batch."""
        low, high = np.searchsorted(self.place, (start, end)).tolist()
        if low == high:
            return ()
        columns = (each[low:high].tolist() for each in (*self.common, *self.fields))
        time_ns, number, wire_length, source, destination, *more = columns
        return zip(
            self.place[low:high].tolist(),
            repeat(self._handler),
            time_ns,
            number,
            wire_length,
            zip(source, destination, strict=True),
            *more,
        )


class BatchRows:
    """The rows of a batch, in the order of its frames."""

    def __init__(self, decoded: DecodedBatch, handlers: Mapping[str, Handler], replies: list[Replies]) -> None:
        self.layouts = [
            LayoutRows(decoded, block, handlers[block.layout.name])
            for block in decoded.columns.blocks
            if block.layout.name in FIELDS and block.layout.name in handlers
        ]
        first = handlers[FIRST_REPLY]
        begun: list[Row] = [
            (int(each.place[0]), first, int(each.time_ns[0]), int(each.number[0]), 0, None, each) for each in replies
        ]
        self._first_replies = sorted(begun, key=itemgetter(0))
        self.first_replies = np.array([row[0] for row in self._first_replies], np.intp)
        """The places of the first replies to requests that were not seen."""

    def rows(self, start: int, end: int) -> Iterator[Row]:
        """Yield the rows of the frames at the places from ``start`` to ``end`` (exclusive).

        ``CHUNK`` rows exist at a time: many more would burden the garbage collector.
        """
        for low in range(start, end, CHUNK):
            high = min(low + CHUNK, end)
            rows: list[Row] = []
            for each in self.layouts:
                rows += each.rows(low, high)
            first, last = np.searchsorted(self.first_replies, (low, high)).tolist()
            rows += self._first_replies[first:last]
            rows.sort(key=itemgetter(0))
            yield from rows


def replies_of(decoded: DecodedBatch) -> dict[ReplyKey, Replies]:
    """Return the PULL_REPLYs of a batch by the pull that they answer."""
    replies: dict[ReplyKey, Replies] = {}
    blocks = list(decoded.columns.of("pull_reply"))
    if not blocks:
        return replies
    place = np.concatenate([each.place for each in blocks])
    pull = np.concatenate([each.joined("dst_pull_handle", "dst_magic") for each in blocks])
    offset = np.concatenate([each["msg_offset"] for each in blocks]).astype(np.int64)
    length = np.concatenate([each["frame_length"] for each in blocks]).astype(np.int64)
    good = decoded.columns.reason[place] == Reason.NONE
    if len(blocks) > 1 or not good.all():
        order = np.flatnonzero(good)
        order = order[np.argsort(place[order], kind="stable")]
        place, pull, offset, length = place[order], pull[order], offset[order], length[order]
    located, batch = decoded.located, decoded.batch
    source, destination = located.source[place], located.destination[place]
    for members in _alike(source, destination, pull):
        at = place[members]
        key = int(source[members[0]]), int(destination[members[0]]), int(pull[members[0]])
        replies[key] = Replies(
            key,
            at,
            batch.timestamp_ns[at],
            batch.number[at],
            located.wire_length[at],
            offset[members],
            length[members],
            int(decoded.assignment.which[at[0]]),
        )
    return replies


def _alike(*keys: NDArray[np.uint64]) -> Iterator[NDArray[np.intp]]:
    """Yield the sets of places at which all arrays have equal values, each set in ascending order."""
    count = len(keys[0])
    if not count:
        return
    if all((each == each[0]).all() for each in keys):
        yield np.arange(count)
        return
    order = np.lexsort(keys)
    new = np.zeros(count, np.bool_)
    for each in keys:
        ordered = each[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    yield from np.split(order, np.flatnonzero(new))
