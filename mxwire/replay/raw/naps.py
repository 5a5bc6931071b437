"""Precise short sleeps of the current thread."""

from __future__ import annotations

import ctypes
from typing import Final

_SET_TIMER_SLACK: Final = 29
_LEAST_NS: Final = 1


def make_timers_precise() -> None:
    """Set the timer slack of this thread to the minimum; by default the kernel delays wake-ups by 50 µs."""
    ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, ctypes.c_ulong(_LEAST_NS), 0, 0, 0)
