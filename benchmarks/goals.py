"""The goals of the project, and their comparison with measurements.

A goal is judged for each dialect and each way of steering that it names, and for each size: the worst one decides. In
addition, each figure that the README prints from the recording (recording.jsonl) is a goal of the same machine: the new
median must be as good, within a tenth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from mxwire.bench.record import Measurement, Recording, read_recordings

RECORDING = Path(__file__).with_name("recording.jsonl")
TENTH = 0.1
DIALECTS = ("mxoe", "omx:9000")
README = {"curve": ("half round trip", "windowed rate")}
"""The series that the README prints, by benchmark."""
OURS = (*DIALECTS, "libmyriexpress")
"""The contestants of these series that are mxwire."""
How = Literal["ratio", "difference", "value"]


def at_most(unit: str) -> bool:
    """Return whether less is better: unless the unit is a rate."""
    return not unit.endswith("/s")


@dataclass(frozen=True)
class Goal:
    """A limit for a contestant in a series: of its ratio to another one, of the difference, or of the value itself."""

    benchmark: str
    series: str
    contestant: str
    limit: float
    other: str = ""
    """The other contestant; the same one in ``other_series`` if only that is given."""
    sizes: tuple[float, float] = (0, float("inf"))
    """The least and the greatest size."""
    how: How = "ratio"
    other_series: str = ""
    enough: float | None = None
    """A value that is sufficient, whatever the ratio."""
    other_size: float | None = None
    """The size of the other point, if not the same."""

    @property
    def compared(self) -> str:
        """The limit in words."""
        at = "" if self.other_size is None else f"{self.other_size:,.0f}"
        other = ", ".join(each for each in (self.other, self.other_series, at) if each)
        text = {
            "ratio": f"{self.limit:g} x {other}",
            "difference": f"{other} + {self.limit:g}",
            "value": f"{self.limit:g}",
        }[self.how]
        return text if self.enough is None else f"{text}, or {self.enough:g}"


@dataclass(frozen=True)
class Verdict:
    """A goal, and the measurement that is closest to missing it."""

    goal: Goal
    unit: str
    size: float | None
    value: float
    found: float
    """The ratio, the difference, or the value."""
    reached: bool

    @property
    def text(self) -> str:
        """The verdict in a line."""
        goal = self.goal
        at = "" if self.size is None else f" at {self.size:,.0f}"
        way = "at most" if at_most(self.unit) else "at least"
        shown = {"ratio": f", {self.found:.2f} x", "difference": f", {self.found:+.3g}", "value": ""}[goal.how]
        head = f"{'reached' if self.reached else 'MISSED '}  {goal.series}, {goal.contestant}: {way} {goal.compared}"
        return f"{head}: {self.value:,.4g} {self.unit}{shown}{at}"

    def record(self) -> dict[str, Any]:
        """The verdict as an object for JSON."""
        sizes = [None if each == float("inf") else each for each in self.goal.sizes]
        return (
            {"record": "goal"}
            | asdict(self.goal)
            | {"sizes": sizes}
            | {
                "unit": self.unit,
                "size": self.size,
                "value": self.value,
                "found": self.found,
                "reached": self.reached,
            }
        )


def judged(goal: Goal, recording: Recording) -> Verdict | None:
    """Judge a goal; None if it was not measured."""
    series, others = recording.named(goal.series), recording.named(goal.other_series or goal.series)
    found = []
    for each in series.curve(goal.contestant):
        size = each.parameters.get(series.x)
        other = None
        if goal.how != "value":
            place = size if goal.other_size is None else goal.other_size
            other = others.point(goal.other or goal.contestant, place)
        if (other is None and goal.how != "value") or not goal.sizes[0] <= (size or 0) <= goal.sizes[1]:
            continue
        found.append(_verdict(goal, each, other, size))
    if not found:
        return None
    missed = [each for each in found if not each.reached]
    return (max if at_most(found[0].unit) else min)(missed or found, key=lambda each: each.found)


def _verdict(goal: Goal, measurement: Measurement, other: Measurement | None, size: float | None) -> Verdict:
    value, unit = measurement.median, measurement.unit
    found = value
    if other is not None:
        found = value - other.median if goal.how == "difference" else value / max(other.median, 1e-9)
    less = at_most(unit)
    reached = found <= goal.limit if less else found >= goal.limit
    if goal.enough is not None:
        reached |= value <= goal.enough if less else value >= goal.enough
    return Verdict(goal, unit, size, value, found, reached)


def verdicts(recording: Recording) -> list[Verdict]:
    """Judge all goals of a recording that were measured."""
    goals = [*(each for each in GOALS if each.benchmark == recording.study), *published(recording)]
    return [found for each in goals if (found := judged(each, recording)) is not None]


def published(recording: Recording) -> Iterator[Goal]:
    """Yield the figures of the README as goals, if they were recorded on such a machine."""
    for old in read_recordings(RECORDING) if RECORDING.exists() else ():
        if old.study != recording.study or not same_machine(old, recording):
            continue
        for series in (each for each in old.series if each.name in README.get(old.study, ())):
            for each in (each for each in series.measurements if each.name in OURS):
                size = each.parameters.get(series.x, 0)
                limit = each.median * (1 + TENTH if at_most(series.unit) else 1 - TENTH)
                yield Goal(old.study, series.name, each.name, limit, sizes=(size, size), how="value")


def same_machine(old: Recording, new: Recording) -> bool:
    """Return whether speeds of two recordings can be compared: the same processors, and both compiled or not."""
    names = ("processor", "processors", "virtual_machine", "compiled", "quick")
    return all(getattr(old.conditions, each) == getattr(new.conditions, each) for each in names)


# The goals

_KIB, _MIB = 1 << 10, 1 << 20
_WAYS = ("", ", steered")


def _curve() -> Iterator[Goal]:
    """Messages between two hosts: no cliff, and close to the frames alone."""
    trip, rate, library = "half round trip", "windowed rate", "libmyriexpress"
    for dialect in DIALECTS:
        for way in _WAYS:
            limit = f"frames, {dialect}"
            bounds = ((2.0, (0, 64 * _KIB)), (1.6, (256 * _KIB, 256 * _KIB)), (1.3, (_MIB, _MIB)))
            for ratio, sizes in bounds:
                yield Goal("curve", trip + way, dialect, ratio, limit, sizes)
            for other in ("udp", "tcp"):
                yield Goal("curve", rate + way, dialect, 0.6, other, (4096, 4096))
            yield Goal("curve", rate + way, dialect, 0.95, limit, (4 * _MIB, 4 * _MIB))
    for contestant in OURS:
        yield Goal("curve", trip, contestant, 1.5, sizes=(129, 129), other_size=128)
    for dialect in DIALECTS:
        cost = "processor time, half round trip"
        yield Goal("live_processor", cost, dialect, 1.2, sizes=(129, 129), other_size=128)
        yield Goal("live_processor", f"{cost}, 2 bytes in two segments", dialect, 1.2, other_series=f"{cost}, 2 bytes")
    yield Goal("curve", trip, library, 1.0, "mxoe", how="difference")
    yield Goal("curve", rate, library, 0.95, "mxoe")
    yield Goal("curve", "mx_test with nothing new", library, 20.0, how="value")
    yield Goal("curve", "mx_init", library, 0.3, how="value")


def _live() -> Iterator[Goal]:
    """Messages from Python beside sockets from Python."""
    for way in _WAYS:
        large = f"messages of 4 MiB (ring: 1 MiB){way}"
        trips = f"half round trip, 0 bytes{way}"
        yield Goal("live", large, "mxoe over xdp-send", 1.1, "mxoe")
        for dialect, share in zip(DIALECTS, (0.8, 1.0), strict=True):
            yield Goal("live", large, dialect, share, "tcp")
            yield Goal("live", f"messages of 8 bytes, 64 under way{way}", dialect, 0.7, "udp")
            yield Goal("live", trips, dialect, 2.0, "frames")
            yield Goal("live", f"{trips}, 99th percentile", dialect, 3.0, "frames")


def _agent() -> Iterator[Goal]:
    """Ends are noticed within a second, and delay others by at most 10 ms."""
    ended = ("program killed", "program killed, many receives", "program stopped")
    for contestant in ("agent killed, match", "agent killed, card", *ended):
        yield Goal("agent", "time until an end is noticed", contestant, 1000.0, how="value")
    for contestant in ended:
        late, early = (f"longest round trip of another program, {when}" for when in ("at the end", "before"))
        yield Goal("agent", late, contestant, 10.0, other_series=early, how="difference")


def _analysis() -> Iterator[Goal]:
    """Commands over tiny messages, in processor time without their start, and calls."""
    for capture, rates in (
        ("tiny messages", {"messages, call": 400_000, "verification, call": 300_000}),
        ("large messages", {"messages, call": 300_000, "verification, call": 300_000}),
    ):
        for contestant, least in rates.items():
            yield Goal("analysis", f"{capture}, calls", contestant, least, how="value")
    least = {"messages": 400, "verify": 300, "messages --json": 200, "decode --json": 200, "decode": 500}
    for command, thousands in least.items():
        yield Goal("analysis", "tiny messages, commands", command, 1000.0 * thousands, how="value")
        for many in ("100", "10,000"):
            series = f"tiny messages, {many} hosts, commands"
            yield Goal("analysis", series, command, 1 / 1.3, other_series="tiny messages, commands")
    for command in ("messages --json", "decode --json"):
        yield Goal("analysis", "JSON per frame, tiny messages", command, 400, how="value")
    for kind in ("tiny", "large"):
        once, twice = (f"peak memory, {kind} messages, {times}" for times in ("once", "twice"))
        for contestant in ("messages", "verification"):
            yield Goal("analysis", twice, contestant, 1.25, other_series=once)
    for command in ("messages", "verify"):
        many = "peak memory of a command, tiny messages, 10,000 hosts"
        yield Goal("analysis", many, command, 400.0, how="value")


def _line_rate() -> Iterator[Goal]:
    """Generators beside other programs."""
    for size, through in ((72, 1.3), (4136, 1.15)):
        alone = f"{size} bytes without receiver"
        for other, ratio in (("C program", 0.85), ("sendmmsg", 1.3), ("tcpreplay -K", 2.0)):
            yield Goal("linerate", alone, "AF_XDP", ratio, other)
        yield Goal("linerate", f"{size} bytes through, every header checked", "AF_XDP", through, "sendmmsg")
    for size in (64, 1500):
        yield Goal("linerate", f"{size} bytes to native AF_XDP", "live frames", 3.0, "AF_XDP")
    paced = "error of arrival times at 50,000 frames/s, 99th percentile"
    for benchmark, contestant in (("linerate", "sendmmsg"), ("replay", "mxwire replay")):
        yield Goal(benchmark, paced, contestant, 1.0, "tcpreplay -K", enough=50.0)
    for kind in ("small", "mixed"):
        yield Goal("replay", f"replay of {kind} frames at top speed", "mxwire replay", 1.0, "tcpreplay -K")


_DECODING = {kind: f"decoding of {kind} frames" for kind in ("small", "mixed")}
_PLUGIN = "processor time per frame, one line"
_MPI = "half round trip, Open MPI"
GOALS: tuple[Goal, ...] = (
    *_curve(),
    *_live(),
    *_analysis(),
    *_line_rate(),
    *_agent(),
    Goal("local", "half round trip within a host", "mxwire", 1.0, "socket pair"),
    *(
        Goal("decode", _DECODING[kind], "mxwire columns, numba, call", ratio, "C loop into arrays over a mapped file")
        for kind, ratio in (("small", 0.4), ("mixed", 0.6))
    ),
    Goal("mpi", _MPI, "mx", 1.1, "tcp", (0, 64)),
    Goal("mpi", _MPI, "mx", 3.0, "tcp", (128, 32 * _KIB)),
    Goal("mpi", _MPI, "mx", 2.5, "tcp", (64 * _KIB, 4 * _MIB)),
    Goal("dissector", _PLUGIN, "plugin, analysis off", 10.0, "tshark without the plugin", how="difference"),
    Goal("dissector", _PLUGIN, "plugin, checksums off", 25.0, "tshark without the plugin", how="difference"),
    Goal("campaign", "set of captures", "2 workers", 1 / 1.7, "1 worker"),
    Goal("campaign", "disk space of a table, 10,000 hosts", "data set", 1.2, "one file"),
    *(
        Goal("campaign", "memory of the largest process", each, 300.0, how="value")
        for each in ("1 worker", "2 workers")
    ),
)
