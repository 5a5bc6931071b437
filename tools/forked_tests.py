"""A plugin of pytest that runs tests in processes forked after the collection.

    python -m pytest -p tools.forked_tests --processes N

Collecting these tests takes several seconds and much memory. With pytest-xdist each process collects for itself; here
they share one collection, so that there can be more of them, and a test that waits leaves no processor idle. Each
process requests the next unit of tests when it starts its last one: files that are slow first, test by test, and then
the others in their order, at most ``LONGEST_UNIT`` tests of one file. In all other respects a process is one of
pytest-xdist: the same environment variables, folders for temporary files and hooks.

A process sends one pickled message per test, and the first process reports it. If a process crashes, the test that it
ran has failed, and another process takes its place.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, groupby
from multiprocessing import connection, util
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

LONGEST_UNIT = 12
"""Many tests of a file in one process share its fixtures; few are left to one process at the end of a run."""
SLOW_FILES = (
    "docs/test_documentation.py",
    "live/test_live_bench.py",
    "live/test_live_linerate.py",
    "dissector/test_fuzz.py",
    "campaign/",
    "tools/test_wheel.py",
    "compiled/",
)
"""Files with tests that take longer than most files, in the order of their start; by the last, the compilation has
ended."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of this plugin."""
    parser.addoption("--processes", type=int, metavar="N", help="run the tests in N processes")


def pytest_configure(config: pytest.Config) -> None:
    """Run tests in processes if so requested."""
    number = config.getoption("--processes")
    if number:
        config.pluginmanager.register(Distributor(number), "forked-tests")


@dataclass
class RunningProcess:
    """A forked process, as the first process sees it."""

    pid: int
    channel: connection.Connection
    output: dict[str, Any] = field(default_factory=dict)
    """As of a node of pytest-xdist: what plugins hand over at the end."""
    left: list[int] = field(default_factory=list)
    """Indexes of tests that were handed out and have not ended."""


class Distributor:
    """The part in the first process: hands out the tests and reports their results."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._names = count()
        self._units: deque[list[int]] = deque()
        self._processes: list[RunningProcess] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all tests; in a forked process, this returns too."""
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            raise session.Interrupted("errors during collection")
        if session.config.option.collectonly:
            return True
        self._units.extend(units(session.items))
        try:
            while self._units or self._processes:
                while self._units and len(self._processes) < self._number:
                    forked = self._fork(session)
                    if forked is not None:
                        forked.run_all()
                        return True
                self._receive(session)
        finally:
            for each in self._processes:
                each.channel.close()
            for each in self._processes:
                os.waitpid(each.pid, 0)
            self._processes.clear()
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        return True

    def _fork(self, session: pytest.Session) -> ForkedSession | None:
        """Start a process; returns None in the first process."""
        name = f"gw{next(self._names)}"
        folder = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        own, other = connection.Pipe()
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            other.close()
            self._processes.append(RunningProcess(pid, own))
            return None
        own.close()
        for each in self._processes:
            each.channel.close()
        self._processes.clear()
        self._units.clear()
        session.config.pluginmanager.unregister(self)
        forked = ForkedSession(session, name, other)
        forked.become(folder / f"popen-{name}")
        return forked

    def _receive(self, session: pytest.Session) -> None:
        """Wait for messages and act on them."""
        by_channel = {each.channel: each for each in self._processes}
        for channel in connection.wait(list(by_channel)):
            process = by_channel[channel]  # type: ignore[index]
            try:
                kind, *values = process.channel.recv()
            except (EOFError, OSError):
                self._ended(process, session)
                continue
            if kind == "next":
                unit = self._units.popleft() if self._units and not session.shouldfail else []
                process.left += unit
                with contextlib.suppress(OSError):
                    process.channel.send(unit)
            elif kind == "warning":
                _report_warning(session, *values)
            elif kind == "end":
                process.output = values[0]
            else:
                self._report(session, *values)
                process.left.remove(values[0])

    def _report(self, session: pytest.Session, index: int, reports: list[dict[str, Any]]) -> None:
        hook, item = session.config.hook, session.items[index]
        for data in reports:
            report = hook.pytest_report_from_serializable(config=session.config, data=data)
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _ended(self, process: RunningProcess, session: pytest.Session) -> None:
        """Take what a process leaves; if it crashed, the test that it ran has failed."""
        process.channel.close()
        self._processes.remove(process)
        code = os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1])
        if process.left:
            crashed, *rest = process.left
            item = session.items[crashed]
            text = f"the process of this test ended with {signal.Signals(-code).name if code < 0 else code}"
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")
            session.config.hook.pytest_runtest_logreport(report=report)
            if rest:
                self._units.appendleft(rest)
        elif code:
            raise RuntimeError(f"a test process ended with {code} after its last test")
        node = SimpleNamespace(workeroutput=process.output)
        if hasattr(session.config.hook, "pytest_testnodedown"):
            session.config.hook.pytest_testnodedown(node=node, error=None)


class ForkedSession:
    """The part in a forked process: runs the tests that it gets."""

    def __init__(self, session: pytest.Session, name: str, channel: connection.Connection) -> None:
        self._session = session
        self._name = name
        self._channel = channel
        self._reports: list[dict[str, Any]] = []

    def become(self, folder: Any) -> None:
        """Make the copy of the first process one of its own: nothing of the first one is used or ended by it."""
        config: Any = self._session.config
        atexit._clear()
        atexit.register(util._exit_function)
        os.environ |= {"PYTEST_XDIST_WORKER": self._name, "PYTEST_XDIST_TESTRUNUID": str(os.getppid())}
        config.workerinput = {"workerid": self._name}
        config.workeroutput = {}
        folder.mkdir(mode=0o700)
        config._tmp_path_factory._basetemp = folder
        config.pluginmanager.unregister(name="terminalreporter")
        capture = config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.stop_global_capturing()
            capture.start_global_capturing()
            capture.suspend_global_capture()
        config.pluginmanager.register(self, "forked-session")

    def run_all(self) -> None:
        """Run tests until there are no more."""
        session = self._session
        indexes = deque(self._next())
        while indexes:
            index = indexes.popleft()
            if not indexes:
                indexes.extend(self._next())
            item = session.items[index]
            following = session.items[indexes[0]] if indexes else None
            self._reports = []
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self._channel.send(("ran", index, self._reports))

    def _next(self) -> Sequence[int]:
        self._channel.send(("next",))
        try:
            return self._channel.recv()
        except EOFError:
            return ()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a report for the message to the first process, unless it has no content."""
        if report.when == "call" or not report.passed:
            config = self._session.config
            self._reports.append(config.hook.pytest_report_to_serializable(config=config, report=report))

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, when: str, nodeid: str) -> None:
        """Pass on a warning of a test; those of the collection are reported by the first process."""
        if when == "runtest":
            kind, place = warning_message.category.__name__, (warning_message.filename, warning_message.lineno)
            self._channel.send(("warning", str(warning_message.message), kind, place, nodeid))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> NoReturn:
        """End the process, and leave what belongs to the first process."""
        with contextlib.suppress(OSError):  # if the first process was interrupted
            self._channel.send(("end", self._session.config.workeroutput))  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _report_warning(session: pytest.Session, text: str, kind: str, place: tuple[str, int], nodeid: str) -> None:
    category = type(kind, (Warning,), {})
    values = {
        "warning_message": warnings.WarningMessage(category(text), category, *place),
        "when": "runtest",
        "nodeid": nodeid,
        "location": None,
    }
    session.config.hook.pytest_warning_recorded.call_historic(kwargs=values)


def units(items: Sequence[pytest.Item]) -> Iterator[list[int]]:
    """Yield the indexes of tests that one process runs in a row, slow files first."""
    places = {name: place for place, name in enumerate(SLOW_FILES)}

    def slowness(index: int) -> int:
        path = items[index].nodeid
        return next((place for name, place in places.items() if path.startswith(f"tests/{name}")), len(places))

    order = sorted(range(len(items)), key=slowness)
    for (_, place), group in groupby(order, key=lambda index: (items[index].path, slowness(index))):
        indexes = list(group)
        longest = LONGEST_UNIT if place == len(places) else 1
        yield from (indexes[start : start + longest] for start in range(0, len(indexes), longest))
