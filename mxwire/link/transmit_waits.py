"""Waits of a thread that transmits frames at given times: until a frame is due, and until a full queue has room."""

from __future__ import annotations

import ctypes
import time
from typing import Final

from mxwire.link.errors import LinkError
from mxwire.units import MILLISECOND, SECOND

SPIN_NS: Final = MILLISECOND
"""Time before a frame is due in which the thread polls the clock: a sleep is not precise enough."""
_CROWDED_NS: Final = 500_000
"""Delay from which another program must have had the CPU. After that, short waits sleep instead of polling, because the
scheduler favours a program that has slept."""
_NAP_NS: Final = 8_000
"""Shortest sleep; the thread polls the clock through shorter gaps."""
_AWAKE_NS: Final = 5_000
"""Time before a frame is due at which a sleep ends."""
_STUCK_NS: Final = 2 * SECOND
"""Time for which an interface may accept no frame."""
_PAUSE: Final = 0.0002
_SET_TIMER_SLACK: Final = 29
"""Option of prctl(2), which ctypes does not name."""


class PacedThread:
    """The short waits of a thread: it sleeps in them only once it has lost its CPU to another program."""

    def __init__(self) -> None:
        self._crowded = False

    def note_delay(self, late_ns: int) -> None:
        """Note by how much a frame was late."""
        if late_ns > _CROWDED_NS and not self._crowded:
            self._crowded = True
            # By default, the kernel delays wake-ups by 50 µs.
            ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, ctypes.c_ulong(1), 0, 0, 0)

    def nap(self, left_ns: int) -> None:
        """Sleep until shortly before a frame is due in ``left_ns``, if that is better than to poll the clock."""
        if self._crowded and left_ns > _NAP_NS:
            time.sleep((left_ns - _AWAKE_NS) / SECOND)


class FullQueue:
    """The wait for room in the queue of an interface."""

    def __init__(self, interface: str) -> None:
        self._interface = interface
        self._since: int | None = None

    def clear(self) -> None:
        """Note that the interface has accepted a frame."""
        self._since = None

    def pause(self, now: int) -> None:
        """Wait for a moment; raise :class:`~mxwire.link.errors.LinkError` if the queue has been full for too long."""
        self._since = now if self._since is None else self._since
        if now - self._since >= _STUCK_NS:
            raise LinkError(
                f"{self._interface}: no frame accepted for {_STUCK_NS // SECOND} s: it is down, or its queue is stuck; "
                f"see mxwire doctor -i {self._interface}"
            )
        time.sleep(_PAUSE)
