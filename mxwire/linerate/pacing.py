"""Pacing of a generator: a token bucket over a clock in nanoseconds, without a clock of its own."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.errors import MxwireError
from mxwire.units import MILLISECOND, SECOND

DEPTH_NS: Final = 10 * MILLISECOND
"""Default depth of the bucket as a time: if a sender loses the CPU for longer, it does not catch up on the remaining
frames.
"""


def burst_gap(rate: float, burst: int) -> float:
    """Return the interval in ns between bursts of ``burst`` frames at a total rate of ``rate`` frames per second.

    Raises :class:`~mxwire.errors.MxwireError` for a rate or burst that is not possible.
    """
    if not 0 < rate < float("inf"):
        raise MxwireError(f"invalid rate {rate:g}: give a number of frames per second greater than 0")
    if burst < 1:
        raise MxwireError(f"a burst has at least 1 frame, not {burst}")
    return burst * SECOND / rate


class TokenBucket:
    """Limits the number of frames that may be sent, so that bursts of ``burst`` frames have the rate ``rate``.

    ``rate`` is in frames per second. Frames are due in bursts at equal intervals from ``start`` on, in ns. A late
    sender catches up by at most ``depth`` frames at once. The others are forgone and counted, so the rate is never
    exceeded for longer than it takes to send ``depth`` frames.
    """

    def __init__(self, rate: float, start: int, *, burst: int = 1, depth_ns: int = DEPTH_NS) -> None:
        self.burst = burst
        self._gap = burst_gap(rate, burst)
        # At least one, as a bucket without room would forgo all bursts of a slow rate.
        bursts = max(int(rate * depth_ns / SECOND) // burst, 1)
        self.depth = bursts * burst
        """Maximum number of frames that may be sent at once."""
        self._start = float(start)
        self._taken = 0
        self.forgone = 0
        """Frames that were due and not sent because the sender was late by more than the depth."""

    def restart(self, now: int) -> None:
        """Move the start to ``now``, at which the first burst has just been sent."""
        self._start = float(now)

    def due(self, now: int) -> int:
        """Return the number of frames that may be sent at ``now``."""
        if now < self._start:
            return 0
        bursts = int((now - self._start) / self._gap) + 1
        due = bursts * self.burst - self._taken
        if due > self.depth:
            excess = (due - self.depth) // self.burst
            self._start += excess * self._gap
            self.forgone += excess * self.burst
            due -= excess * self.burst
        return due

    def take(self, now: int, at_most: int) -> int:
        """Return the number of frames to send at ``now``, at most ``at_most``, and count them as sent."""
        taken = min(self.due(now), at_most)
        self._taken += taken
        return taken

    def give_back(self, count: int) -> None:
        """Return frames that were taken and could not be sent."""
        self._taken -= count

    def next_due(self) -> int:
        """Return a time at which the next frame is due, at most 2 ns after it became so."""
        # Rounded up, since the division in ``due`` is inexact.
        return int(self._start + self._taken // self.burst * self._gap) + 1

    def lateness(self, now: int, count: int) -> NDArray[np.int64]:
        """Return how late the last ``count`` frames taken are at ``now``, in ns, shape (count,)."""
        frames = np.arange(self._taken - count, self._taken)
        return (now - self._start - frames // self.burst * self._gap).astype(np.int64)
