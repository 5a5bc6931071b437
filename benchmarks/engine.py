"""Measure the speed of the protocol engine, with both hosts in this process and no loss, in processor time.

    python benchmarks/engine.py [OPTIONS]

References take turns with the engine: for small messages the codec alone (a TINY built and parsed), for large ones the
two copies that no implementation can avoid. Growth and memory are measured with many partners and many outstanding
requests.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import numpy as np
from contest import Benchmark, Run, Sample, run_benchmark

from mxwire.protocol import EngineEndpoint, Node, Partner
from mxwire.protocol.profile import OPEN_MX_1_5
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import MXOE, Dialect, omx
from mxwire.wire.packets import Tiny

KEY = 1
MEBIBYTE = 1 << 20
SIZES = ((0, 2048, 64), (4096, 256, 16), (32768, 64, 8), (4 * MEBIBYTE, 4, 2))
"""Length of a message in bytes, messages per round, and messages in flight."""
DIALECTS = (MXOE, omx(1500), omx(9000))
PARTNERS = (1, 16, 256, 4096)
OUTSTANDING = (10, 100, 1000, 10_000)
SERIES = "processor time per message, both sides"


def address(host: int) -> bytes:
    """Return the address of a host."""
    return (0x020000000000 + host).to_bytes(6, "big")


class Pair:
    """Two hosts in one process, joined by calls."""

    def __init__(self, dialect: Dialect, hosts: int = 2) -> None:
        profile = replace(OPEN_MX_1_5, endpoint_maximum=256)
        self.nodes = [
            Node(
                address(host),
                f"host{host}",
                dialect=dialect,
                profile=profile,
                rng=Random(host),
                peers={address(each): f"host{each}:0" for each in range(hosts) if each != host},
            )
            for host in range(hosts)
        ]
        self.now = 10**9
        self.frames = 0

    def settle(self) -> None:
        """Deliver batches until no host has frames to transmit; all hosts communicate only with the first one."""
        hub, *others = self.nodes
        while True:
            moved = len(batch := hub.transmit(self.now))
            if moved:
                for node, part in self._sorted(batch):
                    node.receive(part, self.now)
            for node in others:
                answers = node.transmit(self.now)
                if len(answers):
                    hub.receive(answers, self.now)
                    moved += len(answers)
            self.now += 1000
            self.frames += moved
            if not moved:
                return

    def _sorted(self, batch: Any) -> list[tuple[Node, Any]]:
        if len(self.nodes) == 2:
            return [(self.nodes[1], batch)]
        hosts = batch.buffer[batch.offset + 5].astype(np.int64) | batch.buffer[batch.offset + 4].astype(np.int64) << 8
        return [(self.nodes[each], batch.select(hosts == each)) for each in np.unique(hosts)]

    def connect(self, source: EngineEndpoint, target: EngineEndpoint, host: int) -> Partner:
        """Connect the hub to an endpoint of a host."""
        request = source.connect(address(host), target.number, KEY)
        self.settle()
        assert request.partner is not None and request.status == 0
        return request.partner


def processor_us(run: Callable[[], int]) -> float:
    """Return the processor time per operation, in µs, after a first call; ``run`` returns its number of operations."""
    run()
    start = time.process_time_ns()
    done = run()
    return (time.process_time_ns() - start) / done / 1000


def message_cost(dialect: Dialect) -> Iterator[Sample]:
    """Measure messages of each length, in one direction, with receives posted before."""
    for length, messages, window in SIZES:
        pair = Pair(dialect)
        source, target = pair.nodes[0].open_endpoint(0, KEY), pair.nodes[1].open_endpoint(0, KEY)
        partner = pair.connect(source, target, 1)
        data, buffers = bytes(length), [bytearray(length) for _ in range(window)]

        run = partial(_sent, pair, source, partner, target, data, buffers, messages // window)
        yield Sample(SERIES, "µs", processor_us(run), length)


def _sent(
    pair: Pair,
    source: EngineEndpoint,
    partner: Partner,
    target: EngineEndpoint,
    data: bytes,
    buffers: list[bytearray],
    windows: int,
) -> int:
    for _ in range(windows):
        receives = [target.receive(buffer) for buffer in buffers]
        for _ in buffers:
            source.send(partner, data)
        pair.settle()
        for node in pair.nodes:
            node.events()
        assert receives[-1].status == 0
    return windows * len(buffers)


def codec_alone() -> Iterator[Sample]:
    """Measure a TINY that is created, built and parsed."""
    codec = codec_of(MXOE)
    head = {"dst_mac": address(0), "src_mac": address(1), "dst_endpoint": 0, "src_endpoint": 0, "session": 1}
    rest = {"length": 0, "lib_seqnum": 1, "lib_piggyack": 1, "match_a": 0, "match_b": 0, "data": b""}

    def run() -> int:
        for _ in range(5000):
            codec.parse(codec.build(Tiny(**head, **rest)))
        return 5000

    yield Sample(SERIES, "µs", processor_us(run), 0)


def two_copies() -> Iterator[Sample]:
    """Measure the copies of a payload into frames and out of them, in pieces of 32 KiB."""
    for length, *_ in SIZES[1:]:
        source, frame, target = (np.zeros(length, np.uint8) for _ in range(3))
        times = 8 * MEBIBYTE // length

        def run(source: Any = source, frame: Any = frame, target: Any = target, times: int = times) -> int:
            for _ in range(times):
                for start in range(0, len(source), 32768):
                    frame[start : start + 32768] = source[start : start + 32768]
                    target[start : start + 32768] = frame[start : start + 32768]
            return times

        yield Sample(SERIES, "µs", processor_us(run), length)


def with_partners(counts: tuple[int, ...]) -> Iterator[Sample]:
    """Measure messages to many partners in turn, and memory per partner on both sides.

    With one partner each message is a separate batch, so all partners have separate batches, which makes times
    comparable.
    """
    for count in counts:
        each = min(count, 256)
        pair = Pair(MXOE, 1 + count // each)
        source = pair.nodes[0].open_endpoint(0, KEY)
        targets = [
            (host, pair.nodes[host].open_endpoint(number, KEY))
            for host in range(1, 1 + count // each)
            for number in range(each)
        ]
        tracemalloc.start()
        partners = [pair.connect(source, target, host) for host, target in targets]
        for node in pair.nodes:
            node.events()
        used = tracemalloc.get_traced_memory()[0] / count
        tracemalloc.stop()
        buffers = [bytearray(8) for _ in targets]
        yield from _growth("partners", count, used, partial(_to_all, pair, source, partners, targets, buffers))


def _to_all(pair: Pair, source: EngineEndpoint, partners: Any, targets: Any, buffers: Any) -> int:
    done = 0
    while done < 4096:
        for (_, target), buffer in zip(targets, buffers, strict=True):
            target.receive(buffer)
        for partner in partners:
            source.send(partner, b"12345678")
        pair.settle()
        for node in pair.nodes:
            node.events()
        done += len(partners)
    return done


def with_outstanding(counts: tuple[int, ...]) -> Iterator[Sample]:
    """Measure messages while many other receives are pending, and memory per receive."""
    for count in counts:
        pair = Pair(MXOE)
        source, target = pair.nodes[0].open_endpoint(0, KEY), pair.nodes[1].open_endpoint(0, KEY)
        partner = pair.connect(source, target, 1)
        buffers = [bytearray(8) for _ in range(64)]
        tracemalloc.start()
        waiting = [target.receive(buffers[0], 1 << 32 | each) for each in range(count)]
        used = tracemalloc.get_traced_memory()[0] / count
        tracemalloc.stop()
        yield from _growth(
            "outstanding receives", count, used, partial(_matched, pair, source, partner, target, buffers)
        )
        assert not any(each.done for each in waiting)


def _matched(
    pair: Pair, source: EngineEndpoint, partner: Partner, target: EngineEndpoint, buffers: list[bytearray]
) -> int:
    for _ in range(32):
        for place, buffer in enumerate(buffers):
            target.receive(buffer, place)
        for place in range(64):
            source.send(partner, b"12345678", place)
        pair.settle()
        for node in pair.nodes:
            node.events()
    return 32 * 64


def _growth(kind: str, count: int, used: float, run: Callable[[], int]) -> Iterator[Sample]:
    yield Sample(f"processor time per message, many {kind}", "µs", processor_us(run), count, (kind, "objects"))
    yield Sample(f"memory per object, many {kind}", "bytes", used, count, (kind, "objects"))


def measure(benchmark: Benchmark) -> None:
    few = 1 if benchmark.quick else None
    messages: dict[str, Run | str] = {each.name: partial(message_cost, each) for each in DIALECTS}
    benchmark.play("messages", messages | {"codec alone": codec_alone, "two copies": two_copies}, share=0.6)
    growth: dict[str, Run | str] = {"mxoe": partial(with_partners, PARTNERS[:few])}
    benchmark.play("partners", growth, share=0.3)
    benchmark.play("receives", {"mxoe": partial(with_outstanding, OUTSTANDING[:few])}, share=0.1)


if __name__ == "__main__":
    run_benchmark(__file__, __doc__, measure)
