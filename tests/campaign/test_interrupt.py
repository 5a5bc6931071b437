"""Ctrl-C, which a terminal sends to a command and to all processes that it started."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
ROOT = Path(__file__).parents[2]
DASK = pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")


def _descendants(pid: int) -> set[int]:
    """All processes that a process started, as far as they still exist."""
    found: set[int] = set()
    with suppress(OSError):
        for each in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, each.read_text().split()):
                found |= {child} | _descendants(child)
    return found


def _receives_interrupts(pid: int) -> bool:
    """Return whether a process neither blocks nor ignores SIGINT."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text()
        if "\nState:\tZ" not in status:
            masks = re.findall(r"^Sig(?:Blk|Ign):\t([0-9a-f]+)$", status, re.MULTILINE)
            return not any(int(each, 16) >> (signal.SIGINT - 1) & 1 for each in masks)
    return False


@pytest.mark.parametrize("processes", [1, 2, 3, 4])
@pytest.mark.parametrize("on", ["local", pytest.param("dask:local", marks=DASK)])
def test_ctrl_c_while_workers_start_ends_the_command_without_a_traceback(on, processes):
    words = [sys.executable, str(ROOT / "cli.py"), "simulate", "--seeds", "0-999999", "--jobs", "2", "--on", on]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, process_group=0) as running:
        try:
            started: set[int] = set()
            while running.poll() is None and len(started) < processes:
                started = _descendants(running.pid)
                assert [each for each in started if _receives_interrupts(each)] == []
                time.sleep(0.001)
            os.killpg(running.pid, signal.SIGINT)
            _, error = running.communicate(timeout=60)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 130, error
    assert error.strip() in ("", "mxwire: interrupted")
