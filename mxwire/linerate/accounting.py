"""Accounting of sequence numbers: received, lost, duplicate and reordered frames per stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

_WINDOW: Final = 1 << 18
"""Missing sequence numbers that are remembered, over all streams of a run."""
_SHORTEST_WINDOW: Final = 1 << 8


@dataclass
class StreamCounts:
    """Counters of one stream, or of all."""

    received: int = 0
    """Frames received, without duplicates."""
    lost: int = 0
    """Frames that are missing below the highest sequence number received."""
    duplicates: int = 0
    reordered: int = 0
    """Frames received after one with a higher sequence number (RFC 4737)."""
    depth: int = 0
    """Largest distance of a reordered frame from the highest sequence number received before it."""
    stale: int = 0
    """Frames too late to be recognised as reordered or duplicate; up to that many frames may be counted as lost."""

    def record(self) -> dict[str, int]:
        """The counters as an object for JSON."""
        return dict(vars(self))


class StreamAccount:
    """Accounts for the sequence numbers of the streams of one run.

    A generator numbers each stream from 0 and sends the streams in turn, so the frames of an undisturbed run are
    consecutive in the order ``sequence * streams + stream``. A batch that continues this order costs three array
    operations. Only a batch with a gap, a step back or a repetition is examined per stream, and only one with a step
    back or a repetition per frame.
    """

    def __init__(self, streams: int) -> None:
        self.streams = streams
        self._window = max(_WINDOW // streams, _SHORTEST_WINDOW)
        self._expected = np.zeros(streams, np.int64)
        """Next sequence number per stream, without the frames counted in ``_next`` since the last fold."""
        self._received = np.zeros(streams, np.int64)
        self._duplicates = np.zeros(streams, np.int64)
        self._reordered = np.zeros(streams, np.int64)
        self._depth = np.zeros(streams, np.int64)
        self._stale = np.zeros(streams, np.int64)
        self._missing: list[NDArray[np.int64] | None] = [None] * streams
        """Missing sequence numbers per stream, each at its remainder; None if no number is missing."""
        self._first = self._next = 0
        """Position in the common order of the next frame, and where it was at the last fold."""
        self._in_turn = True
        """True if the expected numbers are those of an undisturbed run up to ``_next``."""

    def add(self, stream: NDArray[np.int64], sequence: NDArray[np.int64]) -> None:
        """Account for frames in the order of their arrival; both arrays have shape (n,)."""
        count = len(sequence)
        if not count:
            return
        if self._in_turn:
            order = sequence if self.streams == 1 else sequence * self.streams + stream
            # Comparing the first and last number first avoids searching a batch that has a gap.
            if (
                order[0] == self._next
                and order[-1] == self._next + count - 1
                and (count < 3 or not np.count_nonzero(order[1:] - order[:-1] != 1))
            ):
                self._next += count
                return
            self._fold()
        self._disturbed(stream, sequence)
        self._resume()

    def _fold(self) -> None:
        """Count the frames received in turn since the last fold."""
        if self._next == self._first:
            return
        before, after = self._in_order(self._first), self._in_order(self._next)
        self._received += after - before
        self._expected = after
        self._first = self._next

    def _in_order(self, position: int) -> NDArray[np.int64]:
        """Next sequence number of each stream when the common order has reached ``position``."""
        return (position - np.arange(self.streams) + self.streams - 1) // self.streams

    def _resume(self) -> None:
        """Return to the common order, if the streams are at the same position in it."""
        position = int(self._expected.sum())
        self._in_turn = self.streams == 1 or bool((self._expected == self._in_order(position)).all())
        if self._in_turn:
            self._first = self._next = position

    def _disturbed(self, stream: NDArray[np.int64], sequence: NDArray[np.int64]) -> None:
        if self.streams == 1:
            self._one(0, sequence)
            return
        order = np.argsort(stream, kind="stable")
        streams, starts = np.unique(stream[order], return_index=True)
        for which, part in zip(streams.tolist(), np.split(sequence[order], starts[1:]), strict=True):
            self._one(which, part)

    def _one(self, which: int, sequence: NDArray[np.int64]) -> None:
        """Account for frames of one stream."""
        expected = int(self._expected[which])
        highest = np.maximum.accumulate(np.concatenate(([expected - 1], sequence)))
        before, ahead = highest[:-1], sequence > highest[:-1]
        if ahead.all():
            for place in np.flatnonzero(sequence - before > 1).tolist():
                self._skip(which, int(before[place]) + 1, int(sequence[place]))
            self._received[which] += len(sequence)
        else:
            for number, high in zip(sequence.tolist(), before.tolist(), strict=True):
                self._single(which, number, high)
        self._expected[which] = int(highest[-1]) + 1

    def _single(self, which: int, number: int, high: int) -> None:
        """Account for one frame; ``high`` is the highest number received before it."""
        if number > high:
            self._skip(which, high + 1, number)
            self._received[which] += 1
            return
        missing = self._missing[which]
        if missing is not None and missing[number % self._window] == number:
            missing[number % self._window] = -1
            self._received[which] += 1
            self._reordered[which] += 1
            self._depth[which] = max(int(self._depth[which]), high - number)
        elif high - number < self._window:
            self._duplicates[which] += 1
        else:
            self._stale[which] += 1

    def _skip(self, which: int, first: int, end: int) -> None:
        """Remember the numbers from ``first`` up to, not including, ``end`` as missing."""
        if first == end:
            return
        missing = self._missing[which]
        if missing is None:
            missing = self._missing[which] = np.full(self._window, -1, np.int64)
        numbers = np.arange(max(first, end - self._window), end)
        missing[numbers % self._window] = numbers

    def counts(self, which: int | None = None) -> StreamCounts:
        """Return the counters of one stream, or of all."""
        self._fold()
        part = slice(None) if which is None else slice(which, which + 1)
        received = int(self._received[part].sum())
        return StreamCounts(
            received=received,
            lost=int(self._expected[part].sum()) - received,
            duplicates=int(self._duplicates[part].sum()),
            reordered=int(self._reordered[part].sum()),
            depth=int(self._depth[part].max()),
            stale=int(self._stale[part].sum()),
        )
