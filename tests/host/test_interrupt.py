"""Ctrl-C: it ends a wait at once, never harms the engine, and everything closes cleanly afterwards."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from mxwire.host import Host
from mxwire.host.section import ExclusiveSection, defer_interrupts, restore_interrupts
from mxwire.link import MemoryNetwork

from .conftest import PATIENCE

PROGRAM = f"""
import json, os, signal, sys, threading
from mxwire.host import Host
from mxwire.link import MemoryNetwork

def play(wait, spin):
    network = MemoryNetwork()
    links = network.attach(), network.attach()
    with Host(links[0], name="alpha", spin=spin) as alpha, Host(links[1], name="beta") as beta:
        one, two = alpha.open_endpoint(), beta.open_endpoint(3)
        partner = one.connect("beta", 3)
        names = {{"one": one, "two": two, "partner": partner}}
        print(os.getpid(), flush=True)
        try:
            eval(wait, names)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        request = two.ireceive(99, maximum=8)
        one.send(partner, b"alive", 99)
        print(bytes(two.wait(request, 20)).decode(), flush=True)
    print(len(threading.enumerate()), "thread")

for line in sys.stdin:
    if not (child := os.fork()):
        signal.alarm({2 * int(PATIENCE)})
        play(*json.loads(line))
        sys.exit()
    print("exit code", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Forks a process for each line, which waits until it is interrupted."""


@pytest.fixture(scope="module")
def program() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        yield running


@pytest.mark.parametrize("spin", [False, True])
@pytest.mark.parametrize(
    "wait",
    [
        "one.receive(5)",
        "one.receive(5, maximum=9)",
        "one.connect('nobody', timeout=None)",
        "one.wait(one.issend(partner, b'x'))",
        "[one.ssend(partner, b'x' * 60, 1) or two.receive(1) for _ in iter(int, 1)]",
        "[one.send(partner, bytes(3), 1) or two.receive(1, maximum=8) for _ in iter(int, 1)]",
    ],
)
def test_an_interrupt_ends_a_wait_and_the_host_lives_on(program, wait, spin):
    if wait.startswith("[one.ssend"):
        wait = "[(two.ireceive(1, maximum=60), one.ssend(partner, b'x' * 60, 1)) for _ in iter(int, 1)]"
    assert program.stdin is not None and program.stdout is not None
    print(json.dumps([wait, spin]), file=program.stdin, flush=True)
    process = int(program.stdout.readline())
    assert select.select([program.stdout], [], [], 0.1) == ([], [], [])
    os.kill(process, signal.SIGINT)
    lines = []
    for line in program.stdout:
        lines.append(line)
        if line.startswith("exit code"):
            break
    assert lines == ["interrupted\n", "alive\n", "1 thread\n", "exit code 0\n"]


def test_an_interrupt_waits_for_the_end_of_a_section():
    section, order = ExclusiveSection(), []
    held = defer_interrupts()
    try:
        with pytest.raises(KeyboardInterrupt):
            with section:
                with section:
                    signal.raise_signal(signal.SIGINT)
                    order.append("inner work")
                order.append("outer work")
            order.append("never")
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        if held:
            restore_interrupts()
    assert held and order == ["inner work", "outer work"]


def test_the_handler_is_put_back():
    before = signal.getsignal(signal.SIGINT)
    network = MemoryNetwork()
    first, second = Host(network.attach(), name="a"), Host(network.attach(), name="b")
    assert signal.getsignal(signal.SIGINT) != before
    first.close()
    second.close()
    assert signal.getsignal(signal.SIGINT) == before
