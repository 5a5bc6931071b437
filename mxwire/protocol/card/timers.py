"""The timers of the pulls of an interface: one entry a pull, looked at only when the earliest may be due."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mxwire.protocol.card.pull import Pull, PullEvent, PullState
from mxwire.protocol.status import Status

if TYPE_CHECKING:
    from mxwire.protocol.profile import Profile


class PullTimers:
    """When the next pull has waited too long (R-PUL-06, R-PUL-08, R-PUL-09)."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._heap: list[tuple[int, int, Pull]] = []
        self._order = 0
        self._live: dict[Pull, None] = {}

    def __len__(self) -> int:
        """How many pulls are under way, orphans included."""
        return len(self._live)

    def __iter__(self) -> Iterator[Pull]:
        """The pulls under way, in the order of their start."""
        return iter(self._live)

    def watch(self, pull: Pull) -> None:
        """Mind a pull's timer until it is forgotten."""
        self._live[pull] = None
        self._push(pull)

    def forget(self, pull: Pull) -> None:
        """The pull has ended; its entry goes when its time comes."""
        self._live.pop(pull, None)

    def deadline(self) -> int | None:
        """When the next timer expires, in ns; None without a pull."""
        heap = self._heap
        while heap:
            deadline, _, pull = heap[0]
            if pull in self._live and pull.deadline == deadline:
                return deadline
            heapq.heappop(heap)
            if pull in self._live:
                self._push(pull)
        return None

    def expire(self, now: int) -> None:
        """Let every pull whose time has come ask again, or end at the time limit."""
        while (deadline := self.deadline()) is not None and deadline <= now:
            _, _, pull = heapq.heappop(self._heap)
            if now - pull.started > self._profile.pull_limit:
                pull.fire(PullEvent.OVERDUE, Status.REMOTE_ENDPOINT_UNREACHABLE)
            else:
                pull.fire(PullEvent.EXPIRED, now)
            if pull.state != PullState.ENDED:
                self._push(pull)

    def _push(self, pull: Pull) -> None:
        self._order += 1
        heapq.heappush(self._heap, (pull.deadline, self._order, pull))
