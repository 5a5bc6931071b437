"""Virtual time: a heap of what is to happen, in whole nanoseconds."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any


class Schedule:
    """What is to happen and when; at equal times in the order in which it was entered."""

    def __init__(self) -> None:
        self.now = 0
        """The virtual time in nanoseconds."""
        self.done = 0
        """How many things have happened."""
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._entered = 0

    def __len__(self) -> int:
        """How many things are to happen."""
        return len(self._heap)

    @property
    def next(self) -> int:
        """When the next thing is to happen; there must be one."""
        return self._heap[0][0]

    def at(self, time: int, action: Callable[..., None], *details: Any) -> None:
        """Let something happen at a time, which does not lie in the past."""
        self._entered += 1
        heapq.heappush(self._heap, (max(time, self.now), self._entered, action, details))

    def after(self, delay: int, action: Callable[..., None], *details: Any) -> None:
        """Let something happen after a delay in nanoseconds."""
        self.at(self.now + delay, action, *details)

    def step(self) -> None:
        """Let the next thing happen."""
        self.now, _, action, details = heapq.heappop(self._heap)
        self.done += 1
        action(*details)
