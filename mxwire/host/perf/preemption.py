"""Detection of preemption: how much of the time a polling thread really had a CPU."""

from __future__ import annotations

import resource
import time
from typing import Final, NamedTuple

WINDOW_NS: Final = 50_000_000
"""Shortest time that is judged: a dozen time slices of a scheduler, so that one switch alone proves nothing."""
LEAST_SHARE: Final = 0.8
"""Minimum share of CPU time. A polling thread uses its CPU all the time; below this share, measured times depend on the
scheduler."""


class Usage(NamedTuple):
    """Clocks and counters of the calling thread, or their increase over a window."""

    wall_ns: int
    cpu_ns: int
    switches: int
    """Involuntary context switches."""

    @classmethod
    def now(cls) -> Usage:
        """Read the clocks and counters."""
        used = resource.getrusage(resource.RUSAGE_THREAD)
        return cls(time.monotonic_ns(), time.thread_time_ns(), used.ru_nivcsw)

    @property
    def cpu_share(self) -> float:
        """CPU time by wall time, from 0 to 1."""
        return min(1.0, self.cpu_ns / self.wall_ns) if self.wall_ns else 1.0

    @property
    def preempted(self) -> bool:
        """True if other threads used the CPU for a large part of the time.

        Only involuntary switches count, since a thread that is blocked by its output does not use the CPU either."""
        return self.wall_ns >= WINDOW_NS and self.switches > 0 and self.cpu_share < LEAST_SHARE


class PreemptionMeter:
    """Judges the thread that calls it, over the time between `start` and `stop`, in windows of `WINDOW_NS`."""

    def __init__(self) -> None:
        self._begun = self._sum = Usage(0, 0, 0)

    def start(self) -> None:
        """Begin to measure."""
        self._begun = Usage.now()

    def stop(self) -> Usage | None:
        """Stop measuring; return the window if the thread was preempted in it."""
        now, begun, before = Usage.now(), self._begun, self._sum
        window = Usage(*(kept + late - early for kept, late, early in zip(before, now, begun, strict=True)))
        is_whole = window.wall_ns >= WINDOW_NS
        self._sum = Usage(0, 0, 0) if is_whole else window
        return window if window.preempted else None
