"""Contestants, and rounds that compare them fairly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from statistics import median
from time import perf_counter


@dataclass(frozen=True)
class Capture:
    """A capture to decode."""

    name: str
    path: Path
    frames: int

    @property
    def average_length(self) -> float:
        """Return the average number of bytes per frame."""
        return (self.path.stat().st_size - 24) / self.frames - 16


@dataclass(frozen=True)
class Outcome:
    """One round of one contestant."""

    frames: int
    seconds: float

    @property
    def rate(self) -> float:
        """Return frames per second."""
        return self.frames / self.seconds


Run = Callable[[Capture], Outcome]


@dataclass(frozen=True)
class Contestant:
    """A program or function that decodes captures."""

    name: str
    run: Run | None
    missing: str = ""
    """The reason why the contestant cannot take part, if ``run`` is None."""


@dataclass(frozen=True)
class Result:
    """All rounds of one contestant on one capture, in frames per second."""

    name: str
    rates: tuple[float, ...]

    @property
    def rate(self) -> float:
        """Return the median."""
        return median(self.rates)

    @property
    def spread(self) -> float:
        """Return half the difference between the fastest and the slowest round, relative to the median."""
        return (max(self.rates) - min(self.rates)) / 2 / self.rate


def timed(decode: Callable[[Capture], int]) -> Run:
    """Return a contestant from a function that decodes a capture and returns the number of frames."""

    @wraps(decode)
    def run(capture: Capture) -> Outcome:
        start = perf_counter()
        frames = decode(capture)
        return Outcome(frames, perf_counter() - start)

    return run


def measure(capture: Capture, contestants: Sequence[Contestant], rounds: int) -> list[Result]:
    """Run each contestant once to warm up, then all in turn, so that a disturbance affects all of them."""
    taking_part = [(each.name, each.run) for each in contestants if each.run is not None]
    rates: dict[str, list[float]] = {name: [] for name, _ in taking_part}
    for number in range(rounds + 1):
        for name, run in taking_part:
            outcome = run(capture)
            if number:
                rates[name].append(outcome.rate)
    return [Result(name, tuple(measured)) for name, measured in rates.items()]
