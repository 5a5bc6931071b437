"""Cores of a modelled host: each runs one task after another, and accounts for its time by kind."""

from __future__ import annotations

from collections import Counter


class ModelCore:
    """A core with a queue of tasks, of which only the end of the last one is stored."""

    def __init__(self) -> None:
        self.free_at = 0
        """Virtual time in ns at which all tasks are done."""
        self.busy: Counter[str] = Counter()
        """Time in ns by kind of task: ``bottom half``, ``driver``, ``library``, ``application``."""

    def run(self, now: int, cost: float, kind: str) -> int:
        """Append a task; return the time at which it ends."""
        duration = round(cost)
        self.free_at = max(self.free_at, now) + duration
        self.busy[kind] += duration
        return self.free_at


def core_plan(cores: int, processes: int) -> tuple[ModelCore, list[ModelCore]]:
    """The core of the bottom half and the core of each process, as if all were bound.

    The bottom half has a core of its own if there is one more core than processes; else it shares with a process.
    """
    every = [ModelCore() for _ in range(max(1, cores))]
    return every[-1], [every[number % len(every)] for number in range(processes)]
