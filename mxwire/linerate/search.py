"""Searches for limits, as RFC 2544 and RFC 9004 define them: decisions only, without frames and clocks.

Each search is a generator: it yields the next trial, receives the outcome, and returns the result. The same decisions
can therefore be tested with simulated devices and run with real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Final, TypeVar

from mxwire.errors import MxwireError

TRIALS_MAXIMUM: Final = 60
"""Trials after which a search ends with its best result so far, because the device does not behave reproducibly."""
_LOSS_STEP: Final = 10
"""Percent between two rates of a loss test (RFC 2544, section 26.3)."""

Try = TypeVar("Try")
Outcome = TypeVar("Outcome")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The highest value that passed, and how it was found."""

    value: float
    """0 if nothing passed."""
    settled: bool
    """False if the search ended before its resolution was reached."""


def search_rate(limit: float, resolution: float, repetitions: int = 1) -> Generator[float, bool, SearchResult]:
    """Find the highest rate at which all trials pass, up to ``limit``; yields rates, receives whether one passed.

    Bisection until the lowest failed rate is at most ``resolution`` of the limit above the highest passed one, which is
    then tried until it has passed ``repetitions`` times. A failure in these trials continues the search below
    (RFC 2544, section 26.1).
    """
    if not 0 < resolution < 1:
        raise MxwireError(f"a resolution lies between 0 and 100%, not {resolution:.3%}")
    step = limit * resolution
    passed: dict[float, int] = {}
    low, high, rate = 0.0, limit, limit
    failed = False
    for _ in range(TRIALS_MAXIMUM):
        if (yield rate):
            passed[rate] = passed.get(rate, 0) + 1
            low = max(low, rate)
        else:
            failed = True
            high = rate
            # Higher rates that passed before did so by chance: only lower ones still count.
            passed = {each: count for each, count in passed.items() if each < high}
            low = max(passed, default=0.0)
        if low == limit or (failed and high - low <= step):
            if not low or passed[low] >= repetitions:
                return SearchResult(low, True)
            rate = low
        else:
            rate = (low + high) / 2
    return SearchResult(low, False)


def step_down(limit: float) -> Generator[float, float, list[tuple[float, float]]]:
    """Try rates from ``limit`` down in steps of 10% until two in a row have no loss; yields rates, receives the loss.

    Returns rates and losses (0 to 1) in the order of the trials (RFC 2544, section 26.3).
    """
    found: list[tuple[float, float]] = []
    for percent in range(100, 0, -_LOSS_STEP):
        rate = limit * (percent / 100)
        found.append((rate, (yield rate)))
        if len(found) > 1 and not found[-1][1] and not found[-2][1]:
            break
    return found


def search_count(maximum: int, resolution: int = 1) -> Generator[int, bool, int]:
    """Find the highest count that passes, from 1 to ``maximum``; yields counts, receives whether one passed.

    For bursts (RFC 2544, section 26.4; RFC 9004): ``resolution`` is in frames.
    """
    if maximum < 1:
        raise MxwireError(f"a burst has at least 1 frame, not {maximum}")
    low, high, count = 0, maximum + 1, maximum
    while high - low > max(resolution, 1) or (not low and high > 1):
        # The maximum is the first one: often all of it passes, and one trial is enough.
        if (yield count):
            low = count
            if low == maximum:
                break
        else:
            high = count
        count = max((low + high) // 2, 1)
    return low


def decide(search: Generator[Try, Outcome, Found], attempt: Callable[[Try], Outcome]) -> Found:
    """Run a search: ``attempt`` makes each trial and returns its outcome."""
    try:
        tried = next(search)
        while True:
            tried = search.send(attempt(tried))
    except StopIteration as end:
        found: Found = end.value
        return found
