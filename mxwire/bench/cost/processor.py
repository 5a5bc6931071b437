"""Cores of a modelled host: each runs one task after another, and accounts for its time by kind."""

from __future__ import annotations

from collections import Counter
from typing import Final

APPLICATION: Final = "application"
"""The kind of task that others may interrupt."""
SYSTEM_KINDS: Final = frozenset(("bottom half", "driver", "library"))
"""The other kinds of tasks."""


class ModelCore:
    """A core with a queue of tasks, of which only the end of the last one is stored.

    Tasks of the kinds that ``interrupt`` do not wait for work of the application at the end of the queue: it ends
    later by their time.
    """

    def __init__(self, interrupt: frozenset[str] = frozenset()) -> None:
        self.interrupt = interrupt
        self.free_at = 0
        """Virtual time in ns at which all tasks are done."""
        self.busy: Counter[str] = Counter()
        """Time in ns by kind of task: ``bottom half``, ``driver``, ``library``, ``application``."""
        self._application = 0, 0
        """Begin and end of the work of the application at the end of the queue."""
        self._interrupted = 0
        """Time at which the tasks that interrupt it are done."""

    def working(self, now: int) -> bool:
        """Return whether the application works, interrupted or not."""
        begin, end = self._application
        return begin <= now < end == self.free_at

    def working_since(self) -> int:
        """Begin of the last work of the application."""
        return self._application[0]

    def begin(self, now: int, kind: str) -> int:
        """The earliest begin of a task of a kind."""
        start, end = self._application
        if kind in self.interrupt and now < end == self.free_at:
            return max(now, start, self._interrupted)
        return max(now, self.free_at)

    def run(self, now: int, cost: float, kind: str) -> int:
        """Add a task; return the time at which it ends."""
        duration, begin = round(cost), self.begin(now, kind)
        self.busy[kind] += duration
        if kind == APPLICATION:
            start, end = self._application
            # Work that follows work without a pause is one piece, whose interruptions continue.
            self._application = start if end == begin else begin, begin + duration
        elif begin < self.free_at:
            self._interrupted = begin + duration
            self._application = self._application[0], self.free_at + duration
        self.free_at = max(self.free_at, now) + duration
        return self._interrupted if begin < self.free_at - duration else self.free_at


def core_plan(cores: int, processes: int) -> tuple[ModelCore, list[ModelCore]]:
    """The core of the bottom half and the core of each process, as if all were bound.

    The bottom half has a core of its own if there is one more core than processes; else it shares with a process.
    """
    every = [ModelCore() for _ in range(max(1, cores))]
    return every[-1], [every[number % len(every)] for number in range(processes)]
