"""Streams that a run of plain frames advances, and the entries that they forget: step 4 of
:mod:`mxwire.analysis.conversations.plain_run`."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations.message import FLYING, CapturedMessage, NumberedEntry
from mxwire.analysis.conversations.message import SETTLED as SETTLED_STATE
from mxwire.analysis.conversations.partners import Flow
from mxwire.analysis.conversations.settled_messages import LATER
from mxwire.analysis.conversations.streams import ENTRIES, Stream
from mxwire.wire.numbers import ABANDONED_NEXT, NUMBER_MASK

_Integers = NDArray[np.int64]


@dataclass(slots=True, eq=False, repr=False)
class PlainStream:
    """A stream whose numbers advance, or of which messages are reported, in a run."""

    flow: Flow
    stream: Stream
    sent: int = 0
    """Number of messages in the run."""
    acked: int | None = None
    """Position below which the run acknowledges all messages; None if it acknowledges none."""
    old_places: Sequence[int] = ()
    old_positions: Sequence[int] = ()
    """Places in the queue, and positions, of messages sent before the run and reported during it."""
    new: int = 0
    """Number of messages that are settled in the run, and reported; they begin at ``stream.acked``."""
    forgotten: int = 0
    """Number of oldest entries removed during the run: first entries from before the run, then entries of the run."""
    kept: list[int] | None = None
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
        created = [each for each in entries if each is not LATER]
        if any(isinstance(each, CapturedMessage) and each.state == FLYING for each in created):
            return False
        waiting = (each for each in entries[reported:] if each is not LATER)
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
            entries.update(dict.fromkeys(range(first, stream.acked), LATER))
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
