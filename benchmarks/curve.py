"""Measure the whole curve: messages of 0 bytes to 4 MiB between two network namespaces, beside the same work in C.

    sudo python benchmarks/curve.py [OPTIONS]

For each length, half a round trip and the rate with a window of messages under way, of mxwire's hosts in two dialects
and of a program in C on libmyriexpress (library_program.c); beside them TCP, UDP and "frames alone" (curve_peers.c):
the same frames without the protocol, which is the limit. Two processes, one CPU each, poll on the two ends of a veth
pair of MTU 9000. By default the sender's CPU does the receive processing of such a pair; in the series that are
``steered`` the receiver's does, as between two machines. Calls of the hosts in Python are timed, and calls of C in the
others, without the start of a process. The library alone is measured by ``mx_test`` with nothing new, and ``mx_init``.

Needs root, for the namespaces, and a C compiler.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from contest import PATIENCE, Benchmark, BenchmarkError, Run, Sample, cable, compiled_program, run_benchmark

from mxwire.bench.roles.common import IP_ADDRESSES
from mxwire.errors import MxwireError
from mxwire.host import Endpoint, Host
from mxwire.lab.child import ChildEndedError, ChildProcess
from mxwire.lab.machine import placement
from mxwire.lab.namespaces import NamespacePort
from mxwire.myriexpress.build import Installation, build
from mxwire.myriexpress.launch import environment
from mxwire.wire.dialect import dialect_by_name
from mxwire.wire.formats import PULL_REPLY
from mxwire.wire.layout import layout_of

DIALECTS = ("mxoe", "omx:9000")
LENGTHS = (
    *(0, 1, 32, 33, 128, 129, 512, 1024, 4096, 4097, 8192, 16_384, 32_768, 32_769),
    *(1 << exponent for exponent in range(16, 23)),
)
QUICK = (1, 129, 32_769)
WINDOW = 64
WINDOW_BYTES = 8 << 20
"""Maximum number of bytes under way, which bounds the window of long messages."""
BUDGET = 30_000_000
"""Bytes per measurement, with ``OVERHEAD`` added to each message."""
OVERHEAD = 10_000
DATAGRAM_MAXIMUM = 65_507
UNITS = {"trip": "half round trip", "rate": "windowed rate"}
LIBRARY = "libmyriexpress"
ALONE = {"test": ("mx_test with nothing new", "ns", 1e9, 5_000_000), "start": ("mx_init", "s", 1.0, 1)}
"""Measurements of the library alone: series, unit, factor, and count."""
ROLE = "--role"
Kind = tuple[str, int, int]
"""A measurement: trip or rate, the length, and the count."""


def count_of(length: int, quick: bool) -> int:
    """Return the number of messages of a measurement: whole windows."""
    window = window_of(length)
    return window * (1 if quick else -(-max(16, min(2000, BUDGET // (length + OVERHEAD))) // window))


def window_of(length: int) -> int:
    """Return the number of messages that are answered together."""
    return max(2, min(WINDOW, WINDOW_BYTES // (length + 1)))


def kinds_of(lengths: tuple[int, ...], quick: bool) -> list[Kind]:
    """Return the measurements of a contestant in a round."""
    return [(kind, length, count_of(length, quick)) for length in lengths for kind in UNITS]


def sample(kind: str, length: int, value: float, way: str = "") -> Sample:
    """Return a sample from seconds, or from messages per second; a message without data counts as one byte."""
    if kind == "trip":
        return Sample(UNITS[kind] + way, "µs", value * 1e6, length)
    return Sample(UNITS[kind] + way, "MB/s", value * max(1, length) / 1e6, length)


# mxwire's hosts: a process that plays one side of all measurements, one per line of its standard input.


def play(dialect: str, interface: str, peer: str | None) -> None:
    """Play one side; ``peer`` is the name of the passive host on the active side."""
    with (
        Host.open(interface, name="beta" if peer else "alpha", dialect=dialect_by_name(dialect), spin=True) as host,
        host.open_endpoint(0, 1) as endpoint,
    ):
        print("ready", flush=True)
        for line in sys.stdin:
            measure, length, count, _ = line.split()[0], *map(int, line.split()[1:])
            print((trip if measure == "trip" else rate)(endpoint, length, count, peer), flush=True)


def trip(endpoint: Endpoint, length: int, count: int, peer: str | None) -> float:
    """Exchange messages; return half the round trip, in seconds."""
    memory, data, warm = bytearray(length), bytes(length), count // 10 + 1
    partner = None if peer is None else endpoint.connect(peer, 0, 1)
    start = time.perf_counter()
    posted = endpoint.ireceive(buffer=memory)
    for number in range(-warm, count):
        if number == 0:
            start = time.perf_counter()
        if partner is not None:
            endpoint.isend(partner, data)
        message, following = endpoint.wait(posted), None
        if number + 1 < count:
            following = endpoint.ireceive(buffer=memory)
        if partner is None:
            sent = endpoint.isend(message.partner, data)
            if following is None:
                endpoint.wait(sent)
        if following is not None:
            posted = following
    return (time.perf_counter() - start) / count / 2


def rate(endpoint: Endpoint, length: int, count: int, peer: str | None) -> float:
    """Send windows of messages, each answered by one message; return messages per second."""
    window = window_of(length)
    memory = [bytearray(length) for _ in range(window)]
    partner = None if peer is None else endpoint.connect(peer, 0, 1)
    start = time.perf_counter()
    for _ in range(count // window):
        if partner is None:
            posted = [endpoint.ireceive(buffer=each) for each in memory]
            endpoint.isend(endpoint.wait_all(posted)[-1].partner, b"")
        else:
            for each in memory:
                endpoint.isend(partner, each)
            endpoint.receive()
    return count / (time.perf_counter() - start)


# The contestants


class Pairs:
    """Starts a program on both ports, and passes measurements to it."""

    def __init__(self, ports: tuple[NamespacePort, NamespacePort]) -> None:
        self.ports = ports
        self._processors = placement()

    @contextmanager
    def started(self, place: int, *words: str, environment: dict[str, str] | None = None) -> Iterator[ChildProcess]:
        """Run a program on one port; it is killed at the end."""
        command = self.ports[place].namespace.command("taskset", "-c", str(self._processors[place]), *words)
        child = ChildProcess(command, environment=environment)
        try:
            yield child
        finally:
            child.end()

    def hosts(self, dialect: str, kinds: list[Kind]) -> Iterator[tuple[Kind, float]]:
        """Measure mxwire's hosts."""
        words = (sys.executable, __file__, ROLE, dialect)
        return self.spoken([(*words, self.ports[0].interface), (*words, self.ports[1].interface, "alpha:0")], kinds)

    def spoken(
        self,
        sides: list[tuple[str, ...]],
        kinds: list[Kind],
        environments: Sequence[dict[str, str] | None] = (None, None),
    ) -> Iterator[tuple[Kind, float]]:
        """Measure two programs that take a measurement per line of their input, the passive one first.

        The active side is started when the passive side is ready: its first query, if too early, would be repeated only
        after a second in which both poll.
        """
        with ExitStack() as stack:
            running = []
            for place, (words, environment) in enumerate(zip(sides, environments, strict=True)):
                running.append(stack.enter_context(self.started(place, *words, environment=environment)))
                line_of(running[-1])
            for kind in kinds:
                for each in running:
                    each.write_line(" ".join(map(str, (*kind, window_of(kind[1])))).encode())
                yield kind, [float(line_of(each)) for each in running][-1]

    def peer(self, program: Path, name: str, kinds: list[Kind]) -> Iterator[tuple[Kind, float]]:
        """Measure a peer in C, which is started for each measurement."""
        payload, header = 0, 0
        places = [IP_ADDRESSES, IP_ADDRESSES[::-1]]
        if name.startswith("frames"):
            dialect = dialect_by_name(name.split(", ")[1])
            payload, header = dialect.reply_payload, layout_of(PULL_REPLY).header_end
            places = [(self.ports[place].interface, self.ports[1 - place].address.hex(":")) for place in (0, 1)]
        for kind in kinds:
            measure, length, count = kind
            if name == "udp" and length > DATAGRAM_MAXIMUM:
                continue
            rest = (measure, str(length), str(count), str(window_of(length)), str(payload), str(header))
            words = [(str(program), name.split(",")[0], *places[place]) for place in (0, 1)]
            with self.started(0, *words[0], "passive", *rest) as passive:
                line_of(passive)
                with self.started(1, *words[1], "active", *rest) as active:
                    found = float(line_of(active))
                    # Both end by themselves, since a connection that is cut would occupy its ports.
                    for each in (active, passive):
                        each.process.wait(PATIENCE)
                yield kind, found


class Library:
    """Runs library_program.c, which uses the C interface of MX."""

    def __init__(self, pairs: Pairs, folder: Path, installation: Installation) -> None:
        self._pairs = pairs
        self._environment = environment(installation, os.environ)
        flags = (f"-I{installation.include}", f"-L{installation.folder}", "-lmyriexpress")
        program = compiled_program("library_program.c", folder, *flags)
        if isinstance(program, str):
            raise BenchmarkError(program)
        self._program = program

    def _environment_of(self, place: int) -> dict[str, str]:
        own = {"MXWIRE_INTERFACE": self._pairs.ports[place].interface, "MXWIRE_NAME": ("alpha", "beta")[place]}
        return self._environment | own

    def measured(self, kinds: list[Kind]) -> Iterator[tuple[Kind, float]]:
        """Measure messages."""
        sides = [(str(self._program),), (str(self._program), "alpha:0")]
        return self._pairs.spoken(sides, kinds, [self._environment_of(place) for place in (0, 1)])

    def alone(self, quick: bool) -> Iterator[Sample]:
        """Measure the library in one process."""
        kinds = [(measure, 1, min(count, 10_000) if quick else count) for measure, (*_, count) in ALONE.items()]
        for (measure, *_), value in self._pairs.spoken([(str(self._program),)], kinds, [self._environment_of(0)]):
            series, unit, factor, _ = ALONE[measure]
            yield Sample(series, unit, value * factor)


def line_of(process: ChildProcess) -> str:
    """Return the next line of a contestant."""
    try:
        line = process.read_line(PATIENCE)
    except ChildEndedError:
        line = None
    if line is None:
        raise BenchmarkError(f"it has ended, or printed nothing for {PATIENCE:g} s: {process.process.args!r}")
    return line.decode()


def samples(
    measured: Callable[[list[Kind]], Iterator[tuple[Kind, float]]], kinds: list[Kind], way: str
) -> Iterator[Sample]:
    """Run all measurements of a contestant in a round."""
    for (kind, length, _), value in measured(kinds):
        yield sample(kind, length, value, way)


def measure(benchmark: Benchmark) -> None:
    kinds = kinds_of(QUICK if benchmark.quick else LENGTHS, benchmark.quick)
    with TemporaryDirectory() as name, cable() as ports:
        folder, pairs = Path(name), Pairs(ports)
        peers = compiled_program("curve_peers.c", folder)
        if isinstance(peers, str):
            raise BenchmarkError(peers)
        library: Library | str
        try:
            library = Library(pairs, folder, build(folder / "prefix"))
        except MxwireError as error:
            library = str(error)
        for way, steered in (("", False), (", steered", True)):
            for port, processor in zip(ports, placement(), strict=True):
                port.steer(processor if steered else None)
            runs: dict[str, Run | str] = {
                each: partial(samples, partial(pairs.hosts, each), kinds, way) for each in DIALECTS
            }
            runs[LIBRARY] = library if isinstance(library, str) else partial(samples, library.measured, kinds, way)
            for each in (*(f"frames, {dialect}" for dialect in DIALECTS), "udp", "tcp"):
                runs[each] = partial(samples, partial(pairs.peer, peers, each), kinds, way)
            benchmark.play(f"curve{way}", runs, share=0.45)
        alone = library if isinstance(library, str) else partial(library.alone, benchmark.quick)
        benchmark.play("library alone", {LIBRARY: alone}, share=0.1)


if __name__ == "__main__":
    if sys.argv[1:2] == [ROLE]:
        play(*sys.argv[2:4], sys.argv[4] if sys.argv[4:] else None)
        sys.exit(0)
    run_benchmark(__file__, __doc__, measure, network=True)
