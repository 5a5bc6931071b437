"""Measure the speed and evenness of replay: mxwire replay, tcpreplay and a plain loop, in one run.

    sudo python benchmarks/replay.py [--quick] [--rounds N] [--json]

All send through one end of a veth pair of MTU 9000. At top speed there is no receiver, and each contestant reports its
own time from the first frame to the last, with the capture in memory (tcpreplay -K -t). At 50,000 frames per second,
the other end records arrivals: the error of a frame is the difference between its time of arrival and the first frame's
time plus equal intervals. The contestants take turns, and the best round of each counts. tcpreplay takes part if it is
installed (package tcpreplay). Needs root, for the namespaces.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from laboratory import Laboratory, Port, command_line, options_of
from traffic import MIXED, SMALL, write_capture

from mxwire.link import Tap

CLI = str(Path(__file__).resolve().parents[1] / "cli.py")
OURS, OTHERS, PLAIN = "mxwire replay", "tcpreplay", "a Python loop of send"
RATE = 50_000
LONGEST = 120
P99_US = 50.0
LOOP = """
import socket, sys, time
from mxwire.capture import open_capture
frames = [batch.frame(place) for batch in open_capture(sys.argv[1]) for place in range(len(batch))]
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
out.bind((sys.argv[2], 0x86DF))
send, begin = out.send, time.perf_counter()
for _ in range(int(sys.argv[3])):
    for frame in frames:
        send(frame)
print(len(frames) * int(sys.argv[3]) / (time.perf_counter() - begin))
"""


@dataclass
class Outcome:
    """The rounds of one contestant."""

    contest: str
    contestant: str
    unit: str
    more_is_better: bool
    values: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        """The best round."""
        return max(self.values) if self.more_is_better else min(self.values)


@dataclass(frozen=True)
class Goal:
    """A ratio to another contestant's, or a value; one of the two is enough."""

    contest: str
    ratio: float
    value: float | None = None
    at_most: bool = False

    @property
    def text(self) -> str:
        """Return the goal in words."""
        other = f"{self.ratio:g} x {OTHERS}"
        if self.value is not None:
            return f"{self.contest}: below {self.value:g} µs, or at most {other}"
        return f"{self.contest}: at least {other}"

    def judge(self, outcomes: dict[tuple[str, str], Outcome]) -> tuple[float, float | None, bool | None]:
        """Return the measured value, the ratio, and whether the goal is reached, or None if that is unknown."""
        ours = outcomes[self.contest, OURS].best
        other = outcomes.get((self.contest, OTHERS))
        ratio = ours / other.best if other is not None and other.best else None
        if self.value is not None and ours < self.value:
            return ours, ratio, True
        if ratio is None:
            return ours, ratio, None
        return ours, ratio, ratio <= self.ratio if self.at_most else ratio >= self.ratio


SMALL_FRAMES, MIXED_FRAMES, PACED = "small frames", "mixed frames", f"paced at {RATE:,} frames/s"
GOALS = (Goal(SMALL_FRAMES, 1.0), Goal(MIXED_FRAMES, 1.0), Goal(PACED, 1.0, P99_US, at_most=True))


# The contestants.


def run(port: Port, *words: str) -> str:
    """Return the output of a command, run in the sender's namespace on the first CPU."""
    core = min(os.sched_getaffinity(0))
    done = subprocess.run(
        port.namespace.command("taskset", "-c", str(core), *words), capture_output=True, text=True, timeout=LONGEST
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words[:3])} failed: {done.stderr or done.stdout}")
    return done.stdout


def ours(port: Port, capture: Path, loops: int, *pace: str) -> float:
    """Return frames per second of ``mxwire replay``."""
    words = ("replay", str(capture), "-i", port.interface, "--loop", str(loops), "--linger", "0", "--json")
    return float(json.loads(run(port, sys.executable, CLI, *words, *(pace or ("--top-speed",))))["frames_per_second"])


def tcpreplay(port: Port, capture: Path, loops: int, *pace: str) -> float:
    """Return frames per second of tcpreplay."""
    output = run(port, OTHERS, "-K", *(pace or ("-t",)), f"--loop={loops}", "-i", port.interface, str(capture))
    found = re.search(r"Rated:.*?([\d.]+) pps", output)
    if found is None:
        raise SystemExit(f"tcpreplay reported no rate: {output}")
    return float(found[1])


def plain(port: Port, capture: Path, loops: int) -> float:
    """Return frames per second of consecutive calls of ``send``."""
    return float(run(port, sys.executable, "-c", LOOP, str(capture), port.interface, str(loops)))


Contestant = Callable[..., float]


def contestants() -> dict[str, Contestant]:
    """Return the available contestants."""
    found: dict[str, Contestant] = {OURS: ours, PLAIN: plain}
    return found | ({OTHERS: tcpreplay} if shutil.which(OTHERS) else {})


def top_speed(ports: tuple[Port, Port], capture: Path, loops: int, contestant: Contestant) -> float:
    """Measure frames per second without a receiver."""
    return contestant(ports[0], capture, loops)


def paced(ports: tuple[Port, Port], capture: Path, loops: int, contestant: Contestant) -> float:
    """Return the 99th percentile of the error of arrival times, in µs."""
    sender, receiver = ports
    pace = ("--rate", f"{RATE}/s") if contestant is ours else (f"--pps={RATE}",)
    with receiver.namespace.inside():
        tap = Tap.open(receiver.interface, ring_bytes=32 << 20)
    times: list[Any] = []
    with tap:
        words = _command(sender, capture, loops, contestant, pace)
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while process.poll() is None:
            times.append(tap.receive(0.05).timestamp_ns.copy())
        while len(batch := tap.receive(0.2)):
            times.append(batch.timestamp_ns.copy())
        lost = tap.statistics().dropped
    if process.returncode or lost:
        said = process.stderr.read().decode() if process.stderr else ""
        raise SystemExit(f"{words[5]} failed, or {lost} frames were not seen: {said}")
    seen = np.concatenate(times)
    wanted = seen[0] + np.arange(len(seen)) * (10**9 // RATE)
    return float(np.percentile(np.abs(seen - wanted), 99)) / 1e3


def _command(port: Port, capture: Path, loops: int, contestant: Contestant, pace: tuple[str, ...]) -> list[str]:
    core = str(min(os.sched_getaffinity(0)))
    words = (
        (sys.executable, CLI, "replay", str(capture), "--loop", str(loops), "--linger", "0", "--json")
        if contestant is ours
        else (OTHERS, "-K", f"--loop={loops}", str(capture))
    )
    # tcpreplay requires its options before the file.
    where = ("-i", port.interface)
    ordered = (*words, *pace, *where) if contestant is ours else (*words[:-1], *pace, *where, words[-1])
    return port.namespace.command("taskset", "-c", core, *ordered)


# The contests.


def measure(ports: tuple[Port, Port], folder: Path, rounds: int, quick: bool) -> dict[tuple[str, str], Outcome]:
    """Run all contests, the contestants in turn."""
    frames = 1_000 if quick else 20_000
    # Short rounds: on a loaded machine, one of them is likely to be undisturbed.
    loops = 1 if quick else 3
    for traffic in (SMALL, MIXED):
        write_capture(folder / f"{traffic.name}.pcap", traffic, frames)
    write_capture(folder / "paced.pcap", SMALL, frames // 2)
    contests = (
        (SMALL_FRAMES, "frames/s", top_speed, folder / "small.pcap", loops, True),
        (MIXED_FRAMES, "frames/s", top_speed, folder / "mixed.pcap", loops, True),
        (PACED, "µs, 99%", paced, folder / "paced.pcap", 1, False),
    )
    outcomes: dict[tuple[str, str], Outcome] = {}
    for _ in range(rounds):
        for name, unit, contest, capture, times, more in contests:
            for who, contestant in contestants().items():
                if contest is paced and who == PLAIN:
                    continue
                outcome = outcomes.setdefault((name, who), Outcome(name, who, unit, more))
                outcome.values.append(contest(ports, capture, times, contestant))
    return outcomes


Verdict = tuple[Goal, float, float | None, bool | None]


def main() -> int:
    """Measure and print; return 1 if a goal is missed."""
    options = options_of(command_line(__doc__, rounds=9, compiles=False))
    load = os.getloadavg()[0]
    with Laboratory() as laboratory, tempfile.TemporaryDirectory() as folder:
        ports = laboratory.pair(9000)
        outcomes = measure(ports, Path(folder), options.rounds, options.quick)
    verdicts = [(goal, *goal.judge(outcomes)) for goal in GOALS]
    (_print_json if options.json else _print)(outcomes, verdicts, load)
    return 0 if all(each[-1] is not False for each in verdicts) else 1


def _print_json(outcomes: dict[tuple[str, str], Outcome], verdicts: list[Verdict], load: float) -> None:
    for each in outcomes.values():
        print(json.dumps(asdict(each) | {"best": each.best}))
    print(json.dumps({"load": load, "tcpreplay": shutil.which(OTHERS) is not None}))
    for goal, value, ratio, reached in verdicts:
        print(json.dumps({"goal": goal.text, "value": value, "ratio": ratio, "reached": reached}))


def _print(outcomes: dict[tuple[str, str], Outcome], verdicts: list[Verdict], load: float) -> None:
    contest = ""
    for each in outcomes.values():
        if each.contest != contest:
            contest = each.contest
            print(contest)
        values = ", ".join(f"{value:,.0f}" for value in each.values)
        print(f"  {each.contestant:<22} {each.best:>12,.0f} {each.unit}  [{values}]")
    if shutil.which(OTHERS) is None:
        print("tcpreplay is not installed (package tcpreplay): nothing to compare with")
    print(f"load of the machine before: {load:.1f} on {len(os.sched_getaffinity(0))} processors\n")
    for goal, value, ratio, reached in verdicts:
        word = {True: "reached", False: "MISSED ", None: "unknown"}[reached]
        beside = "" if ratio is None else f", {ratio:.2f} x"
        print(f"{word}  {goal.text}: {value:,.1f}{beside}")


if __name__ == "__main__":
    sys.exit(main())
