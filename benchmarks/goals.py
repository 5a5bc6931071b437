"""Performance goals of the project, and their comparison with measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import ours
import peers
from contest import Result

MILLION = 1_000_000


@dataclass(frozen=True)
class Goal:
    """A rate that a contestant must reach, or a multiple of another contestant's rate; one of the two is enough."""

    capture: str
    contestant: str
    frames_per_second: float | None = None
    other: str = ""
    ratio: float = 0.0

    @property
    def text(self) -> str:
        """Return the goal in words."""
        ways = [f"{self.ratio:g} x {self.other}"]
        if self.frames_per_second is not None:
            ways.insert(0, f"{self.frames_per_second:,.0f} frames/s")
        return f"{self.capture}: {self.contestant} at least {' or '.join(ways)}"


@dataclass(frozen=True)
class Verdict:
    """A goal, the measured value, and whether it is reached, or None if that is unknown."""

    goal: Goal
    rate: float | None
    ratio: float | None
    reached: bool | None


GOALS = (
    Goal("small", ours.COLUMNS_NUMBA, 6 * MILLION, peers.SCAPY, 400),
    Goal("small", ours.COLUMNS, 3 * MILLION, peers.SCAPY, 200),
    Goal("small", ours.TYPED_FRAMES, 100_000, peers.SCAPY, 7),
    Goal("small", ours.PARQUET, None, peers.TSHARK, 50),
    Goal("small", ours.PARQUET_PROCESS, None, peers.TSHARK, 50),
    Goal("mixed", ours.COLUMNS_NUMBA, None, peers.LIBPCAP, 0.6),
)


def judge(goal: Goal, results: Mapping[str, Result]) -> Verdict:
    """Compare a goal with the results for its capture, by name of the contestant."""
    measured, other = results.get(goal.contestant), results.get(goal.other)
    rate = measured.rate if measured else None
    ratio = measured.rate / other.rate if measured and other else None
    enough = [
        has >= wanted
        for has, wanted in ((rate, goal.frames_per_second), (ratio, goal.ratio))
        if has is not None and wanted is not None
    ]
    undecided = not enough or (not any(enough) and ratio is None)
    return Verdict(goal, rate, ratio, None if undecided else any(enough))
