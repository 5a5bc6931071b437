"""Reports of benchmarks that compare contestants."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SCRIPT = f"""
import runpy, sys
sys.path.insert(0, {str(BENCHMARKS)!r})
import contest
measure, measured = contest.measure, {{}}
def measure_once(capture, *others):
    if capture.name not in measured:
        measured[capture.name] = list(measure(capture, *others))
    return measured[capture.name]
contest.measure = measure_once
program, *options = sys.argv[1:]
for each in (["--json"], []):
    sys.argv = [program, *options, *each]
    runpy.run_path(program, run_name="__main__")
    print(end="\\f")
"""

Reports = Callable[..., tuple[dict[str, Any], str]]


@pytest.fixture(scope="session")
def reports_of(once: Callable[[str, Callable[[], str]], str]) -> Reports:
    """Runs a benchmark and returns both reports of one measurement: the object and the tables.

    It is another process, since a benchmark teaches scapy layers that other tests must not meet.
    """

    def run(name: str, *options: object) -> tuple[dict[str, Any], str]:
        command = [sys.executable, "-c", SCRIPT, str(BENCHMARKS / name), *map(str, options)]
        out = once(name, lambda: subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        data, text, rest = out.split("\f")
        assert rest == ""
        return json.loads(data), text

    return run
