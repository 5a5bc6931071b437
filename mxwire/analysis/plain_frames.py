"""Find the runs of TINYs, SMALLs and libacks in a batch that can be checked as a whole, by array operations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import SHORTEST_FRAME
from mxwire.rules.plain_run import LIBACK, PlainFrames
from mxwire.wire.checks import Reason
from mxwire.wire.columns import LayoutBlock
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.enums import TrucType
from mxwire.wire.numbers import LIBACK_LENGTH, TINY_MAXIMUM

SHORTEST: Final = 128
"""Minimum number of frames per run; shorter runs do not save time."""
_KINDS: Final = {"tiny": 0, "small": 1, "truc": LIBACK}
_HOST_BITS: Final = 20
"""Bits for the code of a host; tables of hosts have fewer entries (:data:`mxwire.wire.codes.LIMIT`)."""


def plain_runs(decoded: DecodedBatch) -> Iterator[PlainFrames]:
    """Yield the runs of a batch in order; between two of them, other frames follow."""
    blocks = [*decoded.columns.of(*_KINDS)]
    if sum(map(len, blocks)) < SHORTEST or decoded.hosts.is_full or not decoded.located.has_destination:
        return
    parts = [_columns(decoded, each) for each in blocks]
    place = np.concatenate([each[0] for each in parts])
    order = np.argsort(place, kind="stable")
    place = place[order]
    edges = [0, *(np.flatnonzero(np.diff(place) > 1) + 1).tolist(), len(place)]
    runs = [(low, high) for low, high in pairwise(edges) if high - low >= SHORTEST]
    if runs:
        frames = PlainFrames(*(np.concatenate(columns)[order] for columns in zip(*parts, strict=True)))
        for low, high in runs:
            yield frames.part(slice(low, high))


def _columns(decoded: DecodedBatch, block: LayoutBlock) -> tuple[NDArray[Any], ...]:
    """Return the attributes of ``PlainFrames`` for the frames of a block that break no rule by themselves."""
    located, place, assignment = decoded.located, block.place, decoded.assignment
    kind = _KINDS[block.layout.name]
    length, session = block["length"], block["session"]
    wire_length = located.wire_length[place]
    good = decoded.columns.reason[place] == Reason.NONE
    if kind == LIBACK:
        number = block["liback.lib_seqnum"]
        good &= (block["liback.type"] == TrucType.ACK) & (length == LIBACK_LENGTH) & (wire_length == SHORTEST_FRAME)
        good &= (session == block["liback.session_id"]) & (block["liback.resent"] == 0)
        good &= number == block["liback.send_seq"]
    else:
        number = block["lib_piggyack"]
        good &= wire_length == np.maximum(block.layout.header_end + length.astype(np.int64), SHORTEST_FRAME)
        if block.layout.name == "small":
            good &= length > TINY_MAXIMUM
    which = slice(None) if good.all() else good
    place = place[which]
    source, destination = (each[place].astype(np.int64) for each in (assignment.source, assignment.destination))
    sender, receiver = (block[each][which].astype(np.int64) for each in ("src_endpoint", "dst_endpoint"))
    absent = np.zeros(len(place), np.int64)
    return (
        place,
        located.batch.timestamp_ns[place],
        located.batch.number[place],
        located.source[place],
        located.destination[place],
        sender << 8 | receiver,
        (source << _HOST_BITS | destination) << 16 | sender << 8 | receiver,
        (destination << _HOST_BITS | source) << 16 | receiver << 8 | sender,
        np.full(len(place), kind, np.uint8),
        block["dst_src_peer_index"][which].astype(np.int64),
        session[which].astype(np.int64),
        number[which].astype(np.int64),
        absent if kind == LIBACK else block["lib_seqnum"][which].astype(np.int64),
        absent if kind == LIBACK else length[which].astype(np.int64),
        absent.astype(np.uint64) if kind == LIBACK else block.joined("match_a", "match_b")[which],
        block["liback.acknum"][which].astype(np.int64) if kind == LIBACK else absent,
    )
