"""Follow runs of plain frames by columns: the same result as frame by frame, faster.

Theory of operation
-------------------
Most frames of a busy capture are plain: TINYs and SMALLs with the next sequence number of their direction, and acks, by
piggyback or liback, of messages that were seen. For these frames the trackers of single frames always take the same
branch, and each step can be computed for many frames at once. The trackers remain the definition: this module only
follows a run if the trackers would take that branch for every frame in it.

Conversations share the numbers of messages and the queue of settled messages, so a capture is divided by time, not by
conversation: :func:`_plain_frames` finds the frames between two frames of other kinds (connects, fragments, pulls,
nacks), and :class:`PlainTracker` consumes as many plain frames from their beginning as possible, in five steps.

1. Lanes. Each direction is a lane. Every condition on a frame depends on earlier frames only, so each lane reports its
   first frame that is not plain, and the run ends before the earliest of these.
2. Settlement. An ack settles all messages since the previous ack. The order of settlement is that in which messages
   wait for late duplicates.
3. Reports. The length of the queue of waiting messages after each frame follows from the times, and from its bound in
   steps of ``ROOM``.
4. Entries. A stream removes its oldest entries when ``KEPT_BEHIND`` more were reported, or when it holds too many; it
   removes the larger of the two numbers. Lost messages leave gaps, so entries are counted, not positions.
5. Objects. Message objects are created for messages in flight. Settled messages remain rows of
   :class:`_SettledMessages`, and ``_LATER`` in ``Stream.entries``, until a frame is followed singly: usually a later
   run reports them first, so that their objects are never created. A caller that takes messages gets the
   reported ones as rows (:class:`~mxwire.analysis.conversations.message_rows.MessageGroup`), or all objects are created
   after each run.

Examining frames beyond the end of a run is wasted work, so frames are examined in windows, which grow with each
success; after each failure twice as many frames are skipped as after the one before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from itertools import islice, pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations.frame_marks import ACK, DATA
from mxwire.analysis.conversations.message import FLYING, Acknowledgement, CapturedMessage, Kind, NumberedEntry
from mxwire.analysis.conversations.message_rows import MessageGroup
from mxwire.analysis.conversations.partners import Flow
from mxwire.analysis.conversations.rows import BatchRows
from mxwire.analysis.conversations.state import (
    IN_FLIGHT,
    LINGER_NS,
    LINGERING,
    NEVER,
    ROOM,
    FollowerState,
    note_missing,
)
from mxwire.analysis.conversations.streams import ENTRIES, KEPT_BEHIND, Stream
from mxwire.wire.enums import TrucType
from mxwire.wire.numbers import (
    ABANDONED_NEXT,
    LIBACK_LENGTH,
    NO_SESSION,
    NUMBER_MASK,
    OUTSTANDING_MAXIMUM,
    SESSION_NUMBER_MASK,
)

LEAST: Final = 512
"""Minimum number of frames of a run: fewer frames are followed faster one by one."""
LEAST_EXAMINED: Final = 1 << 12
MOST_EXAMINED: Final = 1 << 16
"""Number of frames that are examined at a time: initially and after a failure, and the maximum."""
SKIPPED: Final = 64
"""Number of frames that are followed one by one after the first failure; it doubles up to ``MOST_SKIPPED``."""
MOST_SKIPPED: Final = 8192
PER_LANE: Final = 64
"""Minimum average number of frames per direction, because each direction has a fixed cost."""
KINDS: Final[tuple[Kind, ...]] = "TINY", "SMALL"
LIBACK: Final = len(KINDS)
_LAYOUTS: Final = {"tiny": 0, "small": 1, "truc": LIBACK}
"""Kinds of plain frames by layout: indexes into ``KINDS``, or ``LIBACK``."""
_LATER: Final = NumberedEntry()
"""Entry of a settled message whose object has not been created."""
SETTLED: Final = np.dtype(
    [
        ("number", "i8"), ("stream", "i8"), ("position", "i8"), ("kind", "i8"), ("length", "i8"), ("match", "u8"),
        ("time_ns", "i8"), ("ack", "i8"), ("frame", "i8"),
        ("settled_ns", "i8"), ("ack_frame", "i8"), ("ack_kind", "i8"),
    ]
)  # fmt: skip
"""Columns of settled messages; the last three describe the frame that settled the message."""
_FRAME: Final = {each: each for each in ("kind", "length", "match", "time_ns", "ack")} | {"frame": "number"}
"""Attributes of ``_PlainFrames`` by the columns of ``SETTLED`` that hold them for the frame of the message."""
_END: Final = 1 << 62
_Integers = NDArray[np.int64]


@dataclass(slots=True, eq=False)
class _PlainFrames:
    """TINYs, SMALLs and libacks in order; arrays of shape (n,)."""

    place: NDArray[np.intp]
    time_ns: _Integers
    number: _Integers
    wire_length: _Integers
    source: NDArray[np.uint64]
    destination: NDArray[np.uint64]
    kind: _Integers
    """As in ``_LAYOUTS``."""
    ack: NDArray[np.uint16]
    session: NDArray[np.uint32]
    sequence: NDArray[np.uint16]
    length: NDArray[np.uint16]
    match: NDArray[np.uint64]
    """This field and the next two are 0 for libacks."""

    def __len__(self) -> int:
        return len(self.place)

    def part(self, first: int, end: int) -> _PlainFrames:
        """Return the frames from ``first`` to ``end`` (exclusive)."""
        return _PlainFrames(*(getattr(self, each.name)[first:end] for each in fields(self)))


def _plain_frames(rows: BatchRows) -> tuple[_PlainFrames | None, list[tuple[int, int]]]:
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
    return _PlainFrames(*(np.concatenate(columns)[order] for columns in zip(*parts, strict=True))), runs


class _PlainLane:
    """One direction in a window. Frames are places in the window; the methods ``find_…`` also return the first one that
    is not plain, or the end of the window."""

    def __init__(self, flow: Flow, at: NDArray[np.intp]) -> None:
        self.flow = flow
        self.at = at
        """The frames of the lane."""
        self.sent = at
        """The frames of the lane that carry messages."""
        self.acked: Stream | None = None
        """The stream that its acks advance; None if they do not."""
        self.positions: _Integers = np.zeros(0, np.int64)
        """Position below which all messages are acknowledged, per frame."""
        self.outstanding: _Integers = self.positions
        """Number of unacknowledged messages, per message sent."""

    def find_messages(self, frames: _PlainFrames) -> int:
        """Set ``sent``; they are plain while each has the next sequence number."""
        flow, at = self.flow, self.at
        self.sent = sent = at[frames.kind[at] < LIBACK]
        if flow.session in (None, NO_SESSION) or not (flow.frames and flow.back.frames):
            return int(at[0])
        end = _first(at, frames.session[at] != flow.session, len(frames))
        stream = flow.stream
        if not len(sent):
            return end
        if stream is None or not _may_be_regular(stream):
            return min(end, int(sent[0]))
        expected = (stream.next + np.arange(len(sent))) & NUMBER_MASK | stream.bits
        return min(end, _first(sent, frames.sequence[sent] != expected, len(frames)))

    def find_acks(self, frames: _PlainFrames, back: _PlainLane | None) -> int:
        """Set ``acked``; acks are plain while they do not decrease, and concern messages that were seen."""
        flow, at = self.flow.back, self.at
        stream, values = flow.stream, frames.ack[at].astype(np.int64)
        known = flow.acked_unseen if stream is None else stream.ack_value
        changed = values != known if known is not None else np.ones(len(at), np.bool_)
        if stream is None or not changed.any() or not _may_be_regular(stream):
            return _first(at, changed, len(frames))
        steps = np.diff(values & NUMBER_MASK, prepend=stream.acked & NUMBER_MASK) & NUMBER_MASK
        self.acked, self.positions = stream, stream.acked + np.cumsum(steps)
        seen = stream.next + (0 if back is None else np.searchsorted(back.sent, at))
        foreign = (values ^ stream.bits) & SESSION_NUMBER_MASK != 0
        return _first(at, foreign | (steps > OUTSTANDING_MAXIMUM) | (self.positions > seen), len(frames))

    def find_outstanding(self, back: _PlainLane | None) -> int:
        """Set ``outstanding``; messages are plain while the sender is not throttled."""
        stream, sent = self.flow.stream, self.sent
        if stream is None or not len(sent):
            return _END
        acked = stream.acked + np.zeros(len(sent), np.int64)
        if back is not None and back.acked is stream:
            acked = np.concatenate([[stream.acked], back.positions])[np.searchsorted(back.at, sent)]
        self.outstanding = stream.next + 1 + np.arange(len(sent)) - acked
        return _first(sent, self.outstanding >= OUTSTANDING_MAXIMUM, _END)

    def cut(self, count: int) -> None:
        """Discard all frames from place ``count``."""
        sent = int(np.searchsorted(self.sent, count))
        self.at = self.at[: np.searchsorted(self.at, count)]
        self.sent, self.outstanding = self.sent[:sent], self.outstanding[:sent]
        self.positions = self.positions[: len(self.at)]

    def count(self, frames: _PlainFrames) -> None:
        """Count the frames and messages."""
        flow, at, sent = self.flow, self.at, self.sent
        flow.frames += len(at)
        flow.bytes += int(frames.wire_length[at].sum())
        flow.libacks += len(at) - len(sent)
        flow.message_bytes += int(frames.length[sent].sum())
        for kind, count in enumerate(np.bincount(frames.kind[sent]).tolist()):
            if count:
                flow.messages[KINDS[kind]] += count
        flow.conversation.last_ns = int(frames.time_ns[at[-1]])


def _may_be_regular(stream: Stream) -> bool:
    """Return False for most irregular streams, without examining their entries."""
    known = stream.acked == stream.next or stream.acked in stream.entries
    return known and stream.confirmed == stream.acked and not stream.forgotten


def _first(at: NDArray[np.intp], different: NDArray[np.bool_], end: int) -> int:
    """Return the first place in ``at`` whose frame differs, or ``end``."""
    place = int(different.argmax()) if len(different) else 0
    return int(at[place]) if len(different) and different[place] else end


@dataclass(slots=True, eq=False)
class _PlainStream:
    """A stream whose numbers advance in a run."""

    flow: Flow
    stream: Stream
    lane: _PlainLane | None = None
    """The lane of its messages."""
    acks: _PlainLane | None = None
    """The lane of its acks."""
    old: _Integers = field(default_factory=lambda: np.zeros((2, 0), np.int64))
    """Places in the queue, and positions, of messages sent before the run and reported during it."""
    queue: _Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    """Place in the queue of each message that is settled in the run, in order from ``stream.acked``."""
    forgotten: int = 0
    """Number of oldest entries removed during the run: first entries from before the run, then entries of the run."""
    kept: list[int] = field(default_factory=list)
    """Positions of entries whose messages were reported, after the run."""

    def is_regular(self) -> bool:
        """Return whether the positions of all entries ascend, and the unacknowledged ones are consecutive and plain."""
        stream, flow = self.stream, self.flow
        held = [*stream.entries]
        return (
            stream.first & NUMBER_MASK != ABANDONED_NEXT
            and stream.bits | ABANDONED_NEXT not in flow.starts
            and held == sorted(held)
            and held[bisect_left(held, stream.acked) :] == [*range(stream.acked, stream.next)]
            and all(entry is _LATER or self._is_regular(entry) for entry in stream.entries.values())
        )

    def _is_regular(self, entry: NumberedEntry) -> bool:
        if entry.position < self.stream.acked:
            return not isinstance(entry, CapturedMessage) or entry.state != FLYING
        return isinstance(entry, CapturedMessage) and entry.state == FLYING and entry.pull is None and entry.ack is None

    def flying(self, end: int) -> list[CapturedMessage]:
        """Return the unacknowledged messages from before the run up to position ``end`` (exclusive), if regular."""
        entries = (self.stream.entries[position] for position in range(self.stream.acked, end))
        return [each for each in entries if isinstance(each, CapturedMessage)]

    def forget(self, reported: int, reported_at: _Integers) -> bool:
        """Set ``forgotten`` and ``kept`` as after the first ``reported`` messages of the queue were reported.

        Returns False, and the values are wrong, if a message would be forgotten before an earlier one.
        """
        stream, sent = self.stream, np.zeros(0, np.intp) if self.lane is None else self.lane.sent
        held, before = np.array([*stream.entries], np.int64), len(stream.reported)
        new = self.queue[: np.searchsorted(self.queue, reported)]
        queue = np.concatenate([self.old[0], new])
        order = np.array([*stream.reported], np.int64)
        order = np.concatenate([order, self.old[1], stream.acked + np.arange(len(new))])
        known = np.isin(order, held) | (order >= stream.next)
        rank = np.where(known, np.searchsorted(held, order) + np.maximum(order - stream.next, 0), -1)
        # A stream that holds too many entries has lost the oldest when they are reported.
        lost = len(held) - ENTRIES + np.searchsorted(sent, reported_at[queue])
        kept = np.concatenate([np.arange(before), before + np.flatnonzero(rank[before:] >= lost)])
        self.kept = order[kept[-KEPT_BEHIND:]].tolist()
        end = int(rank[kept[:-KEPT_BEHIND]].max(initial=-1)) + 1
        self.forgotten = max(end, len(held) + len(sent) - ENTRIES)
        # A message that was pulled or nacked is not reported in turn.
        rank = rank[known]
        return bool((np.diff(rank) > 0).all()) and np.count_nonzero(rank < end) == end

    def extend(self, *, marked: bool) -> None:
        """Add the messages of the run except those in flight, and forget the oldest entries."""
        stream, lane, entries = self.stream, self.lane, self.stream.entries
        stream.reported = deque(self.kept)
        new = stream.next + max(self.forgotten - len(entries), 0)
        for position in [*islice(entries, self.forgotten)]:
            del entries[position]
        if self.acks is not None:
            first, stream.acked = max(stream.acked, next(iter(entries), new)), int(self.acks.positions[-1])
            stream.confirmed = stream.acked
            entries.update(dict.fromkeys(range(first, stream.acked), _LATER))
        if lane is None:
            return
        stream.seen += len(lane.sent)
        stream.next += len(lane.sent)
        if marked:
            stream.expected = stream.next
        self.flow.most_outstanding = max(self.flow.most_outstanding, int(lane.outstanding.max()))


class _SettledMessages:
    """Messages that were settled in the latest runs, and are not created."""

    def __init__(self) -> None:
        self.taken: list[MessageGroup] | None = None
        """The reported messages, if they are taken as rows."""
        self.clear()

    def clear(self) -> None:
        """Discard all messages."""
        self.rows = np.zeros(0, SETTLED)
        """In order of settlement, after all in ``FollowerState.lingering``."""
        self.reported = 0
        """Number of rows at the beginning that were reported but are still entries of their streams."""
        self.streams: list[tuple[Flow, Stream]] = []
        """The streams by their number in ``rows``."""
        self.created: dict[int, CapturedMessage] = {}
        """By number, the messages that were in flight before the run in which they were settled; their rows lack the
        frame."""

    def keep(self, rows: NDArray[Any], reported: int, *, keep_all: bool) -> None:
        """Discard unneeded ``rows``: those among the first ``reported`` that are no longer entries of their streams."""
        if self.taken is not None and reported > self.reported:
            self.taken.append(self._group(rows[self.reported : reported]))
        oldest = np.array([next(iter(stream.entries), stream.next) for _, stream in self.streams], np.int64)
        kept = rows["position"] >= oldest[rows["stream"]]
        kept[reported:] = True
        kept |= keep_all
        self.rows, self.reported = rows[kept], int(np.count_nonzero(kept[:reported]))
        numbers = {*self.rows["number"].tolist()}
        self.created = {number: each for number, each in self.created.items() if number in numbers}

    def _group(self, rows: NDArray[Any]) -> MessageGroup:
        """Return reported messages; those from before their run are objects."""
        created = np.isin(rows["number"], [*self.created])
        messages = []
        for number, ack_frame, time_ns, how in rows[["number", "ack_frame", "settled_ns", "ack_kind"]][
            created
        ].tolist():
            message = self.created[number]
            message.ack = _acknowledgement(ack_frame, time_ns, how)
            note_missing(message)
            messages.append(message)
        return MessageGroup(rows[~created], [flow for flow, _ in self.streams], messages)

    def create(self, state: FollowerState) -> None:
        """Create all messages, and settle and report them."""
        now_ns = state.now_ns
        ack: Acknowledgement | None = None
        # Columns, since a tuple per row would burden the garbage collector.
        columns = zip(*(self.rows[name].tolist() for name in SETTLED.names or ()), strict=True)
        for (
            number, which, position, kind, length, match, time_ns, piggyack, frame, state.now_ns, ack_frame, how
        ) in columns:  # fmt: skip
            flow, stream = self.streams[which]
            message = self.created.get(number)
            if message is None:
                message = _create(state, number, flow, position, kind, length, match, time_ns, piggyack, frame)
            if ack is None or ack.frame != ack_frame or ack.time_ns != state.now_ns or ack is not stream.last_ack:
                ack = stream.last_ack = _acknowledgement(ack_frame, state.now_ns, how)
            message.ack = ack
            if stream.entries.get(position) is _LATER:
                stream.entries[position] = message
            state.settle(message)
        for _ in range(self.reported):
            state.report(state.lingering.popleft(), forget=False, taken=self.taken is not None)
        state.now_ns = now_ns
        state.due_ns = state.lingering[0].settled_ns + LINGER_NS if state.lingering else NEVER
        self.clear()


def _create(
    state: FollowerState,
    number: int,
    flow: Flow,
    position: int,
    kind: int,
    length: int,
    match: int,
    time_ns: int,
    piggyack: int,
    frame: int,
) -> CapturedMessage:
    """Create the message of a plain frame with the number ``frame``."""
    message = CapturedMessage(number, flow, KINDS[kind], position, length, match, time_ns, piggyack)
    message.complete_ns, message.bytes_seen = time_ns, length
    message.run_first = message.run_last = frame
    message.frame_count = 1
    if state.watch is not None and state.watch.number == number:
        state.watch.message = message
    return message


def _acknowledgement(frame: int, time_ns: int, kind: int) -> Acknowledgement:
    return Acknowledgement(frame, time_ns, "liback" if kind == LIBACK else "piggyback", True)


class _PlainRun:
    """Consecutive plain frames, and their consequences."""

    def __init__(
        self, state: FollowerState, earlier: _SettledMessages, frames: _PlainFrames, lanes: list[_PlainLane]
    ) -> None:
        self.state = state
        self.earlier = earlier
        self.frames = frames
        self.lanes = [each for each in lanes if len(each.at)]
        self.streams = {id(stream): _PlainStream(flow, stream) for flow, stream in earlier.streams}
        for lane in self.lanes:
            if lane.flow.stream is not None and len(lane.sent):
                self._numbers(lane.flow, lane.flow.stream).lane = lane
            if lane.acked is not None and lane.positions[-1] > lane.acked.acked:
                self._numbers(lane.flow.back, lane.acked).acks = lane
        has_message = frames.kind < LIBACK
        self.sent = np.flatnonzero(has_message)
        """The frames with messages, which are numbered from ``base``."""
        self.place_sent = np.cumsum(has_message) - 1
        """The place in ``sent`` of each of these frames."""
        self.base = state.message_count + 1
        self.former: list[CapturedMessage] = []
        """The messages from before the run that are settled in it."""
        self.settled_at = self.settled = np.zeros(0, np.int64)
        """For each message settled in the run, in order: the frame with its ack, and its place in ``sent``, or -1 - its
        place in ``former``."""
        self.queued = len(state.lingering) + len(earlier.rows) - earlier.reported
        self.reported = 0
        """Number of messages in the queue that are reported."""
        self.reported_at = self.settled
        """The frame before which each of these messages is reported."""
        self.foreign: set[int] = set()
        """Places in the queue of messages that are reported, and belong to other streams."""

    def _numbers(self, flow: Flow, stream: Stream) -> _PlainStream:
        return self.streams.setdefault(id(stream), _PlainStream(flow, stream))

    def is_regular(self) -> bool:
        """Return whether all streams are regular."""
        return all(each.is_regular() for each in self.streams.values())

    def settle(self) -> int:
        """Find the messages that are settled, and those that are reported.

        Returns the number of frames up to the report of a large message, whose replies must be counted first, or up to
        the message that would be one too many in flight.
        """
        at, which, parts = [self.settled], [self.settled], []
        for each in self.streams.values():
            if each.acks is None:
                continue
            stream, lane = each.stream, each.acks
            start, end = stream.acked, int(lane.positions[-1])
            at.append(np.repeat(lane.at, np.diff(lane.positions, prepend=start)))
            former = each.flying(min(end, stream.next))
            which.append(-1 - len(self.former) - np.arange(len(former)))
            self.former += former
            if each.lane is not None:
                which.append(self.place_sent[each.lane.sent[: max(end - stream.next, 0)]])
            parts.append((each, end - start))
        frames = np.concatenate(at)
        order = np.argsort(frames, kind="stable")
        self.settled_at, self.settled = frames[order], np.concatenate(which)[order]
        rank = np.empty(len(order), np.int64)
        rank[order] = self.queued + np.arange(len(order))
        for (each, count), last in zip(parts, np.cumsum([count for _, count in parts]).tolist(), strict=True):
            each.queue = rank[last - count : last]
        settled = np.bincount(self.settled_at, minlength=len(self.frames))
        settled_before = np.cumsum(settled) - settled
        reported = self._reports(self.queued + settled_before)
        self.reported = int(reported[-1])
        self.reported_at = np.repeat(np.arange(len(reported)), np.diff(reported, prepend=0))
        waiting = enumerate(islice(self.state.lingering, self.reported))
        large = next((place for place, each in waiting if each.pull is not None), None)
        in_flight = len(self.state.in_flight) + 1 + np.arange(len(self.sent))
        end = _first(self.sent, in_flight - settled_before[self.sent] > IN_FLIGHT, len(reported))
        return end if large is None else min(end, int(self.reported_at[large]))

    def _reports(self, length: _Integers) -> _Integers:
        """Return the number of messages that are reported up to each frame, as by :meth:`FollowerState.tick`.

        ``length`` is that of the queue before each frame, if none were reported.
        """
        queue, time_ns = self.state.lingering, self.frames.time_ns
        waiting = np.fromiter((each.settled_ns for each in queue), np.int64, len(queue))
        earlier = self.earlier.rows["settled_ns"][self.earlier.reported :]
        due = np.searchsorted(np.concatenate([waiting, earlier, time_ns[self.settled_at]]), time_ns - LINGER_NS)
        full = np.flatnonzero(length - np.concatenate([[0], due[:-1]]) > LINGERING)
        reported, total = np.zeros(len(time_ns), np.int64), 0
        place = int(full.searchsorted(length.searchsorted(LINGERING, side="right")))
        while place < len(full):
            at = int(full[place])
            total = reported[at] = max(int(due[at]), int(length[at]) - (LINGERING - ROOM))
            at = max(at + 1, int(length.searchsorted(LINGERING + total, side="right")))
            place = int(full.searchsorted(at))
        return np.maximum(due, np.maximum.accumulate(reported))

    def find_reports(self) -> bool:
        """Assign the earlier messages that are reported to their streams; return whether all are reported in order."""
        old: dict[int, list[tuple[int, int]]] = {each: [] for each in self.streams}
        for place, message in enumerate(islice(self.state.lingering, self.reported)):
            stream = message.flow.stream
            if id(stream) in old and stream is not None and stream.entries.get(message.position) is message:
                old[id(stream)].append((place, message.position))
            else:
                self.foreign.add(place)
        # Created messages precede the others in the queue.
        created, earlier = len(self.state.lingering), self.earlier
        rows = earlier.rows[earlier.reported :][: max(self.reported - created, 0)]
        for number, (key, each) in enumerate(self.streams.items()):
            places = np.flatnonzero(rows["stream"] == number)
            later = np.stack([created + places, rows["position"][places]])
            each.old = np.concatenate([np.array(old[key], np.int64).reshape(-1, 2).T, later], axis=1)
        return all(each.forget(self.reported, self.reported_at) for each in self.streams.values())

    def finish(self, *, create_all: bool) -> None:
        """Set the state and ``earlier`` to those after the run; create the messages in flight, or all."""
        state, frames, earlier = self.state, self.frames, self.earlier
        numbers = self._numbers_settled()
        self._mark(numbers)
        rows = np.concatenate([earlier.rows, self._rows(numbers)])
        earlier.created |= {each.number: state.in_flight.pop(each.number) for each in self.former}
        earlier.streams = [(each.flow, each.stream) for each in self.streams.values()]
        reported = earlier.reported + max(self.reported - len(state.lingering), 0)
        for place in range(min(self.reported, len(state.lingering))):
            state.report(state.lingering.popleft(), forget=place in self.foreign)
        for each in self.streams.values():
            each.extend(marked=state.marks is not None)
            if each.acks is not None:
                last = int(self.settled_at[each.queue[-1] - self.queued])
                number, time_ns = int(frames.number[last]), int(frames.time_ns[last])
                each.stream.last_ack = _acknowledgement(number, time_ns, int(frames.kind[last]))
                each.stream.ack_value = int(frames.ack[last])
        self._create_in_flight()
        state.now_ns, state.place = int(frames.time_ns[-1]), int(frames.place[-1])
        # The last frame of a conversation sets its time.
        for lane in sorted(self.lanes, key=lambda each: int(each.at[-1])):
            lane.count(frames)
        state.message_count += len(self.sent)
        earlier.keep(rows, reported, keep_all=create_all)
        if create_all:
            earlier.create(state)

    def _numbers_settled(self) -> _Integers:
        """Return the numbers of the messages that are settled."""
        numbers, old = self.base + self.settled, self.settled < 0
        numbers[old] = np.array([each.number for each in self.former], np.int64)[-1 - self.settled[old]]
        return numbers

    def _mark(self, numbers: _Integers) -> None:
        marks, frames = self.state.marks, self.frames
        if marks is None:
            return
        message = np.zeros(len(frames), np.int64)
        message[self.settled_at] = numbers
        message[self.sent] = self.base + np.arange(len(self.sent))
        role = np.where(frames.kind < LIBACK, DATA, ACK).astype(np.uint8)
        marks.mark_run(frames.place, message, role, np.stack([frames.place[self.settled_at], numbers], 1))

    def _rows(self, numbers: _Integers) -> NDArray[Any]:
        """Return the rows of the messages that are settled, with their ``numbers``."""
        frames, rows = self.frames, np.zeros(len(numbers), SETTLED)
        new = self.settled >= 0
        first, last = self.sent[self.settled[new]], self.settled_at
        for name, column in _FRAME.items():
            rows[name][new] = getattr(frames, column)[first]
        rows["number"] = numbers
        rows["settled_ns"], rows["ack_frame"], rows["ack_kind"] = (
            frames.time_ns[last], frames.number[last], frames.kind[last]
        )  # fmt: skip
        for number, each in enumerate(self.streams.values()):
            places = each.queue - self.queued
            rows["stream"][places], rows["position"][places] = number, each.stream.acked + np.arange(len(places))
        return rows

    def _create_in_flight(self) -> None:
        """Create the messages that are not settled."""
        state, frames = self.state, self.frames
        unsettled = np.ones(len(self.sent), np.bool_)
        unsettled[self.settled[self.settled >= 0]] = False
        made: list[CapturedMessage] = []
        for each in self.streams.values():
            if each.lane is None:
                continue
            sent = each.lane.sent
            places = self.place_sent[sent]
            chosen = np.flatnonzero(unsettled[places])
            at = sent[chosen]
            columns = (
                self.base + places[chosen], each.stream.next - len(sent) + chosen, frames.kind[at], frames.length[at],
                frames.match[at], frames.time_ns[at], frames.ack[at], frames.number[at],
            )  # fmt: skip
            for number, *values in zip(*(column.tolist() for column in columns), strict=True):
                message = _create(state, number, each.flow, *values)
                each.stream.entries[message.position] = message
                made.append(message)
        state.in_flight.update((each.number, each) for each in sorted(made, key=lambda each: each.number))


class PlainTracker:
    """Tracker of runs of plain frames; with ``messages`` the messages are reported, too, or with ``rows`` as
    rows."""

    def __init__(self, state: FollowerState, *, messages: bool, rows: bool = False) -> None:
        self.state = state
        self._all = messages
        self._earlier = _SettledMessages()
        if rows:
            self._earlier.taken = []
        self._window, self._skipped = MOST_EXAMINED, SKIPPED

    def others(self, rows: BatchRows, count: int) -> Iterator[tuple[int, int]]:
        """Follow the plain frames of a batch of ``count`` frames; yield the places of the others.

        Yields first and end (exclusive) of each range of frames that the caller must follow before the next one.
        """
        frames, runs = _plain_frames(rows)
        place = 0
        for first, end in runs:
            assert frames is not None
            while end - first >= LEAST:
                yield from self._others(place, int(frames.place[first]))
                place = int(frames.place[first])
                size = min(end - first, self._window)
                taken = self._take(frames.part(first, first + size))
                if taken == size:
                    self._window = min(4 * self._window, MOST_EXAMINED)
                else:
                    self._window = LEAST_EXAMINED
                if taken:
                    first, self._skipped = first + taken, SKIPPED
                    place = int(frames.place[first - 1]) + 1
                else:
                    first, self._skipped = first + self._skipped, min(2 * self._skipped, MOST_SKIPPED)
        yield from self._others(place, count)

    def _others(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        if first < end:
            self.create_messages()
            yield first, end

    def take_rows(self) -> list[MessageGroup]:
        """Return the messages that were reported as rows since the previous call."""
        taken, self._earlier.taken = self._earlier.taken or [], []
        return taken

    def create_messages(self) -> None:
        """Create all messages that were settled in runs, before other parts use the state."""
        self._earlier.create(self.state)

    def _take(self, frames: _PlainFrames) -> int:
        """Follow the first ``frames`` that are plain; return their number, 0 if there are fewer than ``LEAST``."""
        if len(frames) < LEAST or frames.time_ns[0] < self.state.now_ns:
            return 0
        count, lanes = self._lanes(frames)
        if count < LEAST:
            return 0
        for each in lanes:
            each.cut(count)
        run = _PlainRun(self.state, self._earlier, frames.part(0, count), lanes)
        if not run.is_regular():
            return 0
        cut = run.settle()
        if cut < count:
            return self._take(frames.part(0, cut))
        if not run.find_reports():
            return 0
        run.finish(create_all=self._all)
        return count

    def _lanes(self, frames: _PlainFrames) -> tuple[int, list[_PlainLane]]:
        """Return the number of plain frames at the beginning of ``frames``, by lane, and the lanes."""
        backward = np.flatnonzero(np.diff(frames.time_ns) < 0)
        count = int(backward[0]) + 1 if len(backward) else len(frames)
        left = np.ones(len(frames), np.bool_)
        lanes: dict[int, _PlainLane] = {}
        for _ in range(len(frames) // PER_LANE):
            start = int(left.argmax())
            if start >= count or not left[start]:
                break
            key = int(frames.source[start]), int(frames.destination[start])
            mine = (frames.source == key[0]) & (frames.destination == key[1])
            left &= ~mine
            direction = self.state.directions.get(key)
            if direction is None:
                count = start
                break
            lane = _PlainLane(direction.flow, np.flatnonzero(mine))
            count = min(count, lane.find_messages(frames))
            lanes[id(lane.flow)] = lane
        else:
            return 0, []
        for lane in lanes.values():
            count = min(count, lane.find_acks(frames, lanes.get(id(lane.flow.back))))
        for lane in lanes.values():
            count = min(count, lane.find_outstanding(lanes.get(id(lane.flow.back))))
        return count, [*lanes.values()]
