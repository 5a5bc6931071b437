"""The benchmark of links runs and reports everything it promises; how fast anything is decides no test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "link.py"
QUICK = ("--rounds", "1", "--seconds", "0.02", "--round-trips", "20")


def run(*options: str) -> str:
    done = subprocess.run([sys.executable, str(BENCHMARK), *QUICK, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_contestant_is_measured(_namespaces_work: None) -> None:
    results = json.loads(run("--json", "--lengths", "64", "9014"))
    contestants = ["send/recv", "link, sleep", "link, spin", "link, bulk"]
    assert [(each["length"], each["contestant"]) for each in results["rates"]] == [
        (length, contestant) for length in (64, 9014) for contestant in contestants
    ]
    assert all(each["frames_per_second"] > 0 and 0 <= each["loss"] < 1 for each in results["rates"])
    assert [each["contestant"] for each in results["round_trips"]] == ["send/recv", "link, spin"]
    assert all(0 < each["median_us"] <= each["p99_us"] for each in results["round_trips"])


def test_the_tables_name_every_contestant(_namespaces_work: None) -> None:
    printed = run("--lengths", "1514")
    assert printed.count("link, spin") == 2
    assert "1514  link, bulk" in printed
