"""Follow runs of plain frames by columns: the same result as frame by frame, faster.

Theory of operation
-------------------
Most frames of a busy capture are plain: TINYs and SMALLs with the next sequence number of their direction, and acks, by
piggyback or liback, of messages that were seen. For these frames the trackers of single frames always take the same
branch, and each step can be computed for many frames at once. The trackers remain the definition: this module only
follows a run if the trackers would take that branch for every frame in it.

Conversations share the numbers of messages and the queue of settled messages, so a capture is divided by time, not by
conversation: :func:`lane_frames` finds the frames between two frames of other kinds (connects, fragments, pulls,
nacks), and :class:`PlainTracker` consumes as many plain frames from their beginning as possible, in five steps.

1. Lanes (``plain_lanes.py``). Each direction is a lane. Its state is read once per window, and the frames of all lanes
   are compared at once, sorted by conversation (:class:`~mxwire.rules.lanes.LaneOrder`), so that many hosts take little
   longer than two. Every condition on a frame depends on earlier frames only, and the run ends before the first frame
   that is not plain. A stream may begin in a run, with the number that the receiver requested. A frame that repeats a
   message which still waits (a duplicate or a retransmission) is plain, too: it changes only this message
   (:class:`_Repetition`).
2. Settlement. An ack settles all messages since the previous ack. The order of settlement is that in which messages
   wait for late duplicates.
3. Reports. The length of the queue of waiting messages after each frame follows from the times, and from its bound in
   steps of ``ROOM``.
4. Entries (``plain_streams.py``). A stream removes its oldest entries when ``kept_behind`` more were reported, or when
   it holds too many; it removes the larger of the two numbers. Lost messages leave gaps, so entries are counted, not
   positions. While all entries are reported in turn (``Stream.in_turn``), the numbers of reports are enough.
5. Objects (``settled_messages.py``). Message objects are created for messages in flight. Settled messages remain rows
   of :class:`SettledMessages`, and ``LATER`` in ``Stream.entries``, until a frame is followed singly: usually a later
   run reports them first, so that their objects are never created. A caller that takes messages gets the reported ones
   as rows (:class:`~mxwire.analysis.conversations.message_rows.MessageGroup`), or all objects are created after each
   run.

Examining frames beyond the end of a run is wasted work, so frames are examined in windows, which grow with each
success; after each failure twice as many frames are skipped as after the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations.frame_marks import ACK, DATA, NACKED, OBSOLETE, RETRANSMISSION
from mxwire.analysis.conversations.message import REPORTED as REPORTED_STATE
from mxwire.analysis.conversations.message import CapturedMessage, NumberedEntry
from mxwire.analysis.conversations.message_rows import MessageGroup
from mxwire.analysis.conversations.numbered_packets import count_repeat
from mxwire.analysis.conversations.partners import Flow
from mxwire.analysis.conversations.plain_lanes import LEAST, UNKNOWN, LaneFrames, PlainLanes, lane_frames
from mxwire.analysis.conversations.plain_streams import PlainStream
from mxwire.analysis.conversations.rows import BatchRows
from mxwire.analysis.conversations.settled_messages import (
    FRAME_COLUMNS,
    KINDS,
    LATER,
    LIBACK,
    REPEATED,
    SETTLED,
    SettledMessages,
    acknowledgement,
    create_plain,
)
from mxwire.analysis.conversations.state import IN_FLIGHT, LINGER_NS, LINGERING, ROOM, FollowerState

LEAST_EXAMINED: Final = 1 << 12
MOST_EXAMINED: Final = 1 << 16
"""Number of frames that are examined at a time: initially and after a failure, and the maximum."""
SKIPPED: Final = 64
"""Number of frames that are followed one by one after the first failure; it doubles up to ``MOST_SKIPPED``."""
MOST_SKIPPED: Final = 8192
PER_LANE_WIDE: Final = 32
"""Average number of frames per direction up to which windows grow."""
PER_LANE: Final = 2
"""Minimum average number of frames per direction, because each direction has a fixed cost."""
_MIXER: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
"""Odd factor, so that few pairs of addresses have the same sum."""
_POSITION_BITS: Final = 44
"""Bits for a position in a key of stream and position."""
_NONE: Final = np.zeros(0, np.int64)
_Integers = NDArray[np.int64]


def _first(at: NDArray[np.intp], different: NDArray[np.bool_], end: int) -> int:
    """Return the first place in ``at`` whose frame differs, or ``end``."""
    place = int(different.argmax()) if len(different) else 0
    return int(at[place]) if len(different) and different[place] else end


class _Repetition(NamedTuple):
    """A frame of a run that repeats a message."""

    number: int
    """The number of the message."""
    frame: int
    message: CapturedMessage | None
    """The message, if it was created before the run."""
    is_obsolete: bool
    """True if the message was acknowledged before the frame."""


class _PlainRun:
    """Consecutive plain frames, and their consequences."""

    def __init__(self, state: FollowerState, earlier: SettledMessages, lanes: PlainLanes) -> None:
        self.state = state
        self.earlier = earlier
        self.frames = frames = lanes.frames
        self.lanes = lanes
        self.streams = [PlainStream(*each) for each in earlier.streams]
        """The streams, by number; at the beginning those of ``earlier``."""
        self._numbers = {id(each.stream): number for number, each in enumerate(self.streams)}
        self._steps = lanes.position - lanes.former
        self._choose_streams()
        has_message = frames.kind < LIBACK
        self.sent = np.flatnonzero(has_message)
        """The frames with messages, which are numbered from ``base``."""
        self.place_sent = np.cumsum(has_message) - 1
        """The place in ``sent`` of each of these frames."""
        self.base = state.message_count + 1
        self.former: list[CapturedMessage] = []
        """The messages from before the run that are settled in it."""
        self.settled_at = self.settled = self.settled_stream = self.settled_position = _NONE
        """For each message settled in the run, in order: the frame with its ack; its place in ``sent``, or -1 - its
        place in ``former``; the number of its stream, and its position."""
        self.queued = len(state.lingering) + len(earlier.rows) - earlier.reported
        self.reported = 0
        """Number of messages in the queue that are reported."""
        self.reported_at = self.settled
        """The frame before which each of these messages is reported."""
        self.foreign: set[int] = set()
        """Places in the queue of messages that are reported, and belong to other streams."""
        self.repetitions: list[_Repetition] = []

    def _choose_streams(self) -> None:
        """Set the streams of messages and acks per lane."""
        lanes, total = self.lanes, len(self.lanes.flows)
        at = np.flatnonzero(lanes.sends)
        at = at[np.argsort(lanes.lane[at], kind="stable")]
        self.sent_by_lane = lanes.place[at]
        """The frames with messages, sorted by lane."""
        counts = np.bincount(lanes.lane[at], minlength=total)
        self.first_sent = np.cumsum(counts) - counts
        """Place in ``sent_by_lane`` of the first message of each lane."""
        self.stream_sent, self.stream_acked = np.full(total, UNKNOWN), np.full(total, UNKNOWN)
        """Number of the stream of the messages of each lane, and of the stream that its acks advance; -1 if none."""
        numbers: list[int] = []
        repeated = np.bincount(lanes.lane[lanes.behind > 0], minlength=total)
        sending, counted = np.flatnonzero(counts + repeated), counts.tolist()
        for lane, flow in lanes.of(sending):
            number = self._stream(flow)
            self.streams[number].sent = counted[lane]
            numbers.append(number)
        self.stream_sent[sending] = numbers
        advanced = np.bincount(lanes.lane, self._steps, total).astype(np.int64)
        acking, steps = np.flatnonzero(advanced), advanced.tolist()
        numbers = []
        for lane, flow in lanes.of(acking):
            number = self._stream(flow.back)
            each = self.streams[number]
            each.acked = each.stream.acked + steps[lane]
            numbers.append(number)
        self.stream_acked[acking] = numbers

    def _stream(self, flow: Flow) -> int:
        """Return the number of the stream of a flow, which is added if it is new."""
        stream = flow.stream or self.lanes.stream(flow)
        assert stream is not None
        number = self._numbers.setdefault(id(stream), len(self.streams))
        if number == len(self.streams):
            self.streams.append(PlainStream(flow, stream))
        return number

    def is_regular(self) -> bool:
        """Return whether all streams with messages or acks are regular."""
        return all(each.is_regular() for each in self.streams if each.sent or each.acked is not None)

    def settle(self) -> int:
        """Find the messages that are settled, and those that are reported.

        Returns the number of frames up to the report of a large message, whose replies must be counted first, or up to
        the message that would be one too many in flight.
        """
        lanes = self.lanes
        first_former = np.zeros(len(self.streams), np.int64)
        for number, each in enumerate(self.streams):
            if each.acked is not None and each.stream.acked < each.stream.next:
                first_former[number] = len(self.former) - each.stream.acked
                self.former += each.flying(min(each.acked, each.stream.next))
        by = np.repeat(np.arange(len(self._steps)), self._steps)
        frames, lane = lanes.place[by], lanes.lane[by]
        position = lanes.former[by] + np.arange(len(by)) - (np.cumsum(self._steps) - self._steps)[by]
        stream = self.stream_acked[lane]
        ahead = position - lanes.state["back_next"][lane]
        settled = -1 - (first_former[stream] + position)
        new = ahead >= 0
        settled[new] = self.place_sent[self._frame_sent(lanes.back[lane[new]], ahead[new])]
        order = np.argsort(frames, kind="stable")
        self.settled_at, self.settled = frames[order], settled[order]
        self.settled_stream, self.settled_position = stream[order], position[order]
        counts = np.bincount(self.settled_at, minlength=len(self.frames))
        settled_before = np.cumsum(counts) - counts
        reported = self._reports(self.queued + settled_before)
        self.reported = int(reported[-1])
        self.reported_at = np.repeat(np.arange(len(reported)), np.diff(reported, prepend=0))
        waiting = enumerate(islice(self.state.lingering, self.reported))
        large = next((place for place, each in waiting if each.pull is not None), None)
        in_flight = len(self.state.in_flight) + 1 + np.arange(len(self.sent))
        end = _first(self.sent, in_flight - settled_before[self.sent] > IN_FLIGHT, len(reported))
        end = end if large is None else min(end, int(self.reported_at[large]))
        return min(end, self._find_repeated()) if lanes.behind.any() else end

    def _frame_sent(self, lane: Any, ahead: Any) -> Any:
        """Return the frame with the message that has ``ahead`` messages of the run before it in its ``lane``."""
        return self.sent_by_lane[self.first_sent[lane] + ahead]

    def _find_repeated(self) -> int:
        """Find the messages that frames repeat; return the number of frames up to one whose message is not waiting."""
        lanes, frames, earlier = self.lanes, self.frames, self.earlier
        at = np.flatnonzero(lanes.behind)
        at = at[np.argsort(lanes.place[at])]
        lane, ahead = lanes.lane[at], lanes.sent[at] - lanes.behind[at]
        stream, position = self.stream_sent[lane], lanes.state["next"][lane] + ahead
        keys = stream << _POSITION_BITS | position
        rows = earlier.rows[earlier.reported :]
        queued = (
            (len(self.state.lingering), rows["stream"] << _POSITION_BITS | rows["position"]),
            (self.queued, self.settled_stream << _POSITION_BITS | self.settled_position),
        )
        queue: dict[int, int] = {}
        for first, queued_keys in queued:
            found = np.flatnonzero(np.isin(queued_keys, keys))
            queue.update(zip(queued_keys[found].tolist(), (first + found).tolist(), strict=True))
        created = {id(each): place for place, each in enumerate(self.state.lingering)} if (ahead < 0).any() else {}
        content = [*zip(*(each.tolist() for each in (frames.kind, frames.length, frames.match)), strict=True)]
        columns = keys, lanes.place[at], lane, ahead, stream, position, lanes.outstanding[at] <= 0
        for key, frame, sender, steps, number, each, obsolete in zip(*(c.tolist() for c in columns), strict=True):
            place = queue.get(key)
            if steps >= 0:
                sent = int(self._frame_sent(sender, steps))
                known: tuple[Any, ...] = self.base + int(self.place_sent[sent]), content[sent], None
            else:
                entry = self.streams[number].stream.entries.get(each)
                row = None if place is None else place - len(self.state.lingering)
                known = self._known(entry, row)
                place = created.get(id(entry), place)
            kind, length, match = content[frame]
            is_late = place is not None and place < self.reported and int(self.reported_at[place]) <= frame
            if known[1] != (kind - REPEATED, length, match) or is_late:
                return int(frame)
            self.repetitions.append(_Repetition(known[0], frame, known[2], obsolete))
        return len(frames)

    def _known(self, entry: NumberedEntry | None, row: int | None) -> tuple[Any, ...]:
        """Return number, content and object of a message from before the run, the latter if it was created.

        ``row`` is its place in the unreported rows of ``earlier``. The content is None if it is reported, or no TINY or
        SMALL.
        """
        earlier = self.earlier
        if entry is LATER and row is not None:
            settled = earlier.rows[earlier.reported + row]
            number = int(settled["number"])
            entry = earlier.created.get(number)
            if entry is None:
                return number, tuple(int(settled[name]) for name in ("kind", "length", "match")), None
        if not isinstance(entry, CapturedMessage) or entry.state == REPORTED_STATE or entry.kind not in KINDS:
            return 0, None, None
        return entry.number, (KINDS.index(entry.kind), entry.length, entry.match), entry

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
        """Assign the messages that are reported to their streams; return whether all are reported in order."""
        created, earlier, old = len(self.state.lingering), self.earlier, [self._reported_objects()]
        # Created messages precede the others in the queue.
        rows = earlier.rows[earlier.reported :][: max(self.reported - created, 0)]
        old.append(np.stack([rows["stream"], created + np.arange(len(rows)), rows["position"]]))
        for number, places, positions in _groups(np.concatenate(old, axis=1)):
            self.streams[number].old_places, self.streams[number].old_positions = places, positions
        new = max(self.reported - self.queued, 0)
        counts = np.bincount(self.settled_stream[:new], minlength=len(self.streams))
        for number in np.flatnonzero(counts).tolist():
            self.streams[number].new = int(counts[number])
        kept_behind = self.state.kept_behind
        return all(each.forget(kept_behind) or self._forget(number) for number, each in enumerate(self.streams))

    def _reported_objects(self) -> _Integers:
        """Return stream, place in the queue and position of the created messages that are reported; shape (3, n)."""
        found = []
        for place, message in enumerate(islice(self.state.lingering, self.reported)):
            stream = message.flow.stream
            number = self._numbers.get(id(stream))
            if number is not None and stream is not None and stream.entries.get(message.position) is message:
                found.append((number, place, message.position))
            else:
                self.foreign.add(place)
        return np.array(found, np.int64).reshape(-1, 3).T

    def _forget(self, number: int) -> bool:
        """Forget the entries of a stream that is not reported in turn."""
        each, lane = self.streams[number], np.flatnonzero(self.stream_sent == number)
        queue = self.queued + np.flatnonzero(self.settled_stream == number)[: each.new]
        first = int(self.first_sent[lane[0]]) if len(lane) else 0
        sent_at = self.sent_by_lane[first : first + each.sent]
        return each.forget_out_of_turn(queue, sent_at, self.reported_at, self.state.kept_behind)

    def finish(self, *, create_all: bool) -> None:
        """Set the state and ``earlier`` to those after the run; create the messages in flight, or all."""
        state, frames, earlier = self.state, self.frames, self.earlier
        numbers = self._numbers_settled()
        self._mark(numbers)
        rows = np.concatenate([earlier.rows, self._rows(numbers)])
        earlier.created |= {each.number: state.in_flight.pop(each.number) for each in self.former}
        earlier.streams = [(each.flow, each.stream) for each in self.streams]
        reported = earlier.reported + max(self.reported - len(state.lingering), 0)
        for place in range(min(self.reported, len(state.lingering))):
            state.report(state.lingering.popleft(), forget=place in self.foreign)
        for each in self.streams:
            each.extend(marked=state.marks is not None)
        # The last assignment wins: the latest ack.
        last = np.full(len(self.streams), UNKNOWN)
        last[self.settled_stream] = self.settled_at
        advanced = np.flatnonzero(last >= 0)
        last = last[advanced]
        columns = advanced, frames.number[last], frames.time_ns[last], frames.kind[last], frames.ack[last]
        for stream, number, time_ns, kind, ack in zip(*(column.tolist() for column in columns), strict=True):
            found = self.streams[stream].stream
            found.last_ack, found.ack_value = acknowledgement(number, time_ns, kind), ack
        self._create_in_flight()
        self._repeat(rows)
        state.now_ns, state.place = int(frames.time_ns[-1]), int(frames.place[-1])
        self.lanes.note_unseen()
        self.lanes.count_frames()
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
        acks = np.stack([frames.place[self.settled_at], numbers], 1)
        once = frames.kind < REPEATED
        marks.mark_run(frames.place[once], message[once], role[once], acks)

    def _repeat(self, rows: NDArray[Any]) -> None:
        """Count the frames that repeat messages; ``rows`` are the settled messages."""
        state, frames, streams = self.state, self.frames, self.earlier.streams
        messages = {each.number: each.message for each in self.repetitions}
        absent = [number for number, message in messages.items() if message is None and number not in state.in_flight]
        for row in rows[np.isin(rows["number"], absent)].tolist() if absent else ():
            number, stream, *values = row[: len(FRAME_COLUMNS) + 3]
            flow = streams[stream][0]
            messages[number] = self.earlier.created[number] = create_plain(state, number, flow, *values)
        for number, frame, _, is_obsolete in self.repetitions:
            message = messages[number] or state.in_flight[number]
            time_ns, frame_number = int(frames.time_ns[frame]), int(frames.number[frame])
            flags = count_repeat(message, time_ns, frame_number, int(frames.ack[frame]))
            message.add_frame(frame_number, time_ns)
            if state.marks is not None:
                again = flags & RETRANSMISSION
                flags |= (OBSOLETE if again and is_obsolete else 0) | (NACKED if message.nack is not None else 0)
                repeat = message.transmissions - 1 if again else 0
                state.marks.mark(int(frames.place[frame]), number, DATA, flags, repeat)

    def _rows(self, numbers: _Integers) -> NDArray[Any]:
        """Return the rows of the messages that are settled, with their ``numbers``."""
        frames, rows = self.frames, np.zeros(len(numbers), SETTLED)
        new = self.settled >= 0
        first, last = self.sent[self.settled[new]], self.settled_at
        for name, column in FRAME_COLUMNS.items():
            rows[name][new] = getattr(frames, column)[first]
        rows["number"] = numbers
        rows["settled_ns"], rows["ack_frame"], rows["ack_kind"] = (
            frames.time_ns[last], frames.number[last], frames.kind[last]
        )  # fmt: skip
        rows["stream"], rows["position"] = self.settled_stream, self.settled_position
        return rows

    def _create_in_flight(self) -> None:
        """Create the messages that are not settled."""
        state, frames, lanes = self.state, self.frames, self.lanes
        unsettled = np.ones(len(self.sent), np.bool_)
        unsettled[self.settled[self.settled >= 0]] = False
        at = np.flatnonzero(lanes.sends)
        at = at[unsettled[self.place_sent[lanes.place[at]]]]
        at = at[np.argsort(lanes.place[at])]
        lane, place = lanes.lane[at], lanes.place[at]
        columns = (
            self.base + self.place_sent[place], self.stream_sent[lane], lanes.state["next"][lane] + lanes.sent[at],
            frames.kind[place], frames.length[place], frames.match[place], frames.time_ns[place], frames.ack[place],
            frames.number[place],
        )  # fmt: skip
        for number, stream, *values in zip(*(column.tolist() for column in columns), strict=True):
            each = self.streams[stream]
            message = create_plain(state, number, each.flow, *values)
            each.stream.entries[message.position] = state.in_flight[number] = message


def _groups(columns: _Integers) -> Iterator[tuple[int, list[int], list[int]]]:
    """Yield each number in the first of three ``columns`` with its entries in the others, in order."""
    columns = columns[:, np.argsort(columns[0], kind="stable")]
    begins = np.flatnonzero(np.diff(columns[0], prepend=-1))
    one, other = columns[1].tolist(), columns[2].tolist()
    for number, (first, end) in zip(columns[0, begins].tolist(), pairwise([*begins.tolist(), len(one)]), strict=True):
        yield number, one[first:end], other[first:end]


class PlainTracker:
    """Tracker of runs of plain frames; with ``messages`` the messages are reported, too, or with ``rows`` as
    rows."""

    def __init__(self, state: FollowerState, *, messages: bool, rows: bool = False) -> None:
        self.state = state
        self._all = messages
        self._earlier = SettledMessages()
        if rows:
            self._earlier.taken = []
        self._window, self._skipped = MOST_EXAMINED, SKIPPED
        self._lane_count = 0
        """Number of directions in the latest window."""

    def others(self, rows: BatchRows, count: int) -> Iterator[tuple[int, int]]:
        """Follow the plain frames of a batch of ``count`` frames; yield the places of the others.

        Yields first and end (exclusive) of each range of frames that the caller must follow before the next one.
        """
        frames, runs = lane_frames(rows)
        place = 0
        for first, end in runs:
            assert frames is not None
            while end - first >= LEAST:
                yield from self._others(place, int(frames.place[first]))
                place = int(frames.place[first])
                size = min(end - first, self._window)
                taken = self._take(frames.part(first, first + size))
                # Each direction has a fixed cost.
                wide = PER_LANE_WIDE * self._lane_count
                if taken == size:
                    self._window = min(4 * self._window, max(wide, MOST_EXAMINED))
                else:
                    self._window = max(LEAST_EXAMINED, wide // 8)
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

    def finish(self) -> None:
        """Report all settled messages as rows, if they are taken, or create them."""
        if self._earlier.taken is None:
            self.create_messages()
        else:
            self._earlier.report_all()

    def create_messages(self) -> None:
        """Create all messages that were settled in runs, before other parts use the state."""
        self._earlier.create(self.state)

    def _take(self, frames: LaneFrames) -> int:
        """Follow the first ``frames`` that are plain; return their number, 0 if there are fewer than ``LEAST``."""
        if len(frames) < LEAST or frames.time_ns[0] < self.state.now_ns:
            return 0
        lanes = self._lanes(frames)
        if lanes is None or lanes.count < LEAST:
            return 0
        count = lanes.count
        lanes.cut(count)
        run = _PlainRun(self.state, self._earlier, lanes)
        if not run.is_regular():
            return 0
        cut = run.settle()
        if cut < count:
            return self._take(frames.part(0, cut))
        if not run.find_reports():
            return 0
        run.finish(create_all=self._all)
        return count

    def _lanes(self, frames: LaneFrames) -> PlainLanes | None:
        """Return the lanes of a window, with the frames until time goes back; None if there are too many."""
        backward = np.flatnonzero(np.diff(frames.time_ns) < 0)
        if len(backward):
            frames = frames.part(0, int(backward[0]) + 1)
        source, destination = frames.source, frames.destination
        _, first, lane = np.unique(source + destination * _MIXER, return_index=True, return_inverse=True)
        self._lane_count = len(first)
        if len(first) * PER_LANE > len(frames):
            return None
        if (source[first][lane] != source).any() or (destination[first][lane] != destination).any():
            return None
        known = map(self.state.directions.get, zip(source[first].tolist(), destination[first].tolist(), strict=True))
        return PlainLanes(frames, [None if each is None else each.flow for each in known], lane)
