"""Fixtures of the tests of captures."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
CAPTURES = sorted((REPOSITORY / "captures").glob("**/*.pcap"))


@pytest.fixture(scope="session")
def real_captures() -> list[Path]:
    """All captures of the repository."""
    if not CAPTURES:
        pytest.skip("captures/ holds no captures")
    return CAPTURES


@pytest.fixture(scope="session")
def real_capture(real_captures) -> Path:
    """A real capture of at least a thousand frames, and not much larger."""
    return min(real_captures, key=lambda path: abs(path.stat().st_size - 200_000))


@pytest.fixture(scope="session")
def run():
    """Run a program of Wireshark and return its output; skip the test if it is not installed."""

    def run_program(*command) -> str:
        program = str(command[0])
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
        return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout

    return run_program
