"""Measure messages between two network namespaces: mxwire's hosts, TCP, UDP and bare frames, in one run.

    sudo python benchmarks/live.py [--quick] [--rounds N] [--minutes M] [--interpreted] [--json]

The stage is that of ``mxwire bench``: two processes, one CPU each, on the two ends of a veth pair of MTU 9000, with
mxwire compiled (tools/compile.py) unless ``--interpreted`` is given. By default, the sender's CPU also does the receive
processing of such a pair. Therefore everything is measured again with frames steered to the receiver's CPU, as between
two machines (receive packet steering of the kernel); this costs an interrupt between CPUs. The contestants take turns,
and the best round of each counts; on a loaded machine, CPU times are more reliable than rates. All contestants copy
large messages into a buffer, and compare the last one. "ring" sends bare frames through the mapped ring without a
protocol, frame by frame; the limit, in C, is in curve.py. Needs root, for the namespaces.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from laboratory import command_line, compiled, options_of

import mxwire
from mxwire.bench.channels.channel import LARGEST
from mxwire.bench.stage import NamespaceStage, ProcessSide, StageOptions
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD

WAYS = {False: "received by the sender's processor", True: "received by the receiver's processor (steered)"}
"""Receive processing in the kernel, by whether frames are steered."""
WINDOW = 64
"""Tiny messages in flight."""
MIXTURE = [0, 1, 32, 33, 128, 129, 4097, RENDEZVOUS_THRESHOLD, RENDEZVOUS_THRESHOLD + 1, 1 << 20]
"""Lengths of the messages during which memory is observed."""


@dataclass(frozen=True)
class Contest:
    """The contests."""

    name: str
    unit: str
    contestants: tuple[str, ...]
    counts: tuple[int, int]
    """Messages of a round, and of a quick one."""
    more_is_better: bool = True

    def best(self, values: list[float]) -> float:
        return max(values) if self.more_is_better else min(values)

    def play(self, stage: NamespaceStage, contestant: str, quick: bool) -> tuple[float, dict[str, float]]:
        """Measure one round; return its value, and percentiles or CPU times."""
        count = self.counts[quick]
        if not self.more_is_better:
            trips, _ = stage.run("trips", carrier=contestant, sizes=[0], counts=[count])
            found = trips["points"]["0"]
            return found["median"] / 1e3, {"p99": found["p99"] / 1e3}
        size, window = (LARGEST, 4) if self.name == "large" else (8, WINDOW)
        if contestant == "ring":
            # More bare frames than a ring holds would be lost.
            size, window = LARGEST // 4, 2
        flood = {"size": size, "count": count, "window": window, "depth": window}
        active, passive = stage.run("flood", carrier=contestant, **flood)
        if self.name == "large":
            sides = {"cpu_per_GB": active, "receiver_cpu_per_GB": passive}
            gigabytes = count * size / 1e9
            more = {name: each["use"]["cpu"] / gigabytes for name, each in sides.items()}
            return size * 8 / active["interval"], more
        return 1e9 / active["interval"], {}


CONTESTS = (
    Contest(
        "large",
        "Gb/s",
        ("mxoe", "mxoe over xdp", "mxoe over xdp-send", "omx:9000", "tcp", "ring"),
        (100, 8),
    ),
    Contest("round trip", "µs", ("mxoe", "mxoe over xdp", "omx:9000", "frames", "udp", "tcp"), (3000, 50), False),
    Contest("tiny rate", "messages/s", ("mxoe", "omx:9000", "udp"), (20_000, 640)),
)


@dataclass
class Outcome:
    """The rounds of one contestant."""

    contest: str
    contestant: str
    unit: str
    best: float
    values: list[float]
    more: dict[str, float] = field(default_factory=dict)
    """Percentiles and CPU times of the best round."""


@dataclass(frozen=True)
class Goal:
    """A value, or a ratio to another contestant's; one of the two is enough."""

    contest: str
    contestant: str
    key: str
    ratio: float
    other: str
    value: float | None = None
    at_most: bool = False

    @property
    def text(self) -> str:
        way = "at most" if self.at_most else "at least"
        ways = [f"{self.ratio:g} x {self.other}"]
        if self.value is not None:
            ways.insert(0, f"{self.value:g} Gb/s")
        return f"{self.contest}, {self.contestant}, {self.key}: {way} {' or '.join(ways)}"

    def judge(self, outcomes: dict[tuple[str, str], Outcome]) -> tuple[float, float, bool]:
        """Return the measured value, the ratio, and whether the goal is reached."""
        ours = _value(outcomes[self.contest, self.contestant], self.key)
        ratio = ours / _value(outcomes[self.contest, self.other], self.key)
        if self.at_most:
            return ours, ratio, ratio <= self.ratio
        return ours, ratio, ratio >= self.ratio or (self.value is not None and ours >= self.value)


def _value(outcome: Outcome, key: str) -> float:
    return outcome.best if key == "best" else outcome.more[key]


GOALS = (
    Goal("large", "mxoe", "best", 0.8, "tcp", value=10.0),
    Goal("large", "omx:9000", "best", 1.0, "tcp"),
    Goal("large", "mxoe over xdp-send", "best", 1.1, "mxoe"),
    Goal("tiny rate", "mxoe", "best", 0.6, "udp"),
    Goal("round trip", "mxoe", "best", 2.0, "frames", at_most=True),
    Goal("round trip", "mxoe", "p99", 3.0, "frames", at_most=True),
)


def measure(stage: NamespaceStage, rounds: int, quick: bool) -> dict[tuple[str, str], Outcome]:
    """Run all contests, the contestants in turn."""
    outcomes: dict[tuple[str, str], Outcome] = {}
    for _ in range(rounds):
        for contest in CONTESTS:
            for name in contest.contestants:
                if stage.can_use(name) is not None:
                    continue
                value, more = contest.play(stage, name, quick)
                known = outcomes.setdefault((contest.name, name), Outcome(contest.name, name, contest.unit, value, []))
                known.values.append(value)
                if contest.best(known.values) == value:
                    known.best, known.more = value, more
    return outcomes


def endure(stage: NamespaceStage, minutes: float) -> dict[str, Any]:
    """Exchange messages of all kinds; return the memory of both processes at the start and at the end."""
    until = time.monotonic() + minutes * 60
    memory: list[tuple[float, ...]] = []
    while len(memory) < 3 or time.monotonic() < until:
        for dialect in ("mxoe", "omx:9000"):
            stage.run("trips", carrier=dialect, sizes=MIXTURE, counts=[20] * len(MIXTURE))
        memory.append(tuple(_resident(each.pid) for each in stage.sides if isinstance(each, ProcessSide)))
    # Caches that the first rounds fill, such as template caches, do not count as growth.
    settled = memory[1]
    grown = max(last - first for first, last in zip(settled, memory[-1], strict=True))
    return {"minutes": minutes, "rounds": len(memory), "start": settled, "end": memory[-1], "grown": grown}


def _resident(pid: int) -> float:
    """Return the memory that a process uses, in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * float(resource.getpagesize())


def main() -> int:
    """Measure and print; return 1 if a goal is missed."""
    parser = command_line(__doc__, rounds=5)
    parser.add_argument("--minutes", type=float, help="minutes for which memory is observed (0.1; quick: two rounds)")
    options = options_of(parser)
    report = Report(options.json)
    # The sides run the mxwire of this process, which may be a compiled one.
    with NamespaceStage(StageOptions(package=Path(mxwire.__file__).parents[1])) as stage:
        report.conditions()
        for steered in WAYS:
            stage.steer(steered)
            report.outcomes(steered, measure(stage, options.rounds, options.quick))
        minutes = options.minutes if options.minutes is not None else 0.0 if options.quick else 0.1
        report.memory(endure(stage, minutes))
    return 0 if report.verdicts() else 1


class Report:
    """A printer of measurements as they arrive, and of the goals at the end."""

    def __init__(self, as_json: bool) -> None:
        self._json = as_json
        self._goals: list[tuple[bool, Goal, float, float, bool]] = []

    def conditions(self) -> None:
        """Print the conditions of the measurement."""
        engine, load = "compiled" if compiled() else "interpreted", os.getloadavg()[0]
        processors = len(os.sched_getaffinity(0))
        if self._json:
            print(json.dumps({"mxwire": engine, "load": load, "processors": processors}))
        else:
            print(f"mxwire {engine}; load of the machine before: {load:.1f} on {processors} processors")

    def outcomes(self, steered: bool, outcomes: dict[tuple[str, str], Outcome]) -> None:
        """Print the results in one configuration."""
        measured = [goal for goal in GOALS if (goal.contest, goal.contestant) in outcomes]
        self._goals += [(steered, goal, *goal.judge(outcomes)) for goal in measured]
        if self._json:
            for each in outcomes.values():
                print(json.dumps({"steered": steered} | asdict(each)))
            return
        print(f"\nFrames are {WAYS[steered]}")
        for contest in CONTESTS:
            print(f"\n{_TITLES[contest.name]}")
            for name in contest.contestants:
                if (contest.name, name) in outcomes:
                    print(_line(contest, name, outcomes[contest.name, name]))

    def memory(self, found: dict[str, Any]) -> None:
        """Print the memory of both processes."""
        if self._json:
            print(json.dumps({"memory": found}))
            return
        start, end = _mebibytes(found["start"]), _mebibytes(found["end"])
        print(f"\nmemory of the two processes: {start}, after {found['minutes']:g} minutes {end}\n")

    def verdicts(self) -> bool:
        """Print which goals are reached; return whether all are, in one of the configurations."""
        reached = set()
        for steered, goal, value, ratio, enough in self._goals:
            if enough:
                reached.add(goal)
            if self._json:
                row = {"goal": goal.text, "steered": steered, "value": value, "ratio": ratio, "reached": enough}
                print(json.dumps(row))
            else:
                word, way = "reached" if enough else "MISSED ", "steered" if steered else "plain"
                print(f"{word}  {way + ',':<8} {goal.text}: {value:.2f}, {ratio:.2f} x")
        return reached == {goal for _, goal, *_ in self._goals}


def _line(contest: Contest, name: str, outcome: Outcome) -> str:
    values = ", ".join(f"{each:,.{_digits(each)}f}" for each in outcome.values)
    best = f"{outcome.best:>10,.{_digits(outcome.best)}f} {contest.unit:<11}"
    return f"  {name:<22} {best} {_more(outcome)} [{values}]"


_TITLES = {
    "large": "messages of 4 MiB (ring: 1 MiB), copied into a buffer",
    "round trip": "half a round trip of a message without data, looking for it all the time (median)",
    "tiny rate": "messages of 8 bytes, 64 under way",
}


def _mebibytes(both: tuple[float, ...]) -> str:
    return f"{min(both) / 2**20:.0f} and {max(both) / 2**20:.0f} MiB"


def _digits(value: float) -> int:
    return 0 if value >= 1000 else 2


def _more(outcome: Outcome) -> str:
    more = outcome.more
    if "p99" in more:
        return f"99%: {more['p99']:,.2f} µs  "
    if "cpu_per_GB" in more:
        return f"processor s/GB: {more['cpu_per_GB']:.2f} sender, {more['receiver_cpu_per_GB']:.2f} receiver  "
    return ""


if __name__ == "__main__":
    sys.exit(main())
