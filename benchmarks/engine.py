"""Measure the speed of the protocol engine, with both hosts in this process and no loss.

    python benchmarks/engine.py [--rounds N] [--quick] [--json]

Each size is measured several times, and the best round counts, in CPU time. References are measured in the same run:
for small messages the codec alone (a TINY built and parsed), for large ones the two copies that no implementation can
avoid. Growth and memory are measured with many partners and many outstanding requests.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Any

import numpy as np

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
GOALS = {0: ("messages/s", 60_000.0), 4 * MEBIBYTE: ("Gb/s", 10.0)}
"""Goals on one core, by length of message."""
PARTNERS = (1, 16, 256, 4096)
OUTSTANDING = (10, 100, 1000, 10_000)


@dataclass(frozen=True)
class Speed:
    """One size in one dialect."""

    dialect: str
    length: int
    microseconds: float
    """Time per message, of both endpoints together."""
    frames: float
    """Frames per message, in both directions."""
    peer: str
    ratio: float
    """Time of the reference, divided by that of the engine."""

    @property
    def messages(self) -> float:
        """Return messages per second."""
        return 1e6 / self.microseconds

    @property
    def gigabits(self) -> float:
        """Return the payload rate, in Gb/s."""
        return self.length * 8 / self.microseconds / 1e3


@dataclass(frozen=True)
class Growth:
    """The cost per message or object if there are many."""

    what: str
    count: int
    microseconds: float
    bytes_each: float


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


def best_of(rounds: int, run: Callable[[], int]) -> float:
    """Return the minimum CPU time per operation, in µs; ``run`` returns its number of operations."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time_ns()
        done = run()
        best = min(best, (time.process_time_ns() - start) / done)
    return best / 1000


def speed(dialect: Dialect, length: int, messages: int, window: int, rounds: int) -> Speed:
    """Measure messages of one length, in one direction, with receives posted before."""
    pair = Pair(dialect)
    source, target = pair.nodes[0].open_endpoint(0, KEY), pair.nodes[1].open_endpoint(0, KEY)
    partner = pair.connect(source, target, 1)
    data, buffers = bytes(length), [bytearray(length) for _ in range(window)]

    def run() -> int:
        for _ in range(messages // window):
            receives = [target.receive(buffer) for buffer in buffers]
            for _ in range(window):
                source.send(partner, data)
            pair.settle()
            for node in pair.nodes:
                node.events()
            assert receives[-1].status == 0
        return messages // window * window

    run()
    pair.frames = 0
    ours = best_of(rounds, run)
    name, peer = ("two copies", two_copies(length, rounds)) if length > 128 else ("codec alone", codec_alone(rounds))
    frames = pair.frames / (rounds * (messages // window * window))
    return Speed(dialect.name, length, ours, frames, name, peer / ours)


def two_copies(length: int, rounds: int) -> float:
    """Return the time in µs of copying the payload into frames and out of them, in pieces of at least 4 KiB."""
    source, frame, target = (np.zeros(max(length, 1), np.uint8) for _ in range(3))
    times = max(1, (8 * MEBIBYTE) // max(length, 1))

    def run() -> int:
        for _ in range(times):
            for start in range(0, length, 32768):
                frame[start : start + 32768] = source[start : start + 32768]
                target[start : start + 32768] = frame[start : start + 32768]
        return times

    return best_of(rounds, run)


def codec_alone(rounds: int) -> float:
    """Return the time in µs of creating, building and parsing a TINY."""
    codec = codec_of(MXOE)
    head = {"dst_mac": address(0), "src_mac": address(1), "dst_endpoint": 0, "src_endpoint": 0, "session": 1}
    rest = {"length": 0, "lib_seqnum": 1, "lib_piggyack": 1, "match_a": 0, "match_b": 0, "data": b""}

    def run() -> int:
        for _ in range(5000):
            codec.parse(codec.build(Tiny(**head, **rest)))
        return 5000

    return best_of(rounds, run)


def with_partners(count: int, rounds: int) -> Growth:
    """Measure messages to many partners in turn, and memory per partner on both sides."""
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
    messages = 4096
    buffers = [bytearray(8) for _ in targets]

    def run() -> int:
        done = 0
        while done < messages:
            for (_, target), buffer in zip(targets, buffers, strict=True):
                target.receive(buffer)
            for partner in partners:
                source.send(partner, b"12345678")
            pair.settle()
            for node in pair.nodes:
                node.events()
            done += count
        return done

    # With one partner each message is a separate batch, so use separate batches for all partners to make the times
    # comparable.
    return Growth("partners", count, best_of(rounds, run), used)


def with_outstanding(count: int, rounds: int) -> Growth:
    """Measure messages while many other receives are pending, and memory per receive."""
    pair = Pair(MXOE)
    source, target = pair.nodes[0].open_endpoint(0, KEY), pair.nodes[1].open_endpoint(0, KEY)
    partner = pair.connect(source, target, 1)
    buffers = [bytearray(8) for _ in range(64)]
    tracemalloc.start()
    waiting = [target.receive(buffers[0], 1 << 32 | each) for each in range(count)]
    used = tracemalloc.get_traced_memory()[0] / count
    tracemalloc.stop()

    def run() -> int:
        for _ in range(32):
            for place, buffer in enumerate(buffers):
                target.receive(buffer, place)
            for place in range(64):
                source.send(partner, b"12345678", place)
            pair.settle()
            for node in pair.nodes:
                node.events()
        return 32 * 64

    result = Growth("outstanding requests", count, best_of(rounds, run), used)
    assert not any(each.done for each in waiting)
    return result


def main() -> int:
    """Measure and print; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="measurements of each; the best counts")
    parser.add_argument("--quick", action="store_true", help="measure growth with the smallest numbers only")
    parser.add_argument("--json", action="store_true", help="one object per line")
    options = parser.parse_args()
    speeds = [speed(dialect, *size, options.rounds) for dialect in DIALECTS for size in SIZES]
    few, rounds = 1 if options.quick else None, min(options.rounds, 3)
    growths = [with_partners(count, rounds) for count in PARTNERS[:few]]
    growths += [with_outstanding(count, rounds) for count in OUTSTANDING[:few]]
    if options.json:
        for each in (*speeds, *growths):
            sys.stdout.write(json.dumps(asdict(each)) + "\n")
    else:
        _print(speeds, growths)
    return 0 if all(_reached(speeds, length) for length in GOALS) else 1


def _reached(speeds: list[Speed], length: int) -> bool:
    unit, goal = GOALS[length]
    return (
        max(each.messages if unit == "messages/s" else each.gigabits for each in speeds if each.length == length)
        >= goal
    )


def _print(speeds: list[Speed], growths: list[Growth]) -> None:
    line = "{:<9} {:>8} {:>12} {:>12} {:>12} {:>8}  {}"
    print(
        line.format(
            "dialect", "bytes", "µs/message", "messages/s", "frames/s", "Gb/s", "time of the reference / engine"
        )
    )
    for each in speeds:
        ratio = f"{each.peer} {each.ratio:.2f}"
        numbers = f"{each.microseconds:.1f}", f"{each.messages:,.0f}", f"{each.messages * each.frames:,.0f}"
        print(line.format(each.dialect, each.length, *numbers, f"{each.gigabits:.2f}", ratio))
    print()
    print("{:<22} {:>8} {:>12} {:>12}".format("", "count", "µs/message", "bytes each"))
    for growth in growths:
        print(f"{growth.what:<22} {growth.count:>8} {growth.microseconds:>12.1f} {growth.bytes_each:>12,.0f}")
    print()
    for length, (unit, goal) in GOALS.items():
        verdict = "reached" if _reached(speeds, length) else "missed"
        print(f"{length} bytes: {goal:,.0f} {unit} {verdict}")


if __name__ == "__main__":
    sys.exit(main())
