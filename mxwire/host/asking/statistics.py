"""Statistics of round trips, with the names of ping(8)."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Times:
    """What some round trips took, in nanoseconds."""

    minimum: int
    average: float
    maximum: int
    deviation: float
    """Standard deviation, which ping(8) calls mdev."""
    median: int
    percentile_99: int
    """99 of 100 took at most so long."""


class RoundTrips:
    """How many questions were asked and answered, and how long that took."""

    def __init__(self) -> None:
        self.sent = 0
        self.answered = 0
        self.duplicates = 0
        """Answers to what was answered already."""
        self.refused = 0
        """Questions that were answered by a refusal."""
        self._times = array("q")

    def add(self, nanoseconds: int) -> None:
        """A question was answered."""
        self.answered += 1
        self._times.append(nanoseconds)

    @property
    def loss(self) -> float:
        """The part of the questions that nothing came back for, 0 to 1."""
        return 1 - (self.answered + self.refused) / self.sent if self.sent else 0.0

    def times(self) -> Times | None:
        """What the answered ones took; None where there is none."""
        if not self._times:
            return None
        ordered = sorted(self._times)
        average = sum(ordered) / len(ordered)
        return Times(
            minimum=ordered[0],
            average=average,
            maximum=ordered[-1],
            deviation=math.sqrt(sum((each - average) ** 2 for each in ordered) / len(ordered)),
            median=percentile(ordered, 50),
            percentile_99=percentile(ordered, 99),
        )


def percentile(ordered: list[int], percent: int) -> int:
    """The smallest value that at least ``percent`` of 100 values do not exceed (nearest rank)."""
    return ordered[max(0, math.ceil(percent * len(ordered) / 100) - 1)]
