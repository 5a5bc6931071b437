"""Runs the real command in a process of its own, as a user does."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "captures"
EVERY_TYPE = CAPTURES / "mxoe-every-type.pcap"


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


def mxwire(*arguments: object, stdin: bytes | None = None, cwd: Path | None = None) -> Run:
    """The command's exit code and what it printed; a traceback is always a failure."""
    command = [sys.executable, str(ROOT / "cli.py"), *map(str, arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=60, cwd=cwd)
    run = Run(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert "Traceback" not in run.err, run.err
    return run


def open_to_all(folder: Path) -> None:
    """Let other users pass through a test's folder; pytest's own are for their owner alone."""
    ours = [folder, *folder.parents]
    for each in ours[: ours.index(Path(tempfile.gettempdir()))]:
        each.chmod(0o755)
