"""The periods that the rules speak of, in nanoseconds, as an observer may expect them."""

from __future__ import annotations

from typing import Final

from mxwire.rules.vantage import Vantage
from mxwire.units import MILLISECOND, SECOND
from mxwire.wire.numbers import PULL_TIMER

PULL_TIMER_MOST: Final = 1032 * MILLISECOND
"""The timer wheel of the kernel rounds up (R-MEA-20)."""
MEASURED_RESEND_DELAY: Final = 512 * MILLISECOND
SLOWEST_HZ: Final = 100
FASTEST_HZ: Final = 1000


def slack(vantage: Vantage) -> int:
    """How much shorter a period may look than it was."""
    return vantage.clock_ns + (0 if vantage.as_sent else vantage.reorder_ns)


def tick(vantage: Vantage) -> int:
    """The longest that a kernel tick may be."""
    return SECOND // (vantage.hz or SLOWEST_HZ)


def resend_delay_least(vantage: Vantage) -> int:
    """The least time between two transmissions of a request (R-RTX-01): the delay less two ticks.

    One had begun when the first transmission was timed, and the library's clock may be one behind (captures show 497 ms
    at 250 ticks a second).
    """
    rates = (vantage.hz,) if vantage.hz else (SLOWEST_HZ, FASTEST_HZ)
    return min(((rate + 2) // 2 - 2) * SECOND // rate for rate in rates) - slack(vantage)


def pull_timer_least(vantage: Vantage) -> int:
    """The least silence before a block is requested again by the timer (R-PUL-08)."""
    return PULL_TIMER - tick(vantage) - slack(vantage)


def pull_limit_most(vantage: Vantage, resends: int = 1000) -> int:
    """The longest that PULLs of one transfer go on (R-PUL-09): a thousand resend delays and one more timer.

    On a real host with 250 ticks per second, which computes 504 s, they went on for 512 s (R-MEA-21).
    """
    rates = (vantage.hz,) if vantage.hz else (SLOWEST_HZ, FASTEST_HZ)
    longest = max(MEASURED_RESEND_DELAY, *((rate + 2) // 2 * SECOND // rate for rate in rates))
    return resends * longest + 2 * PULL_TIMER_MOST + slack(vantage)
