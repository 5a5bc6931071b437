"""Common part of all studies: points with one more sample per round, and the result of a study that ends early."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Final, TypeVar

from mxwire.bench.errors import SilenceError
from mxwire.bench.record import VARIED, Conditions, Measurement, Recording, Series
from mxwire.bench.rounds import LEAST_ROUNDS, QUICK_ROUNDS
from mxwire.bench.testbed import SideLostError, StudyTestbed, TestbedError
from mxwire.errors import MxwireError
from mxwire.words import count_of

Tables = TypeVar("Tables")
LEAST_NS: Final = 30_000_000
"""Duration of the operations of a point in a round."""
LEAST_OPERATIONS: Final = 100
_LONG_NS: Final = 1_000_000
_QUICK_OPERATIONS: Final = 10
_MOST_OPERATIONS: Final = 4000
_PREEMPTED: Final = 0.1
"""A round counts as disturbed if other programs had the processor of a polling side for this share of the time."""


def _ignore(_: object) -> None:
    return


@dataclass(frozen=True)
class StudyOptions:
    """Settings that all studies have."""

    rounds: int = LEAST_ROUNDS
    quick: bool = False
    """Few operations and rounds: for tests of shapes and counts, not of times."""
    progress: Callable[[str], object] = field(default=_ignore, compare=False)
    """Called with a description of each step."""
    on_start: Callable[[Recording], object] = field(default=_ignore, compare=False)
    """Called with the recording before the first measurement, so that a caller can keep it after Ctrl-C."""
    limit: float | None = None
    """Time in seconds after which a part of the study begins no further round."""

    @property
    def warm_up(self) -> int:
        """Number of rounds that are not counted; none of a quick study, whose times are not judged."""
        return 0 if self.quick else 1

    @classmethod
    def of(cls, rounds: int | None, quick: bool, progress: Callable[[str], object] = _ignore) -> StudyOptions:
        """The options of a command line; ``rounds`` is None for the default."""
        return cls(rounds or (QUICK_ROUNDS if quick else LEAST_ROUNDS), quick, progress)

    def begin(self, study: str, conditions: Conditions) -> Recording:
        """Return the empty recording of a study, after passing it to ``on_start``."""
        recording = Recording(study, replace(conditions, quick=self.quick))
        self.on_start(recording)
        return recording

    def operations(self, ns: float, least_ns: int = LEAST_NS) -> int:
        """Operations of a point in a round, if one takes ``ns``.

        At least :data:`LEAST_OPERATIONS`; operations of more than a millisecond have this number in all rounds
        together.
        """
        if self.quick:
            return _QUICK_OPERATIONS
        least = -(-LEAST_OPERATIONS // self.rounds) if ns > _LONG_NS else LEAST_OPERATIONS
        return max(least, min(int(least_ns / max(ns, 1)), _MOST_OPERATIONS))


@dataclass
class _Point:
    unit: str
    parameters: dict[str, Any]
    samples: list[float] = field(default_factory=list)
    details: list[dict[str, float]] = field(default_factory=list)
    counts: dict[str, float] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)


class Points:
    """Measurements of a study under way: series of points, each with one sample per round."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._series: dict[str, tuple[str, str, str]] = {}
        self._points: dict[tuple[str, str, Any], _Point] = {}

    def declare(self, unit: str, *series: str, x: str = "size", x_unit: str = "bytes") -> None:
        """Announce series of values in ``unit`` along the axis ``x``, in the order of the report."""
        self._series |= dict.fromkeys(series, (unit, x, x_unit))

    def add(
        self,
        series: str,
        name: str,
        sample: float,
        *,
        details: dict[str, float] | None = None,
        marks: tuple[str, ...] = (),
        counts: dict[str, float] | None = None,
        **parameters: Any,
    ) -> None:
        """Add the sample of a round to a point; its parameters include that of the axis."""
        unit, x, _ = self._series[series]
        point = self._points.setdefault((series, name, parameters.get(x)), _Point(unit, parameters))
        point.samples.append(sample)
        point.details.append(details or {})
        point.counts |= counts or {}
        for each in marks:
            point.marks[each] = point.marks.get(each, 0) + 1

    def count(self, series: str, name: str, counts: dict[str, float], **parameters: Any) -> None:
        """Add counts to a point that has been measured."""
        _, x, _ = self._series[series]
        point = self._points.get((series, name, parameters.get(x)))
        if point is not None:
            point.counts |= counts

    def fill(self) -> Recording:
        """Put the points into the recording, and return that."""
        self._recording.series = []
        for series, (unit, x, x_unit) in self._series.items():
            measurements = [
                _measurement(name, point)
                for (its, name, _), point in self._points.items()
                if its == series and point.samples
            ]
            if measurements:
                self._recording.series.append(Series(series, unit, x, x_unit, measurements))
        return self._recording


def _measurement(name: str, point: _Point) -> Measurement:
    keys = {key for each in point.details for key in each}
    details = {}
    for key in sorted(keys):
        details[key] = median(each[key] for each in point.details if key in each)
    # A single disturbed round does not move the median, and a lost one was repeated; the number of both is recorded.
    marks = tuple(each for each, times in point.marks.items() if each != "disturbed" or times * 4 > len(point.samples))
    counts = point.counts | {f"rounds {each}": float(times) for each, times in point.marks.items()}
    return Measurement(name, point.unit, tuple(point.samples), point.parameters, counts, marks, details)


def round_marks(found: dict[str, Any], *, spinning: bool = True) -> tuple[str, ...]:
    """Marks of a round from the values of a side: lost messages, and time for which a polling side had no processor."""
    marks = []
    if found.get("lost"):
        marks.append("lost")
    if found.get("frames", {}).get("retransmitted"):
        marks.append("retransmitted")
    use = found.get("use")
    if spinning and use and use["wall"] > 0 and _busy(use) < (1 - _PREEMPTED) * use["wall"]:
        marks.append("disturbed")
    return tuple(marks)


def _busy(use: dict[str, float]) -> float:
    """The time of a side, with that of the kernel's threads on its processor, which work for its messages."""
    return use["cpu"] + use.get("softirq", 0.0)


@contextmanager
def kept(recording: Recording, points: Points) -> Iterator[None]:
    """Keep the measurements of a study that ends early: by Ctrl-C, or because a side or a rank is lost or fails.

    Then the recording is marked as partial, with the reason. KeyboardInterrupt is raised again afterwards, and so is
    the error of a study that has measured nothing.
    """
    try:
        yield
    except KeyboardInterrupt:
        recording.complete = False
        recording.remarks.append("interrupted by Ctrl-C")
        points.fill()
        raise
    except MxwireError as error:
        recording.complete = False
        recording.remarks.append(f"ended early: {error}")
        if not points.fill().series and not isinstance(error, (SideLostError, SilenceError)):
            raise
    points.fill()


def vary(
    recording: Recording,
    options: StudyOptions,
    tables: Iterable[tuple[str, Tables]],
    compute: Callable[[Tables, StudyOptions], Sequence[Recording]],
) -> None:
    """Add the fact :data:`VARIED` to the recording of a study in virtual time, unless it is quick or partial.

    It has the points that result with other tables of costs.
    """
    if recording.complete and not options.quick:
        varied = []
        for name, costs in tables:
            options.progress(f"{recording.study}, with {name}")
            found = compute(costs, StudyOptions(options.rounds))
            varied.append({"guess": name, "points": [point for part in found for point in part.values()]})
        recording.facts[VARIED] = varied


@dataclass
class Turns:
    """Contestants that take turns; one that cannot play, or loses messages in all repetitions, is left out then.

    If its side or rank has failed, the recording is partial. After ``limit`` seconds no further round begins: the
    recording is partial then, too, and a remark that begins with ``part`` reports it.
    """

    recording: Recording
    progress: Callable[[str], object] = _ignore
    limit: float | None = None
    part: str = ""
    out: set[str] = field(default_factory=set)
    """Contestants that were left out."""

    def play(self, contestants: dict[str, Callable[[int], None]], rounds: int, *, warm_up: int) -> None:
        """Call each contestant once per round with the number of the round, which is negative while warming up."""
        begun = time.monotonic()
        for number in range(-warm_up, rounds):
            if number > 0 and self.limit is not None and time.monotonic() > begun + self.limit:
                took = f"{number} of {rounds} rounds: they took more than {self.limit:g} s"
                self.recording.remarks.append(self.part + took)
                self.recording.complete = False
                return
            label = "warm-up" if number < 0 else f"round {number + 1} of {rounds}"
            order = list(contestants.items())
            # Every other round in reverse order, since each contestant inherits caches and clock rate from the one
            # before.
            for name, run in order if number % 2 == 0 else reversed(order):
                if name in self.out:
                    continue
                self.progress(f"{label}: {name}")
                try:
                    run(number)
                # Without that side, no other contestant can play either.
                except SideLostError:
                    raise
                except MxwireError as error:
                    self.out.add(name)
                    # Lost messages are a result; a side or rank that fails is not.
                    self.recording.complete &= isinstance(error, SilenceError) or not isinstance(error, TestbedError)
                    measured = count_of(max(number, 0), "round")
                    self.recording.remarks.append(f"{name}: left out after {measured}: {error}")


class TestbedStudy:
    """A study under way on a testbed, which fills a recording."""

    def __init__(self, testbed: StudyTestbed, recording: Recording, options: StudyOptions) -> None:
        self._testbed, self._recording, self._options = testbed, recording, options
        self._points = Points(recording)

    def _usable(self, carrier: str) -> bool:
        """Return whether the testbed has a carrier; otherwise the recording has a remark with the reason."""
        reason = self._testbed.can_use(carrier)
        if reason is not None:
            self._recording.remark(f"{carrier}: not applicable: {reason}")
        return reason is None

    def _take_turns(self, contestants: dict[str, Callable[[int], None]]) -> Turns:
        """Let contestants take turns, and return these."""
        turns = Turns(self._recording, self._options.progress, self._options.limit)
        # In virtual time all rounds are equal, so no round has to determine the length of the next.
        rounds, warm_up = (1, 0) if self._testbed.virtual else (self._options.rounds, self._options.warm_up)
        turns.play(contestants, rounds, warm_up=warm_up)
        return turns
