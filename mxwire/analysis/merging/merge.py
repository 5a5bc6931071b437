"""The merge of two captures: the plan, and the frames of both in one order, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.merging.clocks import Alignment, CaptureSide, Clock
from mxwire.analysis.merging.matching import COPY_NS, Fingerprints, Places, matched
from mxwire.frames import FrameBatch, concatenate


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """Counts of one capture. All except ``frames`` count frames that only this capture has."""

    frames: int
    only: int
    """All frames of the capture."""
    outside: int
    """Frames captured before the other capture began, or after it ended."""
    duplicates: int
    """Duplicates of frames that both have."""
    sent: int
    """Frames sent at this end that did not arrive at the other, or were not captured there."""
    arrived: int
    """Frames that arrived at this end, and that the capture at the other end, their sender's, lost."""

    @property
    def unknown(self) -> int:
        """Frames that are known to come from neither end."""
        return self.only - self.outside - self.duplicates - self.sent - self.arrived


@dataclass(frozen=True, slots=True)
class Delay:
    """One-way delays of frames, in nanoseconds, by the compared clocks."""

    frames: int
    least_ns: float
    median_ns: float


@dataclass(frozen=True)
class MergePlan:
    """Common frames of two captures, and the frames of each capture that are written."""

    alignment: Alignment
    both: int
    """Frames that both have."""
    first: MergeCounts
    second: MergeCounts
    delays: dict[CaptureSide, Delay]
    """One-way delays by the end that sent the frames; an end that sent none is absent."""
    keep: tuple[NDArray[np.bool_], NDArray[np.bool_]]
    """Per capture, True for the frames that are written; shapes (frames of the capture,)."""


def plan(first: Fingerprints, second: Fingerprints, *, keep_both: bool = False) -> MergePlan:
    """Match the frames of two captures and choose those to write: of each pair, the one captured at its sender.

    Thus each frame has its time of transmission, if known. With ``keep_both`` all are written. Raises
    :class:`~mxwire.analysis.merging.MergeError` if the captures do not match.
    """
    alignment, one, other = matched(first, second)
    first_ns, second_ns = first.time_ns, alignment.clock.to_first(second.time_ns)
    keep = np.ones(len(first), np.bool_), np.ones(len(second), np.bool_)
    if not keep_both:
        at_second = _from(first.source[one], alignment, "second")
        keep[0][one[at_second]] = False
        keep[1][other[~at_second]] = False
    took = second_ns[other] - first_ns[one]
    return MergePlan(
        alignment,
        len(one),
        _counts(first, one, first_ns, second_ns, alignment, "first"),
        _counts(second, other, second_ns, first_ns, alignment, "second"),
        _delays(first.source[one], took, alignment),
        keep,
    )


def _from(source: NDArray[np.int64], alignment: Alignment, side: CaptureSide) -> NDArray[np.bool_]:
    return np.isin(source, [each for each, where in alignment.sides.items() if where == side])


def _counts(
    capture: Fingerprints,
    pairs: Places,
    time_ns: NDArray[np.int64],
    other_ns: NDArray[np.int64],
    alignment: Alignment,
    side: CaptureSide,
) -> MergeCounts:
    alone = np.ones(len(capture), np.bool_)
    alone[pairs] = False
    places = np.flatnonzero(alone)
    begun, ended = int(other_ns.min()), int(other_ns.max())
    outside = (time_ns[places] < begun) | (time_ns[places] > ended)
    places = places[~outside]
    duplicates = _duplicates(capture, pairs, places)
    places = places[~duplicates]
    here = _from(capture.source[places], alignment, side)
    there = _from(capture.source[places], alignment, "second" if side == "first" else "first")
    return MergeCounts(
        len(capture), int(alone.sum()), int(outside.sum()), int(duplicates.sum()), int(here.sum()), int(there.sum())
    )


def _duplicates(capture: Fingerprints, pairs: Places, places: Places) -> NDArray[np.bool_]:
    """Return, per frame at ``places``, whether it equals one of ``pairs`` of about the same time."""
    keys = capture.keys(capture.cut)
    alike = np.isin(keys[places], keys[pairs])
    times: dict[int, list[int]] = {}
    wanted = np.isin(keys[pairs], keys[places[alike]])
    for place in pairs[wanted].tolist():
        times.setdefault(int(keys[place]), []).append(int(capture.time_ns[place]))
    duplicates = np.zeros(len(places), np.bool_)
    for number in np.flatnonzero(alike).tolist():
        place = places[number]
        known = times[int(keys[place])]
        duplicates[number] = min(abs(each - int(capture.time_ns[place])) for each in known) <= COPY_NS
    return duplicates


def _delays(source: NDArray[np.int64], took: NDArray[np.int64], alignment: Alignment) -> dict[CaptureSide, Delay]:
    delays: dict[CaptureSide, Delay] = {}
    sides: tuple[tuple[CaptureSide, int], ...] = (("first", 1), ("second", -1))
    for side, sign in sides:
        chosen = took[_from(source, alignment, side)] * sign
        if len(chosen):
            delays[side] = Delay(len(chosen), float(chosen.min()), float(np.median(chosen)))
    return delays


@dataclass(frozen=True)
class MergedBatch:
    """The next frames of both captures, in order, with times of the first one's clock."""

    batch: FrameBatch
    """The frames; each number is that of the frame in its own capture."""
    origin: NDArray[np.intp]
    """Shape (n,): 0 for frames of the first capture, 1 for the second."""


def merged(plan: MergePlan, first: Iterable[FrameBatch], second: Iterable[FrameBatch]) -> Iterator[MergedBatch]:
    """Merge two captures as planned; they are read in parallel, one batch of each at a time.

    Both must yield the frames from which the plan was made, in the same order.
    """
    one = _FrameStream(first, plan.keep[0], Clock(0, 0), 0)
    other = _FrameStream(second, plan.keep[1], plan.alignment.clock, 1)
    while one.load() and other.load():
        until = min(one.latest, other.latest)
        yield _ordered([one.take(until), other.take(until)])
    for rest in (one, other):
        while rest.load():
            yield _ordered([rest.take(rest.latest)])


_Taken = tuple[FrameBatch, NDArray[np.int64], int]


def _ordered(taken: list[_Taken]) -> MergedBatch:
    keys = np.concatenate([key for _, key, _ in taken])
    origin = np.concatenate([np.full(len(key), origin, np.intp) for _, key, origin in taken])
    order = np.argsort(keys, kind="stable")
    return MergedBatch(concatenate([batch for batch, _, _ in taken]).select(order), origin[order])


class _FrameStream:
    """The frames of one capture that are kept, with their converted times."""

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
        """Load the next frames; return False at the end of the capture."""
        while self._batch is None or not len(self._batch):
            batch = next(self._batches, None)
            if batch is None:
                return False
            chosen = np.flatnonzero(self._keep[self._place : self._place + len(batch)])
            self._place += len(batch)
            # Times before 1970 cannot be written.
            times = np.maximum(self._clock.to_first(batch.timestamp_ns[chosen]), 0)
            self._batch = replace(batch.select(chosen), timestamp_ns=times)
            # If a clock was set back, frames must still not be sorted before frames already written.
            self._key = np.maximum.accumulate(np.maximum(times, self._last))
            self._last = int(self._key[-1]) if len(self._key) else self._last
        return True

    @property
    def latest(self) -> int:
        """The latest time of the loaded frames."""
        return int(self._key[-1])

    def take(self, until: int) -> _Taken:
        """Return the loaded frames up to the time ``until``."""
        assert self._batch is not None
        count = int(np.searchsorted(self._key, until, side="right"))
        taken = self._batch.select(np.arange(count)), self._key[:count], self._origin
        self._batch = self._batch.select(np.arange(count, len(self._batch)))
        self._key = self._key[count:]
        return taken
