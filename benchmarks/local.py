"""Measure messages between two processes of one host: mxwire's local path, a Unix socket pair, a pipe, and a C program.

    python benchmarks/local.py [--rounds N] [--quick] [--interpreted] [--json]

Two processes, one CPU each, send messages back and forth; the time of a message is half a round trip. mxwire spins, and
is compiled (tools/compile.py) unless ``--interpreted`` is given; its interface has no wire. The C program
(``local_limit.c``, compiled on the spot) does the same with memcpy and process_vm_readv, and is the limit here. The
contestants take turns, and the best round of each counts: on a loaded machine most rounds measure the load.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from laboratory import command_line, options_of

from mxwire.host import Host, HostError
from mxwire.host.sharing import MachineSharing
from mxwire.link import MemoryNetwork
from mxwire.link.process_memory import copy_refusal

SIZES = (0, 8, 1024, 4096, 65536, 4 << 20)
HALF_ROUND_TRIP_US = 3.0
"""Goal for messages of 0 bytes, compiled and with two CPUs."""
SHARE_OF_C = 0.8
"""Goal for the throughput of messages of 4 MiB, relative to the C program."""
PATIENCE = 60.0
_LONG = 1 << 20
_END = 1 << 40
"""Match information of the message that ends the partner."""

Turns = Callable[[int], None]
"""Sends a message and receives the answer, a number of times."""


def processors() -> tuple[int, int]:
    """Return the CPUs of the two processes; the same one if there is only one."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[-1]


@contextmanager
def partner(serve: Callable[[], None]) -> Any:
    """Fork a process that runs ``serve`` on the second CPU; the caller runs on the first one."""
    first, second = processors()
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
    interface = f"benchmark-{os.getpid()}-{size}"

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
                assert time.monotonic() < limit
        data, memory = bytes(size), bytearray(size)

        def play(turns: int) -> None:
            for _ in range(turns):
                endpoint.send(there, data, 5)
                endpoint.receive(5, buffer=memory)

        yield play


@contextmanager
def socket_pair(size: int) -> Any:
    """A Unix stream socket, blocking."""
    near, far = socket.socketpair()
    length = max(1, size)

    def serve() -> None:
        memory = bytearray(length)
        while True:
            _receive(far, memory)
            far.sendall(memory)

    with partner(serve):
        data, memory = bytes(length), bytearray(length)

        def play(turns: int) -> None:
            for _ in range(turns):
                near.sendall(data)
                _receive(near, memory)

        yield play
    near.close()
    far.close()


def _receive(connection: socket.socket, memory: bytearray) -> None:
    view, done = memoryview(memory), 0
    while done < len(memory):
        done += connection.recv_into(view[done:])


@contextmanager
def pipes(size: int) -> Any:
    """Two pipes, blocking."""
    there, back = os.pipe(), os.pipe()
    length = max(1, size)

    def transfer(write: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(write, view) :]

    def collect(read: int) -> None:
        left = length
        while left:
            left -= len(os.read(read, left))

    def serve() -> None:
        data = bytes(length)
        while True:
            collect(there[0])
            transfer(back[1], data)

    with partner(serve):
        data = bytes(length)

        def play(turns: int) -> None:
            for _ in range(turns):
                transfer(there[1], data)
                collect(back[0])

        yield play
    for each in (*there, *back):
        os.close(each)


def c_program(folder: Path) -> Path | None:
    """Compile the C program; return None without a compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    program = folder / "local_limit"
    source = Path(__file__).with_name("local_limit.c")
    subprocess.run([compiler, "-O2", str(source), "-o", str(program)], check=True)
    return program


def turns_of(size: int) -> int:
    """Return the number of round trips per round: few, so that some rounds are not interrupted on a busy machine."""
    return 1 if size >= _LONG else 20


def best_of(kind: Callable[[int], Any], size: int, rounds: int, turns: int) -> float:
    """Return the shortest time of a message in microseconds."""
    with kind(size) as play:
        play(turns)
        best = float("inf")
        for _ in range(rounds):
            start = time.perf_counter()
            play(turns)
            best = min(best, (time.perf_counter() - start) / turns / 2 * 1e6)
    return best


def best_of_c(program: Path, size: int, rounds: int, turns: int) -> float:
    """Return the shortest time of a message of the C program in microseconds."""
    first, second = processors()
    command = [str(program), *map(str, (size, turns, rounds, first, second))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE * 5)
    return min(map(float, done.stdout.split()))


KINDS: dict[str, Callable[[int], Any]] = {"mxwire": mxwire, "socket pair": socket_pair, "pipe": pipes}
LIMIT = "C"


def main() -> int:
    """Run the command and return its exit code: 1 if a goal is missed."""
    parser = command_line(__doc__, 200)
    options = options_of(parser, wired=False)
    rounds = 1 if options.quick else options.rounds
    refusal = copy_refusal()
    rows: dict[tuple[str, int], float] = {}
    with tempfile.TemporaryDirectory() as folder:
        program = c_program(Path(folder))
        for size in SIZES:
            turns = turns_of(size)
            for name, kind in KINDS.items():
                rows[name, size] = best_of(kind, size, rounds, turns)
            if program is not None:
                rows[LIMIT, size] = best_of_c(program, size, rounds, turns)
    names = [*KINDS, *([LIMIT] if program is not None else [])]
    if options.json:
        for (name, size), microseconds in rows.items():
            print(json.dumps({"contestant": name, "bytes": size, "microseconds": microseconds}))
    else:
        print(f"µs per message (half a round trip), best of {rounds}; long messages: {refusal or 'one copy'}")
        print(f"{'bytes':>9}" + "".join(f"{name:>13}" for name in names))
        for size in SIZES:
            print(f"{size:9}" + "".join(f"{rows[name, size]:13.2f}" for name in names))
    return 0 if reached(rows) else 1


def reached(rows: dict[tuple[str, int], float]) -> bool:
    """Return whether the goals are reached."""
    largest = SIZES[-1]
    limit = rows.get((LIMIT, largest), 0.0)
    return rows["mxwire", 0] <= HALF_ROUND_TRIP_US and limit >= SHARE_OF_C * rows["mxwire", largest]


if __name__ == "__main__":
    sys.exit(main())
