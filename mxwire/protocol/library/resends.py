"""The queue of what is sent again when nobody answers: in the order of last transmission (section 12)."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from mxwire.protocol.profile import Profile


class Resendable(Protocol):
    """A delivery or a connect request."""

    resend_tick: int

    @property
    def waits(self) -> bool:
        """Whether it is still to be resent."""

    @property
    def exhausted(self) -> bool:
        """Whether the limit is reached."""

    def due(self) -> None:
        """Send it again."""


class Resends:
    """Everything of an endpoint that waits for an answer; constant time for each (R-RTX-01, R-RTX-02)."""

    def __init__(self, profile: Profile) -> None:
        self._tick_length = profile.tick
        self._delay = profile.resend_delay
        self._queue: deque[tuple[int, Resendable]] = deque()
        self._leaving: list[Resendable] = []
        self.tick = 0
        """The current tick."""

    def __len__(self) -> int:
        """How many wait."""
        return sum(each.waits for _, each in self._queue) + len(self._leaving)

    def sent(self, each: Resendable) -> None:
        """It has just been transmitted: it is due again after the resend delay."""
        each.resend_tick = self.tick + self._delay
        self._queue.append((each.resend_tick, each))

    def leaving(self, each: Resendable) -> None:
        """It is being transmitted; the delay counts from when its last fragment has left (R-RTX-02)."""
        self._leaving.append(each)

    def left(self) -> None:
        """Everything that was being transmitted has left."""
        if self._leaving:
            for each in self._leaving:
                self.sent(each)
            self._leaving.clear()

    def deadline(self) -> int | None:
        """When the next is due, in ns."""
        queue = self._queue
        while queue and not (queue[0][1].waits and queue[0][1].resend_tick == queue[0][0]):
            queue.popleft()
        return queue[0][0] * self._tick_length if queue else None

    @property
    def any_due(self) -> bool:
        """Whether anything may be due now."""
        queue = self._queue
        return bool(queue) and queue[0][0] <= self.tick

    def take_due(self) -> list[Resendable]:
        """Take out all that are due now."""
        found: list[Resendable] = []
        queue = self._queue
        while queue and queue[0][0] <= self.tick:
            due, each = queue.popleft()
            if each.waits and each.resend_tick == due:
                found.append(each)
        return found
