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

1. Lanes. Each direction is a lane. Its state is read once per window, and the frames of all lanes are compared at once,
   sorted by conversation (:class:`~mxwire.rules.lanes.LaneOrder`), so that many hosts take little longer than two.
   Every condition on a frame depends on earlier frames only, and the run ends before the first frame that is not plain.
   A stream may begin in a run, with the number that the receiver requested. A frame that repeats a message which still
   waits (a duplicate or a retransmission) is plain, too: it changes only this message (:class:`_Repetition`).
2. Settlement. An ack settles all messages since the previous ack. The order of settlement is that in which messages
   wait for late duplicates.
3. Reports. The length of the queue of waiting messages after each frame follows from the times, and from its bound in
   steps of ``ROOM``.
4. Entries. A stream removes its oldest entries when ``kept_behind`` more were reported, or when it holds too many; it
   removes the larger of the two numbers. Lost messages leave gaps, so entries are counted, not positions. While all
   entries are reported in turn (``Stream.in_turn``), the numbers of reports are enough.
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations.frame_marks import ACK, DATA, NACKED, OBSOLETE, RETRANSMISSION
from mxwire.analysis.conversations.message import FLYING, Acknowledgement, CapturedMessage, Kind, NumberedEntry
from mxwire.analysis.conversations.message import REPORTED as REPORTED_STATE
from mxwire.analysis.conversations.message import SETTLED as SETTLED_STATE
from mxwire.analysis.conversations.message_rows import MessageGroup
from mxwire.analysis.conversations.numbered_packets import count_repeat
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
from mxwire.analysis.conversations.streams import ENTRIES, Stream, stream_at
from mxwire.rules.lanes import LaneOrder
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
PER_LANE_WIDE: Final = 32
"""Average number of frames per direction up to which windows grow."""
PER_LANE: Final = 2
"""Minimum average number of frames per direction, because each direction has a fixed cost."""
KINDS: Final[tuple[Kind, ...]] = "TINY", "SMALL"
LIBACK: Final = len(KINDS)
REPEATED: Final = LIBACK + 1
"""Added to the kind of a frame that repeats a message."""
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
_MIXER: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
"""Odd factor, so that few pairs of addresses have the same sum."""
_POSITION_BITS: Final = 44
"""Bits for a position in a key of stream and position."""
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
    """As in ``_LAYOUTS``, or ``REPEATED`` more."""
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


_LANE: Final = np.dtype(
    [
        ("session", "i8"), ("sends", "?"), ("next", "i8"), ("bits", "i8"), ("acked", "i8"),
        ("acks", "?"), ("known", "i8"), ("back_acked", "i8"), ("back_next", "i8"), ("back_bits", "i8"),
    ]
)  # fmt: skip
"""State of a lane before a run: session of plain frames; whether messages can be plain, and the stream that they
continue; whether acks can be, the value of acks that change nothing, and the stream that they advance."""
_UNKNOWN: Final = -1
"""``session`` of a lane without plain frames."""
_NO_STREAM: Final = False, 0, 0, 0


class _PlainLanes:
    """The directions in a window, and its frames sorted by conversation; arrays of frames have shape (n,).

    ``lane`` numbers the flow of each frame of the window.
    """

    def __init__(self, frames: _PlainFrames, flows: list[Flow | None], lane: NDArray[np.intp]) -> None:
        self.flows = flows
        self.begun: dict[int, tuple[Flow, Stream]] = {}
        """By the identity of their flows, the streams that may begin in the run."""
        self.state = state = np.array([self._row(each) for each in flows], _LANE)
        numbers = {id(each): number for number, each in enumerate(flows)}
        back = [_UNKNOWN if each is None else numbers.get(id(each.back), _UNKNOWN) for each in flows]
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
                self.frames = frames.part(0, len(frames))
                self.frames.kind = frames.kind.copy()
                self.frames.kind[order[repeats]] += REPEATED
                plain = self._examine(mine, ordered)
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
            return _UNKNOWN, *_NO_STREAM, False, 0, 0, 0, 0
        stream, other = flow.stream or self.stream(flow), flow.back.stream or self.stream(flow.back)
        if stream is None:
            sending: tuple[Any, ...] = _NO_STREAM
        else:
            sending = _may_be_regular(stream), stream.next, stream.bits, stream.acked
        if other is None:
            known = flow.back.acked_unseen
            return flow.session, *sending, False, _UNKNOWN if known is None else known, 0, 0, 0
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
        last, most = np.full(total, _UNKNOWN), np.zeros(total, np.int64)
        np.maximum.at(last, lane, order)
        np.maximum.at(most, lane[self.sends], self.outstanding[self.sends])
        used = np.flatnonzero(last >= 0)
        # The last frame of a conversation sets its time.
        used = used[np.argsort(last[used])]
        columns = counts[used], octets[used], message_octets[used], most[used], frames.time_ns[last[used]]
        rows = zip(self.of(used), *(each.tolist() for each in columns), strict=True)
        for (_, flow), by_kind, octet_count, message_octet_count, outstanding, time_ns in rows:
            flow.frames += sum(by_kind)
            flow.bytes += octet_count
            flow.libacks += by_kind[LIBACK]
            flow.message_bytes += message_octet_count
            for kind, count in zip(KINDS, by_kind, strict=False):
                if count:
                    flow.messages[kind] += count
            flow.most_outstanding = max(flow.most_outstanding, outstanding)
            flow.conversation.last_ns = time_ns


def _may_be_regular(stream: Stream) -> bool:
    """Return False for most irregular streams, without examining their entries."""
    known = stream.acked == stream.next or stream.acked in stream.entries
    return known and stream.confirmed == stream.acked and not stream.forgotten


def _first(at: NDArray[np.intp], different: NDArray[np.bool_], end: int) -> int:
    """Return the first place in ``at`` whose frame differs, or ``end``."""
    place = int(different.argmax()) if len(different) else 0
    return int(at[place]) if len(different) and different[place] else end


_NONE: Final = np.zeros(0, np.int64)


class _PlainStream:
    """A stream whose numbers advance, or of which messages are reported, in a run."""

    __slots__ = (
        "acked", "flow", "forgotten", "kept", "new", "old_places", "old_positions", "sent", "stream"
    )  # fmt: skip

    def __init__(self, flow: Flow, stream: Stream) -> None:
        self.flow = flow
        self.stream = stream
        self.sent = 0
        """Number of messages in the run."""
        self.acked: int | None = None
        """Position below which the run acknowledges all messages; None if it acknowledges none."""
        self.old_places: Sequence[int] = ()
        self.old_positions: Sequence[int] = ()
        """Places in the queue, and positions, of messages sent before the run and reported during it."""
        self.new = 0
        """Number of messages that are settled in the run, and reported; they begin at ``stream.acked``."""
        self.forgotten = 0
        """Number of oldest entries removed during the run: first entries from before the run, then entries of the
        run."""
        self.kept: list[int] | None = None
        """Positions of entries whose messages were reported, after the run; None if they do not change."""

    def is_regular(self) -> bool:
        """Return whether the positions of all entries ascend, and the unacknowledged ones are consecutive and plain."""
        stream, flow = self.stream, self.flow
        return (
            stream.first & NUMBER_MASK != ABANDONED_NEXT
            and stream.bits | ABANDONED_NEXT not in flow.starts
            and (stream.in_turn or self._ascends())
            and all(_is_flying(stream.entries.get(each)) for each in range(stream.acked, stream.next))
        )

    def _ascends(self) -> bool:
        stream = self.stream
        held = [*stream.entries]
        unacknowledged = bisect_left(held, stream.acked)
        if held != sorted(held) or held[unacknowledged:] != [*range(stream.acked, stream.next)]:
            return False
        entries, reported = [*stream.entries.values()][:unacknowledged], len(stream.reported)
        # Nearly all entries are acknowledged messages that were never created.
        created = [each for each in entries if each is not _LATER]
        if any(isinstance(each, CapturedMessage) and each.state == FLYING for each in created):
            return False
        waiting = (each for each in entries[reported:] if each is not _LATER)
        stream.in_turn = held[:reported] == [*stream.reported] and all(map(_waits, waiting))
        return True

    def flying(self, end: int) -> list[CapturedMessage]:
        """Return the unacknowledged messages from before the run up to position ``end`` (exclusive), if regular."""
        entries = (self.stream.entries[position] for position in range(self.stream.acked, end))
        return [each for each in entries if isinstance(each, CapturedMessage)]

    def forget(self, kept_behind: int) -> bool:
        """Set ``forgotten`` and ``kept`` as after the reports of the run; return False if they are not in turn.

        ``kept_behind`` is that of :class:`~mxwire.analysis.conversations.state.FollowerState`.
        """
        stream = self.stream
        if len(stream.entries) + self.sent > ENTRIES:
            return False
        count = len(self.old_positions) + self.new
        if count:
            first = stream.acked
            order = [*stream.reported, *self.old_positions, *range(first, first + self.new)]
            self.kept = order[-kept_behind:]
            self.forgotten = max(len(order) - kept_behind, 0)
        return stream.in_turn or not count

    def forget_out_of_turn(
        self, queue: _Integers, sent_at: NDArray[np.intp], reported_at: _Integers, kept_behind: int
    ) -> bool:
        """Set ``forgotten`` and ``kept`` for a stream whose messages are reported in any order, or that may hold too
        many entries.

        ``queue`` are the places in the queue of the messages that are settled in the run, and reported, and ``sent_at``
        the frames with its messages. Returns False, and the values are wrong, if a message would be forgotten before an
        earlier one.
        """
        stream = self.stream
        held, before = np.array([*stream.entries], np.int64), len(stream.reported)
        order = np.array([*stream.reported, *self.old_positions], np.int64)
        order = np.concatenate([order, stream.acked + np.arange(self.new)])
        queue = np.concatenate([np.array(self.old_places, np.int64), queue])
        known = np.isin(order, held) | (order >= stream.next)
        rank = np.where(known, np.searchsorted(held, order) + np.maximum(order - stream.next, 0), -1)
        # A stream that holds too many entries has lost the oldest when they are reported.
        lost = len(held) - ENTRIES + np.searchsorted(sent_at, reported_at[queue])
        kept = np.concatenate([np.arange(before), before + np.flatnonzero(rank[before:] >= lost)])
        self.kept = order[kept[-kept_behind:]].tolist()
        end = int(rank[kept[:-kept_behind]].max(initial=-1)) + 1
        self.forgotten = max(end, len(held) + self.sent - ENTRIES)
        # A message that was pulled or nacked is not reported in turn.
        rank = rank[known]
        return bool((np.diff(rank) > 0).all()) and np.count_nonzero(rank < end) == end

    def extend(self, *, marked: bool) -> None:
        """Add the messages of the run except those in flight, and forget the oldest entries."""
        stream, entries = self.stream, self.stream.entries
        stream.in_turn = stream.in_turn and len(entries) + self.sent <= ENTRIES
        if self.kept is not None:
            stream.reported = deque(self.kept)
        new = stream.next + max(self.forgotten - len(entries), 0)
        if self.forgotten:
            for position in [*islice(entries, self.forgotten)]:
                del entries[position]
        if self.acked is not None:
            first, stream.acked = max(stream.acked, next(iter(entries), new)), self.acked
            stream.confirmed = stream.acked
            entries.update(dict.fromkeys(range(first, stream.acked), _LATER))
        if self.sent:
            if self.flow.stream is None:
                self.flow.stream, self.flow.restart = stream, False
            stream.seen += self.sent
            stream.next += self.sent
            if marked:
                stream.expected = stream.next


def _is_flying(entry: NumberedEntry | None) -> bool:
    """Return whether an entry is a plain message in flight."""
    return isinstance(entry, CapturedMessage) and entry.state == FLYING and entry.pull is None and entry.ack is None


def _waits(entry: NumberedEntry) -> bool:
    """Return whether an acknowledged message is reported in turn."""
    return isinstance(entry, CapturedMessage) and entry.state == SETTLED_STATE and not (entry.pull or entry.nack)


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

    def report_all(self) -> None:
        """Report all rows at the end of the capture."""
        if self.taken is not None and len(self.rows) > self.reported:
            self.taken.append(self._group(self.rows[self.reported :]))
        self.clear()

    def _group(self, rows: NDArray[Any]) -> MessageGroup:
        """Return reported messages; those from before their run are objects, unless one frame describes them."""
        at = np.flatnonzero(np.isin(rows["number"], [*self.created]))
        plain, values, messages, others = [], [], [], []
        columns = ("number", "ack_frame", "settled_ns", "ack_kind")
        for place, number, ack_frame, time_ns, how in zip(
            at.tolist(), *(rows[name][at].tolist() for name in columns), strict=True
        ):
            message = self.created[number]
            if _is_one_frame(message):
                plain.append(place)
                values.append(_columns_of(message))
                continue
            message.ack = _acknowledgement(ack_frame, time_ns, how)
            note_missing(message)
            messages.append(message)
            others.append(place)
        if plain:
            for name, column in zip(_FRAME, zip(*values, strict=True), strict=True):
                rows[name][plain] = column
        return MessageGroup(np.delete(rows, others), [flow for flow, _ in self.streams], messages)

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


def _is_one_frame(message: CapturedMessage) -> bool:
    """Return whether a message that was just acknowledged consists of a single frame, seen once."""
    return (
        message.kind in KINDS
        and message.frame_count == message.transmissions == 1
        and not (message.duplicates or message.nacks or message.half_seen)
        and message.refused_ack is None
        and message.complete_ns == message.first_ns
    )


def _columns_of(message: CapturedMessage) -> tuple[int | None, ...]:
    """Return the columns of ``_FRAME`` of a message of a single frame."""
    kind, length, match = KINDS.index(message.kind), message.length, message.match
    return kind, length, match, message.first_ns, message.piggyack, message.run_first


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

    def __init__(self, state: FollowerState, earlier: _SettledMessages, lanes: _PlainLanes) -> None:
        self.state = state
        self.earlier = earlier
        self.frames = frames = lanes.frames
        self.lanes = lanes
        self.streams = [_PlainStream(*each) for each in earlier.streams]
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
        self.stream_sent, self.stream_acked = np.full(total, _UNKNOWN), np.full(total, _UNKNOWN)
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
            self.streams.append(_PlainStream(flow, stream))
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
        if entry is _LATER and row is not None:
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
        last = np.full(len(self.streams), _UNKNOWN)
        last[self.settled_stream] = self.settled_at
        advanced = np.flatnonzero(last >= 0)
        last = last[advanced]
        columns = advanced, frames.number[last], frames.time_ns[last], frames.kind[last], frames.ack[last]
        for stream, number, time_ns, kind, ack in zip(*(column.tolist() for column in columns), strict=True):
            found = self.streams[stream].stream
            found.last_ack, found.ack_value = _acknowledgement(number, time_ns, kind), ack
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
            number, stream, *values = row[: len(_FRAME) + 3]
            flow = streams[stream][0]
            messages[number] = self.earlier.created[number] = _create(state, number, flow, *values)
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
        for name, column in _FRAME.items():
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
            message = _create(state, number, each.flow, *values)
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
        self._earlier = _SettledMessages()
        if rows:
            self._earlier.taken = []
        self._window, self._skipped = MOST_EXAMINED, SKIPPED
        self._lane_count = 0
        """Number of directions in the latest window."""

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

    def _take(self, frames: _PlainFrames) -> int:
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

    def _lanes(self, frames: _PlainFrames) -> _PlainLanes | None:
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
        return _PlainLanes(frames, [None if each is None else each.flow for each in known], lane)
