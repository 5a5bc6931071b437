"""A window: memory of the other side that this side puts into and gets out of, between fences or under a lock.

Active: both sides fence before and after the accesses. Passive: the initiator locks the window, and the target does
nothing. The lock is that of a file, ``flock``: Python has no compare-exchange.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable

from mxwire.bench.intranode.mechanism import OneSided, Piece


class AccessWindow:
    """A side of a window over a one-sided mechanism. ``fence`` is the barrier of both sides."""

    def __init__(self, mechanism: OneSided, own: Piece, fence: Callable[[], None], lock_file: int) -> None:
        self._mechanism, self.fence = mechanism, fence
        # A descriptor of its own per side: those inherited share one lock.
        self._lock = os.open(f"/proc/self/fd/{lock_file}", os.O_RDWR)
        mechanism.offer(own)
        self._address = mechanism.offered()

    def access(self, piece: Piece) -> None:
        """Put the piece into the other side's memory or get it, by the mechanism's direction."""
        self._mechanism.move(piece, self._address)

    def lock(self) -> None:
        """Wait until the other side has unlocked the window, and lock it."""
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def unlock(self) -> None:
        """Let others have the window."""
        fcntl.flock(self._lock, fcntl.LOCK_UN)

    def close(self) -> None:
        """End the use of the window on both sides."""
        self._mechanism.report_moved()
        self._mechanism.await_moved()
        os.close(self._lock)
