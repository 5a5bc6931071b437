"""State of the directions that runs of plain frames continue, as columns that stay between runs: steps 1 and 4 of
:mod:`mxwire.analysis.conversations.plain_run`."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations.message import FLYING, CapturedMessage, NumberedEntry
from mxwire.analysis.conversations.message import SETTLED as SETTLED_STATE
from mxwire.analysis.conversations.message_rows import KINDS, acknowledgement
from mxwire.analysis.conversations.partners import Conversation, Flow
from mxwire.analysis.conversations.rows import DirectionKey
from mxwire.analysis.conversations.state import FollowerState
from mxwire.analysis.conversations.streams import Stream, first_position, stream_at
from mxwire.structured import concatenated
from mxwire.wire.numbers import ABANDONED_NEXT, NO_SESSION, NUMBER_MASK, SESSION_NUMBER_MASK

UNKNOWN: Final = -1
"""``session`` of a direction without plain frames, and the number of no direction."""
_DIRECTION: Final = np.dtype(
    [
        ("back", "i8"), ("session", "i8"), ("regular", "?"), ("begins", "?"), ("in_turn", "?"), ("first", "i8"),
        ("bits", "i8"), ("held", "i8"), ("next", "i8"), ("acked", "i8"), ("known", "i8"), ("reported", "i8"),
    ]
)  # fmt: skip
"""The other direction; session of plain frames; whether its stream can be continued, is yet to begin, and reports its
entries in turn; position after its last message, and number of its entries, when it was read. What runs change: its
next position; position below which its messages are acknowledged, and the value of acks that change nothing; number of
entries whose messages are reported."""
_CHANGE: Final = np.dtype(
    [
        *((name, "i8") for name in ("forgotten", "reports", "ack_frame", "ack_ns", "ack_kind")), ("unseen", "?"),
        *((name, "i8") for name in ("frames", "bytes", "libacks", "message_bytes", "most", "last_ns", *KINDS)),
    ]
)  # fmt: skip
"""Changes since a direction was read: number of its oldest entries that are forgotten; of its messages that are
reported; its last ack, as the row of a settled message; whether it was acknowledged before its first message; and what
its flow counts."""
_MIXER: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
"""Odd factor, so that few pairs of addresses have the same sum."""
NO_FLOW: Final = Flow(Conversation(0, 0, 0), 0, 0, None)
"""Flow of directions that were not seen before."""
NO_FLOW.back = NO_FLOW
_Addresses = NDArray[np.uint64]
_Integers = NDArray[np.int64]


class DirectionTable:
    """Directions with a row each, until a frame is followed singly: then the objects that they were read from are
    written.

    The entries of a stream are those of the object, then the messages since, without the oldest.
    """

    def __init__(self) -> None:
        self.flows: list[Flow] = []
        """Flows; ``NO_FLOW`` for a direction that was not seen before."""
        self._streams: list[Stream | None] = []
        """Streams; None for one that has not begun."""
        self.numbers: dict[int, int] = {}
        """The directions of regular streams, by the identity of the stream."""
        self.rows = np.zeros(0, _DIRECTION)
        self.changes = np.zeros(0, _CHANGE)
        self.is_used = False
        """True if the objects are out of date."""
        self.out_of_turn: dict[int, list[int]] = {}
        """Positions of the reported entries of streams that do not report in turn, by direction."""
        self._ends = np.zeros((2, 0), np.uint64)
        self._keys = np.zeros(0, np.uint64)
        self._of_keys = np.zeros(0, np.intp)

    def __len__(self) -> int:
        """The number of directions."""
        return len(self.flows)

    @property
    def oldest(self) -> _Integers:
        """Position of the first message of each stream that came after it was read and is not forgotten."""
        lost: _Integers = self.changes["forgotten"] - self.rows["held"]
        return self.rows["first"] + np.maximum(lost, 0)

    def stream(self, number: int) -> Stream:
        """Return the stream of a direction, which begins with the number that the receiver requested if it is new."""
        found = self._streams[number]
        if found is None:
            start = self.flows[number].starts[-1]
            found = self._streams[number] = stream_at(start, start)
        return found

    def find(self, source: _Addresses, destination: _Addresses) -> NDArray[np.intp]:
        """Return the directions of frames; -1 if one is not in the table."""
        if not len(self):
            return np.full(len(source), UNKNOWN)
        place = np.searchsorted(self._keys, mixed(source, destination))
        place[place == len(self)] = 0
        found = self._of_keys[place]
        same = (self._ends[0, found] == source) & (self._ends[1, found] == destination)
        return np.where(same, found, UNKNOWN)

    def read(self, source: _Addresses, destination: _Addresses, state: FollowerState) -> list[CapturedMessage]:
        """Add directions and their reverse ones; return the messages in flight of their regular streams."""
        ends = dict.fromkeys(zip(source.tolist(), destination.tolist(), strict=True))
        ends |= dict.fromkeys(map(_reverse, ends))
        numbers = {each: number for number, each in enumerate(ends, len(self))}
        flying: list[CapturedMessage] = []
        rows = [self._row(each, numbers[_reverse(each)], state, flying) for each in ends]
        self.rows = concatenated([self.rows, np.array(rows, _DIRECTION)])
        self.changes = concatenated([self.changes, np.zeros(len(rows), _CHANGE)])
        self._ends = np.concatenate([self._ends, np.array([*ends], np.uint64).T], axis=1)
        keys = mixed(self._ends[0], self._ends[1])
        self._of_keys = np.argsort(keys)
        self._keys = keys[self._of_keys]
        return flying

    def _row(
        self, key: DirectionKey, back: int, state: FollowerState, flying: list[CapturedMessage]
    ) -> tuple[Any, ...]:
        """Add a direction; return its row. ``back`` is the number of the other direction."""
        direction = state.directions.get(key)
        flow = NO_FLOW if direction is None else direction.flow
        stream = flow.stream
        self.flows.append(flow)
        self._streams.append(stream)
        is_known = flow.session not in (None, NO_SESSION) and flow.frames and flow.back.frames
        session = flow.session if is_known else UNKNOWN
        if stream is None:
            start, known = flow.starts[-1] if flow.starts else None, flow.acked_unseen
            if start is None or known not in (None, start):
                return back, session, False, False, False, 0, 0, 0, 0, 0, UNKNOWN if known is None else known, 0
            first, bits = first_position(start), start & SESSION_NUMBER_MASK
            return back, session, _may_continue(first, bits, flow), True, True, first, bits, 0, first, first, UNKNOWN, 0
        entries, regular = stream.entries, _is_regular(stream, flow)
        if regular:
            self.numbers[id(stream)] = len(self) - 1
            unacknowledged = (entries[each] for each in range(stream.acked, stream.next))
            flying.extend(each for each in unacknowledged if isinstance(each, CapturedMessage))
        return (
            back, session, regular, False, stream.in_turn, stream.next, stream.bits, len(entries),
            stream.next, stream.acked, stream.ack_value, len(stream.reported),
        )  # fmt: skip

    def write(self, *, marked: bool) -> None:
        """Bring flows and streams up to date, but for messages that are not created; then the table may only be
        discarded."""
        rows, changes = self.rows, self.changes
        used = (changes["frames"] > 0) | (changes["frames"][rows["back"]] > 0) | (changes["reports"] > 0)
        at = np.flatnonzero(used)
        values = zip(at.tolist(), rows.take(at).tolist(), changes.take(at).tolist(), strict=True)
        for number, row, change in values if self.is_used else ():
            _, _, regular, begins, in_turn, first, _, _, next_, acked, known, _ = row
            forgotten, _, *ack, unseen, frames, octets, libacks, message_bytes, most, last_ns = change[: -len(KINDS)]
            flow = self.flows[number]
            flow.frames += frames
            flow.bytes += octets
            flow.libacks += libacks
            flow.message_bytes += message_bytes
            flow.most_outstanding = max(flow.most_outstanding, most)
            flow.conversation.last_ns = max(flow.conversation.last_ns, last_ns)
            for kind, count in zip(KINDS, change[-len(KINDS) :], strict=True):
                if count:
                    flow.messages[kind] += count
            if unseen:
                flow.acked_unseen = flow.starts[-1]
            if not regular or (begins and next_ == first):
                continue
            stream = self.stream(number)
            for position in [*islice(stream.entries, forgotten)] if forgotten else ():
                del stream.entries[position]
            stream.in_turn = in_turn
            if acked > stream.acked:
                stream.acked = stream.confirmed = acked
                stream.ack_value, stream.last_ack = known, acknowledgement(*ack)
            if next_ > first:
                if begins:
                    flow.stream, flow.restart = stream, False
                stream.seen += next_ - first
                stream.next = next_
                if marked:
                    stream.expected = next_

    def write_reported(self) -> None:
        """Set the reported entries of all streams, after all messages were created."""
        reporting = self.changes["reports"] > 0
        reporting[[*self.out_of_turn]] = True
        at = np.flatnonzero(reporting)
        for number, count in zip(at.tolist(), self.rows["reported"][at].tolist(), strict=True):
            stream = self.stream(number)
            in_turn = islice(stream.entries, count)
            stream.reported = deque(self.out_of_turn.get(number, in_turn))


def _reverse(key: DirectionKey) -> DirectionKey:
    source, destination = key
    return destination << 16 | (source & 0xFF) << 8 | source >> 8 & 0xFF, source >> 16


def _may_continue(first: int, bits: int, flow: Flow) -> bool:
    return first & NUMBER_MASK != ABANDONED_NEXT and bits | ABANDONED_NEXT not in flow.starts


def _is_regular(stream: Stream, flow: Flow) -> bool:
    """Return whether the positions of all entries ascend, and the unacknowledged ones are consecutive and plain."""
    return (
        stream.confirmed == stream.acked
        and not stream.forgotten
        and _may_continue(stream.first, stream.bits, flow)
        and (stream.in_turn or _ascends(stream))
        and all(_is_flying(stream.entries.get(each)) for each in range(stream.acked, stream.next))
    )


def _ascends(stream: Stream) -> bool:
    held = [*stream.entries]
    unacknowledged = bisect_left(held, stream.acked)
    if held != sorted(held) or held[unacknowledged:] != [*range(stream.acked, stream.next)]:
        return False
    entries, reported = [*stream.entries.values()][:unacknowledged], len(stream.reported)
    if any(isinstance(each, CapturedMessage) and each.state == FLYING for each in entries):
        return False
    stream.in_turn = held[:reported] == [*stream.reported] and all(map(_waits, entries[reported:]))
    return True


def _is_flying(entry: NumberedEntry | None) -> bool:
    """Return whether an entry is a plain message in flight."""
    return isinstance(entry, CapturedMessage) and entry.state == FLYING and entry.pull is None and entry.ack is None


def _waits(entry: NumberedEntry) -> bool:
    """Return whether an acknowledged message is reported in turn."""
    return isinstance(entry, CapturedMessage) and entry.state == SETTLED_STATE and not (entry.pull or entry.nack)


def mixed(source: _Addresses, destination: _Addresses) -> _Addresses:
    """Return a number per direction; few have the same."""
    return source + destination * _MIXER


def forget_out_of_turn(
    stream: Stream, positions: _Integers, lost: _Integers, excess: int, kept_behind: int
) -> tuple[list[int], int] | None:
    """Return the positions of reported entries, and the number of forgotten ones, after a run of a stream whose
    messages are reported in any order, or that holds too many entries.

    ``positions`` are those of the messages that are reported during the run, and ``lost`` the numbers of entries that
    were lost before; ``excess`` is that number at the end. Returns None if a message would be forgotten before an
    earlier one.
    """
    held, before = np.array([*stream.entries], np.int64), len(stream.reported)
    order = np.concatenate([np.array(stream.reported, np.int64), positions])
    known = np.isin(order, held) | (order >= stream.next)
    rank = np.where(known, np.searchsorted(held, order) + np.maximum(order - stream.next, 0), -1)
    kept = np.concatenate([np.arange(before), before + np.flatnonzero(rank[before:] >= lost)])
    end = int(rank[kept[:-kept_behind]].max(initial=-1)) + 1
    # A message that was pulled or nacked is not reported in turn.
    rank = rank[known]
    if not (np.diff(rank) > 0).all() or np.count_nonzero(rank < end) != end:
        return None
    return order[kept[-kept_behind:]].tolist(), max(end, excess)
