"""The benchmark of replays runs and reports everything it promises; how fast anything is decides no test."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "replay.py"


def test_every_contestant_is_measured_and_goals_are_judged(_namespaces_work: None) -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--quick", "--json"], capture_output=True, text=True, timeout=240
    )
    assert done.returncode in (0, 1), done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    outcomes = {(row["contest"], row["contestant"]): row["best"] for row in rows if "contest" in row}
    others = {"tcpreplay"} if shutil.which("tcpreplay") else set()
    for contest in ("small frames", "mixed frames"):
        assert {who for what, who in outcomes if what == contest} == {"mxwire replay", "a Python loop of send"} | others
    assert {who for what, who in outcomes if what.startswith("paced")} == {"mxwire replay"} | others
    assert all(best > 0 for best in outcomes.values())
    goals = [row for row in rows if "goal" in row]
    assert len(goals) == 3
    assert all((row["ratio"] is None) != bool(others) for row in goals)
    assert done.returncode == (1 if any(row["reached"] is False for row in goals) else 0)
