"""The benchmark of the local path runs, and reports each contestant; how fast they were decides nothing."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "local.py"


def test_each_contestant_is_measured():
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--quick", "--json"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode in (0, 1), done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    names = ["mxwire", "socket pair", "pipe", *(["C"] if shutil.which("gcc") or shutil.which("cc") else [])]
    sizes = (0, 8, 1024, 4096, 65536, 4194304)
    assert [(row["contestant"], row["bytes"]) for row in rows] == [(name, size) for size in sizes for name in names]
    assert all(row["microseconds"] > 0 for row in rows)


def test_a_goal_can_be_missed(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARK.parent))
    reached = runpy.run_path(str(BENCHMARK))["reached"]
    rows = {("mxwire", 0): 2.0, ("mxwire", 4194304): 900.0, ("C", 4194304): 800.0}
    assert reached(rows)
    assert not reached(rows | {("mxwire", 0): 4.0})
    assert not reached(rows | {("mxwire", 4194304): 1100.0})
