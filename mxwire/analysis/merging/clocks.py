"""Compare the clocks of two captures by the frames that both contain.

Theory of operation
-------------------
Two computers at the ends of a path capture the same frames, each with its own clock. For each common frame the
difference d of the two timestamps (second minus first) is known. With an offset o between the clocks and a one-way
delay D > 0 of the frame:

    frames sent from the first end:    d = o + D     all points lie above o
    frames sent from the second end:   d = o - D     all points lie below o

::

    d |   x   x      x    x        from the first end
      | x   x   x  x   x    x  x
      |------------------------    o lies in this gap
      | +  +   +  + +   +  +
      |   +  +     +       +       from the second end
      +------------------------ time

So the fastest frames bound the offset on both sides, however long other frames were queued. The middle of the gap is
the estimate. It is exact if the least delay is the same in both directions, and wrong by at most half the width of the
gap, which is reported as the uncertainty; frames of one direction alone cannot separate offset and delay.

Clocks also drift, so the bounds are lines. ``align`` works in five steps:

1. A rough line by medians of pairs (Theil and Sen), which tolerates a minority of wrong points. A pair far from the
   line is not one frame captured twice: one of the two is a retransmission with equal bytes.
2. The end of each source (``_sides``), by comparing only frames next to each other in time, so that neither drift nor a
   step of a clock matters. A host between the two capture points is at neither end.
3. Removal of single strays, which would otherwise determine a bound: a minimum is sensitive to one wrong point. If more
   than a few points are off, they are kept, because then a clock was stepped.
4. The drift that leaves the widest gap between the bounds (``_drift``). The width is a concave function of the drift
   (a minimum of linear functions less a maximum), so a ternary search finds its maximum. Captures of a few
   seconds cannot show the drift: if no drift explains the points as well, none is assumed.
5. Bounds that cross prove that frames arrived before they were sent under any linear clock: they are counted, and
   reported as acausal.

Only the extreme points of each stretch of time can touch a bound, so a bounded number of points is kept. Times are
relative to the first point and in float64, which is exact to a nanosecond for captures of up to 100 days.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from mxwire.errors import MergeError

CaptureSide = Literal["first", "second"]

DRIFT_MOST: Final = 1e-3
"""Largest drift between two computer clocks, as a proportion: crystals stay below a tenth of it."""
DRIFT_KNOWN: Final = 20e-6
"""Uncertainty above which a drift is rejected if no drift explains the frames as well: typical of crystals."""
OUTLIER_NS: Final = 100_000_000
"""Pairs whose time difference deviates by more than this are not the same frame: one of them is a retransmission."""
LEAST: Final = 4
"""Minimum number of frames that both captures must contain."""
_BUCKETS: Final = 1024
_MEDIANS: Final = 96
_ROUNDING_NS: Final = 50.0
_STRAYS: Final = 0.02
"""Maximum proportion of points that count as strays; with more, a clock was stepped."""
_FAR: Final = 10.0
_SPREAD_NS: Final = 20_000.0
"""Minimum spread that delays are assumed to have, in nanoseconds."""

Points = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of the second capture, relative to that of the first."""

    base_ns: int
    """A time of the second clock."""
    offset_ns: int
    """Nanoseconds by which the second clock is ahead of the first at that time."""
    drift: float = 0.0
    """Rate at which the second clock gains on the first, per unit of its own time."""

    def to_first(self, time_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Convert times of the second clock to times of the first."""
        return time_ns - self.ahead_ns(time_ns)

    def ahead_ns(self, time_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of nanoseconds by which the second clock is ahead, at times of the second clock."""
        gained: NDArray[np.int64] = np.rint((time_ns - self.base_ns) * self.drift).astype(np.int64)
        return self.offset_ns + gained


@dataclass(frozen=True, slots=True)
class Alignment:
    """Two clocks, compared. Times are in nanoseconds."""

    clock: Clock
    compared: int
    """Number of frames that were compared."""
    sides: dict[int, CaptureSide]
    """The end of each source address, if known: its frames are seen there first."""
    uncertainty_ns: float | None
    """Largest error of the offset: the least one-way delay, if it is the same in both directions. None if only frames
    of one direction are common: the offset then contains the delay."""
    drift_uncertainty: float
    """Largest error of the drift, as a proportion."""
    drift_seen: bool
    """False if the captures are too short to show a drift, and none is assumed."""
    acausal: int
    """Number of frames received before they were sent, under any assumption: a clock was set, or runs unevenly."""


def align(first_ns: NDArray[np.int64], second_ns: NDArray[np.int64], source: NDArray[np.int64]) -> Alignment:
    """Compare two clocks by their times of the same frames and the sources of these; shapes (n,).

    Raises :class:`~mxwire.analysis.merging.MergeError` if the frames contradict each other.
    """
    base, ahead = int(second_ns[0]), int(np.median(second_ns - first_ns))
    x = (second_ns - base).astype(np.float64)
    y = (second_ns - first_ns - ahead).astype(np.float64)
    slope, level = _rough_line(x, y)
    near = np.abs(y - level - slope * x) <= OUTLIER_NS
    if int(near.sum()) < max(LEAST, len(x) // 2):
        raise MergeError(
            f"only {int(near.sum())} of {len(x)} identical frames fit one clock difference: a clock was set during the "
            "capture, or the captures were taken at different times"
        )
    # After removal of the rough drift, frames near each other in time can be compared.
    x, y, source = x[near], (y - slope * x)[near], source[near]
    sides = _sides(x, y, source)
    from_first = np.isin(source, [each for each, side in sides.items() if side == "first"])
    from_second = np.isin(source, [each for each, side in sides.items() if side == "second"])
    if not sides:
        return _same_place(x, y, slope, base, ahead)
    from_first = _without_strays(y, from_first)
    from_second = _without_strays(-y, from_second)
    if not from_first.any() or not from_second.any():
        return _one_way(x, y, slope, base, ahead, sides)
    later = _extreme(x[from_first], y[from_first], np.minimum)
    earlier = _extreme(x[from_second], y[from_second], np.maximum)
    drift, width, seen = _drift(later, earlier, -slope)
    low, high = _bounds(later, earlier, drift)
    clock = Clock(base, ahead + round((low + high) / 2), slope + drift)
    rest = y - drift * x - (low + high) / 2
    acausal = 0
    if high < low - 2 * _ROUNDING_NS:
        acausal = int((rest[from_first] < -_ROUNDING_NS).sum() + (rest[from_second] > _ROUNDING_NS).sum())
    return Alignment(clock, len(x), sides, abs(high - low) / 2, width, seen, acausal)


def _without_strays(y: NDArray[np.float64], chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Remove single points far below the others: they pair a frame with its retransmission."""
    if not chosen.any():
        return chosen
    low, middle = np.percentile(y[chosen], (10, 50))
    strays = chosen & (y < low - _FAR * max(middle - low, _SPREAD_NS))
    return chosen & ~strays if int(strays.sum()) <= max(1.0, _STRAYS * int(chosen.sum())) else chosen


def _bounds(later: Points, earlier: Points, drift: float) -> tuple[float, float]:
    """Return the bounds of the offset: above frames from the second end, below frames from the first."""
    return float((earlier[1] - drift * earlier[0]).max()), float((later[1] - drift * later[0]).min())


def _drift(later: Points, earlier: Points, none: float) -> tuple[float, float, bool]:
    """Return the drift with the widest gap between the bounds, its uncertainty, and whether it is significant.

    If it is uncertain, and ``none`` explains the points as well, return ``none``.
    """

    def room(drift: float) -> float:
        low, high = _bounds(later, earlier, drift)
        return high - low

    best = _summit(room)
    most = room(best)
    enough = min(0.0, 2 * most) - _ROUNDING_NS
    least, largest = (_edge(room, best, sign * 2 * DRIFT_MOST, enough) for sign in (-1, 1))
    width = max(largest - best, best - least)
    if least <= none <= largest and width > DRIFT_KNOWN:
        return none, width, False
    return best, width, True


def _summit(room: Callable[[float], float]) -> float:
    """Return the position of the maximum of a function that first grows and then shrinks."""
    low, high = -2 * DRIFT_MOST, 2 * DRIFT_MOST
    for _ in range(120):
        one, other = low + (high - low) / 3, high - (high - low) / 3
        if room(one) < room(other):
            low = one
        else:
            high = other
    return (low + high) / 2


def _edge(room: Callable[[float], float], inside: float, outside: float, enough: float) -> float:
    """Return the drift nearest to ``outside`` that leaves a gap wide enough."""
    if room(outside) >= enough:
        return outside
    for _ in range(60):
        middle = (inside + outside) / 2
        if room(middle) >= enough:
            inside = middle
        else:
            outside = middle
    return inside


def _same_place(x: NDArray[np.float64], y: NDArray[np.float64], slope: float, base: int, ahead: int) -> Alignment:
    """Align captures of the same place: no frame is later at one end, so the median is the offset."""
    level = float(np.median(y))
    spread = float(np.median(np.abs(y - level)))
    width = 2 * max(spread, _ROUNDING_NS) / max(float(np.ptp(x)), 1.0)
    return Alignment(Clock(base, ahead + round(level), slope), len(x), {}, spread, width, True, 0)


def _one_way(
    x: NDArray[np.float64], y: NDArray[np.float64], slope: float, base: int, ahead: int, sides: dict[int, CaptureSide]
) -> Alignment:
    """Align by frames from one end only, so that the least delay cannot be separated from the offset."""
    seen = float(np.ptp(x)) * DRIFT_KNOWN > float(np.ptp(y))
    rest = y if seen else y + slope * x
    clock = Clock(base, ahead + round(float(rest.min())), slope if seen else 0.0)
    return Alignment(clock, len(x), sides, None, DRIFT_KNOWN, seen, 0)


def _extreme(x: NDArray[np.float64], y: NDArray[np.float64], best: np.ufunc) -> Points:
    """Return the lowest or highest points of each stretch of time.

    Within a stretch a drift hardly matters; the points kept are original ones.
    """
    if len(x) <= 2 * _BUCKETS:
        return x, y
    order = np.argsort(x, kind="stable")
    edges = np.linspace(0, len(x), _BUCKETS, endpoint=False).astype(np.intp)
    bests = best.reduceat(y[order], edges)
    which = np.repeat(np.arange(_BUCKETS), np.diff([*edges.tolist(), len(x)]))
    places = order[np.flatnonzero(y[order] == bests[which])]
    return x[places], y[places]


def _rough_line(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """Return slope and level of a line through most of the points, robust against the others (Theil and Sen)."""
    order = np.argsort(x, kind="stable")
    parts = np.array_split(order, min(_MEDIANS, len(x)))
    middles = np.array([[np.median(x[part]), np.median(y[part])] for part in parts])
    left, right = np.triu_indices(len(parts), 1)
    width = middles[right, 0] - middles[left, 0]
    wide = width > 0
    slope = 0.0
    if wide.any():
        slope = float(np.median((middles[right, 1] - middles[left, 1])[wide] / width[wide]))
    slope = min(max(slope, -DRIFT_MOST), DRIFT_MOST)
    return slope, float(np.median(y - slope * x))


def _sides(x: NDArray[np.float64], y: NDArray[np.float64], source: NDArray[np.int64]) -> dict[int, CaptureSide]:
    """Return the end of each source: at the opposite end its frames are later than frames from that end.

    Sources whose frames reach both ends from elsewhere are at neither.
    """
    every = np.unique(source).tolist()
    if len(every) == 1:
        return dict.fromkeys(every, "first")
    # Only consecutive frames are compared, so that neither drift nor a step of a clock matters.
    order = np.argsort(x, kind="stable")
    before, after = order[:-1], order[1:]
    turns = source[before] != source[after]
    before, after = before[turns], after[turns]
    later = np.concatenate([y[before] - y[after], y[after] - y[before]])
    whose = np.concatenate([source[before], source[after]])
    middle = {each: float(np.median(later[whose == each])) for each in every}
    least, most = min(middle.values()), max(middle.values())
    if most - least <= _ROUNDING_NS:
        return {}
    third = (most - least) / 3
    sides: dict[int, CaptureSide] = {each: "first" for each, value in middle.items() if value >= most - third}
    return sides | {each: "second" for each, value in middle.items() if value <= least + third}
