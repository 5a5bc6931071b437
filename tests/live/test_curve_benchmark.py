"""The benchmark of the whole curve measures every contestant at every length; no speed fails the test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_every_contestant_is_measured_at_every_length(_namespaces_work, tmp_path):
    picture = tmp_path / "curve.svg"
    command = [
        sys.executable,
        str(BENCHMARKS / "curve.py"),
        "--quick",
        "--json",
        "--interpreted",
        "--plot",
        str(picture),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr
    conditions, *rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert conditions["mxwire"] == "interpreted" and conditions["quiet"] is (conditions["load"] <= 0.5)
    found = {(row["measure"], row["contestant"], row["length"]) for row in rows if "measure" in row}
    contestants = ("mxoe", "omx:9000", "frames, mxoe", "frames, omx:9000", "udp", "tcp")
    assert found == {
        (measure, name, length) for measure in ("trip", "rate") for name in contestants for length in (1, 129, 32_769)
    }
    assert all(value > 0 for row in rows if "measure" in row for value in row["values"])
    goals = [row for row in rows if "goal" in row]
    assert {row["length"] for row in goals} <= {1, 129} and all(row["ratio"] > 0 for row in goals)
    assert picture.read_text().startswith("<?xml")


def test_modules_of_pythonpath_are_measured(tmp_path):
    """The modules of PYTHONPATH come before those of the checkout, although the programs need both."""
    package = tmp_path / "mxwire"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('found')")
    command = [sys.executable, "-c", "import laboratory"]
    done = subprocess.run(command, cwd=BENCHMARKS, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.stderr.strip() == "found"
