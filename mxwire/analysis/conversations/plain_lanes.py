"""The directions of a window of plain frames, whose frames are compared at once: step 1 of
:mod:`mxwire.analysis.conversations.plain_run`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations.direction_table import DirectionTable
from mxwire.analysis.conversations.message_rows import KINDS, LIBACK
from mxwire.analysis.conversations.rows import BatchRows
from mxwire.analysis.conversations.run_messages import REPEATED
from mxwire.analysis.conversations.streams import ENTRIES
from mxwire.rules.lanes import LaneOrder
from mxwire.wire.enums import TrucType
from mxwire.wire.numbers import LIBACK_LENGTH, NUMBER_MASK, OUTSTANDING_MAXIMUM, SESSION_NUMBER_MASK

LEAST: Final = 512
"""Minimum number of frames of a run: fewer frames are followed faster one by one."""
_LAYOUTS: Final = {"tiny": 0, "small": 1, "truc": LIBACK}
"""Kinds of plain frames by layout: indexes into ``KINDS``, or ``LIBACK``."""
_Integers = NDArray[np.int64]


@dataclass(slots=True, eq=False)
class LaneFrames:
    """TINYs, SMALLs and libacks in order; arrays of shape (n,)."""

    place: NDArray[np.intp]
    time_ns: _Integers
    number: _Integers
    wire_length: _Integers
    source: NDArray[np.uint64]
    destination: NDArray[np.uint64]
    kind: _Integers
    """As in ``_LAYOUTS``, plus ``REPEATED`` if the frame repeats a message."""
    ack: NDArray[np.uint16]
    session: NDArray[np.uint32]
    sequence: NDArray[np.uint16]
    length: NDArray[np.uint16]
    match: NDArray[np.uint64]
    """This field and the next two are 0 for libacks."""

    def __len__(self) -> int:
        """The number of frames."""
        return len(self.place)

    def part(self, first: int, end: int) -> LaneFrames:
        """Return the frames from ``first`` to ``end`` (exclusive)."""
        return LaneFrames(*(getattr(self, each.name)[first:end] for each in fields(self)))


def lane_frames(rows: BatchRows) -> tuple[LaneFrames | None, list[tuple[int, int]]]:
    """Return the frames of a batch that may be plain, and their runs of at least ``LEAST`` between others.

    A run has a first frame and an end (exclusive). Without a run there are no frames.
    """
    if sum(len(each.place) for each in rows.layouts if each.name in _LAYOUTS) < LEAST:
        return None, []
    parts: list[tuple[NDArray[Any], ...]] = []
    others = [rows.first_replies]
    for each in rows.layouts:
        kind = _LAYOUTS.get(each.name)
        if kind is None:
            others.append(each.place)
            continue
        kinds = np.full(len(each.place), kind, np.int64)
        if kind == LIBACK:
            session, sub_type, length, inner, ack = each.fields
            plain = (sub_type == TrucType.ACK) & (length >= LIBACK_LENGTH) & (session == inner)
            others.append(each.place[~plain])
            columns = (each.place, *each.common, kinds, ack, session)
            absent = np.zeros(np.count_nonzero(plain), np.uint8)
            parts.append((*(column[plain] for column in columns), absent, absent, absent))
        else:
            sequence, ack, session, length, match = each.fields
            parts.append((each.place, *each.common, kinds, ack, session, sequence, length, match))
    place = np.concatenate([part[0] for part in parts])
    order = np.argsort(place, kind="stable")
    between = np.searchsorted(np.sort(np.concatenate(others)), place[order])
    edges = [0, *(np.flatnonzero(np.diff(between)) + 1).tolist(), len(order)]
    runs = [(low, high) for low, high in pairwise(edges) if high - low >= LEAST]
    if not runs:
        return None, []
    return LaneFrames(*(np.concatenate(columns)[order] for columns in zip(*parts, strict=True))), runs


_LANE: Final = np.dtype(
    [
        ("session", "i8"), ("sends", "?"), ("next", "i8"), ("bits", "i8"), ("acked", "i8"),
        ("acks", "?"), ("known", "i8"), ("back_acked", "i8"), ("back_next", "i8"), ("back_bits", "i8"),
    ]
)  # fmt: skip
"""State of a lane before a run: session of plain frames; whether messages can be plain, and the stream that they
continue; whether acks can be, the value of acks that change nothing, and the stream that they advance."""


class PlainLanes:
    """The directions of a table as lanes, and the frames of a window sorted by conversation; arrays of frames have
    shape (n,).

    ``lane`` is the direction of each frame of the window.
    """

    def __init__(self, frames: LaneFrames, table: DirectionTable, lane: NDArray[np.intp]) -> None:
        self.table = table
        rows = table.rows
        self.back = back = rows["back"]
        """The other direction of each lane."""
        self.state = state = np.zeros(len(rows), _LANE)
        for name in ("session", "next", "bits", "acked"):
            state[name] = rows[name]
        state["sends"] = rows["regular"]
        outstanding = rows["next"] - rows["acked"]
        state["acks"] = (rows["regular"] & (outstanding <= OUTSTANDING_MAXIMUM))[back]
        state["known"] = rows["known"][back]
        for name in ("acked", "next", "bits"):
            state[f"back_{name}"] = rows[name][back]
        first = np.minimum(np.arange(len(rows)), back)
        # NumPy sorts small integers by their digits.
        first = first.astype(np.min_scalar_type(len(rows)))
        self.place = order = np.argsort(first[lane], kind="stable")
        """The frames of the window, sorted by conversation."""
        self.lane = lane = lane[order]
        mine = state.take(lane)
        ordered = LaneOrder(first[lane].astype(np.intp), (first[lane] != lane).astype(np.intp))
        self.frames = frames
        """The frames of the window in order."""
        self.behind: _Integers = np.zeros(len(order), np.int64)
        """Number of messages from each frame that repeats one to the next message of its lane; 0 for other frames."""
        plain = self._examine(mine, ordered)
        if not plain.all():
            numbered = self.frames.kind[order] < LIBACK
            repeats, behind = ordered.repeats(frames.sequence[order], mine["next"], numbered)
            if repeats.any():
                self.behind = np.where(repeats, behind, 0)
                # Later windows have the same frames, of which others may be repeats.
                self.frames = frames.part(0, len(frames))
                self.frames.kind = frames.kind.copy()
                self.frames.kind[order[repeats]] += REPEATED
                # A repeat takes no number, so that the positions of all messages after it have changed.
                plain = self._examine(mine, ordered)
        # The frames are sorted by conversation: the first one in time that is not plain ends the run for all lanes.
        self.count = len(order) if plain.all() else int(order[~plain].min())
        """Number of plain frames at the beginning of the window."""

    def _examine(self, mine: NDArray[Any], ordered: LaneOrder) -> NDArray[np.bool_]:
        """Find the positions of all frames; return which are plain, if those before are. ``mine`` is the state of the
        lane of each frame."""
        frames, order = self.frames, self.place
        self.sends: NDArray[np.bool_] = frames.kind[order] < LIBACK
        self.sent, self.partner_sent = ordered.before(self.sends)
        """Number of messages before each frame in its lane, and in the other one."""
        plain: NDArray[np.bool_] = frames.session[order] == mine["session"]

        values = frames.ack[order].astype(np.int64)
        seen = mine["back_next"] + self.partner_sent
        # An ack has 14 bits: it stands for the latest position with these bits up to the messages seen.
        position = seen - (seen - values & NUMBER_MASK)
        advances = (values != mine["known"]) & (position > mine["back_acked"])
        idle = (values == mine["known"]) & (ordered.before(advances)[0] == 0)
        self.position: _Integers = np.where(idle | ~mine["acks"], mine["back_acked"], position)
        """Position below which all messages of the other direction are acknowledged."""
        self.former: _Integers = ordered.last(self.position, mine["back_acked"])
        """The same before the frame."""
        steps = self.position - self.former
        foreign = (values ^ mine["back_bits"]) & SESSION_NUMBER_MASK != 0
        plain &= idle | mine["acks"] & ~foreign & (steps >= 0) & (steps <= OUTSTANDING_MAXIMUM)

        number = mine["next"] + self.sent - self.behind
        expected = number & NUMBER_MASK | mine["bits"]
        self.outstanding: _Integers = number + 1 - ordered.last(self.position, mine["acked"], other=True)
        """Number of unacknowledged messages up to the one in each frame."""
        sends = mine["sends"] & (frames.sequence[order] == expected) & (self.behind <= ENTRIES)
        sends &= self.outstanding + self.behind < OUTSTANDING_MAXIMUM
        plain &= (frames.kind[order] == LIBACK) | sends
        return plain

    def cut(self, count: int) -> None:
        """Discard all frames from place ``count``."""
        kept = self.place < count
        self.place, self.lane, self.sends, self.sent = (
            self.place[kept], self.lane[kept], self.sends[kept], self.sent[kept]
        )  # fmt: skip
        self.position, self.former = self.position[kept], self.former[kept]
        self.outstanding, self.partner_sent = self.outstanding[kept], self.partner_sent[kept]
        self.behind = self.behind[kept]
        self.frames = self.frames.part(0, count)

    def count_frames(self) -> None:
        """Count the frames and messages of the directions, and note acks that precede the first message."""
        frames, lane, order, changes = self.frames, self.lane, self.place, self.table.changes
        total, kinds = len(changes), REPEATED + len(KINDS)
        counts = np.bincount(lane * kinds + frames.kind[order], minlength=total * kinds).reshape(total, kinds)
        changes["frames"] += counts.sum(1)
        changes["bytes"] += np.bincount(lane, frames.wire_length[order], total).astype(np.int64)
        changes["message_bytes"] += np.bincount(lane, frames.length[order] * self.sends, total).astype(np.int64)
        for name, column in (*zip(KINDS, range(LIBACK), strict=True), ("libacks", LIBACK)):
            changes[name] += counts[:, column]
        most = np.zeros(total, np.int64)
        np.maximum.at(most, lane[self.sends], self.outstanding[self.sends])
        changes["most"] = np.maximum(changes["most"], most)
        # The last assignment wins.
        changes["last_ns"][lane] = frames.time_ns[order]
        early = self.back[lane[self.partner_sent == 0]]
        rows = self.table.rows[early]
        changes["unseen"][early[rows["begins"] & (rows["next"] == rows["first"])]] = True
