"""Time lines of a capture, in bounded memory: bytes in flight and repetitions, and rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

STEPS: Final = 1024
"""Number of steps; their width doubles whenever the capture extends beyond the last one."""
FIRST_WIDTH_NS: Final = 1024


@dataclass(frozen=True, slots=True)
class Line:
    """A finished time line; arrays have shape (n,)."""

    start_ns: int
    width_ns: int
    """Width of each of the n steps."""
    in_flight: NDArray[np.float64]
    """Bytes in flight, on average over each step."""
    frames: NDArray[np.float64]
    """Frames in flight, on average over each step."""
    repeats: NDArray[np.int64]
    """Number of retransmissions or re-requests in each step."""


class TimeLine:
    """Accumulator of the bytes and frames in flight per step of time; intervals may be added in any order.

    The integral of the amount in flight up to a time T is the sum of w (T - t0) over all intervals with weight w that
    began before T, less the sum of w (T - t1) over those that ended before. So two sums per step are sufficient.
    """

    def __init__(self) -> None:
        self.start_ns: int | None = None
        self._width = FIRST_WIDTH_NS
        self._weight: NDArray[np.float64] = np.zeros((2, STEPS))
        self._moment: NDArray[np.float64] = np.zeros((2, STEPS))
        self._repeats: NDArray[np.int64] = np.zeros(STEPS, np.int64)
        self._last = 0

    def begin(self, time_ns: int) -> None:
        """Begin the capture; anything earlier counts towards its first step."""
        if self.start_ns is None:
            self.start_ns = time_ns

    def add(self, intervals: NDArray[np.int64]) -> None:
        """Add intervals, shape (n, 4): start and end in nanoseconds, and numbers of bytes and frames in flight."""
        if not len(intervals):
            return
        ends = np.maximum(intervals[:, 1], intervals[:, 0])
        weight = intervals[:, 2:].T.astype(np.float64)
        self._note(intervals[:, 0], weight)
        self._note(ends, -weight)

    def _note(self, times: NDArray[np.int64], weight: NDArray[np.float64]) -> None:
        relative = self._relative(times)
        step = relative // self._width
        for measured in range(len(weight)):
            np.add.at(self._weight[measured], step, weight[measured])
            # In seconds, since products with nanoseconds would lose digits.
            np.add.at(self._moment[measured], step, weight[measured] * (relative / 1e9))

    def repeat(self, times: NDArray[np.int64]) -> None:
        """Add retransmissions or re-requests at ``times``, shape (n,)."""
        if len(times):
            relative = self._relative(times)
            np.add.at(self._repeats, relative // self._width, 1)

    def _relative(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return times relative to the start, after widening the steps to include the latest."""
        relative = np.maximum(times - (self.start_ns or 0), 0)
        self._last = max(self._last, int(relative.max()))
        while self._last >= self._width * STEPS:
            self._width *= 2
            self._weight, self._moment = _halved(self._weight), _halved(self._moment)
            self._repeats = _halved(self._repeats)
        return relative

    def line(self) -> Line:
        """Return the current line."""
        used = max(-(-(self._last + 1) // self._width), 1)
        edges = self._width / 1e9 * np.arange(1, STEPS + 1)
        integral = np.cumsum(self._weight, axis=1) * edges - np.cumsum(self._moment, axis=1)
        average = np.maximum(np.diff(integral, prepend=0.0) / (self._width / 1e9), 0.0)[:, :used]
        return Line(self.start_ns or 0, self._width, average[0], average[1], self._repeats[:used].copy())


RATE_STEPS: Final = 256
"""Number of steps of a :class:`RateLine`."""


class RateLine:
    """Accumulator of amounts per step of time, such as bytes on the wire.

    Steps begin at multiples of their width, so lines of equal width have common steps. The width doubles whenever the
    times extend beyond the last step. Little is allocated before the first amount: a capture may have many pairs.
    """

    __slots__ = ("_amounts", "_first", "width_ns")

    def __init__(self) -> None:
        self.width_ns = FIRST_WIDTH_NS
        self._first: int | None = None
        """Index of the first step, counted in steps since 1970."""
        self._amounts: NDArray[np.int64] = np.zeros(0, np.int64)

    def add(self, times: NDArray[np.int64], amounts: NDArray[np.int64]) -> None:
        """Add ``amounts`` at ``times`` in nanoseconds, both of shape (n,) with n > 0."""
        first, last = int(times.min()), int(times.max())
        start = end = first
        if self._first is not None:
            start, end = self._first * self.width_ns, (self._first + self._used() - 1) * self.width_ns
        start, end, doublings = min(first, start), max(last, end), 0
        while end // (self.width_ns << doublings) - start // (self.width_ns << doublings) >= RATE_STEPS:
            doublings += 1
        self._widen(doublings)
        first //= self.width_ns
        if self._first is None:
            self._first, self._amounts = first, np.zeros(RATE_STEPS, np.int64)
        if first < self._first:
            self._amounts = np.concatenate([np.zeros(self._first - first, np.int64), self._amounts])[:RATE_STEPS]
            self._first = first
        np.add.at(self._amounts, times // self.width_ns - self._first, amounts)

    def _used(self) -> int:
        used = np.flatnonzero(self._amounts)
        return int(used[-1]) + 1 if len(used) else 1

    def _widen(self, doublings: int) -> None:
        """Double the width of the steps this number of times."""
        self.width_ns <<= doublings
        if self._first is None or not doublings:
            return
        # Unless the first step is a multiple of the new width, the first new step holds fewer old ones.
        joined = 1 << doublings
        before = self._first % joined
        padded = np.zeros(-(-(before + RATE_STEPS) // joined) * joined, np.int64)
        padded[before : before + RATE_STEPS] = self._amounts
        amounts = padded.reshape(-1, joined).sum(axis=1)[:RATE_STEPS]
        self._amounts = np.zeros(RATE_STEPS, np.int64)
        self._amounts[: len(amounts)] = amounts
        self._first >>= doublings

    def widen_to(self, width_ns: int) -> None:
        """Widen the steps to ``width_ns``, which is a power of two times the first width."""
        self._widen(max((width_ns // self.width_ns).bit_length() - 1, 0))

    def line(self) -> tuple[int, NDArray[np.int64]]:
        """Return the start of the first step in nanoseconds, and the amounts per step of :attr:`width_ns`."""
        if self._first is None:
            return 0, np.zeros(0, np.int64)
        return self._first * self.width_ns, self._amounts[: self._used()].copy()


def common_rates(lines: Sequence[RateLine]) -> tuple[int, int, NDArray[np.int64]]:
    """Return the start and the width of the steps in nanoseconds, and the amounts of all ``lines`` on these steps.

    The amounts have shape (lines, steps). The lines are widened to the widest of them.
    """
    width = max((each.width_ns for each in lines), default=FIRST_WIDTH_NS)
    while True:
        for each in lines:
            each.widen_to(width)
        rates = [each.line() for each in lines]
        start = min((at for at, amounts in rates if len(amounts)), default=0)
        end = max((at + len(amounts) * width for at, amounts in rates if len(amounts)), default=start)
        if end - start <= STEPS * width:
            break
        width *= 2
    steps = np.zeros((len(rates), (end - start) // width), np.int64)
    for place, (at, amounts) in enumerate(rates):
        first = (at - start) // width
        steps[place, first : first + len(amounts)] = amounts
    return start, width, steps


def _halved(steps: NDArray[Any]) -> NDArray[Any]:
    halved: NDArray[Any] = np.zeros_like(steps)
    halved[..., : STEPS // 2] = steps.reshape(*steps.shape[:-1], -1, 2).sum(axis=-1)
    return halved
