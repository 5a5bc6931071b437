"""Frames, bytes and events per pair of hosts as one array, in bounded memory, for traffic without an end."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.units import SECOND
from mxwire.wire.decoder import DecodedBatch


class PairCounter(IntEnum):
    """The columns. The first host is the one with the lower address; the columns after ``FOLLOWED``, the number of
    frames whose messages were followed, count these frames only."""

    FRAMES_FORWARD = 0
    FRAMES_BACK = 1
    BYTES_FORWARD = 2
    BYTES_BACK = 3
    FOLLOWED = 4
    MESSAGES = 5
    MESSAGE_BYTES = 6
    FAILED = 7
    RETRANSMISSIONS = 8
    RE_REQUESTS = 9
    DUPLICATES = 10


OTHERS: Final = 0
"""The row shared by all pairs without a row of their own."""
IDLE_NS: Final = 10 * SECOND
"""Time without a frame after which a pair loses its row, if another pair needs it."""
_HOST_BITS: Final = 17
"""Maximum number of bits of a host's code (:class:`~mxwire.wire.codes.CodeTable`)."""

Pair = tuple[int, int]
"""The Ethernet addresses of two hosts, the lower one first."""


def pair_of(one: int, other: int) -> Pair:
    """Return the pair of two hosts."""
    return (one, other) if one <= other else (other, one)


class PairCounters:
    """Counters of at most ``most`` pairs of hosts, and of all others together.

    If there are more, pairs without frames for :data:`IDLE_NS` lose their rows, and their counters start again.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.values = np.zeros((1, len(PairCounter)), np.int64)
        """One row per pair and one column per counter; a row that is reused starts from 0."""
        self.first_ns = np.zeros(1, np.int64)
        self.last_ns = np.zeros(1, np.int64)
        """Time of the latest frame per row."""
        self.dialects = np.zeros(1, np.int16)
        """Index of the latest known dialect per row in :attr:`dialect_names`; 0 for none."""
        self.dialect_names: list[str | None] = [None]
        self.rows: dict[Pair, int] = {}
        self._free: list[int] = []
        self._by_codes: dict[int, int] = {}
        self._table: object = None
        self._swept_ns = -IDLE_NS

    def rows_of(self, decoded: DecodedBatch) -> NDArray[np.intp]:
        """Return the row of each frame of a batch that is not empty, shape (n,); new pairs get rows."""
        if decoded.hosts is not self._table:
            self._table = decoded.hosts
            self._by_codes.clear()
        batch, assignment = decoded.batch, decoded.assignment
        source, destination = assignment.source, assignment.destination
        keys = np.minimum(source, destination) << _HOST_BITS | np.maximum(source, destination)
        # Most batches of a busy link have one pair: sorting them would take longer than counting them.
        if (keys == keys[0]).all():
            distinct, which = keys[:1], np.zeros(len(keys), np.intp)
        else:
            distinct, which = np.unique(keys, return_inverse=True)
        now = int(batch.timestamp_ns[-1])
        found = np.array([self._row(key, now, decoded.hosts.keys) for key in distinct.tolist()], np.intp)
        self.last_ns[found] = now
        rows: NDArray[np.intp] = found[which]
        decided = assignment.decided
        if decided.any():
            index = np.array([self._dialect(each.name) for each in assignment.dialects], np.int16)
            self.dialects[rows[decided]] = index[assignment.which[decided]]
        return rows

    def count(self, decoded: DecodedBatch, rows: NDArray[np.intp]) -> None:
        """Count frames and bytes of a batch, with the row of each frame."""
        located, size = decoded.located, len(self.values)
        forward = located.source <= located.destination
        for place, mask in enumerate((forward, ~forward)):
            chosen = rows[mask]
            self.values[:, place] += np.bincount(chosen, minlength=size)
            octets = np.bincount(chosen, located.wire_length[mask], size)
            self.values[:, PairCounter.BYTES_FORWARD + place] += octets.astype(np.int64)

    def add(self, counter: PairCounter, rows: NDArray[np.intp]) -> None:
        """Add 1 to a counter for each of ``rows``, which may repeat."""
        if len(rows):
            counts = np.bincount(rows, minlength=len(self.values))
            self.values[:, counter] += counts

    def row(self, one: int, other: int) -> int:
        """Return the row of two hosts, given by their addresses."""
        return self.rows.get(pair_of(one, other), OTHERS)

    def _dialect(self, name: str) -> int:
        if name not in self.dialect_names:
            self.dialect_names.append(name)
        return self.dialect_names.index(name)

    def _row(self, codes: int, now_ns: int, keys: list[int]) -> int:
        row = self._by_codes.get(codes)
        if row is None:
            pair = pair_of(keys[codes >> _HOST_BITS], keys[codes & (1 << _HOST_BITS) - 1])
            row = self.rows.get(pair)
            if row is None:
                row = self._new(pair, now_ns)
            # A pair without a row may get one later, when another pair is idle.
            if row != OTHERS:
                self._by_codes[codes] = row
        return row

    def _new(self, pair: Pair, now_ns: int) -> int:
        if not self._free and len(self.rows) >= self.most:
            self._sweep(now_ns)
        if self._free:
            row = self._free.pop()
        elif len(self.rows) < self.most:
            row = len(self.rows) + 1
            if row >= len(self.values):
                self._grow()
        else:
            return OTHERS
        self.rows[pair] = row
        self.first_ns[row] = now_ns
        return row

    def _grow(self) -> None:
        # 64 rows at first, since most networks have fewer pairs.
        size = min(2 * len(self.values) + 62, self.most + 1)
        self.values = np.concatenate([self.values, np.zeros((size - len(self.values), len(PairCounter)), np.int64)])
        for name in ("first_ns", "last_ns", "dialects"):
            former = getattr(self, name)
            setattr(self, name, np.concatenate([former, np.zeros(size - len(former), former.dtype)]))

    def _sweep(self, now_ns: int) -> None:
        """Free the rows of idle pairs; at most once per second, since it visits all rows."""
        if now_ns - self._swept_ns < SECOND:
            return
        self._swept_ns = now_ns
        idle = self.last_ns < now_ns - IDLE_NS
        freed = [pair for pair, row in self.rows.items() if idle[row]]
        if not freed:
            return
        for pair in freed:
            row = self.rows.pop(pair)
            self.values[row] = self.dialects[row] = 0
            self._free.append(row)
        self._by_codes.clear()


class RateWindow:
    """Counters of the last seconds: the difference of :class:`PairCounters` to a copy of them from before.

    A row that has been reused since then counts from 0.
    """

    def __init__(self, window_ns: int) -> None:
        self._window_ns = window_ns
        self._copies: list[tuple[int, NDArray[np.int64], NDArray[np.int64]]] = []

    def begin(self, first_ns: int) -> None:
        """Begin with counters of 0 at the time ``first_ns``."""
        self._copies = [(first_ns, np.zeros((0, len(PairCounter)), np.int64), np.zeros(0, np.int64))]

    def difference(self, counters: PairCounters, now_ns: int) -> tuple[NDArray[np.int64], float]:
        """Return the counters since about the beginning of the window, and the seconds since then.

        Keeps a copy for later calls. Times are those of the frames, in nanoseconds. Requires :meth:`begin`.
        """
        copies = self._copies
        while len(copies) > 1 and copies[1][0] <= now_ns - self._window_ns:
            copies.pop(0)
        began, before, first = copies[0]
        since = counters.values.copy()
        same = np.flatnonzero(counters.first_ns[: len(first)] == first)
        since[same] -= before[same]
        if now_ns > copies[-1][0]:
            copies.append((now_ns, counters.values.copy(), counters.first_ns.copy()))
        return since, max(0, now_ns - began) / SECOND
