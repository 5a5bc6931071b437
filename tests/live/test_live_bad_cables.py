"""A bad cable between a live host and one of another process costs time, and nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from zlib import crc32

import pytest

from mxwire.link.faults import Faults
from mxwire.protocol import Status

from .far import FarProcess
from .hosts import PATIENCE, Joined, LivePair, content, near_and_far, suffer, suffered
from .namespaces import Port

SIZES = [0, 100, 5000, 32768, 40_000, 150_000]
ROUNDS = 30
VERY_BAD = Faults(loss=0.1, duplicate=0.1, reorder=0.1)
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def process(ports: tuple[Port, Port]) -> Iterator[FarProcess]:
    with closing(FarProcess(ports[1])) as made:
        yield made


@pytest.fixture(scope="module", params=["mxoe", "omx:1500"])
def joined(ports: tuple[Port, Port], process: FarProcess, request: pytest.FixtureRequest) -> Iterator[Joined]:
    """Hosts that have found each other although everything goes wrong that may."""
    with near_and_far(ports, process, request.param, faults=VERY_BAD) as made:
        made.near.wait_for_peer("far", PATIENCE)
        made.far.wait_for_peer("near", PATIENCE)
        yield made


@pytest.mark.parametrize("rate", [0.01, 0.1])
@pytest.mark.parametrize("kind", ["loss", "duplicate", "reorder"])
def test_a_bad_cable_costs_time_and_nothing_else(joined, process, kind, rate):
    faults, seed, number = Faults(**{kind: rate}), crc32(f"{kind} {rate}".encode()), next(numbers)
    suffer(joined.near, faults, seed)
    process.call(None, "suffer", joined.far, faults, seed + 1)
    before = frames_suffered(joined, process)
    with closing(LivePair(joined, (number, number))) as pair:
        # Of few frames it may be that none suffers.
        for _ in range(ROUNDS):
            exchange(pair)
            if all(now > then for now, then in zip(frames_suffered(joined, process), before, strict=True)):
                break
        else:
            pytest.fail("nothing has suffered")
        for sender, _, receiver in pair.ways():
            sender.flush(PATIENCE)
            assert receiver.iprobe() is None
        assert pair.one.undelivered == pair.two.read("undelivered") == 0


def frames_suffered(joined: Joined, process: FarProcess) -> tuple[int, int]:
    return suffered(joined.near), process.call(None, "suffered", joined.far)


def exchange(pair: LivePair) -> None:
    """Messages of all kinds in both directions at once, which arrive once each, and in their order."""
    ways = list(pair.ways())
    receives = [[receiver.ireceive(maximum=size) for size in SIZES] for _, _, receiver in ways]
    sends = [
        [sender.issend(partner, content(size, place), place) for place, size in enumerate(SIZES)]
        for sender, partner, _ in ways
    ]
    for (sender, _, receiver), expected, sent in zip(ways, receives, sends, strict=True):
        for place, (size, message) in enumerate(zip(SIZES, receiver.wait_all(expected, PATIENCE), strict=True)):
            assert (message.match_info, bytes(message)) == (place, content(size, place))
        assert sender.wait_all(sent, PATIENCE) == [Status.SUCCESS] * len(SIZES)


class Interrupted:
    """Messages in one direction while an interface goes down and up: it may happen in the middle of some, one has only
    been announced, and one is sent in that time."""

    SIZE = 1_000_000

    def __init__(self, sender: Any, partner: Any, receiver: Any) -> None:
        self._sender, self._partner, self._receiver = sender, partner, receiver
        self._receives = [receiver.ireceive(each, maximum=self.SIZE) for each in range(3)]
        self._sends = [sender.isend(partner, content(self.SIZE, each), each) for each in range(4)]
        receiver.probe(3, timeout=PATIENCE)

    def go_on(self) -> None:
        """It is down."""
        self._receives.append(self._receiver.ireceive(3, maximum=self.SIZE))
        self._sends.append(self._sender.isend(self._partner, b"sent while it was down", 9))

    def must_wait(self) -> None:
        """It still is."""
        assert not self._receiver.test(self._receives[3])
        assert self._receiver.iprobe(9) is None

    def end(self) -> None:
        """It is up again."""
        assert bytes(self._receiver.receive(9, timeout=PATIENCE)) == b"sent while it was down"
        for each, message in enumerate(self._receiver.wait_all(self._receives, PATIENCE)):
            assert bytes(message) == content(self.SIZE, each)
        assert self._sender.wait_all(self._sends, PATIENCE) == [Status.SUCCESS] * 5


def test_an_interface_that_goes_down_and_up_again_loses_nothing(joined, process, ports):
    suffer(joined.near, Faults(), 0)
    process.call(None, "suffer", joined.far, Faults(), 0)
    number = next(numbers)
    with closing(LivePair(joined, (number, number))) as pair:
        for port in ports:
            ways = [Interrupted(*each) for each in pair.ways()]
            port.down()
            for each in ways:
                each.go_on()
            for each in ways:
                each.must_wait()
            port.up()
            for each in ways:
                each.end()
