"""Samples of durations in bounded memory, and their statistics; a histogram of gaps between frames."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

KEPT: Final = 20_000
"""Maximum number of durations kept per kind; of more, each is kept with equal probability (reservoir sampling)."""
RESAMPLES: Final = 10_000
CONFIDENCE: Final = 0.95
FEWEST: Final = 6
"""Minimum number of samples whose range encloses the median with that confidence: five give only 1 - 2 / 2^5."""
FEWEST_P90: Final = 10
FEWEST_P99: Final = 100
"""Minimum numbers of samples for p10 and p90, and for p99: with fewer, they would be the extremes."""


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
        self._random = Random(seed)
        self._seed = seed
        self._limit = kept
        self._kept: list[int] = []
        self.count = 0
        self._sum = 0
        self._least = self._most = 0

    def add(self, duration_ns: int) -> None:
        """Add a duration."""
        self.count += 1
        self._sum += duration_ns
        if self.count == 1:
            self._least = self._most = duration_ns
        elif duration_ns < self._least:
            self._least = duration_ns
        elif duration_ns > self._most:
            self._most = duration_ns
        if len(self._kept) < self._limit:
            self._kept.append(duration_ns)
        else:
            place = self._random.randrange(self.count)
            if place < self._limit:
                self._kept[place] = duration_ns

    def merge(self, other: Samples) -> None:
        """Add the samples of ``other``, of more than its limit those that it kept."""
        if not other.count:
            return
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
        p10, median, p90, p99 = np.percentile(ordered, (10, 50, 90, 99)).tolist()
        low, high = self._median_interval(ordered.tolist())
        if self.count < FEWEST_P90:
            p10 = p90 = None
        if self.count < FEWEST_P99:
            p99 = None
        return DurationEstimate(
            self.count, self._least, p10, median, low, high, self._sum / self.count, p90, p99, self._most
        )

    def _median_interval(self, ordered: list[float]) -> tuple[float | None, float | None]:
        """Return the percentile bootstrap interval of the median.

        The median of n draws with replacement from n ordered values is the value at place floor(n U), where U is the
        middle of n uniform numbers and thus has a beta distribution: no draws need be made one by one.
        """
        count = len(ordered)
        if count < FEWEST:
            return None, None
        middle = (count + 1) // 2
        generator = np.random.default_rng(self._seed)
        draws = generator.beta(middle, count - middle + 1, RESAMPLES)
        places = np.sort(np.minimum((draws * count).astype(np.int64), count - 1))
        tail = (1 - CONFIDENCE) / 2
        low, high = places[int(tail * RESAMPLES)], places[int((1 - tail) * RESAMPLES)]
        return ordered[int(low)], ordered[int(high)]


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
        self._last: dict[int, int] = {}

    @property
    def edges_ns(self) -> NDArray[np.float64]:
        """Return the bounds of the steps in nanoseconds, one more than there are steps."""
        return np.asarray(LEAST_NS * 10.0 ** (np.arange(len(self.counts) + 1) / A_DECADE))

    def observe(self, source: NDArray[np.intp], time_ns: NDArray[np.int64]) -> None:
        """Add the frames of a batch: codes of their senders, and times, both of shape (n,)."""
        for sender in np.unique(source).tolist():
            times = time_ns[source == sender]
            before = self._last.get(sender)
            gaps = np.diff(times) if before is None else np.diff(times, prepend=before)
            if before is not None or len(self._last) < SENDERS:
                self._last[sender] = int(times[-1])
            gaps = np.clip(gaps, 1, None)
            step = (np.log10(gaps / LEAST_NS) * A_DECADE).astype(np.int64)
            self.counts += np.bincount(np.clip(step, 0, len(self.counts) - 1), minlength=len(self.counts))
            self.total += len(gaps)

    def percentile(self, share: float) -> float:
        """Return the percentile of gaps for ``share`` (0 to 1), in nanoseconds, to the precision of the steps."""
        if not self.total:
            return 0.0
        place = int(np.searchsorted(np.cumsum(self.counts), share * self.total))
        return float(self.edges_ns[min(place, len(self.counts) - 1) + 1])
