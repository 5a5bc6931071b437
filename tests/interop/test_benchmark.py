"""The benchmark of the matrix runs and reports what it promises; how long anything takes decides no test."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.cli.support import ROOT


def test_the_matrix_and_its_cells_are_measured() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "interop.py"), "--quick", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    assert found["cells"] > 100 and found["matrix"] > 0
    assert 0 < found["cell_mean"] <= found["cell_slowest"] and found["cell_p99"] <= found["cell_slowest"]
    assert found["slowest"].count("/") == 3
    assert done.returncode == (not found["reached"])
