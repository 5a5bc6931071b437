"""Vantages: the observation of frames and the known settings of the hosts, as data, and the periods that they imply."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from mxwire.units import MILLISECOND, SECOND
from mxwire.wire.numbers import PULL_TIMER, resend_ticks

LOST: Final = -1
"""Value of ``delivered_ns`` of a frame that never reaches its destination."""

DEFECTS: Final = frozenset(f"D-{number}" for number in range(1, 16))
"""The defects of real hosts (behaviour specification, chapter 23)."""


@dataclass(frozen=True, slots=True)
class Vantage:
    """Observation of the frames, and known settings of the hosts. All times are in nanoseconds.

    The defaults describe a capture of real hosts at one point of the path between them, started at any moment. See
    :data:`CAPTURE` and :data:`SENDERS`.
    """

    as_sent: bool = False
    """Each frame is observed once, as its host sends it, in the order of transmission. False: the network may have
    lost, duplicated, delayed or reordered frames before they were observed."""
    complete: bool = True
    """No frame was delivered without being observed. False if the capture itself dropped frames; then only rules that
    need a single frame are applied."""
    from_start: bool = False
    """All endpoints were opened after the observation began: hosts know nothing of each other except from observed
    frames."""
    empty_tables: bool = False
    """All hosts were started after the observation began: no host knows its index in another host's peer table before
    an observed frame teaches it."""
    clock_ns: int = 1_000_000
    """Uncertainty of the difference between two times."""
    reorder_ns: int = 100_000_000
    """Maximum delay of a frame, in the network or between a host's decision and the observer, after which a later frame
    may be observed first. Ignored with ``as_sent``."""
    hz: int | None = None
    """Kernel ticks per second of the hosts (R-GEN-03); None if unknown, any value from 100 to 1000."""
    resends_maximum: int | None = 1000
    """Retransmissions of a request before a partner is abandoned (R-RTX-03); None if hosts have other limits."""
    query_interval_ns: int = 5_000_000_000
    """Interval of name queries to a host (R-HOST-02); releases before 1.3.2 query every second."""
    excused: frozenset[str] = field(default=DEFECTS)
    """Defects (chapter 23) that are reported as notes; other defects count as breaches of the rules that they break."""


CAPTURE: Final = Vantage()
"""A capture of real hosts."""

SENDERS: Final = Vantage(as_sent=True, from_start=True, empty_tables=True, clock_ns=0, reorder_ns=0)
"""All frames as their hosts send them, starting with the first, with exact times: the vantage of a simulator."""


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
    return min((resend_ticks(rate) - 2) * SECOND // rate for rate in rates) - slack(vantage)


def pull_timer_least(vantage: Vantage) -> int:
    """Return the least silence before the timer re-requests a block (R-PUL-08)."""
    return PULL_TIMER - tick(vantage) - slack(vantage)


def pull_limit_most(vantage: Vantage, resends: int = 1000) -> int:
    """Return the longest time for which PULLs of one transfer continue (R-PUL-09): ``resends`` resend delays and two
    timers.

    A real host with 250 ticks per second, which computes 504 s, continued for 512 s (R-MEA-21).
    """
    rates = (vantage.hz,) if vantage.hz else (SLOWEST_HZ, FASTEST_HZ)
    longest = max(MEASURED_RESEND_DELAY, *(resend_ticks(rate) * SECOND // rate for rate in rates))
    return resends * longest + 2 * PULL_TIMER_MOST + slack(vantage)
