"""Samples of durations in bounded memory, and their statistics."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

import numpy as np

KEPT: Final = 20_000
"""Durations of one kind that are kept; of more, each is kept with the same chance (reservoir sampling)."""
RESAMPLES: Final = 10_000
CONFIDENCE: Final = 0.95
FEWEST: Final = 6
"""Of fewer, even all of them together do not enclose the median with that confidence: 1 - 2 / 2^5 is less."""


@dataclass(frozen=True, slots=True)
class Estimate:
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

    def estimate(self) -> Estimate | None:
        """Return the statistics of all samples; None if there are none."""
        if not self.count:
            return None
        ordered = np.sort(np.array(self._kept, np.float64))
        p10, median, p90, p99 = np.percentile(ordered, (10, 50, 90, 99)).tolist()
        low, high = self._median_interval(ordered.tolist())
        return Estimate(self.count, self._least, p10, median, low, high, self._sum / self.count, p90, p99, self._most)

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
