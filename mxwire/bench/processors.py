"""Calibrated work of processors, and meters of their time, context switches and softirqs."""

from __future__ import annotations

import os
import resource
import time
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass
from functools import cache
from pathlib import Path
from typing import Final

_SOFTIRQ_THREAD: Final = "ksoftirqd"
_CALIBRATION_NS: Final = 2_000_000
_BEST_OF: Final = 5
_LOOPS: Final = 20_000
_CALIBRATIONS: Final = 25


class SpinWork:
    """Work that takes a given time: a loop over the clock, whose own duration is measured and subtracted.

    Time during which another program has the processor counts as work, as it would in real work.
    """

    def __init__(self) -> None:
        # The least: other programs only prolong a calibration.
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
        # The median, as a preempted spin is late by a whole time slice.
        return sorted(errors)[count // 2] / duration


class BurntWork:
    """Work of a fixed number of loops: time that other programs take from the processor prolongs it."""

    def __init__(self) -> None:
        best = _CALIBRATION_NS
        # The best of many: a disturbed calibration would give too few loops, and so too short a work.
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
    softirq: float = 0.0
    """Time of the kernel's threads that process frames on the processors of this process: also for its own messages."""

    def __sub__(self, other: ProcessorUse) -> ProcessorUse:
        """The use between two readings."""
        return ProcessorUse(*(one - before for one, before in zip(astuple(self), astuple(other), strict=True)))

    def record(self) -> dict[str, float]:
        """The use as the values of a role."""
        return {"cpu": self.user + self.system} | asdict(self)


def scheduled(process: int) -> tuple[int, int]:
    """The ns for which the threads of a process have run, and have waited for a processor."""
    # The file of the process itself has the times of its main thread only.
    found = [_scheduled(each) for each in Path(f"/proc/{process}/task").glob("*")]
    return sum(ran for ran, _ in found), sum(waited for _, waited in found)


def read_use() -> ProcessorUse:
    """The use of processors by this process so far."""
    # No process is charged for these threads, although they work for its frames.
    softirq = sum(_scheduled(_softirq_threads().get(each))[0] for each in os.sched_getaffinity(0)) / 1e9
    used = resource.getrusage(resource.RUSAGE_SELF)
    return ProcessorUse(used.ru_utime, used.ru_stime, used.ru_nvcsw, used.ru_nivcsw, time.perf_counter(), softirq)


@cache
def _softirq_threads() -> dict[int, Path]:
    """The folders of the kernel's threads for softirqs by processor, as far as this process can see them."""
    found = {}
    for each in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):
            name, _, number = each.read_text(encoding="utf-8").strip().partition("/")
            if name == _SOFTIRQ_THREAD and number.isdigit():
                found[int(number)] = each.parent
    return found


def _scheduled(thread: Path | None) -> tuple[int, int]:
    """The ns for which a thread has run, and has waited for a processor; 0 if that is not known."""
    with suppress(OSError):
        if thread is not None:
            # In ns; the times in "stat" are ticks of mostly 10 ms, as long as some rounds.
            ran, waited, _ = (thread / "schedstat").read_text(encoding="utf-8").split()
            return int(ran), int(waited)
    return 0, 0
