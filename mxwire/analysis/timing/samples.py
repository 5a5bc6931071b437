"""Samples of durations in bounded memory, and their statistics; a histogram of gaps between frames.

Samples of many captures are merged as sketches: numbers of durations by their value, rounded. Unlike random samples,
sketches have the same sum in whatever order they are added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mxwire.analysis.first_keys import FirstKeys

KEPT: Final = 20_000
"""Maximum number of durations kept per kind; of more, each is kept with equal probability (reservoir sampling)."""
RESAMPLES: Final = 10_000
CONFIDENCE: Final = 0.95
FEWEST: Final = 6
"""Minimum number of samples whose range encloses the median with that confidence: five give only 1 - 2 / 2^5."""
FEWEST_P90: Final = 10
FEWEST_P99: Final = 100
"""Minimum numbers of samples for p10 and p90, and for p99: with fewer, they would be the extremes."""
SKETCH_BITS: Final = 11
"""Significant bits of the durations in a sketch, whose percentiles are thus exact to 1 part in 2,048."""


@dataclass(frozen=True, slots=True)
class DurationEstimate:
    """Statistics of durations, in nanoseconds."""

    count: int
    least: float
    p10: float | None
    """None if there are too few samples, as are ``p90`` and ``p99``."""
    median: float
    median_low: float | None
    """Lower bound of the 95% confidence interval of the median; None if there are too few samples."""
    median_high: float | None
    mean: float
    p90: float | None
    p99: float | None
    most: float


class Samples:
    """Durations in nanoseconds; statistics are reproducible for the same ``seed``."""

    def __init__(self, seed: int, kept: int = KEPT) -> None:
        self._random: np.random.Generator | None = None
        self._seed = seed
        self._limit = kept
        self._kept: list[int] = []
        self._rounded: Counter[int] | None = None
        """All durations, rounded; None while all are kept."""
        self.count = 0
        self._sum = 0
        self._least = self._most = 0

    def add(self, duration_ns: int) -> None:
        """Add a duration."""
        self.extend(np.array([duration_ns], np.int64))

    def extend(self, durations_ns: NDArray[np.int64]) -> None:
        """Add durations, shape (n,); the result is the same if they are added in several parts."""
        added = durations_ns.tolist()
        if not added:
            return
        least, most = min(added), max(added)
        self._least = min(self._least, least) if self.count else least
        self._most = max(self._most, most) if self.count else most
        room = max(self._limit - len(self._kept), 0)
        before = self.count + room
        self.count += len(added)
        self._sum += sum(added)
        self._kept += added[:room]
        if len(added) > room:
            self._sample(durations_ns[room:], before)

    def _sample(self, durations_ns: NDArray[np.int64], before: int) -> None:
        """Let each of ``durations_ns``, after ``before`` others, replace a kept one by chance, and note all rounded."""
        if self._rounded is None:
            self._rounded = _rounded(self._kept)
        self._rounded.update(_rounded(durations_ns))
        if self._random is None:
            self._random = np.random.default_rng(self._seed)
        counts = before + 1 + np.arange(len(durations_ns))
        # The n-th duration replaces a kept one with a probability of limit / n, so that all have the same chance.
        places = (self._random.random(len(counts)) * counts).astype(np.int64)
        for at in np.flatnonzero(places < self._limit).tolist():
            self._kept[places[at]] = int(durations_ns[at])

    def merge(self, other: Samples) -> None:
        """Add the samples of ``other``; beyond its limit, only those that it kept are added."""
        if not other.count:
            return
        if self._rounded is not None or other._rounded is not None:
            self._rounded = self.rounded() + other.rounded()
        self._least = min(self._least, other._least) if self.count else other._least
        self._most = max(self._most, other._most) if self.count else other._most
        self.count += other.count
        self._sum += other._sum
        self._kept += other._kept

    def estimate(self) -> DurationEstimate | None:
        """Return the statistics of all samples; None if there are none."""
        if not self.count:
            return None
        ordered = np.sort(np.array(self._kept, np.float64))
        interval = _median_interval(len(ordered), self._seed)
        return _estimate(
            self.count,
            (self._least, self._sum / self.count, self._most),
            np.percentile(ordered, _PERCENTILES).tolist(),
            None if interval is None else ordered[list(interval)].tolist(),
        )

    def rounded(self) -> Counter[int]:
        """Return the number of durations by their value, rounded down to :data:`SKETCH_BITS` significant bits."""
        return _rounded(self._kept) if self._rounded is None else self._rounded

    def sketch(self) -> DurationSketch:
        """Return the samples for merging with those of other captures."""
        return DurationSketch(self.count, self._sum, self._least, self._most, self._seed, self.rounded())


_PERCENTILES: Final = (10, 50, 90, 99)


def _rounded(durations_ns: ArrayLike) -> Counter[int]:
    """Return the number of durations by their value, rounded down to :data:`SKETCH_BITS` significant bits."""
    durations = np.asarray(durations_ns, np.int64)
    # Without the bits that are never rounded away, all values are exact as floating point numbers.
    length = np.frexp(np.abs(durations) >> (SKETCH_BITS - 1))[1]
    shift = np.maximum(length - 1, 0)
    values, counts = np.unique(durations >> shift << shift, return_counts=True)
    return Counter(dict(zip(values.tolist(), counts.tolist(), strict=True)))


def _estimate(
    count: int, whole: tuple[int, float, int], percentiles: list[float], interval: list[float] | None
) -> DurationEstimate:
    """Return the statistics of ``count`` durations, omitting statistics for which there are too few.

    ``whole``: least, mean and most; ``percentiles``: those of :data:`_PERCENTILES`; ``interval``: that of the
    median.
    """
    p10, median, p90, p99 = percentiles
    low, high = (None, None) if interval is None else interval
    few, fewer = count < FEWEST_P99, count < FEWEST_P90
    return DurationEstimate(
        count,
        whole[0],
        None if fewer else p10,
        median,
        low,
        high,
        whole[1],
        None if fewer else p90,
        None if few else p99,
        whole[2],
    )


@lru_cache
def _median_interval(count: int, seed: int) -> tuple[int, int] | None:
    """Return the places of the percentile bootstrap interval of the median among ``count`` ordered values.

    The median of n draws with replacement from n ordered values is the value at place floor(n U), where U is the middle
    of n uniform numbers and thus has a beta distribution: no draws need be made one by one. The places are the same for
    all pairs of hosts with the same number of values, and thus remembered.
    """
    if count < FEWEST:
        return None
    middle = (count + 1) // 2
    draws = np.random.default_rng(seed).beta(middle, count - middle + 1, RESAMPLES)
    places = np.sort(np.minimum((draws * count).astype(np.int64), count - 1))
    tail = (1 - CONFIDENCE) / 2
    return int(places[int(tail * RESAMPLES)]), int(places[int((1 - tail) * RESAMPLES)])


@dataclass(slots=True)
class DurationSketch:
    """Durations of several captures, in nanoseconds, of which only the rounded values are known."""

    count: int = 0
    sum: int = 0
    least: int = 0
    most: int = 0
    seed: int = 0
    """Seed of the bootstrap."""
    rounded: Mapping[int, int] = field(default_factory=Counter)
    """Numbers of durations by their value, rounded down to :data:`SKETCH_BITS` significant bits."""

    def values(self) -> dict[str, Any]:
        """Return the sketch as values of JSON."""
        rounded = sorted(self.rounded.items())
        return {
            "count": self.count,
            "sum": self.sum,
            "least": self.least,
            "most": self.most,
            "seed": self.seed,
            "rounded": [value for value, _ in rounded],
            "counts": [count for _, count in rounded],
        }

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> DurationSketch:
        """Return the sketch with such :meth:`values`."""
        rounded = dict(zip(values["rounded"], values["counts"], strict=True))
        return cls(values["count"], values["sum"], values["least"], values["most"], values["seed"], Counter(rounded))

    def __add__(self, other: DurationSketch) -> DurationSketch:
        """Return a sketch of the durations of both sketches."""
        if not self.count or not other.count:
            return self if self.count else other
        return DurationSketch(
            self.count + other.count,
            self.sum + other.sum,
            min(self.least, other.least),
            max(self.most, other.most),
            self.seed,
            Counter(self.rounded) + Counter(other.rounded),
        )

    def estimate(self) -> DurationEstimate | None:
        """Return the statistics of all durations; None if there are none."""
        if not self.count:
            return None
        values = sorted(self.rounded)
        ends = np.cumsum([self.rounded[each] for each in values])
        middles = [each + ((1 << max(each.bit_length() - SKETCH_BITS, 0)) >> 1) for each in values]
        known = np.clip(np.array(middles, np.float64), self.least, self.most)

        def at(places: NDArray[np.int64]) -> NDArray[np.float64]:
            return np.asarray(known[np.searchsorted(ends, places, side="right")])

        places = np.array(_PERCENTILES) / 100 * (self.count - 1)
        below = np.floor(places).astype(np.int64)
        low, high = at(below), at(np.minimum(below + 1, self.count - 1))
        interval = _median_interval(self.count, self.seed)
        return _estimate(
            self.count,
            (self.least, self.sum / self.count, self.most),
            (low + (high - low) * (places - below)).tolist(),
            None if interval is None else at(np.array(interval)).tolist(),
        )


A_DECADE: Final = 20
"""Number of histogram steps per power of ten."""
LEAST_NS: Final = 100
DECADES: Final = 9
"""Powers of ten, from 100 ns to 100 s; shorter and longer gaps count in the first and the last step."""
SENDERS: Final = 1024
"""Maximum number of senders whose last frame is remembered."""


class GapHistogram:
    """Counter of gaps by size, on a logarithmic scale."""

    def __init__(self) -> None:
        self.counts = np.zeros(DECADES * A_DECADE, np.int64)
        self.total = 0
        self._last: FirstKeys[int, int] = FirstKeys(SENDERS)

    @property
    def edges_ns(self) -> NDArray[np.float64]:
        """Return the bounds of the steps in nanoseconds, one more than there are steps."""
        return np.asarray(LEAST_NS * 10.0 ** (np.arange(len(self.counts) + 1) / A_DECADE))

    def observe(self, source: NDArray[np.intp], time_ns: NDArray[np.int64]) -> None:
        """Add the frames of a batch: codes of their senders, and times, both of shape (n,)."""
        order = np.argsort(source, kind="stable")
        times = time_ns[order]
        begins = np.flatnonzero(np.diff(source[order], prepend=-1))
        gaps = np.diff(times, prepend=0)
        known = np.ones(len(gaps), np.bool_)
        lasts = times[np.append(begins[1:], len(times)) - 1].tolist()
        for sender, begin, last in zip(source[order[begins]].tolist(), begins.tolist(), lasts, strict=True):
            before = self._last.get(sender)
            if before is None:
                known[begin] = False
            else:
                gaps[begin] = times[begin] - before
            self._last[sender] = last
        gaps = np.clip(gaps[known], 1, None)
        step = (np.log10(gaps / LEAST_NS) * A_DECADE).astype(np.int64)
        self.counts += np.bincount(np.clip(step, 0, len(self.counts) - 1), minlength=len(self.counts))
        self.total += len(gaps)

    def merge(self, counts: NDArray[np.int64]) -> None:
        """Add the counts of another histogram."""
        self.counts += counts
        self.total += int(counts.sum())

    def percentile(self, share: float) -> float:
        """Return the percentile of gaps for ``share`` (0 to 1), in nanoseconds, to the precision of the steps."""
        if not self.total:
            return 0.0
        place = int(np.searchsorted(np.cumsum(self.counts), share * self.total))
        return float(self.edges_ns[min(place, len(self.counts) - 1) + 1])
