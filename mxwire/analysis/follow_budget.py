"""The time for following messages in live traffic, and the pairs of hosts that are followed in it.

Theory of operation
===================

The follower of messages and the examiners of ``diagnose`` take several microseconds per frame, and may use
:data:`SHARE` of a processor. Time is divided into slots of :data:`SLOT_NS`; if the time for following is used up
before the end of a slot, following pauses until the next one, and then only a part of the pairs of hosts is followed, a
different part in each slot: half of the pairs, a quarter, and so on, until the time suffices. Since complete pairs are
selected, and followed without a break within a slot, their messages and findings are as accurate as without selection.
A single pair that is too fast is followed for the first part of a slot. When less than a quarter of the time is used,
the part is doubled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.units import SECOND

SHARE: Final = 0.5
"""Share of a processor for following; the rest is for counting and for display."""
SLOT_NS: Final = 2 * SECOND
"""Length of a slot. Longer ones show more of the retransmissions of a pair, which come every 500 ms; but frames wait in
the memory of the tap while a slot is followed, at most ``SHARE`` of its length."""
FEW: Final = 5000
"""Number of frames per slot that are always followed, even if late, because delays then have other causes than
following."""
PARTS_MAXIMUM: Final = 256


class FollowBudget:
    """Selector of the frames to follow: all of them, or those of some pairs for some time.

    ``share`` is the share of a processor that following may use, None for no limit; the clocks are those of the
    observer.
    """

    def __init__(self, share: float | None, clock: Callable[[], int], processor_time: Callable[[], int]) -> None:
        self._limit = float("inf") if share is None else share * SLOT_NS
        self._clock = clock
        self._processor_time = processor_time
        self.parts = 1
        """Number of parts into which the pairs are divided; one of them is followed."""
        self.part = 0
        self.paused = False
        self._spent = self._frames = 0
        self._end = clock() + SLOT_NS
        self._rows: set[int] = set()

    def begins(self, *, restart: bool) -> bool:
        """Begin the next slot if it is due.

        Return True if following restarts: with another selection of pairs, or if ``restart`` requests it.
        """
        now = self._clock()
        if now < self._end:
            return False
        self._end = now + SLOT_NS
        sampled = self.paused or self.parts > 1 or restart
        if self.paused and len(self._rows) > 1:
            self.parts = min(2 * self.parts, PARTS_MAXIMUM)
        elif not self.paused and self._spent < self._limit / 4:
            self.parts = max(self.parts // 2, 1)
        self.part = (self.part + 1) % self.parts
        self.paused = False
        self._spent = self._frames = 0
        self._rows = set()
        return sampled

    def selects(self, row: Any) -> Any:
        """Return whether the pairs of a row, or of an array of rows, are among those followed now."""
        return row % self.parts == self.part

    def started(self) -> int:
        """Return the time to pass to :meth:`spend`."""
        return self._processor_time()

    @property
    def is_used(self) -> bool:
        """True if enough frames were followed in this slot to cause delays."""
        return self._frames > FEW

    def exceed(self) -> None:
        """Pause following until the end of the slot."""
        self.paused = self._limit < float("inf")

    def spend(self, started_ns: int, rows: NDArray[np.intp]) -> None:
        """Note that frames of the pairs ``rows`` were followed since ``started_ns``."""
        if len(self._rows) < 2:
            self._rows.update(np.unique(rows).tolist())
        self._frames += len(rows)
        self._spent += self._processor_time() - started_ns
        self.paused = self._spent > self._limit
