"""Run all tests, and report those that are flaky.

    python tools/run_tests.py [--workers N] [--limit MINUTES] [TESTS ...]

Run pytest three times: the tests that need no clock; by themselves those that do, which are marked ``realtime``; and
then, one after another, those that failed. A test that fails and then passes is flaky: it is named and counted, and the
third flaky test fails the run. With CI=true a skipped test fails the run too. The last line has the total in pytest's
format. The module is also a plugin of pytest (``-p tools.run_tests``), which writes the result of a run to a file.

No run hangs. A test that takes longer than ``timeout`` in ``pyproject.toml`` fails by pytest-timeout, with the stacks
of its threads; but a test that is blocked in C, or whose cleanup hangs, cannot be ended from within. At the limit of
the whole run, the tests that are still running are therefore named, and the run fails.

Many tests wait for a moment, so there are five processes on two processors, and twice as many for the tests that need a
clock, which mostly wait. Before the first start, pytest's bytecode of the test files is stored, which each process
would otherwise make for itself; the live hosts are compiled in the background.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parents[1]
REALTIME = "realtime"
"""The mark of tests that need a clock."""
MOST_FLAKY = 2
"""Maximum number of flaky tests; more fail the run, because they hide defects."""
MOST_RERUN = 30
"""Maximum number of failures that are rerun; with more, something is broken."""
LIMIT = 60
"""Maximum number of minutes of all runs together: four times what two processors need."""
NONE_COLLECTED = 5
"""pytest's exit code where no test was selected."""
TOO_LONG = 124
"""Exit code of a run that was ended at its limit, as that of ``timeout``."""


@dataclass
class Outcome:
    """The result of one run of pytest, or of several."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)
    """Node ids of these tests."""
    skipped: list[str] = field(default_factory=list)
    """Node id and reason."""

    def add(self, other: Outcome) -> None:
        """Add the result of another run."""
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


class RunError(Exception):
    """A run of pytest that was interrupted or could not start; its exit code."""


# --- the plugin


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this module."""
    parser.addoption("--outcome", metavar="FILE", help="write the numbers of the run to FILE")
    parser.addoption(
        "--limit", metavar="SECONDS", type=float, help="end the run after SECONDS, and name what still runs"
    )
    parser.addoption("--store-bytecode", action="store_true", help="store the bytecode of the test files, and run none")


class RunLimit:
    """The limit of a run, in the process that starts the workers, which learns of every test that starts and ends."""

    def __init__(self, seconds: float) -> None:
        self.running: dict[str, float] = {}
        """Start of each test that is running, by the monotonic clock."""
        self._seconds = seconds
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._timer.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note that a test starts."""
        self.running[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Note that a test has ended."""
        self.running.pop(nodeid, None)

    def pytest_unconfigure(self) -> None:
        """Stop the timer."""
        self._timer.cancel()

    def _end(self) -> None:
        """Name the tests that are running, and end this process and its workers, which may not answer any more."""
        now = time.monotonic()
        print(f"\nNot finished after {self._seconds:.0f} s: {_counted(len(self.running), 'test')} still running:")
        for nodeid, started in sorted(self.running.items(), key=lambda each: each[1]):
            print(f"RUNNING {nodeid}: for {now - started:.0f} s")
        sys.stdout.flush()
        for child in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
        os._exit(TOO_LONG)


def pytest_configure(config: pytest.Config) -> None:
    """Begin the limit of the run, outside of the workers."""
    seconds = config.getoption("--limit")
    if seconds is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(RunLimit(seconds))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the collection of files without such tests when only those that need a clock are run."""
    if config.getoption("--store-bytecode") and collection_path.suffix == ".py":
        _store_bytecode(collection_path, config)
        return True
    if config.getoption("markexpr") == REALTIME and collection_path.suffix == ".py":
        return "mark.realtime" not in collection_path.read_text(encoding="utf-8") or None
    return None


def _store_bytecode(path: Path, config: pytest.Config) -> None:
    """Store the bytecode as pytest does when it imports a file, but without running the file."""
    from _pytest.assertion import rewrite

    stored = rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
    if not fnmatch(path.name, "test_*.py") or rewrite._read_pyc(path, stored) is not None:
        return
    stored.parent.mkdir(exist_ok=True)
    digest, code = rewrite._rewrite_test(path, config)
    rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, digest, stored)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Write the file, in the process that prints the summary."""
    path = config.getoption("--outcome")
    if path:
        stats = terminalreporter.stats
        failed = [each.nodeid for kind in ("failed", "error") for each in stats.get(kind, ())]
        skipped = [f"{each.nodeid}: {each.longrepr[2].removeprefix('Skipped: ')}" for each in stats.get("skipped", ())]
        found = {"passed": len(stats.get("passed", ())), "failed": list(dict.fromkeys(failed)), "skipped": skipped}
        Path(path).write_text(json.dumps(found), encoding="utf-8")


# --- the runs


@contextmanager
def prepared() -> Iterator[None]:
    """Store the bytecode of the tests, and compile the live hosts in the background."""
    bytecode = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "tools.run_tests", "--store-bytecode"]
    compilation = [sys.executable, str(ROOT / "tools" / "compile.py")]
    environment = os.environ | {"MXWIRE_OPTIMIZE": "0"}
    with subprocess.Popen(compilation, env=environment, stdout=subprocess.DEVNULL, process_group=0) as process:
        try:
            subprocess.run(bytecode, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def run(deadline: float, *options: str) -> Outcome:
    """Run pytest with options, until ``deadline`` by the monotonic clock.

    Raises :class:`RunError` if it was interrupted, could not start, or did not finish.
    """
    limit = max(deadline - time.monotonic(), 0)
    with tempfile.TemporaryDirectory(prefix="mxwire-tests-") as folder:
        file = Path(folder, "outcome")
        command = [sys.executable, "-m", "pytest", "-p", "tools.run_tests"]
        command += [f"--outcome={file}", f"--limit={limit}", *options]
        code = subprocess.run(command, check=False).returncode
        if code == NONE_COLLECTED:
            return Outcome()
        if code not in (0, 1) or not file.exists():
            raise RunError(code)
        outcome = Outcome(**json.loads(file.read_text(encoding="utf-8")))
    if code and not outcome.failed:
        raise RunError(code)
    return outcome


def run_all(
    tests: Sequence[str], workers: int, deadline: float, preparation: AbstractContextManager[None]
) -> tuple[Outcome, list[str]]:
    """Run the tests; returns the total, and the node ids of the flaky tests."""
    with preparation:
        print("\nTests that need no clock:", flush=True)
        total = run(deadline, f"-n{workers}", "--dist=worksteal", f"-m=not {REALTIME}", *tests)
    print("\nTests that need a clock:", flush=True)
    total.add(run(deadline, f"-n{2 * workers}", "--dist=worksteal", f"-m={REALTIME}", *tests))
    if not 0 < len(total.failed) <= MOST_RERUN:
        return total, []
    print(f"\nRerun, one after another: {_counted(len(total.failed), 'failed test')}", flush=True)
    again = run(deadline, "-n0", *total.failed)
    flaky = [each for each in total.failed if each not in again.failed]
    total.failed = again.failed
    total.passed += len(flaky)
    return total, flaky


def report(total: Outcome, flaky: Sequence[str], seconds: float) -> int:
    """Print the flaky, failed and (with CI=true) skipped tests and the total; returns the exit code."""
    in_ci = bool(os.environ.get("CI"))
    print()
    for title, names in (("FLAKY", flaky), ("FAILED", total.failed), ("SKIPPED", total.skipped if in_ci else ())):
        for each in names:
            print(f"{title} {each}")
    if len(flaky) > MOST_FLAKY:
        print(f"{len(flaky)} tests are flaky, and more than {MOST_FLAKY} fail the run.")
    if in_ci and total.skipped:
        print("With CI=true a skipped test fails the run: install what it needs (tools/install-programs).")
    numbers = {"failed": len(total.failed), "passed": total.passed, "skipped": len(total.skipped), "flaky": len(flaky)}
    shown = ", ".join(f"{number} {name}" for name, number in numbers.items() if number)
    print(f" {shown or 'no tests ran'} in {seconds:.2f}s ".center(80, "="), flush=True)
    bad = total.failed or len(flaky) > MOST_FLAKY or (in_ci and total.skipped) or not total.passed
    return 1 if bad else 0


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--workers",
        type=int,
        default=-(-5 * _processors() // 2),
        help="processes that run tests, and twice as many those that need a clock; default: five on two processors",
    )
    parser.add_argument("--limit", type=float, default=LIMIT, metavar="MINUTES", help="default: %(default)s")
    parser.add_argument("--no-compile", action="store_true", help="compile only when a test of compiled code starts")
    parser.add_argument("tests", nargs="*", help="files or folders; default: all tests")
    options = parser.parse_args()
    started = time.monotonic()
    preparation = nullcontext() if options.no_compile else prepared()
    try:
        total, flaky = run_all(options.tests, options.workers, started + 60 * options.limit, preparation)
    except RunError as error:
        return int(str(error)) or 1
    except KeyboardInterrupt:
        return 130
    return report(total, flaky, time.monotonic() - started)


if __name__ == "__main__":
    sys.exit(main())
