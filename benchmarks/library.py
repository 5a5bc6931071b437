"""Measure programs of MX on libmyriexpress.so beside hosts of mxwire in Python, on a veth pair, in one run.

    sudo python benchmarks/library.py [--quick] [--rounds N] [--interpreted] [--prefix DIR] [--json]

Two processes, one CPU each, run on the two ends of a veth pair of MTU 9000, with mxwire compiled (tools/compile.py)
unless ``--interpreted`` is given. Both contestants poll, and do the same: half round trips of empty messages, the
throughput of messages of 4 MiB, and the rate of messages of 8 bytes. They take turns, and the median of the rounds
counts; the goals are ratios, or differences, since the speed of the machine is not constant. Measured for the library
alone are the time of ``mx_test`` with nothing new, and that of ``mx_init``.

Needs root, a C compiler and cffi. The exit code is 1 if a goal is missed, unless ``--quick`` is given.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import IO

from laboratory import Laboratory, Port, command_line, compiled, options_of

from mxwire.host import Endpoint, Host
from mxwire.myriexpress.build import Installation, build
from mxwire.myriexpress.launch import environment

PATIENCE = 100.0
UNDER_WAY = 4
SMALL_UNDER_WAY = 32
ROLE = "--role"
"""First argument of the processes in Python: measure, count, length, and on the active side the other host."""


@dataclass(frozen=True)
class Measure:
    """One measurement of both contestants."""

    name: str
    text: str
    unit: str
    scale: float
    count: int
    quick: int
    length: int


MEASURES = (
    Measure("trip", "half round trip, empty messages", "µs", 1e6, 20_000, 200, 0),
    Measure("large", "messages of 4 MiB", "Gb/s", 8e-9, 200, 4, 4 << 20),
    Measure("rate", "messages of 8 bytes", "1000/s", 1e-3, 64_000, 320, 8),
)
ALONE = (
    Measure("test", "mx_test with nothing new", "ns", 1e9, 5_000_000, 10_000, 1),
    Measure("start", "mx_init", "s", 1.0, 1, 1, 1),
)
GOALS: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    "trip": ("at most 2 µs above Python", lambda library, host: library - host <= 2.0),
    "large": ("at least 0.95 of Python", lambda library, host: library >= 0.95 * host),
    "rate": ("at least 0.8 of Python", lambda library, host: library >= 0.8 * host),
    "test": ("at most 20 ns", lambda library, _: library <= 20.0),
    "start": ("at most 0.3 s", lambda library, _: library <= 0.3),
}


# The contestant in Python.


def play(measure: str, count: int, length: int, other: str | None) -> float:
    """Play one side of a measurement, and return its result."""
    interface, name = os.environ["MXWIRE_INTERFACE"], os.environ["MXWIRE_NAME"]
    with Host.open(interface, name=name, spin=True) as host, host.open_endpoint(int(other is not None), 1) as endpoint:
        if other is None:
            print("ready", flush=True)
        else:
            input()
        return {"trip": trip, "large": large, "rate": rate}[measure](endpoint, count, length, other)


def trip(endpoint: Endpoint, count: int, length: int, other: str | None) -> float:
    memory, data = bytearray(length), bytes(length)
    if other is None:
        posted = endpoint.ireceive(buffer=memory)
        for number in range(count):
            message = endpoint.wait(posted)
            endpoint.isend(message.partner, data)
            if number + 1 < count:
                posted = endpoint.ireceive(buffer=memory)
        return 0.0
    partner = endpoint.connect(other, 0, 1)
    start = time.perf_counter()
    for _ in range(count):
        endpoint.isend(partner, data)
        endpoint.wait(endpoint.ireceive(buffer=memory))
    return (time.perf_counter() - start) / count / 2


def large(endpoint: Endpoint, count: int, length: int, other: str | None) -> float:
    memory = [bytearray(length) for _ in range(UNDER_WAY)]
    partner = None if other is None else endpoint.connect(other, 0, 1)
    start = time.perf_counter()
    requests = []
    for number in range(count + UNDER_WAY):
        if number >= UNDER_WAY:
            found = endpoint.wait(requests.pop(0))
        if number < count:
            buffer = memory[number % UNDER_WAY]
            requests.append(endpoint.ireceive(buffer=buffer) if partner is None else endpoint.isend(partner, buffer))
    if partner is None:
        endpoint.send(found.partner, b"x")
    else:
        endpoint.receive()
    return count * length / (time.perf_counter() - start)


def rate(endpoint: Endpoint, count: int, length: int, other: str | None) -> float:
    memory, data = bytearray(length), bytes(length)
    partner = None if other is None else endpoint.connect(other, 0, 1)
    start = time.perf_counter()
    for _ in range(count // SMALL_UNDER_WAY):
        if partner is None:
            posted = [endpoint.ireceive(buffer=memory) for _ in range(SMALL_UNDER_WAY)]
            endpoint.isend(endpoint.wait_all(posted)[-1].partner, data)
        else:
            for _ in range(SMALL_UNDER_WAY):
                endpoint.isend(partner, data)
            endpoint.receive(buffer=memory)
    return count / (time.perf_counter() - start)


# The rounds.


@dataclass
class Row:
    """The result of one measurement."""

    measure: str
    unit: str
    library: float
    python: float | None
    goal: str
    reached: bool


class Rounds:
    """Runs both contestants in turn."""

    def __init__(self, ports: tuple[Port, Port], installation: Installation, program: Path, quick: bool) -> None:
        self._ports = ports
        self._environment = environment(installation, os.environ)
        self._commands = {"library": [str(program)], "python": [sys.executable, __file__, ROLE]}
        self._quick = quick

    def _start(
        self, place: int, contestant: str, measure: Measure, *more: str, stdin: IO[str] | None = None
    ) -> subprocess.Popen[str]:
        port = self._ports[place]
        own = {"MXWIRE_INTERFACE": port.interface, "MXWIRE_NAME": ("alpha", "beta")[place]}
        count = measure.quick if self._quick else measure.count
        words = [*self._commands[contestant], measure.name, str(count), str(measure.length), *more]
        processors = sorted(os.sched_getaffinity(0))
        pin = ["taskset", "-c", str(processors[place % len(processors)])]
        command = port.namespace.command(*pin, *words)
        return subprocess.Popen(command, env=self._environment | own, stdin=stdin, stdout=subprocess.PIPE, text=True)

    def alone(self, measure: Measure) -> float:
        """Measure the library in one process."""
        with self._start(0, "library", measure) as process:
            return _result(process) * measure.scale

    def pair(self, contestant: str, measure: Measure) -> float:
        """Measure a contestant on both hosts. The active side connects when the passive side is ready: its first query,
        if too early, would be repeated only after a second in which both poll.
        """
        with (
            self._start(0, contestant, measure) as passive,
            self._start(1, contestant, measure, "alpha:0", stdin=passive.stdout) as active,
        ):
            result = _result(active) * measure.scale
            passive.communicate(timeout=PATIENCE)
            return result


def _result(process: subprocess.Popen[str]) -> float:
    try:
        out, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    if process.returncode or not out:
        raise SystemExit(f"a contestant ended with exit code {process.returncode}")
    return float(out.split()[-1])


def measure_all(rounds: Rounds, count: int) -> list[Row]:
    """Measure everything, and judge it."""
    rows = []
    for each in MEASURES:
        values: dict[str, list[float]] = {"library": [], "python": []}
        for _ in range(count):
            for contestant, found in values.items():
                found.append(rounds.pair(contestant, each))
        rows.append(_row(each, median(values["library"]), median(values["python"])))
    return rows + [_row(each, median(rounds.alone(each) for _ in range(count)), None) for each in ALONE]


def _row(measure: Measure, library: float, python: float | None) -> Row:
    text, reached = GOALS[measure.name]
    return Row(measure.text, measure.unit, library, python, text, reached(library, python or 0.0))


def main() -> int:
    parser = command_line(__doc__, 7)
    parser.add_argument("--prefix", type=Path, help="use the library that is built there (mxwire library build)")
    options = options_of(parser)
    with tempfile.TemporaryDirectory() as folder, Laboratory() as laboratory:
        installation = build(Path(folder, "prefix")) if options.prefix is None else Installation(options.prefix)
        program = Path(folder, "library_program")
        source = Path(__file__).with_name("library_program.c")
        flags = [f"-I{installation.include}", f"-L{installation.folder}", "-lmyriexpress"]
        subprocess.run(["cc", "-O2", str(source), "-o", str(program), *flags], check=True)
        rows = measure_all(Rounds(laboratory.pair(9000), installation, program, options.quick), options.rounds)
    for row in rows:
        if options.json:
            print(json.dumps(asdict(row)))
        else:
            python = "" if row.python is None else f"   Python {row.python:10.2f}"
            reached = "reached" if row.reached else "MISSED"
            print(f"{row.measure:34}{row.library:10.2f} {row.unit:7}{python:20} {row.goal}: {reached}")
    if not options.json:
        print(f"mxwire is {'compiled' if compiled() else 'interpreted'}; medians of {options.rounds} rounds")
    return 0 if options.quick or all(row.reached for row in rows) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == [ROLE]:
        _, _, measured, number, size, *peer = sys.argv
        print(play(measured, int(number), int(size), peer[0] if peer else None))
        sys.exit(0)
    sys.exit(main())
