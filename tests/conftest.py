"""Fixtures of all tests."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

with contextlib.suppress(ImportError):
    import readline  # noqa: F401

pytest_plugins = ("tests.transitions",)

# A shell that starts the tests in the background has them ignore Ctrl-C, and they would pass that on to the programs
# that they start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# GNU readline, which pytest loads, writes the size of the terminal into the environment of this process behind the back
# of os.environ. A child that is started without env= would inherit it, and one that gets os.environ would not.
for name in ("COLUMNS", "LINES"):
    if name not in os.environ:
        os.unsetenv(name)

# Imported modules and collected tests are never garbage, and the tests create many objects but few cycles. With the
# usual threshold, the collector would take a third of the time of some tests.
gc.disable()
gc.set_threshold(50_000, 10, 10)

# Many tests start Python, or import the engine again: without stored bytecode, each compiles all modules of mxwire.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Each program of a test that imports NumPy would start its threads, which spin for 30 ms; the command does this itself.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Test runs at the same time would see each other's hosts, and fill one peer table. The processes of a run inherit this.
_own_runtime = None if "MXWIRE_RUNTIME_DIR" in os.environ else tempfile.mkdtemp(prefix="mx")
if _own_runtime:
    os.environ["MXWIRE_RUNTIME_DIR"] = _own_runtime

# The settings of the user who runs the tests must not change their results.
os.environ["MXWIRE_CONFIG"] = os.devnull

# With CI=true hypothesis tries the same examples in every run; new ones find more. There is no deadline per example,
# because no test depends on the speed of the machine.
settings.register_profile("mxwire", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mxwire")


def pytest_unconfigure() -> None:
    """Remove the runtime folder of this run."""
    if _own_runtime:
        shutil.rmtree(_own_runtime, ignore_errors=True)


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this run share."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def once(run_folder: Path) -> Callable[[str, Callable[[], str]], str]:
    """Returns the text of a name; the first process of this run that needs it calls the function that makes it."""

    def text_of(name: str, make: Callable[[], str]) -> str:
        path = run_folder / name
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                made = make()
                path.write_text(made, encoding="utf-8", newline="")
        return path.read_text(encoding="utf-8")

    return text_of


@pytest.fixture(scope="session")
def scripts(once: Callable[[str, Callable[[], str]], str]) -> None:
    """Skips tests where tshark does not run scripts."""
    from tests.dissector.support import why_not

    reason = once("why tshark runs no scripts", why_not)
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def _namespaces_work() -> None:
    """Skips tests where namespaces cannot be created."""
    from tests.live import namespaces

    why_not = namespaces.missing()
    if why_not:
        pytest.skip(why_not)


@pytest.fixture
def forked_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the sides of studies of this process: a new interpreter takes longer than what a quick study measures."""
    from tests.forked import start

    def started(words: list[str], **options: Any) -> subprocess.Popen[Any]:
        return start(words, **options) or subprocess.Popen(words, **options)

    monkeypatch.setattr("mxwire.lab.child.subprocess", SimpleNamespace(**vars(subprocess) | {"Popen": started}))


_LARGE_SHARE = 1000
"""Number of tests per process from which on their order matters."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests for several processes, each of which begins with its share of the list.

    Tests of live hosts mostly wait: half of the processes begin with them, while the others compute. The longest tests
    are early in each share, so that none is left for the end, but after tests that run while the hosts are compiled.
    """
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    share = len(items) // processes
    if share < _LARGE_SHARE:
        return
    waiting = [each for each in items if each.path.parts[-2] == "live"]
    longest = [each for each in items if each.get_closest_marker("longest")]
    set_apart = {*waiting, *longest}
    items[:] = [each for each in items if each not in set_apart]
    begins = -(-processes // 2)
    for number in range(begins):
        part = waiting[len(waiting) * number // begins : len(waiting) * (number + 1) // begins]
        items[number * share : number * share] = part
    for number, each in enumerate(longest):
        items.insert((number * share + _LARGE_SHARE // 10) % len(items), each)


def pytest_collection_finish() -> None:
    """Exempt the collected tests from garbage collection, which would visit all of them again and again."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A runtime folder of the test alone, with a path that is short enough for sockets; it does not exist yet."""
    with tempfile.TemporaryDirectory(prefix="mx") as base:
        folder = Path(base, "run")
        monkeypatch.setenv("MXWIRE_RUNTIME_DIR", str(folder))
        yield folder
