"""Measure messages between two processes of one host: mxwire's local path, Unix socket pairs, and C.

    python benchmarks/local.py [OPTIONS]

Two processes, one CPU each, send messages back and forth; the time of a message is half a round trip, by calls in
Python. mxwire spins, and its interface has no wire; one socket pair sleeps until data arrives, the other one is polled,
as mxwire is. The C program (local_limit.c) copies with memcpy and process_vm_readv.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from contest import PATIENCE, Benchmark, BenchmarkError, Run, Sample, compiled_program, run_benchmark

from mxwire.host import Host, HostError
from mxwire.host.sharing import MachineSharing
from mxwire.lab.machine import placement
from mxwire.link import MemoryNetwork

SIZES = (0, 1, 8, 32, 128, 129, 512, 1024, 4096, 4097, *(1 << exponent for exponent in range(13, 23)))
QUICK = (0, 129, 65_536)
BUDGET = 20_000_000
"""Bytes per measurement, with ``OVERHEAD`` added to each message."""
OVERHEAD = 20_000
SERIES = "half round trip within a host"
_END = 1 << 40
"""Match information of the message that ends the partner."""


def turns_of(size: int, quick: bool) -> int:
    """Return the number of round trips of a measurement."""
    return 2 if quick else max(4, BUDGET // (size + OVERHEAD))


@contextmanager
def partner(serve: Callable[[], None]) -> Any:
    """Fork a process that runs ``serve`` on the second CPU; the caller runs on the first one."""
    first, second = placement()
    child = os.fork()
    if not child:
        os.sched_setaffinity(0, {second})
        with suppress(BaseException):
            serve()
        os._exit(0)
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {first})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def opened(interface: str) -> Host:
    """Open a host on an interface without a wire, which two processes share by its name."""
    sharing = MachineSharing([interface])
    return Host(MemoryNetwork().attach(), sharing=sharing, name="local", announce=False, spin=True, background=False)


@contextmanager
def mxwire(size: int) -> Any:
    """Two hosts on one interface."""
    interface = f"benchmark-{os.getpid()}-{time.monotonic_ns()}"

    def serve() -> None:
        with opened(interface) as host:
            endpoint = host.open_endpoint(2)
            memory = bytearray(size)
            while True:
                message = endpoint.receive(buffer=memory)
                if message.match_info == _END:
                    return
                endpoint.send(message.partner, memory, 5)

    with partner(serve), opened(interface) as host:
        endpoint = host.open_endpoint(1)
        there = None
        limit = time.monotonic() + PATIENCE
        while there is None:
            try:
                there = endpoint.connect(host.name, 2)
            except HostError:
                if time.monotonic() > limit:
                    raise BenchmarkError("the two hosts do not connect") from None
        data, memory = bytes(size), bytearray(size)

        def play(turns: int) -> None:
            for _ in range(turns):
                endpoint.send(there, data, 5)
                endpoint.receive(5, buffer=memory)

        yield play


@contextmanager
def socket_pair(size: int, *, polls: bool = False) -> Any:
    """A Unix stream socket, blocking unless both sides poll it."""
    near, far = socket.socketpair()
    for each in (near, far):
        each.setblocking(not polls)
    length = max(1, size)

    def serve() -> None:
        memory = bytearray(length)
        while True:
            _pass(far.recv_into, memory)
            _pass(far.send, memory)

    with partner(serve):
        data, memory = bytearray(length), bytearray(length)

        def play(turns: int) -> None:
            for _ in range(turns):
                _pass(near.send, data)
                _pass(near.recv_into, memory)

        yield play
    near.close()
    far.close()


def _pass(call: Callable[[memoryview], int], memory: bytearray) -> None:
    """Send or receive all bytes; poll while the call would block."""
    view = memoryview(memory)
    while view:
        try:
            view = view[call(view) :]
        except BlockingIOError:
            continue


def trips(kind: Callable[[int], Any], sizes: tuple[int, ...], quick: bool) -> Iterator[Sample]:
    """Measure one round of a contestant."""
    for size in sizes:
        turns = turns_of(size, quick)
        with kind(size) as play:
            play(max(turns // 10, 1))
            start = time.perf_counter()
            play(turns)
            seconds = time.perf_counter() - start
        yield Sample(SERIES, "µs", seconds / turns / 2 * 1e6, size)


def limit(program: Path, sizes: tuple[int, ...], quick: bool) -> Iterator[Sample]:
    """Measure one round of the C program, which prints the time of a few short rounds."""
    for size in sizes:
        words = [str(program), *map(str, (size, turns_of(size, quick), 3, *placement()))]
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=PATIENCE)
        yield Sample(SERIES, "µs", median(map(float, done.stdout.split())), size)


KINDS: dict[str, Callable[[int], Any]] = {
    "mxwire": mxwire,
    "socket pair": socket_pair,
    "polled socket pair": partial(socket_pair, polls=True),
}


def measure(benchmark: Benchmark) -> None:
    sizes = QUICK if benchmark.quick else SIZES
    with TemporaryDirectory() as folder:
        program = compiled_program("local_limit.c", Path(folder))
        runs: dict[str, Run | str] = {
            name: partial(trips, kind, sizes, benchmark.quick) for name, kind in KINDS.items()
        }
        runs["C"] = program if isinstance(program, str) else partial(limit, program, sizes, benchmark.quick)
        benchmark.play("local", runs)


if __name__ == "__main__":
    run_benchmark(__file__, __doc__, measure)
