"""Find the runs of TINYs, SMALLs and libacks, and the CONNECTs, of a batch that can be checked by array operations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import SHORTEST_FRAME
from mxwire.rules.handshakes import PlainConnects
from mxwire.rules.plain_run import LARGEST, LIBACK, PlainFrames, lanes_of
from mxwire.wire.checks import Reason
from mxwire.wire.columns import LayoutBlock
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.enums import ConnectStatus, TrucType
from mxwire.wire.numbers import CONNECT_LENGTH, FIRST_NUMBER, LIBACK_LENGTH, NO_SESSION, TINY_MAXIMUM

SHORTEST: Final = 128
"""Minimum number of frames per run; shorter runs do not save time."""
_CONNECTS: Final = {"connect_request": False, "connect_reply": True}
_KINDS: Final = {"tiny": 0, "small": 1, "truc": LIBACK}


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


def plain_connects(decoded: DecodedBatch) -> PlainConnects | None:
    """Return the CONNECTs of a batch that ordinary handshakes may consist of; None if there are few."""
    blocks = [*decoded.columns.of(*_CONNECTS)]
    least = min(each.frame_limit for each in decoded.assignment.dialects)
    if sum(map(len, blocks)) < SHORTEST or decoded.hosts.is_full or least < LARGEST:
        return None
    parts = [_connect_columns(decoded, each) for each in blocks]
    every = PlainConnects(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    return every.part(np.argsort(every.place, kind="stable"))


def _connect_columns(decoded: DecodedBatch, block: LayoutBlock) -> tuple[NDArray[Any], ...]:
    """Return the attributes of ``PlainConnects`` for the frames of a block."""
    located, place = decoded.located, block.place
    is_reply = _CONNECTS[block.layout.name]
    own = block["target_session_id" if is_reply else "src_session_id"]
    good = (decoded.columns.reason[place] == Reason.NONE) & (located.wire_length[place] == SHORTEST_FRAME)
    good &= (located.captured[place] == SHORTEST_FRAME) & (own != NO_SESSION)
    expected = {"length": CONNECT_LENGTH, "lib_seqnum": 0, "connect_seqnum": 0, "is_reply": is_reply}
    expected["target_recv_seqnum_start"] = FIRST_NUMBER
    if is_reply:
        expected["connect_status_code"] = ConnectStatus.SUCCESS
    for name, value in expected.items():
        good &= block[name] == value
    place = place[good]
    values = (block[each][good].astype(np.int64) for each in ("dst_src_peer_index", "src_dst_peer_index"))
    return (
        place,
        located.batch.timestamp_ns[place],
        located.batch.number[place],
        located.destination[place],
        *_lanes(decoded, block, good)[1:],
        np.full(len(place), is_reply),
        *values,
        own[good].astype(np.int64),
        block["src_session_id"][good].astype(np.int64),
    )


def _lanes(decoded: DecodedBatch, block: LayoutBlock, which: Any) -> tuple[NDArray[np.int64], ...]:
    """Return the endpoints of frames, the numbers of their lanes, and those of the other directions."""
    place, assignment = block.place[which], decoded.assignment
    source, destination = (each[place].astype(np.int64) for each in (assignment.source, assignment.destination))
    sender, receiver = (block[each][which].astype(np.int64) for each in ("src_endpoint", "dst_endpoint"))
    ends = sender << 8 | receiver
    return ends, lanes_of(source, destination, ends), lanes_of(destination, source, receiver << 8 | sender)


def _columns(decoded: DecodedBatch, block: LayoutBlock) -> tuple[NDArray[Any], ...]:
    """Return the attributes of ``PlainFrames`` for the frames of a block that break no rule by themselves."""
    located, place = decoded.located, block.place
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
    absent = np.zeros(len(place), np.int64)
    return (
        place,
        located.batch.timestamp_ns[place],
        located.batch.number[place],
        located.source[place],
        located.destination[place],
        *_lanes(decoded, block, which),
        np.full(len(place), kind, np.uint8),
        block["dst_src_peer_index"][which].astype(np.int64),
        session[which].astype(np.int64),
        number[which].astype(np.int64),
        absent if kind == LIBACK else block["lib_seqnum"][which].astype(np.int64),
        absent if kind == LIBACK else length[which].astype(np.int64),
        absent.astype(np.uint64) if kind == LIBACK else block.joined("match_a", "match_b")[which],
        block["liback.acknum"][which].astype(np.int64) if kind == LIBACK else absent,
    )
