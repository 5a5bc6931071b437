"""Ctrl-C ends every live command well, whatever it is doing: exit code 130, and never a traceback."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from .commands import INTERRUPTED, LONGEST, running
from .namespaces import Laboratory, Port

BEGIN = """
import os, sys
from mxwire.__main__ import main
sys.addaudithook(lambda event, about: event == "import" and about[0] == "mxwire.cli" and os.write(1, b"begun\\n"))
main()
"""
"""The installed command, which reports when it handles Ctrl-C: before that, Python itself ends, in its own way."""
FAR = ("--name", "beta:0")


@pytest.fixture(scope="module")
def ports(shared_laboratory: Laboratory) -> Iterator[tuple[Port, Port]]:
    """alpha serves at the first; beta is to be at the second."""
    ports = shared_laboratory.pair(9000)
    with running(ports[0], "serve", "--endpoint", "0", "--name", "alpha:0") as server:
        server.until("Ctrl-C")
        yield ports
        assert server.end() == INTERRUPTED


@contextmanager
def begun(port: Port, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A command of which the first line has just run; all its output is in one stream."""
    name, *rest = words
    arguments = [sys.executable, "-u", "-c", BEGIN, name, "-i", port.interface, *rest]
    # Not forked from a process that has imported the commands.
    process = subprocess.Popen(
        port.namespace.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def interrupted(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=LONGEST)
    assert process.returncode == INTERRUPTED, said
    return said


COMMANDS = [
    pytest.param(["send", "alpha:0:0", "FILE", "--chunk", "1000000", *FAR, "--json"], '"sent"', id="send"),
    pytest.param(["receive", *FAR], "waiting for messages", id="receive"),
    pytest.param(["perf", "-d", "alpha:0", "-B", "-N", "10", *FAR], "length", id="perf sender"),
    pytest.param(["doctor", "--duration", "60", *FAR], "permission", id="doctor"),
    pytest.param(["discover", "--duration", "60", *FAR], None, id="discover"),
]


@pytest.mark.parametrize(("words", "at_work"), COMMANDS)
def test_a_command_is_interrupted_at_any_time(ports, tmp_path, words, at_work):
    with (tmp_path / "large").open("wb") as file:
        # Sparse, and longer than could be sent in that time.
        file.truncate(1 << 40)
    words = [str(tmp_path / "large") if each == "FILE" else each for each in words]
    for delay in (0.0, 0.05, 0.2):
        with begun(ports[1], *words) as process:
            time.sleep(delay)
            assert "Traceback" not in interrupted(process)
    if at_work is None:
        return
    with begun(ports[1], *words) as process:
        assert process.stdout is not None
        said: list[str] = []
        while not said or at_work not in said[-1]:
            said.append(process.stdout.readline())
            assert said[-1], "".join(said)
        assert "Traceback" not in interrupted(process)
