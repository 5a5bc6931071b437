"""Measure messages between two network namespaces: mxwire's hosts, TCP, UDP and bare frames, all from Python.

    sudo python benchmarks/live.py [OPTIONS]

The testbed is that of ``mxwire bench``: two processes, one CPU each, on the two ends of a veth pair of MTU 9000. By
default, the sender's CPU also does the receive processing of such a pair. Therefore everything is measured again with
frames steered to the receiver's CPU, as between two machines (receive packet steering of the kernel); this costs an
interrupt between CPUs. All contestants poll, are called from Python, copy large messages into a buffer, and compare the
last one. "ring" sends bare frames through the mapped ring without a protocol, "frames" through a plain socket, one by
one; the limit, in C, is in curve.py. At the end, messages of all kinds show how memory grows. Needs root, for the
namespaces.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from contest import Benchmark, Run, Sample, run_benchmark

import mxwire
from mxwire.bench.channels.channel import LARGEST
from mxwire.bench.testbed import NamespaceTestbed, ProcessSide, TestbedOptions
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD

LARGE = ("mxoe", "mxoe over xdp", "mxoe over xdp-send", "omx:9000", "tcp", "ring")
TRIPS = ("mxoe", "mxoe over xdp", "omx:9000", "frames", "ring", "udp", "tcp")
TINY = ("mxoe", "omx:9000", "udp")
FRAMES = ("frames", "ring", "xdp")
FRAME_SIZES = (50, 4114, 8986)
"""Lengths of bare frames without their header."""
WINDOW = 64
"""Tiny messages, or bare frames, in flight."""
MIXTURE = [0, 1, 32, 33, 128, 129, 4097, RENDEZVOUS_THRESHOLD, RENDEZVOUS_THRESHOLD + 1, 1 << 20]
"""Lengths of the messages during which memory is observed."""


def large(testbed: NamespaceTestbed, carrier: str, way: str, count: int) -> Iterator[Sample]:
    """Messages of 4 MiB. More bare frames than a ring holds would be lost, so they are fewer."""
    size, window = (LARGEST // 4, 2) if carrier == "ring" else (LARGEST, 4)
    active, passive = testbed.run("flood", carrier=carrier, size=size, count=count, window=window, depth=window)
    yield Sample(f"messages of 4 MiB (ring: 1 MiB){way}", "Gb/s", size * 8 / active["interval"])
    for side, found in (("sender", active), ("receiver", passive)):
        series = f"messages of 4 MiB (ring: 1 MiB){way}, processor time of the {side}"
        yield Sample(series, "s/GB", found["use"]["cpu"] / (count * size / 1e9))


def trips(testbed: NamespaceTestbed, carrier: str, way: str, count: int) -> Iterator[Sample]:
    """Half round trips of a message without data."""
    found = testbed.run("trips", carrier=carrier, sizes=[0], counts=[count])[0]["points"]["0"]
    yield Sample(f"half round trip, 0 bytes{way}", "µs", found["median"] / 1e3)
    yield Sample(f"half round trip, 0 bytes{way}, 99th percentile", "µs", found["p99"] / 1e3)


def flood(
    testbed: NamespaceTestbed, carrier: str, series: str, unit: str, sizes: tuple[int, ...], count: int
) -> Iterator[Sample]:
    """Rates of messages, or of bare frames."""
    for size in sizes:
        active, _ = testbed.run("flood", carrier=carrier, size=size, count=count, window=WINDOW, depth=WINDOW)
        yield Sample(series, unit, 1e9 / active["interval"], size if len(sizes) > 1 else None)


def memory(testbed: NamespaceTestbed, rounds: int) -> Iterator[Sample]:
    """Messages of all kinds; the memory of the larger process after one round, which fills caches, and at the end."""
    for number in range(rounds):
        for dialect in ("mxoe", "omx:9000"):
            testbed.run("trips", carrier=dialect, sizes=MIXTURE, counts=[20] * len(MIXTURE))
        if number in (0, rounds - 1):
            moment = "at the end" if number else "at the start"
            resident = max(_resident(each.pid) for each in testbed.sides if isinstance(each, ProcessSide))
            yield Sample(f"memory of a process, {moment}", "MB", resident / 1e6)


def _resident(pid: int) -> float:
    """Return the memory that a process uses, in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * float(resource.getpagesize())


def measure(benchmark: Benchmark) -> None:
    quick = benchmark.quick
    # The sides run the mxwire of this process, which may be a compiled one.
    with NamespaceTestbed(TestbedOptions(package=Path(mxwire.__file__).parents[1])) as testbed:
        for way, steered in (("", False), (", steered", True)):
            testbed.steer(steered)
            _play(benchmark, testbed, way)
        benchmark.play("memory", {"mxoe and omx:9000": partial(memory, testbed, 2 if quick else 20)}, share=0.0)


def _play(benchmark: Benchmark, testbed: NamespaceTestbed, way: str) -> None:
    """Play all contests in one way of steering."""
    quick = benchmark.quick

    def runs(carriers: tuple[str, ...], make: partial[Iterator[Sample]]) -> dict[str, Run | str]:
        return {each: testbed.can_use(each) or partial(make, testbed, each) for each in carriers}

    benchmark.play(f"large{way}", runs(LARGE, partial(large, way=way, count=20 if quick else 100)), share=0.15)
    benchmark.play(f"round trip{way}", runs(TRIPS, partial(trips, way=way, count=50 if quick else 3000)), share=0.1)
    tiny = partial(flood, series=f"messages of 8 bytes, {WINDOW} under way{way}", unit="messages/s", sizes=(8,))
    benchmark.play(f"tiny rate{way}", runs(TINY, partial(tiny, count=640 if quick else 20_000)), share=0.1)
    frames = partial(flood, series=f"bare frames{way}", unit="frames/s", sizes=FRAME_SIZES)
    benchmark.play(f"frames{way}", runs(FRAMES, partial(frames, count=640 if quick else 20_000)), share=0.1)


if __name__ == "__main__":
    run_benchmark(__file__, __doc__, measure, network=True)
