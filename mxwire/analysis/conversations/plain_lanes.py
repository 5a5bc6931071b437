"""The directions of a window of plain frames, whose frames are compared at once: step 1 of
:mod:`mxwire.analysis.conversations.plain_run`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations.partners import Flow
from mxwire.analysis.conversations.rows import BatchRows
from mxwire.analysis.conversations.settled_messages import KINDS, LIBACK, REPEATED
from mxwire.analysis.conversations.streams import ENTRIES, Stream, stream_at
from mxwire.rules.lanes import LaneOrder
from mxwire.wire.enums import TrucType
from mxwire.wire.numbers import (
    LIBACK_LENGTH,
    NO_SESSION,
    NUMBER_MASK,
    OUTSTANDING_MAXIMUM,
    SESSION_NUMBER_MASK,
)

LEAST: Final = 512
"""Minimum number of frames of a run: fewer frames are followed faster one by one."""
_LAYOUTS: Final = {"tiny": 0, "small": 1, "truc": LIBACK}
"""Kinds of plain frames by layout: indexes into ``KINDS``, or ``LIBACK``."""
UNKNOWN: Final = -1
"""``session`` of a lane without plain frames, and the number of no stream."""
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
_NO_STREAM: Final = False, 0, 0, 0


class PlainLanes:
    """The directions in a window, and its frames sorted by conversation; arrays of frames have shape (n,).

    ``lane`` numbers the flow of each frame of the window.
    """

    def __init__(self, frames: LaneFrames, flows: list[Flow | None], lane: NDArray[np.intp]) -> None:
        self.flows = flows
        self.begun: dict[int, tuple[Flow, Stream]] = {}
        """By the identity of their flows, the streams that may begin in the run."""
        self.state = state = np.array([self._row(each) for each in flows], _LANE)
        numbers = {id(each): number for number, each in enumerate(flows)}
        back = [UNKNOWN if each is None else numbers.get(id(each.back), UNKNOWN) for each in flows]
        self.back = np.array(back, np.intp)
        """The other direction of each lane, or -1 if it has no frames."""
        first = np.where(self.back < 0, np.arange(len(flows)), np.minimum(np.arange(len(flows)), self.back))
        # NumPy sorts small integers by their digits.
        first = first.astype(np.min_scalar_type(len(flows)))
        self.place = order = np.argsort(first[lane], kind="stable")
        """The frames of the window, sorted by conversation."""
        self.lane = lane = lane[order]
        mine = state[lane]
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

    def _row(self, flow: Flow | None) -> tuple[Any, ...]:
        """Return the row of ``_LANE`` of a flow; None if the direction was not seen before."""
        if flow is None or flow.session in (None, NO_SESSION) or not (flow.frames and flow.back.frames):
            return UNKNOWN, *_NO_STREAM, False, 0, 0, 0, 0
        stream, other = flow.stream or self.stream(flow), flow.back.stream or self.stream(flow.back)
        if stream is None:
            sending: tuple[Any, ...] = _NO_STREAM
        else:
            sending = _may_be_regular(stream), stream.next, stream.bits, stream.acked
        if other is None:
            known = flow.back.acked_unseen
            return flow.session, *sending, False, UNKNOWN if known is None else known, 0, 0, 0
        acks = _may_be_regular(other) and other.next - other.acked <= OUTSTANDING_MAXIMUM
        return flow.session, *sending, acks, other.ack_value, other.acked, other.next, other.bits

    def stream(self, flow: Flow) -> Stream | None:
        """Return the stream of a flow, or the one that begins with the number that the receiver requested."""
        if flow.stream is not None:
            return flow.stream
        if id(flow) in self.begun:
            return self.begun[id(flow)][1]
        start = flow.starts[-1] if flow.starts else None
        if start is None or flow.acked_unseen not in (None, start):
            return None
        stream = stream_at(start, start)
        self.begun[id(flow)] = flow, stream
        return stream

    def note_unseen(self) -> None:
        """Note the acks that precede the first message of a flow."""
        early = np.flatnonzero(np.bincount(self.lane[self.partner_sent == 0])).tolist() if self.begun else ()
        for each in early:
            flow = self.flows[each]
            if flow is not None and id(flow.back) in self.begun:
                flow.back.acked_unseen = flow.back.starts[-1]

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

    def of(self, lanes: NDArray[np.intp]) -> Iterator[tuple[int, Flow]]:
        """Yield the numbers and flows of ``lanes``."""
        for each in lanes.tolist():
            flow = self.flows[each]
            assert flow is not None
            yield each, flow

    def count_frames(self) -> None:
        """Count the frames and messages in their flows."""
        frames, lane, order, total = self.frames, self.lane, self.place, len(self.flows)
        kinds = REPEATED + len(KINDS)
        counts = np.bincount(lane * kinds + frames.kind[order], minlength=total * kinds).reshape(total, kinds)
        octets = np.bincount(lane, frames.wire_length[order], total).astype(np.int64)
        message_octets = np.bincount(lane, frames.length[order] * self.sends, total).astype(np.int64)
        last, most = np.full(total, UNKNOWN), np.zeros(total, np.int64)
        np.maximum.at(last, lane, order)
        np.maximum.at(most, lane[self.sends], self.outstanding[self.sends])
        used = np.flatnonzero(last >= 0)
        # The last frame of a conversation sets its time.
        used = used[np.argsort(last[used])]
        columns = counts, counts.sum(1), octets, message_octets, most, frames.time_ns[last]
        rows = zip(self.of(used), *(each[used].tolist() for each in columns), strict=True)
        for (_, flow), by_kind, count, octet_count, message_octet_count, outstanding, time_ns in rows:
            flow.frames += count
            flow.bytes += octet_count
            flow.libacks += by_kind[LIBACK]
            flow.message_bytes += message_octet_count
            for kind, messages in zip(KINDS, by_kind, strict=False):
                if messages:
                    flow.messages[kind] += messages
            if outstanding > flow.most_outstanding:
                flow.most_outstanding = outstanding
            flow.conversation.last_ns = time_ns


def _may_be_regular(stream: Stream) -> bool:
    """Return False for most irregular streams, without examining their entries."""
    known = stream.acked == stream.next or stream.acked in stream.entries
    return known and stream.confirmed == stream.acked and not stream.forgotten
