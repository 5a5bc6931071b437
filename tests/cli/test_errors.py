"""Bad input and bad use: one clear line, exit code 2, never a traceback, never a hang."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.cli.support import CAPTURES, EVERY_TYPE, ROOT, mxwire, open_to_all
from tests.forked import start


def write(path, data: bytes):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("command", ["decode", "info"])
def test_a_large_file_of_zeros_is_not_a_capture(tmp_path, command):
    zeros = tmp_path / "zeros.pcap"
    with zeros.open("wb") as file:
        file.truncate(10 << 30)
    run = mxwire(command, zeros)
    assert (run.code, run.out) == (2, "") and "starts with zeros" in run.err and run.err.count("\n") == 1


def test_permission_denied(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    secret = write(tmp_path / "secret.pcap", EVERY_TYPE.read_bytes())
    secret.chmod(0o600)
    open_to_all(tmp_path)
    # This user may be unable to read the installation, so that a first run as root has to import everything.
    script = "import os\nfrom mxwire.cli import main\n"
    script += f"try: main(['decode', '--count', '1', {str(EVERY_TYPE)!r}])\nexcept SystemExit: pass\n"
    script += f"os.setuid(65534)\nmain(['decode', {str(secret)!r}])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "ermission" in done.stderr and str(secret) in done.stderr


def test_interrupted_while_waiting_for_input(tmp_path):
    pipe = tmp_path / "pipe.pcap"
    os.mkfifo(pipe)
    process = start([sys.executable, ROOT / "cli.py", "decode", pipe], stderr=subprocess.PIPE, text=True)
    assert process is not None
    # This returns when the command has opened its end.
    with pipe.open("wb"):
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors


IGNORED = """
import signal, sys, weakref
from mxwire.__main__ import main

class Module:
    pass

def interrupt(event, about):
    if event == "import" and about[0] == "mxwire.cli":
        module = Module()
        callback = weakref.ref(module, lambda _: signal.raise_signal(signal.SIGINT))
        del module

sys.addaudithook(interrupt)
main()
"""
"""Ctrl-C in a callback that ends the life of an object, in which Python ignores it."""


def test_an_interrupt_that_python_ignores_is_repeated():
    words = [sys.executable, "-c", IGNORED, "simulate", "--seeds", "0-99999", "--jobs", "1"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr


def test_a_bad_table_target_leaves_nothing_behind(tmp_path):
    target = tmp_path / "frames.parquet"
    assert mxwire("decode", "--to", target, tmp_path / "absent.pcap", CAPTURES / "mxoe-connect.pcap").code == 2
    assert [each.name for each in tmp_path.iterdir()] == ["frames.parquet"]
