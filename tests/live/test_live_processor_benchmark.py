"""The benchmark of processor time runs and reports its measurements; no amount fails the test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "live_processor.py"


def test_every_kind_of_message_is_measured(_namespaces_work):
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--quick", "--json"], capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["dialect"] for row in rows] == ["mxoe"] * 3 + ["omx:9000"] * 3
    assert len({row["what"] for row in rows}) == 3 and all(row["microseconds"] > 0 for row in rows)
