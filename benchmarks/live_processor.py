"""Measure the CPU time of messages without waiting: both hosts in one process, on a real veth pair.

    sudo python benchmarks/live_processor.py [OPTIONS]

The hosts take turns in one thread, so that each poll finds a frame at once. The results are not rates (for these see
live.py), but hardly depend on the load of the machine, and show the effect of a change in mxwire: the time of both
sides, including the kernel's. Needs root.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

from contest import Benchmark, Sample, cable, run_benchmark

from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.host import Endpoint, Host
from mxwire.host.waits import PendingConnect
from mxwire.lab.namespaces import NamespacePort
from mxwire.wire.dialect import dialect_by_name
from mxwire.wire.formats import PULL_REPLY
from mxwire.wire.layout import layout_of
from mxwire.wire.numbers import DEFAULT_KEY

DIALECTS = ("mxoe", "omx:9000")
LARGE = 4 << 20
UNDER_WAY = 4
BURST = 64
TRIPS = (0, 1, 32, 33, 128, 129, 4096)
"""Lengths of the messages of round trips."""
LONGEST = 4096
_PATIENCE = 30.0


class Pair:
    """Two hosts with each other in their peer tables, and operations in which they take turns."""

    def __init__(self, ports: tuple[NamespacePort, NamespacePort], dialect: str) -> None:
        opened = [
            _open(port, name, other, dialect)
            for port, name, other in zip(ports, ("alpha", "beta"), ports[::-1], strict=True)
        ]
        self.hosts = [host for host, _ in opened]
        self.one, self.two = (endpoint for _, endpoint in opened)
        call = PendingConnect(self.one, "beta", 0, DEFAULT_KEY)
        self.until(lambda: self.hosts[0].core.check(call))
        self.there = call.result()
        self.one.isend(self.there, b"")
        hello = self.two.ireceive(maximum=0)
        self.until(lambda: hello.done)
        back = hello.partner
        assert back is not None
        self.back = back
        # The first message to a partner connects to it first.
        greeting = self.one.ireceive(maximum=0)
        self.two.isend(back, b"")
        self.until(lambda: greeting.done)
        self.data = [Random(seed).randbytes(LARGE) for seed in range(UNDER_WAY + 1)]
        self.buffers = [bytearray(LARGE) for _ in range(UNDER_WAY)]
        self.links: list[Any] = [each.core.links[0] for each in self.hosts]
        header, payload = layout_of(PULL_REPLY).header_end, dialect_by_name(dialect).reply_payload
        head = (self.links[1].address + self.links[0].address + ETHERTYPE_MXOE.to_bytes(2, "big")).ljust(header, b"\0")
        self.frames = [head + self.data[0][start : start + payload] for start in range(0, LARGE, payload)]
        """Frames of the lengths of those with the data of a message."""
        self.left = 0

    def turn(self) -> None:
        for each in self.hosts:
            each.core.step()

    def until(self, happened: Callable[[], bool], turn: Callable[[], None] | None = None) -> None:
        limit = time.monotonic() + _PATIENCE
        while not happened():
            (turn or self.turn)()
            if time.monotonic() > limit:
                raise SystemExit("the hosts do not get on")

    def trips(self, count: int, data: Any = b"") -> None:
        """Run half round trips of a message, of bytes or of segments."""
        one, two = self.one, self.two
        for _ in range(count // 2):
            question, answer = two.ireceive(maximum=LONGEST), one.ireceive(maximum=LONGEST)
            one.isend(self.there, data)
            two.wait(question, _PATIENCE)
            two.isend(self.back, data)
            one.wait(answer, _PATIENCE)

    def tinies(self, count: int) -> None:
        """Send messages of 8 bytes in one direction, answered in bursts."""
        one, two = self.one, self.two
        for _ in range(count // BURST):
            receives = [two.ireceive(maximum=8) for _ in range(BURST)]
            for _ in range(BURST):
                one.isend(self.there, b"12345678")
            two.wait_all(receives, _PATIENCE)
            two.isend(self.back, b"")
            one.receive(timeout=_PATIENCE)

    def larges(self, count: int) -> None:
        """Send messages of 4 MiB in one direction, several in flight."""
        for first in range(0, count, UNDER_WAY):
            receives = [self.two.ireceive(buffer=each) for each in self.buffers]
            sends = [
                self.one.isend(self.there, self.data[(first + each) % len(self.data)]) for each in range(UNDER_WAY)
            ]
            self.until(lambda sends=sends, receives=receives: all(each.done for each in (*sends, *receives)))  # type: ignore[misc]
            assert self.buffers[0] == self.data[first % len(self.data)]

    def bare(self, count: int) -> None:
        """Pass the data frames of messages of 4 MiB through the links alone, without the hosts."""
        one, two = self.links

        def take() -> None:
            self.left -= len(two.receive_few())

        for first in [*range(0, len(self.frames), BURST)] * count:
            part = self.frames[first : first + BURST]
            self.left = len(part)
            part = part[one.send_few(part) :]
            # The link takes no more frames than it has room for.
            while part:
                self.until(lambda part=part: self.left <= len(part), take)  # type: ignore[misc]
                part = part[one.send_few(part) :]
            self.until(lambda: self.left <= 0, take)

    def close(self) -> None:
        for each in self.hosts:
            each.close()


def _open(port: NamespacePort, name: str, other: NamespacePort, dialect: str) -> tuple[Host, Endpoint]:
    peers: dict[str | bytes, str | None] = {other.address: "beta:0" if name == "alpha" else "alpha:0"}
    with port.namespace.inside():
        host = Host.open(
            port.interface, name=name, dialect=dialect, peers=peers, announce=False, spin=True, background=False
        )
        return host, host.open_endpoint(0)


def processor(series: str, run: Callable[[int], None], count: int, size: int | None = None) -> Sample:
    """Measure the processor time of a message of one kind, after some that warm up."""
    run(max(count // 10, UNDER_WAY))
    start = time.process_time_ns()
    run(count)
    return Sample(f"processor time, {series}", "µs", (time.process_time_ns() - start) / count / 1000, size)


def costs(ports: tuple[NamespacePort, NamespacePort], dialect: str, quick: bool) -> Iterator[Sample]:
    """Measure all kinds of messages in one dialect."""
    pair = Pair(ports, dialect)
    try:
        trips = 400 if quick else 4000
        for size in TRIPS:
            yield processor("half round trip", partial(pair.trips, data=bytes(size)), trips, size)
        yield processor("half round trip, 2 bytes", partial(pair.trips, data=b"12"), trips)
        yield processor("half round trip, 2 bytes in two segments", partial(pair.trips, data=[b"1", b"2"]), trips)
        yield processor("8 bytes, 64 under way", pair.tinies, (1 if quick else 100) * BURST)
        yield processor("4 MiB, 4 under way", pair.larges, (1 if quick else 10) * UNDER_WAY)
        yield processor("4 MiB, its frames alone", pair.bare, (1 if quick else 10) * UNDER_WAY)
    finally:
        pair.close()


def measure(benchmark: Benchmark) -> None:
    with cable() as ports:
        benchmark.play("processor", {each: partial(costs, ports, each, benchmark.quick) for each in DIALECTS})


if __name__ == "__main__":
    run_benchmark(__file__, __doc__, measure, rounds=9, network=True)
