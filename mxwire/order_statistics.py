"""The one definition of percentiles of measured values; the median is the 50th.

The value at percent p of n ordered values lies at place (n - 1) p / 100, counted from 0, and between two values in
proportion to the distance from them (definition 7 of Hyndman and Fan, and the default of NumPy). So the median of
1, 2, 3 and 100 is 2.5. Histograms, which keep no single values, give the upper end of the bucket in which
the value lies, and name their precision.
"""

from __future__ import annotations

from collections.abc import Sequence


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the value that ``percent`` % of ``ordered``, which is sorted and not empty, do not exceed."""
    place = (len(ordered) - 1) * percent / 100
    below = int(place)
    if below + 1 >= len(ordered):
        return ordered[-1]
    return ordered[below] + (ordered[below + 1] - ordered[below]) * (place - below)
