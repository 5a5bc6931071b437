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

1. Lanes (``plain_lanes.py``). Each direction is a lane, with a row in a
   :class:`~mxwire.analysis.conversations.direction_table.DirectionTable`. Flows and streams are read when their first
   frame is examined, and written before a frame is followed singly: between runs, only columns change, so that many
   hosts take little longer than two. The frames of all lanes are compared at once, sorted by conversation
   (:class:`~mxwire.rules.lanes.LaneOrder`). Every condition on a frame depends on earlier frames only, and the run ends
   before the first frame that is not plain. A stream may begin in a run, with the number that the receiver requested. A
   frame that repeats a message which still waits (a duplicate or a retransmission) is plain, too: it changes only this
   message (:class:`_Repetition`).
2. Settlement. An ack settles all messages since the previous ack. The order of settlement is that in which messages
   wait for late duplicates.
3. Reports. The length of the queue of waiting messages after each frame follows from the times, and from its bound in
   steps of ``ROOM``.
4. Entries (``direction_table.py``). A stream removes its oldest entries when ``kept_behind`` more were reported, or
   when it holds too many; it removes the larger of the two numbers. Lost messages leave gaps, so entries are counted,
   not positions. While all entries are reported in turn (``Stream.in_turn``), the numbers of reports are enough; other
   streams are written after each run.
5. Objects (``run_messages.py``). Messages remain rows of :class:`RunMessages` until a frame is followed singly: usually
   a later run reports them first, so that their objects are never created. A caller that takes messages gets the
   reported ones as rows (:class:`~mxwire.analysis.conversations.message_rows.MessageGroup`), or all objects are created
   after each run.

Examining frames beyond the end of a run is wasted work, so frames are examined in windows, which grow with each
success; after each failure twice as many frames are skipped as after the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations.direction_table import UNKNOWN, forget_out_of_turn, mixed
from mxwire.analysis.conversations.frame_marks import ACK, DATA, NACKED, OBSOLETE, RETRANSMISSION
from mxwire.analysis.conversations.message import REPORTED as REPORTED_STATE
from mxwire.analysis.conversations.message import CapturedMessage
from mxwire.analysis.conversations.message_rows import KINDS, LIBACK, ROW, MessageGroup
from mxwire.analysis.conversations.numbered_packets import count_repeat
from mxwire.analysis.conversations.plain_lanes import LEAST, LaneFrames, PlainLanes, lane_frames
from mxwire.analysis.conversations.rows import BatchRows
from mxwire.analysis.conversations.run_messages import FRAME_COLUMNS, REPEATED, RunMessages, create_plain
from mxwire.analysis.conversations.state import IN_FLIGHT, LINGER_NS, LINGERING, ROOM, FollowerState
from mxwire.analysis.conversations.streams import ENTRIES
from mxwire.structured import concatenated

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

    def __init__(self, state: FollowerState, earlier: RunMessages, lanes: PlainLanes) -> None:
        self.state = state
        self.earlier = earlier
        self.table = earlier.table
        self.frames = frames = lanes.frames
        self.lanes = lanes
        total = len(self.table)
        self._steps = lanes.position - lanes.former
        self.advanced: _Integers = np.zeros(total, np.int64)
        """Number of messages of each direction that are acknowledged."""
        self.advanced[lanes.back] = np.bincount(lanes.lane, self._steps, total)
        at = np.flatnonzero(lanes.sends)
        at = at[np.argsort(lanes.lane[at], kind="stable")]
        self.sent_by_lane = lanes.place[at]
        """The frames with messages, sorted by lane."""
        self.count_sent = np.bincount(lanes.lane[at], minlength=total)
        """Number of messages of each direction."""
        self.first_sent = np.cumsum(self.count_sent) - self.count_sent
        """Place in ``sent_by_lane`` of the first message of each lane."""
        has_message = frames.kind < LIBACK
        self.sent = np.flatnonzero(has_message)
        """The frames with messages, which are numbered from ``base``."""
        self.place_sent = np.cumsum(has_message) - 1
        """The place in ``sent`` of each of these frames."""
        self.base = state.message_count + 1
        self.settled_at = self.settled = self.settled_stream = self.settled_position = _NONE
        """For each message settled in the run, in order: the frame with its ack; its place in ``sent``, or -1 - its
        place in the messages that were in flight; its direction, and its position."""
        self.queued = len(state.lingering) + len(earlier.rows) - earlier.reported
        self.reported = 0
        """Number of messages in the queue that are reported."""
        self.reported_at = self.settled
        """The frame before which each of these messages is reported."""
        self.foreign: set[int] = set()
        """Places in the queue of messages that are reported, and belong to other streams."""
        self.repetitions: list[_Repetition] = []
        self.reports = self.forgotten = _NONE
        """Number of messages of each direction that are reported, and of oldest entries that are forgotten."""
        self.out_of_turn: dict[int, list[int]] = {}
        """Positions of the reported entries of streams that do not report in turn, by direction."""

    def settle(self) -> int:
        """Find the messages that are settled, and those that are reported.

        Returns the number of frames up to the report of a large message, whose replies must be counted first, or up to
        the message that would be one too many in flight.
        """
        lanes = self.lanes
        flying = np.bincount(self.earlier.flying["stream"], minlength=len(self.table))
        first_flying = np.cumsum(flying) - flying - self.table.rows["acked"]
        by = np.repeat(np.arange(len(self._steps)), self._steps)
        frames, lane = lanes.place[by], lanes.lane[by]
        position = lanes.former[by] + np.arange(len(by)) - (np.cumsum(self._steps) - self._steps)[by]
        stream = lanes.back[lane]
        ahead = position - lanes.state["back_next"][lane]
        settled = -1 - (first_flying[stream] + position)
        new = ahead >= 0
        settled[new] = self.place_sent[self._frame_sent(stream[new], ahead[new])]
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
        in_flight = len(self.state.in_flight) + len(self.earlier.flying) + 1 + np.arange(len(self.sent))
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
        position = lanes.state["next"][lane] + ahead
        keys = lane << _POSITION_BITS | position
        rows = concatenated([earlier.rows[earlier.reported :], earlier.flying])
        row_keys = rows["stream"] << _POSITION_BITS | rows["position"]
        settled = len(earlier.rows) - earlier.reported
        queued = (
            (len(self.state.lingering), row_keys[:settled]),
            (self.queued, self.settled_stream << _POSITION_BITS | self.settled_position),
        )
        queue: dict[int, int] = {}
        for first, queued_keys in queued:
            found = np.flatnonzero(np.isin(queued_keys, keys))
            queue.update(zip(queued_keys[found].tolist(), (first + found).tolist(), strict=True))
        at_rows = np.flatnonzero(np.isin(row_keys, keys))
        known_rows = dict(zip(row_keys[at_rows].tolist(), rows[at_rows].tolist(), strict=True))
        created = {id(each): place for place, each in enumerate(self.state.lingering)} if (ahead < 0).any() else {}
        content = [*zip(*(each.tolist() for each in (frames.kind, frames.length, frames.match)), strict=True)]
        columns = keys, lanes.place[at], lane, ahead, position, lanes.outstanding[at] <= 0
        for key, frame, sender, steps, each, obsolete in zip(*(c.tolist() for c in columns), strict=True):
            place = queue.get(key)
            if steps >= 0:
                sent = int(self._frame_sent(sender, steps))
                known: tuple[Any, ...] = self.base + int(self.place_sent[sent]), content[sent], None
            else:
                known = self._known(sender, each, known_rows.get(key))
                place = created.get(id(known[2]), place)
            kind, length, match = content[frame]
            is_late = place is not None and place < self.reported and int(self.reported_at[place]) <= frame
            if known[1] != (kind - REPEATED, length, match) or is_late:
                return int(frame)
            self.repetitions.append(_Repetition(known[0], frame, known[2], obsolete))
        return len(frames)

    def _known(self, direction: int, position: int, row: tuple[int, ...] | None) -> tuple[Any, ...]:
        """Return number, content and object of a message from before the run, the latter if it was created.

        ``row`` is its row, unless it was reported or is an entry that was never a row. The content is None if it is
        reported, or no TINY or SMALL.
        """
        if row is None:
            entry = self.table.stream(direction).entries.get(position)
            if isinstance(entry, CapturedMessage) and entry.number in self.earlier.created:
                return 0, None, None
        elif row[0] not in self.earlier.created:
            return row[0], row[3:6], None
        else:
            entry = self.earlier.created[row[0]]
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
        rows, changes, state = self.table.rows, self.table.changes, self.state
        earlier = self.earlier.rows[self.earlier.reported :]
        others = ((earlier["stream"], earlier["position"]), (self.settled_stream, self.settled_position))
        objects = self._reported_objects()
        reported = np.concatenate([objects, *(np.stack(each, 1) for each in others)])[: self.reported].T
        self.foreign = {*np.flatnonzero(objects[:, 0] == UNKNOWN).tolist()}
        self.reports = np.bincount(reported[0, reported[0] != UNKNOWN], minlength=len(rows))
        held = rows["held"] - changes["forgotten"] + rows["next"] - rows["first"]
        excess = np.where(self.reports > 0, rows["reported"] + self.reports - state.kept_behind, 0)
        self.forgotten = np.maximum(excess, 0)
        unusual = np.flatnonzero((held + self.count_sent > ENTRIES) | ((self.reports > 0) & ~rows["in_turn"]))
        return all(self._forget(number, int(held[number]), reported) for number in unusual.tolist())

    def _reported_objects(self) -> _Integers:
        """Return direction and position of the created messages, up to the last that is reported; the direction is -1
        for those that are not in the table. Shape (n, 2)."""
        found = []
        for message in islice(self.state.lingering, self.reported):
            stream = message.flow.stream
            number = self.table.numbers.get(id(stream), UNKNOWN)
            is_entry = stream is not None and stream.entries.get(message.position) is message
            found.append((number if is_entry else UNKNOWN, message.position))
        return np.array(found, np.int64).reshape(-1, 2)

    def _forget(self, number: int, held: int, reported: _Integers) -> bool:
        """Forget the entries of a stream that may not report in turn, or may hold too many entries; return False if it
        cannot be done by columns.

        ``held`` is the number of its entries; ``reported`` are directions and positions of all reported messages.
        """
        row, stream, first = self.table.rows[number], self.table.stream(number), int(self.first_sent[number])
        sent_at = self.sent_by_lane[first : first + int(self.count_sent[number])]
        at = np.flatnonzero(reported[0] == number)
        # A stream that holds too many entries has lost the oldest when they are reported.
        lost = held - ENTRIES + np.searchsorted(sent_at, self.reported_at[at])
        excess = held + len(sent_at) - ENTRIES
        if row["in_turn"] and (row["reported"] + np.arange(len(at)) >= lost).all() and excess <= self.forgotten[number]:
            return True
        # Positions of all entries are needed.
        if self.table.is_used:
            return False
        found = forget_out_of_turn(stream, reported[1, at], lost, excess, self.state.kept_behind)
        if found is not None:
            self.out_of_turn[number], self.forgotten[number] = found
        return found is not None

    def finish(self, *, create_all: bool) -> None:
        """Set the state and ``earlier`` to those after the run; create all messages, or only those that need it."""
        state, frames, earlier = self.state, self.frames, self.earlier
        old, former = self.settled < 0, earlier.flying.take(-1 - self.settled[self.settled < 0])
        numbers = self.base + self.settled
        numbers[old] = former["number"]
        self._mark(numbers)
        rows = concatenated([earlier.rows, self._rows(numbers, former)])
        reported = earlier.reported + max(self.reported - len(state.lingering), 0)
        for place in range(min(self.reported, len(state.lingering))):
            state.report(state.lingering.popleft(), forget=place in self.foreign)
        self.lanes.count_frames()
        earlier.fly(self._flying())
        self._advance()
        self._repeat(rows)
        state.now_ns, state.place = int(frames.time_ns[-1]), int(frames.place[-1])
        state.message_count += len(self.sent)
        earlier.keep(rows, reported, keep_all=create_all)
        if create_all or self.out_of_turn:
            earlier.create(state)

    def _advance(self) -> None:
        """Advance the streams of all directions."""
        frames, rows, changes = self.frames, self.table.rows, self.table.changes
        self.table.is_used, self.table.out_of_turn = True, self.out_of_turn
        rows["next"] += self.count_sent
        rows["acked"] += self.advanced
        rows["reported"] += self.reports
        changed = self.reports > 0
        rows["reported"][changed] = np.minimum(rows["reported"], self.state.kept_behind)[changed]
        rows["in_turn"][[*self.out_of_turn]] = False
        changes["reports"] += self.reports
        changes["forgotten"] += self.forgotten
        # The last assignment wins: the latest ack.
        last = np.full(len(rows), UNKNOWN)
        last[self.settled_stream] = self.settled_at
        at = np.flatnonzero(last >= 0)
        last = last[at]
        rows["known"][at] = frames.ack[last]
        changes["ack_frame"][at], changes["ack_ns"][at] = frames.number[last], frames.time_ns[last]
        changes["ack_kind"][at] = frames.kind[last]

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
        if not self.repetitions:
            return
        state, frames = self.state, self.frames
        messages = {each.number: each.message for each in self.repetitions}
        rows = concatenated([rows, self.earlier.flying])
        absent = [number for number, message in messages.items() if message is None]
        for row in rows[np.isin(rows["number"], absent)].tolist() if absent else ():
            number, stream, *values = row[: len(FRAME_COLUMNS) + 3]
            flow = self.table.flows[stream]
            messages[number] = self.earlier.created[number] = create_plain(state, number, flow, *values)
        for number, frame, _, is_obsolete in self.repetitions:
            message = messages[number]
            assert message is not None
            time_ns, frame_number = int(frames.time_ns[frame]), int(frames.number[frame])
            flags = count_repeat(message, time_ns, frame_number, int(frames.ack[frame]))
            message.add_frame(frame_number, time_ns)
            if state.marks is not None:
                again = flags & RETRANSMISSION
                flags |= (OBSOLETE if again and is_obsolete else 0) | (NACKED if message.nack is not None else 0)
                repeat = message.transmissions - 1 if again else 0
                state.marks.mark(int(frames.place[frame]), number, DATA, flags, repeat)

    def _rows(self, numbers: _Integers, former: NDArray[Any]) -> NDArray[Any]:
        """Return the rows of the messages that are settled, with their ``numbers``; ``former`` were in flight."""
        frames, rows = self.frames, np.zeros(len(numbers), ROW)
        new = self.settled >= 0
        rows[~new] = former
        first, last = self.sent[self.settled[new]], self.settled_at
        for name, column in FRAME_COLUMNS.items():
            rows[name][new] = getattr(frames, column)[first]
        rows["number"] = numbers
        rows["settled_ns"], rows["ack_frame"], rows["ack_kind"] = (
            frames.time_ns[last], frames.number[last], frames.kind[last]
        )  # fmt: skip
        rows["stream"], rows["position"] = self.settled_stream, self.settled_position
        return rows

    def _flying(self) -> NDArray[Any]:
        """Return the rows of the messages that are in flight after the run."""
        frames, lanes, former = self.frames, self.lanes, np.ones(len(self.earlier.flying), np.bool_)
        former[-1 - self.settled[self.settled < 0]] = False
        unsettled = np.ones(len(self.sent), np.bool_)
        unsettled[self.settled[self.settled >= 0]] = False
        at = np.flatnonzero(lanes.sends)
        at = at[unsettled[self.place_sent[lanes.place[at]]]]
        lane, place = lanes.lane[at], lanes.place[at]
        rows = np.zeros(len(at), ROW)
        for name, column in FRAME_COLUMNS.items():
            rows[name] = getattr(frames, column)[place]
        rows["number"], rows["stream"] = self.base + self.place_sent[place], lane
        rows["position"] = lanes.state["next"][lane] + lanes.sent[at]
        return concatenated([self.earlier.flying.compress(former), rows])


class PlainTracker:
    """Tracker of runs of plain frames; with ``messages`` the messages are reported, too, or with ``rows`` as
    rows."""

    def __init__(self, state: FollowerState, *, messages: bool, rows: bool = False) -> None:
        self.state = state
        self._all = messages
        self._earlier = RunMessages()
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
        """Report all messages as rows, if they are taken, or create them."""
        if self._earlier.taken is not None:
            self._earlier.report_all()
            if not len(self._earlier.flying):
                return
        self.create_messages()

    @property
    def most_outstanding(self) -> int:
        """Highest number of unacknowledged messages of a direction during the runs that were not written."""
        return int(self._earlier.table.changes["most"].max(initial=0))

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
        cut = run.settle()
        if cut < count:
            return self._take(frames.part(0, cut))
        if not run.find_reports():
            if not lanes.table.is_used:
                return 0
            # Streams that do not report in turn need the positions of all their entries.
            self.create_messages()
            return self._take(frames.part(0, count))
        run.finish(create_all=self._all)
        return count

    def _lanes(self, frames: LaneFrames) -> PlainLanes | None:
        """Return the lanes of a window, with the frames until time goes back; None if there are too many."""
        backward = np.flatnonzero(np.diff(frames.time_ns) < 0)
        if len(backward):
            frames = frames.part(0, int(backward[0]) + 1)
        table, source, destination = self._earlier.table, frames.source, frames.destination
        lane = table.find(source, destination)
        missing = np.flatnonzero(lane == UNKNOWN)
        if len(missing):
            first = missing[np.unique(mixed(source[missing], destination[missing]), return_index=True)[1]]
            if len(first) * PER_LANE > len(frames):
                return None
            self._earlier.read(source[first], destination[first], self.state)
            lane = table.find(source, destination)
        self._lane_count = len(table)
        return None if (lane == UNKNOWN).any() else PlainLanes(frames, table, lane)
