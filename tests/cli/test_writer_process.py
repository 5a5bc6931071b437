"""A table is the same, and errors are, whether a process of its own or the command itself writes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.support import mxwire

CAPTURE = Path(__file__).parents[2] / "captures" / "mxoe-burst.pcap"
STARTED = """
from mxwire.cli.writer_process import WriterProcess
start = WriterProcess.start
def started():
    process = start()
    assert process is not None
    {}
    return process
WriterProcess.start = started
"""
ITSELF = """
import numpy
from mxwire.cli.writer_process import WriterProcess
assert WriterProcess.start() is None
"""
LIMITED = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))\n"


def decode(*words: object, before: str = "") -> subprocess.CompletedProcess[str]:
    """``mxwire decode`` in a new Python, which ``before`` prepares."""
    program = f"import os, sys\n{before}\nfrom mxwire.__main__ import main\nmain()\n"
    command = [sys.executable, "-c", program, "decode", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "ndjson"])
def test_the_file_is_the_same(tmp_path: Path, suffix: str) -> None:
    """A forked command writes the file itself, since the fork server has imported NumPy."""
    paths = [tmp_path / f"{name}.{suffix}" for name in ("process", "itself")]
    done = decode("--to", paths[0], CAPTURE, before=STARTED.format("pass"))
    assert (done.returncode, done.stderr.count("wrote")) == (0, 1), done.stderr
    run = mxwire("decode", "--to", paths[1], CAPTURE)
    assert (run.code, run.err.count("wrote")) == (0, 1), run.err
    one, other = (path.read_bytes() for path in paths)
    assert one == other and len(one) > 10_000
    assert sorted(tmp_path.iterdir()) == sorted(paths)


def test_errors_are_the_same(tmp_path: Path) -> None:
    target = tmp_path / "table.csv"
    one, other = (
        decode("--to", target, CAPTURE, before=LIMITED + before) for before in (STARTED.format("pass"), ITSELF)
    )
    assert one.returncode == other.returncode == 2
    assert one.stderr == other.stderr and one.stderr.startswith(f"mxwire: {target}: cannot be written: ")
    assert not list(tmp_path.iterdir())


def test_a_killed_process_is_reported(tmp_path: Path) -> None:
    target = tmp_path / "table.parquet"
    done = decode("--to", target, CAPTURE, before=STARTED.format("os.kill(process._process, 9)"))
    assert done.returncode == 2
    assert done.stderr == f"mxwire: {target}: cannot be written: the process that writes it was killed\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [("no.pcap",), ("--fields", "x", str(CAPTURE))], ids=["no capture", "no field"])
def test_no_process_is_left(tmp_path: Path, words: tuple[str, ...]) -> None:
    ended = """
import atexit
def ended():
    try:
        os.wait()
    except ChildProcessError:
        print("none left")
atexit.register(ended)
"""
    done = decode("--to", tmp_path / "table.parquet", *words, before=STARTED.format("pass") + ended)
    assert (done.returncode, done.stdout) == (2, "none left\n"), done.stderr
    assert not list(tmp_path.iterdir())
