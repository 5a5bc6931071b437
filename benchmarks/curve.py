"""Measure the whole curve: messages of 0 bytes to 4 MiB between two network namespaces, beside the same work in C.

    sudo python benchmarks/curve.py [--rounds N] [--quick] [--steered] [--interpreted] [--json] [--plot FILE]

For each length, half a round trip and the rate with a window of messages under way, of mxwire's hosts in two dialects,
and of TCP, UDP and "frames alone" (curve_peers.c): the same frames without the protocol, which is the limit. Two
processes, one CPU each, poll on the two ends of a veth pair of MTU 9000. By default the sender's CPU does the receive
processing of such a pair; ``--steered`` steers frames to the receiver's CPU. The contestants take turns, and the median
of the rounds counts. mxwire is compiled (tools/compile.py) unless ``--interpreted`` is given, and calls of its hosts in
Python are timed, without the start of a process. A run at a load above 0.5 is marked: do not publish it.

Needs root, for the namespaces, and a C compiler. The exit code is 1 if a goal is missed, unless ``--quick`` is given.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from laboratory import Laboratory, Port, command_line, compiled, options_of

from mxwire.host import Endpoint, Host
from mxwire.wire.dialect import dialect_by_name
from mxwire.wire.formats import PULL_REPLY
from mxwire.wire.layout import layout_of

DIALECTS = ("mxoe", "omx:9000")
LENGTHS = (
    *(0, 1, 32, 33, 128, 129, 512, 1024, 4096, 4097, 8192, 16_384, 32_768, 32_769),
    *(1 << exponent for exponent in range(16, 23)),
)
QUICK = (1, 129, 32_769)
PATIENCE = 60.0
WINDOW = 64
WINDOW_BYTES = 8 << 20
"""Maximum number of bytes under way, which bounds the window of long messages."""
BUDGET = 30_000_000
"""Bytes per measurement, with ``OVERHEAD`` added to each message."""
OVERHEAD = 10_000
DATAGRAM_MAXIMUM = 65_507
QUIET_LOAD = 0.5
ROLE = "--role"


@dataclass(frozen=True)
class Goal:
    """A ratio to another contestant that all lengths in a range must reach."""

    measure: str
    contestant: str
    lengths: tuple[int, int]
    ratio: float
    other: str

    @property
    def text(self) -> str:
        """The goal in words."""
        way = "at most" if self.measure == "trip" else "at least"
        lengths = " to ".join(f"{each:,}" for each in dict.fromkeys(self.lengths))
        return f"{_TITLES[self.measure]}, {self.contestant}, {lengths} B: {way} {self.ratio:g} x {self.other}"


_TITLES = {"trip": "half round trip", "rate": "windowed rate"}
GOALS = tuple(
    Goal(measure, dialect, lengths, ratio, other.format(dialect))
    for dialect in DIALECTS
    for measure, lengths, ratio, other in (
        ("trip", (0, 32_768), 2.0, "frames, {}"),
        ("trip", (65_536, 65_536), 2.0, "frames, {}"),
        ("trip", (262_144, 262_144), 1.6, "frames, {}"),
        ("trip", (1 << 20, 1 << 20), 1.3, "frames, {}"),
        ("rate", (4096, 4096), 0.6, "udp"),
        ("rate", (4096, 4096), 0.6, "tcp"),
        ("rate", (4 << 20, 4 << 20), 0.95, "frames, {}"),
    )
)


def count_of(length: int, quick: bool) -> int:
    """Return the number of messages of a measurement: whole windows."""
    window = window_of(length)
    return window * (1 if quick else -(-max(16, min(2000, BUDGET // (length + OVERHEAD))) // window))


def window_of(length: int) -> int:
    """Return the number of messages that are answered together."""
    return max(2, min(WINDOW, WINDOW_BYTES // (length + 1)))


# mxwire's hosts: a process that plays one side of all measurements, one per line of its standard input.


def play(dialect: str, interface: str, peer: str | None) -> None:
    """Play one side; ``peer`` is the name of the passive host on the active side."""
    with (
        Host.open(interface, name="beta" if peer else "alpha", dialect=dialect_by_name(dialect), spin=True) as host,
        host.open_endpoint(0, 1) as endpoint,
    ):
        print("ready", flush=True)
        for line in sys.stdin:
            measure, length, count = line.split()[0], *map(int, line.split()[1:])
            print((trip if measure == "trip" else rate)(endpoint, length, count, peer), flush=True)


def trip(endpoint: Endpoint, length: int, count: int, peer: str | None) -> float:
    """Exchange messages; return half the round trip, in seconds."""
    memory, data, warm = bytearray(length), bytes(length), count // 10 + 1
    partner = None if peer is None else endpoint.connect(peer, 0, 1)
    start = time.perf_counter()
    posted = endpoint.ireceive(buffer=memory)
    for number in range(-warm, count):
        if number == 0:
            start = time.perf_counter()
        if partner is not None:
            endpoint.isend(partner, data)
        message, following = endpoint.wait(posted), None
        if number + 1 < count:
            following = endpoint.ireceive(buffer=memory)
        if partner is None:
            sent = endpoint.isend(message.partner, data)
            if following is None:
                endpoint.wait(sent)
        if following is not None:
            posted = following
    return (time.perf_counter() - start) / count / 2


def rate(endpoint: Endpoint, length: int, count: int, peer: str | None) -> float:
    """Send windows of messages, each answered by one message; return messages per second."""
    window = window_of(length)
    memory = [bytearray(length) for _ in range(window)]
    partner = None if peer is None else endpoint.connect(peer, 0, 1)
    start = time.perf_counter()
    for _ in range(count // window):
        if partner is None:
            posted = [endpoint.ireceive(buffer=each) for each in memory]
            endpoint.isend(endpoint.wait_all(posted)[-1].partner, b"")
        else:
            for each in memory:
                endpoint.isend(partner, each)
            endpoint.receive()
    return count / (time.perf_counter() - start)


# The rounds.


class Contestants:
    """Runs a measurement of one contestant on both ports."""

    def __init__(self, ports: tuple[Port, Port], peers: Path) -> None:
        self._ports = ports
        self._peers = peers
        self._processors = sorted(os.sched_getaffinity(0))
        for place, port in enumerate(ports):
            port.namespace.ip("address", "add", f"10.0.0.{place + 1}/24", "dev", port.interface)

    def _start(self, place: int, *words: str) -> subprocess.Popen[str]:
        pin = ("taskset", "-c", str(self._processors[place % len(self._processors)]))
        command = self._ports[place].namespace.command(*pin, *words)
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def hosts(self, dialect: str, measurements: list[tuple[str, int, int]]) -> Iterator[float]:
        """Run measurements of mxwire's hosts, each a kind, a length and a count; yield the results."""
        with ExitStack() as stack:
            sides = []
            for place, peer in enumerate(([], ["alpha:0"])):
                words = (sys.executable, __file__, ROLE, dialect, self._ports[place].interface, *peer)
                side = stack.enter_context(self._start(place, *words))
                stack.callback(side.kill)
                sides.append(side)
                _line_of(side)
            for measurement in measurements:
                for side in sides:
                    print(*measurement, file=side.stdin, flush=True)
                results = [float(_line_of(side)) for side in sides]
                yield results[1]
            for side in sides:
                side.stdin.close()
                side.wait(PATIENCE)

    def peer(self, name: str, measure: str, length: int, count: int) -> float:
        """Run one measurement of a peer in C."""
        payload, header = 0, 0
        if name.startswith("frames"):
            dialect = dialect_by_name(name.split(", ")[1])
            payload, header = dialect.reply_payload, layout_of(PULL_REPLY).header_end
            places = [(self._ports[place].interface, self._ports[1 - place].address.hex(":")) for place in (0, 1)]
        else:
            places = [(f"10.0.0.{place + 1}", f"10.0.0.{2 - place}") for place in (0, 1)]
        kind = name.split(",")[0]
        rest = (measure, str(length), str(count), str(window_of(length)), str(payload), str(header))
        with ExitStack() as stack:
            sides = []
            for place, side in enumerate(("passive", "active")):
                process = stack.enter_context(self._start(place, str(self._peers), kind, *places[place], side, *rest))
                stack.callback(process.kill)
                sides.append(process)
                if not place:
                    _line_of(process)
            result = float(_line_of(sides[1]))
            for process in sides:
                process.wait(PATIENCE)
            return result


def _line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"a contestant has ended: {' '.join(map(str, process.args))}")
    return line


Curve = dict[tuple[str, str, int], list[float]]
"""Results by measure, contestant and length, one per round."""


def measure(contestants: Contestants, lengths: tuple[int, ...], quick: bool, curve: Curve) -> None:
    """Run one round of all contestants."""
    kinds = [(kind, length, count_of(length, quick)) for length in lengths for kind in _TITLES]
    for dialect in DIALECTS:
        for (kind, length, _), value in zip(kinds, contestants.hosts(dialect, kinds), strict=True):
            curve.setdefault((kind, dialect, length), []).append(value)
    for name in (*(f"frames, {each}" for each in DIALECTS), "udp", "tcp"):
        for kind, length, count in kinds:
            if name != "udp" or length <= DATAGRAM_MAXIMUM:
                value = contestants.peer(name, kind, length, count)
                curve.setdefault((kind, name, length), []).append(value)


# The results.


def value_of(curve: Curve, kind: str, name: str, length: int) -> float | None:
    """Return the median in µs, or in MB/s; messages without data count as one byte."""
    found = curve.get((kind, name, length))
    if found is None:
        return None
    return median(found) * 1e6 if kind == "trip" else median(found) * max(1, length) / 1e6


def print_tables(curve: Curve, limit: str) -> None:
    """Print one table per kind, with the ratio to the contestant ``limit``, in which ``{}`` stands for each name."""
    names = list(dict.fromkeys(name for _, name, _ in curve))
    for kind, title in _TITLES.items():
        print(f"\n{title}, {'µs' if kind == 'trip' else 'MB/s'} (and ratio to {limit.replace(', {}', ' alone')})\n")
        print(f"{'bytes':>9}" + "".join(f"{name:>20}" for name in names))
        for length in dict.fromkeys(length for _, _, length in curve):
            row = f"{length:>9}"
            for name in names:
                value, best = (value_of(curve, kind, each, length) for each in (name, limit.format(name)))
                text = "" if value is None else f"{value:.1f}" if value < 1000 else f"{value:.0f}"
                if value is not None and best is not None and name != limit:
                    text += f" ({value / best:.2f})"
                row += f"{text:>20}"
            print(row)


def judge(curve: Curve, goals: Iterable[Goal]) -> list[tuple[Goal, int, float, bool]]:
    """Return each goal that was measured, with the length at which it comes closest to being missed, the ratio, and if
    it is reached."""
    found = []
    for goal in goals:
        ratios = {}
        for length in dict.fromkeys(length for _, _, length in curve):
            own, other = (value_of(curve, goal.measure, each, length) for each in (goal.contestant, goal.other))
            if own is not None and other is not None and goal.lengths[0] <= length <= goal.lengths[1]:
                ratios[length] = own / other
        if ratios:
            worst = (max if goal.measure == "trip" else min)(ratios, key=ratios.__getitem__)
            reached = ratios[worst] <= goal.ratio if goal.measure == "trip" else ratios[worst] >= goal.ratio
            found.append((goal, worst, ratios[worst], reached))
    return found


def draw(curve: Curve, path: Path, conditions: str) -> None:
    """Draw both kinds over the length, logarithmically."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    for axis, (kind, title) in zip(axes, _TITLES.items(), strict=True):
        for name in dict.fromkeys(name for _, name, _ in curve):
            lengths = sorted(length for each, other, length in curve if (each, other) == (kind, name))
            values = [value_of(curve, kind, name, length) for length in lengths]
            style = "--" if name.startswith("frames") else ":" if name in ("udp", "tcp") else "-"
            axis.plot([max(each, 0.5) for each in lengths], values, style, marker=".", label=name)
        axis.set(xscale="log", yscale="log", xlabel="bytes", ylabel="µs" if kind == "trip" else "MB/s", title=title)
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.suptitle(conditions, fontsize="small")
    figure.savefig(path)


def main() -> int:
    """Measure and print; return 1 if a goal is missed."""
    parser = command_line(__doc__, rounds=5)
    parser.add_argument("--steered", action="store_true", help="steer frames to the receiver's processor")
    parser.add_argument("--plot", type=Path, help="draw the curve into this file")
    options = options_of(parser)
    load, curve = os.getloadavg()[0], Curve()
    with tempfile.TemporaryDirectory() as folder, Laboratory() as laboratory:
        peers = Path(folder, "curve_peers")
        subprocess.run(["cc", "-O2", str(Path(__file__).with_name("curve_peers.c")), "-o", str(peers)], check=True)
        ports = laboratory.pair(9000)
        contestants = Contestants(ports, peers)
        for port, processor in zip(ports, sorted(os.sched_getaffinity(0)) * 2, strict=False):
            port.steer(processor if options.steered else None)
        for number in range(options.rounds):
            measure(contestants, QUICK if options.quick else LENGTHS, options.quick, curve)
            if sys.stderr.isatty():
                print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    way = "steered" if options.steered else "plain"
    reached = report(curve, GOALS, "frames, {}", f"{way}, medians of {options.rounds} rounds", load, options)
    return 0 if options.quick or reached else 1


def report(curve: Curve, goals: Iterable[Goal], limit: str, how: str, load: float, options: argparse.Namespace) -> bool:
    """Print the results and the verdicts, and draw them if asked; return whether all goals are reached.

    ``load`` is that before the run, and ``limit`` as in :func:`print_tables`.
    """
    engine = "compiled" if compiled() else "interpreted"
    marked = "" if load <= QUIET_LOAD else ": NOT QUIET, do not publish"
    conditions = f"mxwire {engine}, {how}, load before {load:.2f}{marked}"
    verdicts = judge(curve, goals)
    if options.json:
        print(json.dumps({"mxwire": engine, "how": how, "load": load, "quiet": load <= QUIET_LOAD}))
        for (kind, name, length), values in curve.items():
            unit = "s" if kind == "trip" else "messages/s"
            print(json.dumps({"measure": kind, "contestant": name, "length": length, "unit": unit, "values": values}))
        for goal, length, ratio, reached in verdicts:
            print(json.dumps({"goal": goal.text, "length": length, "ratio": ratio, "reached": reached}))
    else:
        print(conditions)
        print_tables(curve, limit)
        print()
        for goal, length, ratio, reached in verdicts:
            print(f"{'reached' if reached else 'MISSED '}  {goal.text}: {ratio:.2f} x at {length:,} B")
    if options.plot is not None:
        draw(curve, options.plot, conditions)
    return all(reached for *_, reached in verdicts)


if __name__ == "__main__":
    if sys.argv[1:2] == [ROLE]:
        play(*sys.argv[2:4], sys.argv[4] if sys.argv[4:] else None)
        sys.exit(0)
    sys.exit(main())
