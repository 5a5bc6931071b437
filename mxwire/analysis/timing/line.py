"""Time line of a capture, in bounded memory: bytes in flight, and repetitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

STEPS: Final = 1024
"""Steps of a line; they become twice as wide each time that the capture turns out to be longer."""
FIRST_WIDTH_NS: Final = 1024


@dataclass(frozen=True, slots=True)
class Line:
    """The line, finished. Arrays have shape (n,)."""

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
    """Adds up, for each step of time, what was in flight: intervals may come in any order.

    The integral of what is in flight up to a time T is the sum of w (T - t0) over all intervals with weight w that
    began before T, less the sum of w (T - t1) over those that ended before. So two sums for each step are enough.
    """

    def __init__(self) -> None:
        self.start_ns: int | None = None
        self._width = FIRST_WIDTH_NS
        self._weight: NDArray[np.float64] = np.zeros((2, STEPS))
        self._moment: NDArray[np.float64] = np.zeros((2, STEPS))
        self._repeats: NDArray[np.int64] = np.zeros(STEPS, np.int64)
        self._last = 0

    def begin(self, time_ns: int) -> None:
        """The capture begins; what lies before is counted to its first moment."""
        if self.start_ns is None:
            self.start_ns = time_ns

    def add(self, intervals: NDArray[np.int64]) -> None:
        """Take intervals, shape (n, 4): start and end in nanoseconds, and how many bytes and frames were in flight."""
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
            np.add.at(self._moment[measured], step, weight[measured] * (relative / 1e9))

    def repeat(self, times: NDArray[np.int64]) -> None:
        """Something was sent or re-requested at these times, shape (n,)."""
        if len(times):
            relative = self._relative(times)
            np.add.at(self._repeats, relative // self._width, 1)

    def _relative(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times from the start on, with steps wide enough for the latest."""
        relative = np.maximum(times - (self.start_ns or 0), 0)
        self._last = max(self._last, int(relative.max()))
        while self._last >= self._width * STEPS:
            self._width *= 2
            self._weight, self._moment = _halved(self._weight), _halved(self._moment)
            self._repeats = _halved(self._repeats)
        return relative

    def line(self) -> Line:
        """The line as it is now."""
        used = max(-(-(self._last + 1) // self._width), 1)
        edges = self._width / 1e9 * np.arange(1, STEPS + 1)
        integral = np.cumsum(self._weight, axis=1) * edges - np.cumsum(self._moment, axis=1)
        average = np.maximum(np.diff(integral, prepend=0.0) / (self._width / 1e9), 0.0)[:, :used]
        return Line(self.start_ns or 0, self._width, average[0], average[1], self._repeats[:used].copy())


def _halved(steps: NDArray[Any]) -> NDArray[Any]:
    halved: NDArray[Any] = np.zeros_like(steps)
    halved[..., : STEPS // 2] = steps.reshape(*steps.shape[:-1], -1, 2).sum(axis=-1)
    return halved
