"""A histogram of durations, whose percentiles are exact to 3%: latencies, and delays behind a plan."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.units import SECOND

_PARTS: Final = 32
"""Buckets per power of two: percentiles are exact to 3%."""
_OCTAVES: Final = 40
_BUFFERED: Final = 1 << 16
LATENCY_MAXIMUM: Final = 10 * SECOND
"""Latencies beyond this, and negative ones, show that the clocks differ."""


class LatencyHistogram:
    """Histogram of latencies in ns with buckets of equal relative width, in bounded memory."""

    def __init__(self) -> None:
        self._buckets = np.zeros(_OCTAVES * _PARTS, np.int64)
        self._buffer = np.zeros(_BUFFERED, np.int64)
        self._filled = 0
        self._count = self._total = 0
        self.impossible = 0
        """Latencies that are negative or longer than ``LATENCY_MAXIMUM``; they are not in the histogram."""
        self._minimum: int | None = None
        self._maximum: int | None = None

    @property
    def count(self) -> int:
        """Number of latencies, without impossible ones."""
        self._fold()
        return self._count

    @property
    def mean_ns(self) -> float:
        """The mean latency; 0 without any."""
        self._fold()
        return self._total / self._count if self._count else 0.0

    @property
    def minimum_ns(self) -> int | None:
        """The smallest latency; None without any."""
        self._fold()
        return self._minimum

    @property
    def maximum_ns(self) -> int | None:
        """The largest latency; None without any."""
        self._fold()
        return self._maximum

    def add(self, latency_ns: NDArray[np.int64]) -> None:
        """Add latencies, shape (n,)."""
        for first in range(0, len(latency_ns), _BUFFERED):
            some = latency_ns[first : first + _BUFFERED]
            if self._filled + len(some) > _BUFFERED:
                self._fold()
            # Sorting into buckets is expensive per call and cheap per latency.
            self._buffer[self._filled : self._filled + len(some)] = some
            self._filled += len(some)

    def _fold(self) -> None:
        raw = self._buffer[: self._filled]
        self._filled = 0
        some = raw[(raw >= 0) & (raw <= LATENCY_MAXIMUM)]
        self.impossible += len(raw) - len(some)
        if not len(some):
            return
        low, high = int(some.min()), int(some.max())
        self._minimum = low if self._minimum is None else min(self._minimum, low)
        self._maximum = high if self._maximum is None else max(self._maximum, high)
        self._count += len(some)
        self._total += int(some.sum())
        fraction, exponent = np.frexp(np.maximum(some, 1))
        place = (exponent - 1) * _PARTS + ((2 * fraction - 1) * _PARTS).astype(np.int64)
        self._buckets += np.bincount(place, minlength=len(self._buckets))

    def percentile_ns(self, percent: float) -> int | None:
        """Return the latency that ``percent`` of the frames do not exceed, to 3%; None without frames."""
        self._fold()
        if self._maximum is None or self._minimum is None:
            return None
        place = int(np.searchsorted(np.cumsum(self._buckets), self._count * percent / 100))
        octave, part = divmod(place, _PARTS)
        upper = int(2.0**octave * (1 + (part + 1) / _PARTS))
        return max(min(upper, self._maximum), self._minimum)

    def buckets(self) -> list[tuple[int, int]]:
        """Return the upper bound in ns and the count of each bucket that has any."""
        self._fold()
        return [
            (int(2.0 ** (place // _PARTS) * (1 + (place % _PARTS + 1) / _PARTS)), int(self._buckets[place]))
            for place in np.flatnonzero(self._buckets).tolist()
        ]

    def record(self) -> dict[str, Any]:
        """The histogram's summary as an object for JSON; PDV and typical latency are those of RFC 8219."""
        self._fold()
        worst = self.percentile_ns(99.9)
        return {
            "count": self._count,
            "impossible": self.impossible,
            "min_ns": self._minimum,
            "median_ns": self.percentile_ns(50),
            "p99_ns": self.percentile_ns(99),
            "p999_ns": worst,
            "max_ns": self._maximum,
            "variation_ns": None if worst is None or self._minimum is None else worst - self._minimum,
        }
