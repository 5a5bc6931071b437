"""The command that runs all tests counts what is flaky, and fails when it should."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.run_tests import Outcome, report

ROOT = Path(__file__).parents[2]
GOOD = "def test_good():\n    pass\n"
BAD = "def test_bad():\n    assert False\n"
SKIPPED = "def test_skipped():\n    pytest.skip('no such program')\n"
ALONE = (
    "@pytest.mark.realtime\ndef test_alone(request):\n    assert request.config.getoption('markexpr') == 'realtime'\n"
)


def flaky(number: int) -> str:
    """A test that fails in parallel, and passes when it is rerun."""
    return f"def test_flaky_{number}():\n    assert 'PYTEST_XDIST_WORKER' not in os.environ\n"


def run(folder: Path, *tests: str, options: tuple[str, ...] = (), **environment: str) -> tuple[int, list[str]]:
    """The exit code and the lines that were printed."""
    settings = "addopts = -ra -p xdist -p pytest_timeout\ntimeout = 2\nmarkers =\n    realtime\n"
    (folder / "pytest.ini").write_text(f"[pytest]\n{settings}")
    (folder / "test_any.py").write_text(
        "import ctypes\nimport os\nimport signal\nimport time\n\nimport pytest\n\n\n" + "\n\n".join(tests)
    )
    command = [sys.executable, str(ROOT / "tools" / "run_tests.py"), "--no-compile", "--workers=1", *options]
    kept = {
        name: value for name, value in os.environ.items() if name != "CI" and not name.startswith(("PYTEST", "COV"))
    }
    kept |= {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | environment
    done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, timeout=300)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def total(lines: list[str]) -> str:
    """The counts in the last line, without the time."""
    return lines[-1].strip("= ").rpartition(" in ")[0]


def test_all_is_well(tmp_path):
    code, lines = run(tmp_path, GOOD, ALONE, SKIPPED)
    assert (code, total(lines)) == (0, "2 passed, 1 skipped")
    assert any("no such program" in line for line in lines)


def test_failed_tests_are_run_again_and_named(tmp_path):
    code, lines = run(tmp_path, GOOD, BAD, SKIPPED, flaky(1), flaky(2), CI="true")
    assert (code, total(lines)) == (1, "1 failed, 3 passed, 1 skipped, 2 flaky")
    assert "Rerun, one after another: 3 failed tests" in lines
    assert lines[-6:-2] == [
        *(f"FLAKY test_any.py::test_flaky_{number}" for number in (1, 2)),
        "FAILED test_any.py::test_bad",
        "SKIPPED test_any.py::test_skipped: no such program",
    ]


def test_a_test_that_hangs_fails(tmp_path):
    code, lines = run(tmp_path, GOOD, "def test_hangs():\n    time.sleep(1000)\n")
    assert (code, total(lines)) == (1, "1 failed, 1 passed")
    assert "FAILED test_any.py::test_hangs" in lines
    assert any("Timeout" in line for line in lines)


def test_a_run_that_hangs_names_its_tests(tmp_path):
    """A test that is blocked in C, with Python's lock, so that nothing ends it from within."""
    hangs = (
        "def test_hangs():\n    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})\n"
        "    ctypes.PyDLL(None).sleep(1000)\n"
    )
    code, lines = run(tmp_path, GOOD, hangs, options=("--limit=0.2",))
    assert code == 124
    assert lines[-2] == "Not finished after 12 s: 1 test still running:"
    assert lines[-1].startswith("RUNNING test_any.py::test_hangs: for ")


@pytest.mark.parametrize(
    ("passed", "failed", "skipped", "flaky", "in_ci", "code"),
    [
        (1, 0, 0, 0, True, 0),
        (3, 0, 0, 2, True, 0),
        (3, 0, 0, 3, False, 1),
        (1, 1, 0, 0, False, 1),
        (1, 0, 1, 0, False, 0),
        (1, 0, 1, 0, True, 1),
        (0, 0, 0, 0, False, 1),
    ],
)
def test_only_a_good_run_succeeds(passed, failed, skipped, flaky, in_ci, code, monkeypatch, capsys):
    """A failure, a third flaky test, a test skipped with CI=true, and a run without tests are not good."""
    monkeypatch.setenv("CI", "true" if in_ci else "")
    assert report(Outcome(passed, ["a"] * failed, ["b"] * skipped), ["c"] * flaky, 1.0) == code
    shown = capsys.readouterr().out
    assert ("3 tests are flaky, and more than 2 fail the run." in shown) == (flaky == 3)
    assert ("SKIPPED b" in shown) == (skipped and in_ci)


def test_stored_bytecode_is_that_of_pytest(tmp_path):
    (tmp_path / "test_any.py").write_text(GOOD)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    kept |= {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    found = []
    for options, last in ((["-p", "tools.run_tests", "--store-bytecode"], "no tests ran"), ([], "1 passed")):
        command = [sys.executable, "-m", "pytest", *options]
        done = subprocess.run(command, cwd=tmp_path, env=kept, capture_output=True, text=True, timeout=300)
        assert last in done.stdout.splitlines()[-1], done.stdout + done.stderr
        (stored,) = (tmp_path / "__pycache__").glob("*.pyc")
        found.append((stored.name, stored.read_bytes()))
        stored.unlink()
    assert found[0] == found[1]
