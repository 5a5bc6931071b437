"""Errors of the system that no command has foreseen: one true line, and exit code 2."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import click
import pytest

from mxwire.cli import main
from mxwire.cli.main import cli
from tests.cli.support import CAPTURES, ROOT


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(errno.ENETDOWN, "Network is down"), "operating system error: Network is down"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "/x"), "/x: No such file or directory"),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "the output cannot be written: No space left on device; free some space, or choose another place",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device", "/x"),
            "/x: No space left on device; free some space, or choose another place",
        ),
        (MemoryError("a message finds no room"), "a message finds no room"),
        (MemoryError(), "not enough memory (ulimit -v prints the limit of this shell)"),
    ],
)
def test_errors_of_the_system_are_reported_unchanged(monkeypatch, capfd, error, line):
    @click.command()
    def command() -> None:
        raise error

    monkeypatch.setattr(cli, "get_command", lambda *_: command)
    # Where the output is to blame, what is left of it is thrown away.
    kept = os.dup(1)
    try:
        with pytest.raises(SystemExit) as ended:
            main(["any"])
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    assert ended.value.code == 2 and capfd.readouterr().err == f"mxwire: {line}\n"


CLOSED = "mxwire: the output cannot be written: Bad file descriptor\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("formats PULL >&-", (2, CLOSED)),
        (f"diagnose {CAPTURES / 'mxoe-lossy-1M.pcap'} >&-", (2, CLOSED)),
        ("formats >&-", (2, CLOSED)),
        ("nothing >&-", (2, "mxwire: No such command 'nothing'; see mxwire --help\n")),
        ("formats 2>&- >/dev/null", (0, "")),
        ("nothing 2>&-", (2, "")),
    ],
)
def test_output_that_the_shell_has_closed_is_reported(line, expected):
    """As by ls and tshark; messages cannot be."""
    done = subprocess.run(["sh", "-c", f"{sys.executable} {ROOT / 'cli.py'} {line}"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == expected


@pytest.mark.parametrize(
    ("arguments", "code"), [("diagnose FILE", 1), ("diagnose --json FILE", 1), ("info FILE", 0), ("decode FILE", 0)]
)
def test_a_reader_that_has_ended_does_not_change_the_exit_code(arguments, code):
    """A check that has failed exits with 1, as grep does as long as its output fits into the pipe."""
    words = arguments.replace("FILE", str(CAPTURES / "mxoe-lossy-1M.pcap")).split()
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, ROOT / "cli.py", *words], stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (done.returncode, done.stderr) == (code, b"")


RECEIVER = """
import resource
from mxwire.cli.receive import ReceiveOptions, _one
from mxwire.host import Host
from mxwire.host.stall import DialectMonitor
from mxwire.link import memory_pair

one, two = memory_pair()
with Host(one, name="alpha") as alpha, Host(two, name="beta") as beta, beta.open_endpoint(1) as endpoint:
    sender = alpha.open_endpoint()
    sender.isend(sender.connect("beta", 1), bytes(200_000_000))
    endpoint.probe()
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 50_000_000, resource.RLIM_INFINITY))
    try:
        _one(endpoint, ReceiveOptions(timeout=5.0), DialectMonitor(beta.core), print)
    except MemoryError as error:
        print(error)
"""


def test_a_message_too_large_for_memory_is_reported_with_its_length():
    done = subprocess.run([sys.executable, "-c", RECEIVER], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "a message of 200,000,000 bytes does not fit into memory: see --maximum\n", done.stderr
