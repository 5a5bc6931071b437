"""Virtual time: a heap of pending actions, in whole nanoseconds."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, Final

FOREVER: Final = 1 << 62
"""A time that no run reaches, in nanoseconds."""


class Schedule:
    """Pending actions by time; actions of equal time run in the order of scheduling."""

    def __init__(self) -> None:
        self.now = 0
        """The virtual time in nanoseconds."""
        self.done = 0
        """Number of actions that have run."""
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._entered = 0

    def __len__(self) -> int:
        """Return the number of pending actions."""
        return len(self._heap)

    def at(self, time: int, action: Callable[..., None], *details: Any) -> None:
        """Schedule an action for a time; a time in the past means now."""
        self._entered += 1
        heapq.heappush(self._heap, (time if time > self.now else self.now, self._entered, action, details))

    def after(self, delay: int, action: Callable[..., None], *details: Any) -> None:
        """Schedule an action after a delay in nanoseconds."""
        self.at(self.now + delay, action, *details)

    def step(self, limit: int = FOREVER) -> bool:
        """Run the next action; return False, and do nothing, if there is none until ``limit``."""
        heap = self._heap
        if not heap or heap[0][0] > limit:
            return False
        self.now, _, action, details = heapq.heappop(heap)
        self.done += 1
        action(*details)
        return True
