"""Every row of every state table is taken by some test of this folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from .tables import line, tables

FOLDER = Path(__file__).parent


def test_every_row_of_every_table_is_taken(tmp_path):
    """A row that no test takes is not known to be right, and perhaps not needed."""
    record = tmp_path / "taken"
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", str(FOLDER), "--ignore", __file__]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        env={**os.environ, "MXWIRE_RECORD_TRANSITIONS": str(record)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stdout
    taken = set(record.read_text(encoding="utf-8").splitlines())
    every = {line(name, row) for name, table in tables().items() for row in table.rows}
    assert every - taken == set()
