"""Measure messages between two network namespaces: mxwire's hosts, TCP, UDP and bare frames, in one run.

    sudo python benchmarks/live.py [--quick] [--rounds N] [--minutes M] [--interpreted] [--json]

Two processes, one CPU each, run on the two ends of a veth pair of MTU 9000, with mxwire compiled (tools/compile.py)
unless ``--interpreted`` is given. By default, the sender's CPU also does the receive processing of such a pair.
Therefore everything is measured again with frames steered to the receiver's CPU, as between two machines (receive
packet steering of the kernel); this costs an interrupt between CPUs. The contestants take turns, and the best round of
each counts; on a loaded machine, CPU times are more reliable than rates. All contestants compare the content of large
messages. "frames alone" sends the same frames as the protocol, acked and copied but without the protocol, which is the
upper limit here. Needs root, for the namespaces.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from laboratory import Laboratory, Port, command_line, compiled, options_of

from mxwire.bench import roles
from mxwire.bench.roles.common import RoleSide
from mxwire.bench.roles.hosts import OVER_XDP
from mxwire.link.interface import read_interface
from mxwire.link.xdp import xdp_refusal

PATIENCE = 60.0
"""Time limit of a round, in seconds."""


WAYS = {False: "received by the sender's processor", True: "received by the receiver's processor (steered)"}
"""Receive processing in the kernel, by whether frames are steered."""


@dataclass(frozen=True)
class Contest:
    """The contests."""

    name: str
    unit: str
    contestants: tuple[str, ...]
    more_is_better: bool = True

    def best(self, values: list[float]) -> float:
        return max(values) if self.more_is_better else min(values)


CONTESTS = (
    Contest(
        "large",
        "Gb/s",
        (
            "mxoe",
            "mxoe over xdp",
            "mxoe over xdp-send",
            "omx:9000",
            "tcp",
            "frames alone, mxoe",
            "frames alone, omx:9000",
        ),
    ),
    Contest("round trip", "µs", ("mxoe", "mxoe over xdp", "omx:9000", "packet", "udp", "tcp"), more_is_better=False),
    Contest("tiny rate", "messages/s", ("mxoe", "omx:9000", "udp")),
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
    Goal("round trip", "mxoe", "best", 2.0, "packet", at_most=True),
    Goal("round trip", "mxoe", "p99", 3.0, "packet", at_most=True),
)


class Workers:
    """Two processes, each in its namespace and on its CPU."""

    def __init__(self, ports: tuple[Port, Port]) -> None:
        addresses = [each.address for each in ports]
        self._ports = ports
        with ports[0].namespace.inside():
            self.xdp = xdp_refusal(read_interface(ports[0].interface)) is None
        """True if hosts can use AF_XDP here."""
        self._processors = _processors()
        context = multiprocessing.get_context("fork")
        self.ends: list[Connection] = []
        self.processes = []
        for place, port in enumerate(ports):
            near, far = context.Pipe()
            there = RoleSide(port.interface, addresses[place], addresses[1 - place])
            core = self._processors[place]
            process = context.Process(target=_work, args=(port, far, there, place == 0, core), daemon=True)
            process.start()
            far.close()
            self.ends.append(near)
            self.processes.append(process)

    def steer(self, steered: bool) -> None:
        """Steer frames to the receiver's CPU from now on, or to the sender's."""
        for port, processor in zip(self._ports, self._processors, strict=True):
            port.steer(processor if steered else None)

    def run(self, contest: str, contestant: str, options: dict[str, Any]) -> dict[str, float]:
        """Run one round; return the measurements of both sides, keys of the receiver have the prefix ``receiver_``."""
        for end in self.ends:
            end.send((contest, contestant, options))
        found: list[dict[str, float]] = []
        for end in self.ends:
            if not end.poll(PATIENCE):
                raise SystemExit(f"{contest}, {contestant}: a process does not answer")
            answer = end.recv()
            if isinstance(answer, str):
                raise SystemExit(f"{contest}, {contestant}: a process has failed:\n{answer}")
            found.append(answer)
        return found[0] | {f"receiver_{name}": value for name, value in found[1].items()}

    def close(self) -> None:
        for end in self.ends:
            end.close()
        for process in self.processes:
            process.join(5)
            process.kill()


def _processors() -> tuple[int, int]:
    """Return a CPU for each side; the same if there is only one."""
    available = sorted(os.sched_getaffinity(0))
    return available[0], available[1 % len(available)]


def _work(port: Port, pipe: Connection, there: RoleSide, active: bool, core: int) -> None:
    os.sched_setaffinity(0, {core})
    with port.namespace.inside():
        while True:
            try:
                contest, contestant, options = pipe.recv()
            except EOFError:
                return
            role: Callable[..., dict[str, float]] = roles.ROLES[contest, roles.family(contestant)][not active]
            try:
                found = role(there, contestant, **options)
                found["rss"] = _resident()
                pipe.send(found)
            except BaseException:
                pipe.send(traceback.format_exc())


def _resident() -> float:
    """Return the memory in use, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * float(resource.getpagesize())


def measure(workers: Workers, rounds: int, quick: bool) -> dict[tuple[str, str], Outcome]:
    """Run all contests, the contestants in turn."""
    outcomes: dict[tuple[str, str], Outcome] = {}
    amounts = roles.QUICK if quick else roles.FULL
    for _ in range(rounds):
        for contest in CONTESTS:
            for name in contest.contestants:
                if OVER_XDP in name and not workers.xdp:
                    continue
                found = workers.run(contest.name, name, amounts[contest.name])
                value = found.pop("value")
                known = outcomes.setdefault((contest.name, name), Outcome(contest.name, name, contest.unit, value, []))
                known.values.append(value)
                if contest.best(known.values) == value:
                    known.best, known.more = value, _per_gigabyte(found)
    return outcomes


def _per_gigabyte(found: dict[str, float]) -> dict[str, float]:
    gigabytes = found.pop("bytes", 0.0) / 1e9
    found.pop("receiver_value", None)
    found.pop("receiver_bytes", None)
    if gigabytes:
        found |= {"cpu_per_GB": found["cpu"] / gigabytes, "receiver_cpu_per_GB": found["receiver_cpu"] / gigabytes}
    return found


def endure(workers: Workers, minutes: float) -> dict[str, Any]:
    """Exchange messages of all kinds; return the memory of both processes at the start and at the end."""
    until = time.monotonic() + minutes * 60
    memory: list[tuple[float, float]] = []
    while len(memory) < 3 or time.monotonic() < until:
        for dialect in ("mxoe", "omx:9000"):
            found = workers.run("mixture", dialect, {"seconds": min(5.0, max(0.05, minutes * 6))})
        memory.append((found["rss"], found["receiver_rss"]))
    # Caches that the first rounds fill, such as template caches, do not count as growth.
    settled = memory[1]
    grown = max(last - first for first, last in zip(settled, memory[-1], strict=True))
    return {"minutes": minutes, "rounds": len(memory), "start": settled, "end": memory[-1], "grown": grown}


def main() -> int:
    """Measure and print; return 1 if a goal is missed."""
    parser = command_line(__doc__, rounds=5)
    parser.add_argument("--minutes", type=float, help="minutes for which memory is observed (0.1; quick: two rounds)")
    options = options_of(parser)
    report = Report(options.json)
    with Laboratory() as laboratory:
        workers = Workers(laboratory.pair(9000))
        report.conditions()
        for steered in WAYS:
            workers.steer(steered)
            report.outcomes(steered, measure(workers, options.rounds, options.quick))
        minutes = options.minutes if options.minutes is not None else 0.0 if options.quick else 0.1
        report.memory(endure(workers, minutes))
        workers.close()
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
    "large": "messages of 4 MiB, payload compared",
    "round trip": "half a round trip of a message without data, looking for it all the time (median)",
    "tiny rate": "messages of 8 bytes, 64 under way",
}


def _mebibytes(both: tuple[float, float]) -> str:
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
