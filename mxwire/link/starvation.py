"""Detection of periods in which this process lacked the processor while frames waited for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

STARVED_NS: Final = 100_000_000
"""Minimum time that frames must have waited without use: ten times the delay of a tap."""
_PERIODS: Final = 4096
_SAMPLES: Final = 1 << 16


class StarvationMeter:
    """Comparison of the time that frames waited with the processor time that this process used at the same time.

    A process that was too slow for the frames has used the processor for most of that time. If it has not, other
    programs used the processor, or the process was stopped. ``clock`` is that of the frames, ``processor_time`` that of
    the process; both return nanoseconds.
    """

    def __init__(self, clock: Callable[[], int], processor_time: Callable[[], int]) -> None:
        self.periods: list[tuple[int, int]] = []
        """Start and end of each period, ascending and without overlaps."""
        self._clock = clock
        self._processor_time = processor_time
        self._begun = clock()
        self._samples = deque([(self._begun, processor_time())], maxlen=_SAMPLES)

    def note(self, first_ns: int) -> None:
        """Note that frames are handed out now of which the oldest has passed at ``first_ns``."""
        now, used = self._clock(), self._processor_time()
        first_ns = max(first_ns, self._begun)
        while len(self._samples) > 1 and self._samples[1][0] <= first_ns:
            self._samples.popleft()
        waited, worked = now - first_ns, used - self._samples[0][1]
        self._samples.append((now, used))
        if waited - worked >= max(STARVED_NS, waited // 2):
            self._add(first_ns, now - worked)

    def _add(self, start: int, end: int) -> None:
        if self.periods and start <= self.periods[-1][1]:
            start, end = min(start, self.periods[-1][0]), max(end, self.periods.pop()[1])
        if len(self.periods) < _PERIODS:
            self.periods.append((start, end))

    @property
    def total_ns(self) -> int:
        """Time of all periods, in nanoseconds."""
        return sum(end - start for start, end in self.periods)
