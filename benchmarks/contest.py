"""The common part of all benchmarks: one set of options, contestants that take turns, and one report.

A benchmark is a program in this folder with a function ``measure``, which calls :meth:`Benchmark.play` once per
contest. A contest has contestants, each a function that is called once per round and yields samples: the series, the
unit, the value, and the size of the messages if the series has one. The name of a series states the work that was
timed, that of a contestant whether it was a call in this process or a command with its start.

Rules, so that published figures can be trusted:

* Contestants take turns, in alternating order, so that a disturbance affects all of them. The median of the rounds
  counts, never the best one.
* mxwire is compiled (tools/compile.py), unless ``--interpreted`` is given, or the benchmark measures nothing that is
  ever compiled; the conditions in the report include this. The program restarts itself for that, and fails if the
  modules that it then imports are not compiled.
* No contest begins a round after its share of ``--minutes``; the first round is always complete. A program that has not
  ended after twice the minutes, and ten more, ends with an error. Every process that it starts has a bound, too.
* A contestant that fails is left out, and the recording is partial.
* A run is quiet if at most half a program per second was runnable beside it, both before and after it. Only quiet
  runs that are not ``--quick`` may be published; see record.py.

The result is a :class:`mxwire.bench.record.Recording`, in the format of ``mxwire bench``, so that ``mxwire bench
compare`` and the reports of studies apply. Less is better, unless the unit is a rate (it ends in ``/s``). Goals are in
goals.py.

The exit code is 0 if all goals are reached, or with ``--quick``, which judges nothing; 1 if a goal is missed; and 2 if
the benchmark cannot run here, or was not completed.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# At the end, so that the compiled modules of PYTHONPATH are found first.
sys.path.append(str(ROOT))

from mxwire.bench.record import Conditions, Recording, now_text
from mxwire.bench.report import SeriesFigure, condition_blocks, study_blocks, write_figure
from mxwire.bench.roles.common import IP_ADDRESSES
from mxwire.bench.roles.program import compile_program
from mxwire.bench.study import Points, kept
from mxwire.errors import MxwireError
from mxwire.lab import machine
from mxwire.lab.child import signal_group
from mxwire.lab.namespaces import Laboratory, NamespacePort, namespaces_refusal
from mxwire.native import is_compiled
from mxwire.report.document import Heading, show
from mxwire.report.json_line import json_line
from mxwire.report.plot import number_text

QUIET_LOAD = 0.5
"""Maximum number of other runnable programs during a run that may be published."""
MINUTES = 5.0
COMMAND = (sys.executable, "-P", "-m", "mxwire")
"""The mxwire of this process, as a command: ``-P``, so that the current folder does not come before PYTHONPATH."""
PATIENCE = 120.0
"""Bound of each process of a contestant in seconds, unless it names another."""
_RESTARTED = "MXWIRE_BENCHMARK_RESTARTED"
"""Set in the environment of the restarted program, which must find the compiled modules."""
_LONGEST_REASON = 200
"""Characters of an error that are printed: command lines are longer."""
_LEFT_OUT = (MxwireError, OSError, subprocess.SubprocessError, AssertionError)


class BenchmarkError(MxwireError):
    """A contestant cannot be measured."""


class BenchmarkTimeoutError(BaseException):
    """The program has reached its bound. No contestant may catch it."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A measured value."""

    series: str
    unit: str
    value: float
    size: int | None = None
    """Position on the axis of the series, which is the length of a message in bytes unless ``axis`` names another."""
    axis: tuple[str, str] = ("size", "bytes")


Run = Callable[[], Iterable[Sample]]
"""Measures a contestant once."""


def command_line(name: str, about: str | None, rounds: int, minutes: float = MINUTES) -> argparse.ArgumentParser:
    """Return the parser of the options that all benchmarks have."""
    parser = argparse.ArgumentParser(
        prog=f"benchmarks/{name}.py", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=positive, default=rounds, help="measurements of each (%(default)s)")
    parser.add_argument(
        "--minutes", type=float, default=minutes, help="begin no round after this time; one is complete (%(default)g)"
    )
    parser.add_argument("--quick", action="store_true", help="one short round, as a test: nothing is judged")
    parser.add_argument("--only", default="", metavar="TEXT", help="only contests with this text in their name")
    parser.add_argument("--interpreted", action="store_true", help="measure mxwire without compiling it")
    parser.add_argument("--json", action="store_true", help="print the recording, one object per line")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the series over a length into this file")
    return parser


def positive(text: str) -> int:
    """Return an integer of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


class Benchmark:
    """A run of a benchmark: its options, and what it has measured."""

    def __init__(self, name: str, options: argparse.Namespace, testbed: str) -> None:
        self.options = options
        self.quick: bool = options.quick
        """True if each contestant is to do little work."""
        self.rounds = 1 if options.quick else options.rounds
        conditions = Conditions(
            **machine.machine_conditions(),
            time=now_text(),
            testbed=testbed,
            compiled=is_compiled(),
            load=self._load(),
            quick=options.quick,
        )
        self.recording = Recording(name, conditions)
        self._points = Points(self.recording)

    def _load(self) -> float:
        """Return the number of programs that run beside this one, over three seconds or a moment."""
        return machine.other_programs() if self.quick else machine.other_programs(60, 0.05)

    def play(self, contest: str, contestants: Mapping[str, Run | str], share: float = 1.0, warm_up: int = 0) -> None:
        """Measure each contestant once per round, and print a line for each on standard error.

        A contestant that is a text is absent for that reason. ``share`` is the part of ``--minutes`` that the contest
        may take.
        """
        if self.options.only not in contest:
            return
        end = time.monotonic() + share * self.options.minutes * 60
        out = {name for name, run in contestants.items() if isinstance(run, str)}
        for name in out:
            self._remark(f"{contest}: {name} is absent: {contestants[name]}")
        for number in range(0 if self.quick else -warm_up, self.rounds):
            if number > 0 and time.monotonic() > end:
                self._remark(f"{contest}: {number} of {self.rounds} rounds in the time of --minutes")
                break
            order = [(name, run) for name, run in contestants.items() if not isinstance(run, str) and name not in out]
            for name, run in order if number % 2 == 0 else reversed(order):
                label = "warm-up" if number < 0 else f"round {number + 1} of {self.rounds}"
                try:
                    for sample in run():
                        self._add(name, sample, label, counts=number >= 0)
                except _LEFT_OUT as error:
                    out.add(name)
                    self.recording.complete = False
                    self._remark(f"{contest}: {name} is left out in {label}: {reason(error)}")

    def _add(self, name: str, sample: Sample, label: str, counts: bool) -> None:
        axis, axis_unit = sample.axis if sample.size is not None else ("", "")
        at = "" if sample.size is None else f" at {sample.size:,} {axis_unit}"
        if not sample.value > 0:
            raise BenchmarkError(f"{sample.series}: it has measured {sample.value}")
        value = number_text(sample.value)
        print(f"{sample.series}: {name}{at}: {value} {sample.unit} ({label})", file=sys.stderr, flush=True)
        if counts:
            self._points.declare(sample.unit, sample.series, x=axis, x_unit=axis_unit)
            place = {} if sample.size is None else {axis: sample.size}
            self._points.add(sample.series, name, float(f"{sample.value:.5g}"), **place)

    def _remark(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)
        self.recording.remarks.append(text)

    def median(self, series: str, name: str) -> float | None:
        """Return the median of a contestant that was measured, in a series without sizes."""
        return self._points.fill().named(series).median(name, 0)

    def run(self, measure: Callable[[Benchmark], None]) -> None:
        """Measure within the bound of time, and complete the recording."""
        try:
            with _bound(2 * self.options.minutes + 10), kept(self.recording, self._points):
                measure(self)
        except BenchmarkTimeoutError:
            self.recording.complete = False
            self._remark("not completed within twice --minutes and ten more")
            self._points.fill()
        before = self.recording.conditions
        load = max(before.load, self._load())
        self.recording.conditions = replace(before, load=round(load, 2))

    def report(self) -> int:
        """Print the recording and the verdicts on its goals, draw it if asked, and return the exit code."""
        from goals import verdicts

        found = verdicts(self.recording)
        if self.options.json:
            for record in (*self.recording.records(), *(each.record() for each in found)):
                print(json_line(record))
        else:
            show([*study_blocks(self.recording), *condition_blocks(self.recording), Heading("Goals", 3)])
            for each in found:
                print(each.text)
            if not is_quiet(self.recording.conditions):
                print(f"NOT QUIET, or --quick: do not publish (load {self.recording.conditions.load})")
        if self.options.plot is not None:
            drawn = [each for each in self.recording.series if each.x]
            if not drawn:
                raise BenchmarkError(f"{self.recording.study} has no series over a length: leave out --plot")
            write_figure(self.options.plot, SeriesFigure(drawn, self.recording.study))
        if not self.recording.complete:
            return 2
        return 0 if self.quick or all(each.reached for each in found) else 1


def is_quiet(conditions: Conditions) -> bool:
    """Return whether a recording with these conditions may be published."""
    return not conditions.quick and conditions.load <= QUIET_LOAD


@contextmanager
def _bound(minutes: float) -> Iterator[None]:
    """End the program, with an error, after some time."""

    def end(*_: object) -> None:
        raise BenchmarkTimeoutError

    signal.signal(signal.SIGALRM, end)
    signal.alarm(int(minutes * 60))
    try:
        yield
    finally:
        signal.alarm(0)


def run_benchmark(
    file: str,
    about: str | None,
    measure: Callable[[Benchmark], None],
    rounds: int = 5,
    minutes: float = MINUTES,
    *,
    network: bool = False,
    compiles: bool = True,
) -> None:
    """Run a benchmark from the command line, and exit.

    One that needs a ``network`` must be able to make namespaces. ``compiles`` is False if nothing that it measures is
    ever compiled.
    """
    name = Path(file).stem
    options = command_line(name, about, rounds, minutes).parse_args()
    refusal = namespaces_refusal() if network else None
    try:
        if refusal:
            raise BenchmarkError(f"{name}: {refusal}")
        if compiles and not options.interpreted:
            _run_compiled()
        benchmark = Benchmark(name, options, "namespaces" if network else "one machine")
        benchmark.run(measure)
        code = benchmark.report()
    except _LEFT_OUT as error:
        print(f"{name}: {reason(error)}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def reason(error: BaseException) -> str:
    """Return an error in one line, for a process that failed with the last line of its complaints."""
    complaints = getattr(error, "stderr", None) or b""
    text = complaints.decode(errors="replace") if isinstance(complaints, bytes) else complaints
    return " ".join([str(error)[:_LONGEST_REASON], *text.strip().splitlines()[-1:]])


def _run_compiled() -> None:
    """Restart this program with mxwire compiled, unless it is already; print a note if it cannot be compiled."""
    from tools.compile import FOLDER

    if is_compiled():
        return
    if os.environ.get(_RESTARTED):
        raise BenchmarkError(f"{FOLDER} was compiled, but this program has imported an interpreted mxwire")
    print("compiling mxwire, unless it is up to date: a minute or two (--interpreted skips this)", file=sys.stderr)
    if subprocess.run([sys.executable, str(ROOT / "tools" / "compile.py")], stdout=sys.stderr, check=False).returncode:
        print("measuring mxwire interpreted", file=sys.stderr)
        return
    sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"PYTHONPATH": str(FOLDER), _RESTARTED: "1"})


# Parts of several benchmarks


@contextmanager
def cable(mtu: int = 9000, addresses: Sequence[str] = IP_ADDRESSES) -> Iterator[tuple[NamespacePort, NamespacePort]]:
    """Two namespaces joined by a veth pair, with these IP addresses."""
    prefix = f"mxbench-{os.getpid()}"
    with Laboratory() as laboratory:
        ports = laboratory.cable(laboratory.machine(f"{prefix}-a"), laboratory.machine(f"{prefix}-b"), mtu=mtu)
        for port, address in zip(ports, addresses, strict=False):
            port.namespace.ip("address", "add", f"{address}/24", "dev", port.interface)
        yield ports


def compiled_program(source: str, folder: Path, *flags: str) -> Path | str:
    """Compile a C program of this folder; return its path, or the reason why it cannot be compiled."""
    program = folder / Path(source).stem
    try:
        compile_program(Path(__file__).with_name(source).read_text(encoding="utf-8"), str(program), *flags)
    except MxwireError as error:
        return str(error)
    return program


class Failure(BenchmarkError):
    """A program that failed, with its complaints."""

    def __init__(self, stderr: str) -> None:
        super().__init__("the program failed:")
        self.stderr = stderr


def processor_seconds(words: Sequence[str], environment: Mapping[str, str] | None = None) -> float:
    """Run a command without its output; return its processor time, user plus system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # The code of a command may report findings.
    done = subprocess.run(
        words,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=5 * PATIENCE,
        env=environment,
    )
    if done.returncode > 1:
        raise Failure(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def time_and_memory(words: Sequence[str]) -> tuple[float, int]:
    """Run a command without its output; return its time in s, and the peak of resident memory of its largest process.

    Raises :class:`BenchmarkError` if it fails, or takes too long.
    """
    start, peak = time.perf_counter(), 1
    with tempfile.TemporaryFile("w+") as complaints:
        run = subprocess.Popen(words, start_new_session=True, stdout=subprocess.DEVNULL, stderr=complaints)
        try:
            while run.poll() is None:
                peak = max(peak, _peak_memory(run.pid))
                time.sleep(0.1)
                if time.perf_counter() - start > 5 * PATIENCE:
                    raise BenchmarkError(f"not completed in {5 * PATIENCE:g} s")
        finally:
            signal_group(run.pid, signal.SIGKILL)
            run.wait()
        complaints.seek(0)
        if run.returncode:
            raise BenchmarkError(
                f"the command ended with exit code {run.returncode}: {complaints.read()[-_LONGEST_REASON:]}"
            )
    return time.perf_counter() - start, peak


def _peak_memory(group: int) -> int:
    """Return the largest peak of resident memory of the processes of a group, in bytes."""
    peak = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(folder.name)) == group:
                lines = (folder / "status").read_text().splitlines()
                peak = max([peak, *(int(each.split()[1]) * 1024 for each in lines if each.startswith("VmHWM"))])
        except OSError:
            continue  # the process has ended
    return peak
