"""The benchmark of line-rate tests runs all its contests; its figures are not judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .namespaces import Laboratory

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "linerate.py"


@pytest.mark.realtime
@pytest.mark.parametrize("only", ["without receiver", "through, 72", "live frames, 64"])
def test_every_contest_has_results(laboratory: Laboratory, only: str) -> None:
    with laboratory.machine().inside():
        command = [sys.executable, str(BENCHMARK), "--quick", "--json", "--only", only]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert records and all(only in each["contest"] for each in records)
    for each in records:
        assert all(rate > 0 for rate in each["best"]) and each["ratio"] > 0 and each["goal"] > 0
        assert isinstance(each["reached"], bool)
