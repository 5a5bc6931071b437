"""Measure what an agent costs, and how fast it notices that a program, or it itself, has ended.

    sudo python benchmarks/agent.py [OPTIONS]

Half round trips over a virtual cable between an echoing host and a program that has a host of its own, or is attached
to an agent on its side (``mxwire agent``); all of them sleep while they wait. Program and agent share a processor, the
other side has another one: where the scheduler places three processes on two processors, a half round trip of 8 bytes
takes 30 to 90 µs with the same number of wake-ups. Then the ends, on any processors: the time until a program
notices that its agent was killed, and until the agent has closed the endpoint of a program that was killed, also with
100,000 receives posted, or stopped; and the longest round trip of another program of this agent at this time. Needs
root, for the namespaces.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from statistics import median
from typing import Any

from contest import Benchmark, BenchmarkError, Sample, cable, run_benchmark

from mxwire.host import Endpoint, Host, HostError
from mxwire.lab.machine import available_processors, pin, placement
from mxwire.lab.namespaces import NamespacePort
from mxwire.protocol import Partner

PATIENCE = 20.0
ANY = available_processors()
TRIP = "half round trip with an agent"
NOTICED = "time until an end is noticed"
DELAY = "longest round trip of another program, at the end"
BEFORE = "longest round trip of another program, before"
SIZES = {8: 400, 4096: 400, 1 << 16: 100, 1 << 20: 20}
"""Round trips per length in bytes."""
WAYS = {"own host": False, "match": "match", "card": "card"}
ECHO = """
import sys
from mxwire.host import Host
interface, name, agent, receives = sys.argv[1:]
options = {"agent": agent} if agent else {"name": name}
with Host.open(interface, **options) as host, host.open_endpoint(1) as endpoint:
    posted = [endpoint.ireceive(number << 32, maximum=8) for number in range(1, int(receives) + 1)]
    print("ready", flush=True)
    memory = bytearray(1 << 20)
    while True:
        message = endpoint.receive(5, buffer=memory)
        endpoint.send(message.partner, memoryview(memory)[: message.length], 5)
"""


@contextmanager
def bound(processor: int) -> Iterator[None]:
    """Bind this process, and those that it starts, to a processor."""
    pin(processor)
    try:
        yield
    finally:
        os.sched_setaffinity(0, ANY)


@contextmanager
def started(port: NamespacePort, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A Python process in a namespace that has printed its first line."""
    process = port.namespace.start(sys.executable, "-P", *words)
    try:
        if not process.stdout.readline():
            raise BenchmarkError(f"{words[:3]} does not start: {process.communicate(timeout=PATIENCE)[1]}")
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def agent_on(port: NamespacePort) -> Any:
    """An agent on a port."""
    return started(port, "-m", "mxwire", "agent", "-i", port.interface, "--name", "alpha")


def echo_on(port: NamespacePort, name: str, agent: str = "", receives: int = 0) -> Any:
    """A program that returns each message, by a host of its own or at an agent, with receives that wait."""
    return started(port, "-c", ECHO, port.interface, name, agent, str(receives))


@contextmanager
def program(port: NamespacePort, way: bool | str, peer: str) -> Iterator[tuple[Host, Endpoint, Partner]]:
    """A host of this process on a port, and its connection to endpoint 1 of a peer."""
    with port.namespace.inside():
        host = Host.open(port.interface, agent=way, background=False, **({} if way else {"name": "alpha"}))
    with host, host.open_endpoint() as endpoint:
        yield host, endpoint, endpoint.connect(peer, 1, timeout=PATIENCE)


def trip(endpoint: Endpoint, partner: Partner, data: bytes, memory: bytearray) -> float:
    """Return the seconds of a round trip."""
    start = time.perf_counter()
    posted = endpoint.ireceive(5, buffer=memory)
    endpoint.send(partner, data, 5, timeout=PATIENCE)
    endpoint.wait(posted, PATIENCE)
    return time.perf_counter() - start


def trips(near: NamespacePort, far: NamespacePort, way: bool | str, quick: bool) -> Iterator[Sample]:
    """Half round trips of each length."""
    with ExitStack() as stack:
        left, right = placement()
        with bound(right):
            stack.enter_context(echo_on(far, "beta"))
        stack.enter_context(bound(left))
        stack.enter_context(agent_on(near))
        _, endpoint, partner = stack.enter_context(program(near, way, far.address))
        for size, count in SIZES.items():
            data, memory = bytes(size), bytearray(size)
            times = [trip(endpoint, partner, data, memory) for _ in range(4 if quick else count)]
            yield Sample(TRIP, "µs", median(times) / 2 * 1e6, size)


def killed_agent(near: NamespacePort, far: NamespacePort, way: str) -> Iterator[Sample]:
    """A program waits for a message while its agent is killed."""
    with agent_on(near) as agent, echo_on(far, "beta"), program(near, way, far.address) as (host, endpoint, _):
        posted = endpoint.ireceive(7, maximum=8)
        agent.kill()
        start = time.perf_counter()
        try:
            endpoint.wait(posted, PATIENCE)
        except HostError:
            yield Sample(NOTICED, "ms", (time.perf_counter() - start) * 1e3)
        if not host.closed:
            raise BenchmarkError("the program has not noticed the end of its agent")


def ended_program(near: NamespacePort, far: NamespacePort, how: signal.Signals, receives: int) -> Iterator[Sample]:
    """A program of the agent is killed or stopped, while another one exchanges messages."""
    with (
        agent_on(near),
        echo_on(far, "beta"),
        program(near, True, far.address) as (host, endpoint, partner),
        echo_on(near, "alpha", "match", receives) as victim,
    ):
        data, memory = bytes(8), bytearray(8)
        usual = max(trip(endpoint, partner, data, memory) for _ in range(50))
        victim.send_signal(how)
        start, longest, open_still = time.perf_counter(), 0.0, True
        while open_still and time.perf_counter() < start + PATIENCE:
            longest = max(longest, trip(endpoint, partner, data, memory))
            try:
                host.open_endpoint(1).close()
                open_still = False
            except HostError:
                continue
        yield Sample(NOTICED, "ms", (time.perf_counter() - start) * 1e3)
        yield Sample(DELAY, "ms", longest * 1e3)
        yield Sample(BEFORE, "ms", usual * 1e3)


def measure(benchmark: Benchmark) -> None:
    receives = 100 if benchmark.quick else 100_000
    with cable() as (near, far):
        benchmark.play(
            "round trip", {name: partial(trips, near, far, way, benchmark.quick) for name, way in WAYS.items()}, 0.6
        )
        benchmark.play(
            "ends",
            {
                "agent killed, match": partial(killed_agent, near, far, "match"),
                "agent killed, card": partial(killed_agent, near, far, "card"),
                "program killed": partial(ended_program, near, far, signal.SIGKILL, 0),
                "program killed, many receives": partial(ended_program, near, far, signal.SIGKILL, receives),
                "program stopped": partial(ended_program, near, far, signal.SIGSTOP, 0),
            },
            0.4,
        )


if __name__ == "__main__":
    run_benchmark(__file__, __doc__, measure, network=True)
