"""The frames of two captures in one order, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.merging.clocks import Clock
from mxwire.analysis.merging.plan import Plan
from mxwire.frames import FrameBatch, concatenate


@dataclass(frozen=True)
class Merge:
    """The next frames of both captures, in order, with times of the first one's clock."""

    batch: FrameBatch
    """Numbers are those in the capture that a frame is from."""
    origin: NDArray[np.intp]
    """Shape (n,): 0 for frames of the first capture, 1 for the second."""


def merged(plan: Plan, first: Iterable[FrameBatch], second: Iterable[FrameBatch]) -> Iterator[Merge]:
    """Put two captures together as planned; they are read at the same time, and a batch of each is held.

    Both must give the frames that the plan was made of, in the same order.
    """
    one = _Stream(first, plan.keep[0], Clock(0, 0), 0)
    other = _Stream(second, plan.keep[1], plan.alignment.clock, 1)
    while one.load() and other.load():
        until = min(one.latest, other.latest)
        yield _ordered([one.take(until), other.take(until)])
    for rest in (one, other):
        while rest.load():
            yield _ordered([rest.take(rest.latest)])


_Taken = tuple[FrameBatch, NDArray[np.int64], int]


def _ordered(taken: list[_Taken]) -> Merge:
    keys = np.concatenate([key for _, key, _ in taken])
    origin = np.concatenate([np.full(len(key), origin, np.intp) for _, key, origin in taken])
    order = np.argsort(keys, kind="stable")
    return Merge(concatenate([batch for batch, _, _ in taken]).select(order), origin[order])


class _Stream:
    """One capture: the frames that are kept, with the times that they get."""

    def __init__(self, batches: Iterable[FrameBatch], keep: NDArray[np.bool_], clock: Clock, origin: int) -> None:
        self._batches = iter(batches)
        self._keep = keep
        self._clock = clock
        self._origin = origin
        self._place = 0
        self._batch: FrameBatch | None = None
        self._key = np.zeros(0, np.int64)
        self._last = np.iinfo(np.int64).min

    def load(self) -> bool:
        """Have a frame at hand; False where there are no more."""
        while self._batch is None or not len(self._batch):
            batch = next(self._batches, None)
            if batch is None:
                return False
            chosen = np.flatnonzero(self._keep[self._place : self._place + len(batch)])
            self._place += len(batch)
            # Times before 1970 cannot be written.
            times = np.maximum(self._clock.to_first(batch.timestamp_ns[chosen]), 0)
            self._batch = replace(batch.select(chosen), timestamp_ns=times)
            # A clock that was set back must not put frames before those that were written already.
            self._key = np.maximum.accumulate(np.maximum(times, self._last))
            self._last = int(self._key[-1]) if len(self._key) else self._last
        return True

    @property
    def latest(self) -> int:
        """Of the frames at hand."""
        return int(self._key[-1])

    def take(self, until: int) -> _Taken:
        """The frames at hand up to a time."""
        assert self._batch is not None
        count = int(np.searchsorted(self._key, until, side="right"))
        taken = self._batch.select(np.arange(count)), self._key[:count], self._origin
        self._batch = self._batch.select(np.arange(count, len(self._batch)))
        self._key = self._key[count:]
        return taken
