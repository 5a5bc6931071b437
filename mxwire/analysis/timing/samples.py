"""Samples of durations in bounded memory, and their statistics; a histogram of gaps between frames."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

KEPT: Final = 20_000
"""Durations of one kind that are kept; of more, each is kept with the same chance (reservoir sampling)."""
RESAMPLES: Final = 10_000
CONFIDENCE: Final = 0.95
FEWEST: Final = 6
"""Of fewer, even all of them together do not enclose the median with that confidence: 1 - 2 / 2^5 is less."""


@dataclass(frozen=True, slots=True)
class DurationEstimate:
    """Statistics of durations, in nanoseconds."""

    count: int
    least: float
    p10: float
    median: float
    median_low: float | None
    """The true median lies between this and the next with 95 % confidence; None where there are too few to say."""
    median_high: float | None
    mean: float
    p90: float
    p99: float
    most: float


class Samples:
    """Durations in nanoseconds; the same answer for the same ``seed``."""

    def __init__(self, seed: int, kept: int = KEPT) -> None:
        self._random = Random(seed)
        self._seed = seed
        self._limit = kept
        self._kept: list[int] = []
        self.count = 0
        self._sum = 0
        self._least = self._most = 0

    def add(self, duration_ns: int) -> None:
        """One more."""
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

    def estimate(self) -> DurationEstimate | None:
        """Return the statistics of all samples; None if there are none."""
        if not self.count:
            return None
        ordered = np.sort(np.array(self._kept, np.float64))
        p10, median, p90, p99 = np.percentile(ordered, (10, 50, 90, 99)).tolist()
        low, high = self._median_interval(ordered.tolist())
        return DurationEstimate(
            self.count, self._least, p10, median, low, high, self._sum / self.count, p90, p99, self._most
        )

    def _median_interval(self, ordered: list[float]) -> tuple[float | None, float | None]:
        """Percentile bootstrap of the median.

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
"""Steps of the histogram in each power of ten."""
LEAST_NS: Final = 100
DECADES: Final = 9
"""From 100 ns to 100 s; what lies outside is counted in the first and in the last step."""
SENDERS: Final = 1024
"""Senders whose last frame is remembered."""


class GapHistogram:
    """Counts gaps by their size, on a logarithmic scale."""

    def __init__(self) -> None:
        self.counts = np.zeros(DECADES * A_DECADE, np.int64)
        self.total = 0
        self._last: dict[int, int] = {}

    @property
    def edges_ns(self) -> NDArray[np.float64]:
        """The bounds of the steps in nanoseconds, one more than there are counts."""
        return np.asarray(LEAST_NS * 10.0 ** (np.arange(len(self.counts) + 1) / A_DECADE))

    def observe(self, source: NDArray[np.intp], time_ns: NDArray[np.int64]) -> None:
        """Take the frames of a batch: numbers of their senders, and times, both of shape (n,)."""
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
        """The gap in nanoseconds that a share of all gaps (0 to 1) does not exceed, as exact as the steps are."""
        if not self.total:
            return 0.0
        place = int(np.searchsorted(np.cumsum(self.counts), share * self.total))
        return float(self.edges_ns[min(place, len(self.counts) - 1) + 1])
