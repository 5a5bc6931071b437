"""Messages between a live host and those of other processes: every kind, many endpoints, many hosts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

import pytest

from mxwire.protocol import Status
from tests.host.exchanges import SIZES, content, every_kind, exchange

from .far import FarProcess
from .hosts import DIALECTS, PATIENCE, Joined, LivePair, near_and_far, sender_of
from .namespaces import Laboratory, Port

ALIKE = 0x1000


@dataclass
class Bridged:
    """Four machines on a bridge: we are on the first, and on each other there is a process, once it is wanted."""

    ports: list[Port]
    stack: ExitStack
    _processes: list[FarProcess] = field(default_factory=list)

    def processes(self, count: int) -> list[FarProcess]:
        """The processes on ``count`` of the others."""
        for port in self.ports[1 + len(self._processes) : 1 + count]:
            self._processes.append(FarProcess(port))
            self.stack.callback(self._processes[-1].close)
        return self._processes[:count]


@pytest.fixture(scope="module")
def bridged(shared_laboratory: Laboratory) -> Iterator[Bridged]:
    with ExitStack() as stack:
        yield Bridged(shared_laboratory.bridged(4, 9000), stack)


@pytest.fixture(scope="module", params=[*DIALECTS, "match mxoe", "card mxoe"])
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def joined(bridged: Bridged, dialect: str) -> Iterator[Joined]:
    near, far, *_ = bridged.ports
    with near_and_far((near, far), *bridged.processes(1), dialect) as made:
        yield made


@pytest.fixture(scope="module")
def pair(joined: Joined) -> LivePair:
    return LivePair(joined)


@every_kind
def test_every_kind_of_message_arrives_in_both_directions(pair, synchronous, expected):
    exchange(list(pair.ways()), synchronous, expected, PATIENCE)


def test_both_directions_are_busy_at_once(pair):
    """Messages that are alike to matching are received in the order in which they were sent."""
    ways, sizes = list(pair.ways()), [300_001, *SIZES, 300_001] * 4
    sends = [
        [sender.isend(partner, content(size, place), ALIKE) for sender, partner, _ in ways]
        for place, size in enumerate(sizes)
    ]
    for place, size in enumerate(sizes):
        for _, _, receiver in ways:
            assert bytes(receiver.receive(ALIKE, timeout=PATIENCE)) == content(size, place)
    for (sender, _, receiver), sent in zip(ways, zip(*sends, strict=True), strict=True):
        assert sender.wait_all(sent, PATIENCE) == [Status.SUCCESS] * len(sizes)
        assert receiver.iprobe(ALIKE) is None


def test_thirty_two_endpoints_of_both_hosts_talk_at_once(joined, pair):
    numbers = range(32)
    with ExitStack() as stack:
        near = [pair.one if each == 1 else stack.enter_context(closing(joined.open_near(each))) for each in numbers]
        far = [pair.two if each == 2 else stack.enter_context(closing(joined.open_far(each))) for each in numbers]
        ways = [(near[each], "far", each, far[each]) for each in numbers]
        ways += [(far[each], "near", each, near[each]) for each in numbers]
        partners = [sender.connect(name, number, timeout=PATIENCE) for sender, name, number, _ in ways]
        for size in (16, 20_000, 70_000):
            sends = [
                sender.isend(partner, content(size, place), place)
                for place, ((sender, *_), partner) in enumerate(zip(ways, partners, strict=True))
            ]
            for place, (*_, receiver) in enumerate(ways):
                message = receiver.receive(timeout=PATIENCE)
                assert (message.match_info, bytes(message)) == (place, content(size, place))
            for (sender, *_), sent in zip(ways, sends, strict=True):
                assert sender.wait(sent, PATIENCE) is Status.SUCCESS
        for sender, *_ in ways:
            sender.flush(PATIENCE)


def test_four_hosts_in_four_processes_on_a_bridge_all_talk_to_all(bridged, dialect, pair):
    names, endpoints = ["near", "far", "third", "fourth"], [pair.one, pair.two]
    with ExitStack() as stack:
        for process, name in zip(bridged.processes(3)[1:], names[2:], strict=True):
            spoken = dialect.rpartition(" ")[2]
            process.port.link("mtu", str(DIALECTS[spoken]))
            host = process.open_host(name, dialect=spoken)
            stack.callback(host.close)
            endpoints.append(host.open_endpoint(len(endpoints) + 1))
        sends: list[tuple[Any, Any]] = []
        for here, there in itertools.permutations(range(4), 2):
            partner = endpoints[here].connect(names[there], there + 1, timeout=PATIENCE)
            for size in (5, 3000, 90_000):
                match = here << 8 | size % 251
                sends.append((endpoints[here], endpoints[here].isend(partner, content(size, here), match)))
        for here, there in itertools.permutations(range(4), 2):
            for size in (90_000, 3000, 5):
                message = endpoints[there].receive(here << 8 | size % 251, timeout=PATIENCE)
                assert bytes(message) == content(size, here)
                assert sender_of(message) == f"{names[here]}:0"
        for endpoint, sent in sends:
            assert endpoint.wait(sent, PATIENCE) is Status.SUCCESS
        for endpoint in endpoints:
            endpoint.flush(PATIENCE)
