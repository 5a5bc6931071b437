"""Gaps between frames of one sender: interrupt coalescing leaves a comb in their distribution."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

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
