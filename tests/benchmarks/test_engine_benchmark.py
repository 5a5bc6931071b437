"""The benchmark of the engine runs and reports its measurements; no speed fails the test."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "engine.py"


def test_every_size_in_every_dialect_is_measured():
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--rounds", "1", "--quick", "--json"], capture_output=True, text=True
    )
    assert done.returncode in (0, 1), done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    speeds = [(row["dialect"], row["length"]) for row in rows if "dialect" in row]
    assert speeds == [(name, size) for name in ("mxoe", "omx:1500", "omx:9000") for size in (0, 4096, 32768, 4194304)]
    assert {row["what"] for row in rows if "what" in row} == {"partners", "outstanding requests"}
    assert all(row["microseconds"] > 0 for row in rows)


def test_a_goal_can_be_missed():
    module = runpy.run_path(str(BENCHMARK))
    slow = module["Speed"]("mxoe", 0, 1000.0, 1.0, "codec alone", 0.1)
    fast = module["Speed"]("mxoe", 0, 10.0, 1.0, "codec alone", 0.1)
    assert not module["_reached"]([slow], 0)
    assert module["_reached"]([slow, fast], 0)
