"""Contestants, and rounds that compare them fairly."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter


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


def processor_seconds(command: Sequence[str]) -> float:
    """Run a command without its output; return its processor time, user plus system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # The code of a command may report findings.
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode > 1:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def add_options(parser: argparse.ArgumentParser, rounds: int) -> None:
    """Add the options of every contest."""
    parser.add_argument("--rounds", type=positive, default=rounds, help="timed rounds of each (%(default)s)")
    parser.add_argument(
        "--minutes", type=float, default=20, help="begin no round after this time; one is complete (%(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="one short round, as a test")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")


def positive(text: str) -> int:
    """Return an integer of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def measure(capture: Capture, contestants: Sequence[Contestant], rounds: int, minutes: float = 20) -> list[Result]:
    """Run each contestant once to warm up, then all in turn, so that a disturbance affects all of them.

    Prints a line per run on standard error, and begins no round after ``minutes``, except the first.
    """
    taking_part = [(each.name, each.run) for each in contestants if each.run is not None]
    rates: dict[str, list[float]] = {name: [] for name, _ in taking_part}
    end = monotonic() + 60 * minutes
    for number in range(rounds + 1):
        if number > 1 and monotonic() > end:
            print(f"{capture.name}: {number - 1} of {rounds} rounds, after {minutes:g} minutes", file=sys.stderr)
            break
        for name, run in taking_part:
            outcome = run(capture)
            which = f"round {number} of {rounds}" if number else "to warm up"
            print(f"{capture.name}: {name}: {outcome.rate:,.0f} frames/s ({which})", file=sys.stderr, flush=True)
            if number:
                rates[name].append(outcome.rate)
    return [Result(name, tuple(measured)) for name, measured in rates.items()]
