"""A child process answers in lines, and ends with all that it has started."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mxwire.lab.child import ChildEndedError, ChildProcess, ProgramLateError, run_program


def child(code: str, **options: int) -> ChildProcess:
    return ChildProcess([sys.executable, "-u", "-c", code], **options)


def test_lines_are_exchanged_and_an_incomplete_one_is_kept() -> None:
    echo = child("print(input()); print('rest', end='')")
    assert echo.silent
    echo.write_line(b"hello")
    assert echo.read_line(None) == b"hello"
    with pytest.raises(ChildEndedError):
        echo.read_line(None)
    assert echo.rest == b"rest"
    echo.end()
    echo.end()


def test_a_silent_child_is_not_waited_for_longer_than_wanted() -> None:
    sleeper = child("import time; time.sleep(1000)")
    assert sleeper.read_line(0.01) is None
    sleeper.end()
    assert sleeper.process.returncode == -signal.SIGKILL
    with pytest.raises(ChildEndedError):
        sleeper.write_line(b"too late")


def test_the_first_signal_lets_it_end_by_itself_and_its_last_error_is_returned() -> None:
    code = "import signal, sys; signal.signal(15, lambda *_: sys.exit('one\\ntwo')); print(); signal.pause()"
    orderly = child(code, stderr=subprocess.PIPE)
    orderly.read_line(None)
    assert orderly.end(signal.SIGTERM, 60.0) == "two"
    assert orderly.process.returncode == 1


def test_its_children_end_with_it() -> None:
    parent = child("import subprocess; print(subprocess.Popen(['sleep', '1000']).pid)")
    grandchild = Path("/proc", (parent.read_line(None) or b"").decode(), "stat")
    parent.end()
    while grandchild.exists() and grandchild.read_text().rpartition(")")[2].split()[0] not in "ZX":
        pass


def test_a_program_that_is_late_is_killed_with_its_children() -> None:
    others: list[str] = []
    with pytest.raises(ProgramLateError) as late:
        # There is no output before the end of sleep, which has the pipe, too.
        run_program(["sh", "-c", "sleep 1000 & echo out; wait"], timeout=1, end_others=lambda: others.append("ended"))
    assert late.value.output == "out\n" and others == ["ended"]
    done = run_program(["sh", "-c", "echo out; exit 3"], timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "")
