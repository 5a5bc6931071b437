"""The periods of the rules, in nanoseconds, with the tolerance that an observer must allow."""

from __future__ import annotations

from typing import Final

from mxwire.rules.vantage import Vantage
from mxwire.units import MILLISECOND, SECOND
from mxwire.wire.numbers import PULL_TIMER

PULL_TIMER_MOST: Final = 1032 * MILLISECOND
"""Longest pull timer: the kernel's timer wheel rounds up (R-MEA-20)."""
MEASURED_RESEND_DELAY: Final = 512 * MILLISECOND
SLOWEST_HZ: Final = 100
FASTEST_HZ: Final = 1000


def slack(vantage: Vantage) -> int:
    """Return how much shorter a period may appear than it was."""
    return vantage.clock_ns + (0 if vantage.as_sent else vantage.reorder_ns)


def tick(vantage: Vantage) -> int:
    """Return the longest possible kernel tick."""
    return SECOND // (vantage.hz or SLOWEST_HZ)


def resend_delay_least(vantage: Vantage) -> int:
    """Return the least time between two transmissions of a request (R-RTX-01): the delay less two ticks.

    One tick had begun when the first transmission was timed, and the library's clock may be one tick behind (captures
    show 497 ms at 250 ticks per second).
    """
    rates = (vantage.hz,) if vantage.hz else (SLOWEST_HZ, FASTEST_HZ)
    return min(((rate + 2) // 2 - 2) * SECOND // rate for rate in rates) - slack(vantage)


def pull_timer_least(vantage: Vantage) -> int:
    """Return the least silence before the timer re-requests a block (R-PUL-08)."""
    return PULL_TIMER - tick(vantage) - slack(vantage)


def pull_limit_most(vantage: Vantage, resends: int = 1000) -> int:
    """Return the longest time for which PULLs of one transfer continue (R-PUL-09): ``resends`` resend delays and two
    timers.

    A real host with 250 ticks per second, which computes 504 s, continued for 512 s (R-MEA-21).
    """
    rates = (vantage.hz,) if vantage.hz else (SLOWEST_HZ, FASTEST_HZ)
    longest = max(MEASURED_RESEND_DELAY, *((rate + 2) // 2 * SECOND // rate for rate in rates))
    return resends * longest + 2 * PULL_TIMER_MOST + slack(vantage)
