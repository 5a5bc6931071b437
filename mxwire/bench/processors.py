"""Calibrated work of processors, and meters of their time, context switches and softirqs."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass
from typing import Final

_CALIBRATION_NS: Final = 2_000_000
_BEST_OF: Final = 5
_LOOPS: Final = 20_000
_CALIBRATIONS: Final = 25


class SpinWork:
    """Work that takes a given time: a loop over the clock, whose own duration is measured and subtracted.

    Time during which another program has the processor counts as work, as it would in real work.
    """

    def __init__(self) -> None:
        self._cost = min(self._overhead() for _ in range(_BEST_OF))
        """ns that a call takes without any work."""

    def _overhead(self) -> int:
        clock, rounds = time.perf_counter_ns, 0
        self._cost = 0
        begun = clock()
        while clock() - begun < _CALIBRATION_NS:
            self.work(0)
            rounds += 1
        # Reading the clock in the loop counts as well, because it is part of each iteration.
        return (clock() - begun) // max(rounds, 1)

    def work(self, duration: int) -> None:
        """Spin for ``duration`` ns, or as briefly as possible if that is less than the cost of a call."""
        clock = time.perf_counter_ns
        end = clock() + duration - self._cost
        while clock() < end:
            pass

    def error(self, duration: int, count: int = 101) -> float:
        """Median of the relative error of ``count`` spins of ``duration`` ns."""
        clock, errors = time.perf_counter_ns, []
        for _ in range(count):
            begun = clock()
            self.work(duration)
            errors.append(clock() - begun - duration)
        return sorted(errors)[count // 2] / duration


class BurntWork:
    """Work of a fixed number of loops: time that other programs take from the processor prolongs it."""

    def __init__(self) -> None:
        best = _CALIBRATION_NS
        for _ in range(_CALIBRATIONS):
            begun = time.perf_counter_ns()
            self._burn(_LOOPS)
            best = min(best, time.perf_counter_ns() - begun)
        self._rate = _LOOPS / max(best, 1)
        """Loops per ns."""

    @staticmethod
    def _burn(loops: int) -> int:
        found = 0
        for number in range(loops):
            found += number
        return found

    def work(self, duration: int) -> None:
        """Burn as many loops as take ``duration`` ns on a processor of one's own."""
        self._burn(max(1, round(duration * self._rate)))


@dataclass(frozen=True, slots=True)
class ProcessorUse:
    """Use of processors in a period. Times are in seconds."""

    user: float
    system: float
    waits: int
    """Voluntary context switches: sleeps."""
    preemptions: int
    """Involuntary context switches: disturbances by other programs."""
    wall: float

    def __sub__(self, other: ProcessorUse) -> ProcessorUse:
        """The use between two readings."""
        return ProcessorUse(
            self.user - other.user,
            self.system - other.system,
            self.waits - other.waits,
            self.preemptions - other.preemptions,
            self.wall - other.wall,
        )

    def record(self) -> dict[str, float]:
        """The use as the values of a role."""
        return {
            "cpu": self.user + self.system,
            "user": self.user,
            "system": self.system,
            "waits": self.waits,
            "preemptions": self.preemptions,
            "wall": self.wall,
        }


def read_use() -> ProcessorUse:
    """The use of processors by this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return ProcessorUse(used.ru_utime, used.ru_stime, used.ru_nvcsw, used.ru_nivcsw, time.perf_counter())
