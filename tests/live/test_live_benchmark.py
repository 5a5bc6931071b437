"""The benchmark of live hosts runs and reports its measurements; no speed fails the test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from . import bpf

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "live.py"


def test_every_contestant_is_measured_and_goals_are_judged(_namespaces_work):
    command = [sys.executable, str(BENCHMARK), "--quick", "--json", "--interpreted"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150)
    assert done.returncode in (0, 1), done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[0]["mxwire"] == "interpreted"
    for steered in (False, True):
        _every_contestant_is_there([row for row in rows if row.get("steered") is steered])
    memory = next(row["memory"] for row in rows if "memory" in row)
    assert all(each > 0 for each in (*memory["start"], *memory["end"]))
    verdicts = [row for row in rows if "goal" in row]
    reached = {row["goal"] for row in verdicts if row["reached"]}
    goals = 5 if bpf.missing() else 6
    assert len(verdicts) == 2 * goals and done.returncode == (0 if len(reached) == goals else 1)


def _every_contestant_is_there(rows):
    outcomes = {(row["contest"], row["contestant"]): row for row in rows if "contest" in row}
    assert {contest for contest, _ in outcomes} == {"large", "round trip", "tiny rate"}
    assert {name for contest, name in outcomes if contest == "large"} == {
        "mxoe",
        "omx:9000",
        "tcp",
        "ring",
        *([] if bpf.missing() else ["mxoe over xdp", "mxoe over xdp-send"]),
    }
    assert all(row["best"] > 0 for row in outcomes.values())
    assert outcomes["large", "mxoe"]["more"]["receiver_cpu_per_GB"] > 0
