"""Messages between live hosts on real interfaces: every kind, both ways, many endpoints, many hosts, bad cables."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from random import Random

import pytest

from mxwire.link.faults import Faults
from mxwire.protocol import Status

from .hosts import PATIENCE, LivePair, live_pair, open_endpoint, open_host
from .namespaces import Laboratory

SIZES = [0, 1, 32, 33, 128, 129, 1452, 1453, 4096, 4097, 8193, 32768, 32769, 300_001]
"""Both sides of every edge: of the kinds of messages, and of the fragments of both dialects."""
DIALECTS = {"mxoe": 9000, "omx:1500": 1500, "omx:9000": 9000}


def content(size: int, seed: int = 0) -> bytes:
    return Random(f"{size} {seed}").randbytes(size)


@pytest.fixture(scope="module", params=DIALECTS)
def pair(shared_laboratory: Laboratory, request: pytest.FixtureRequest) -> Iterator[LivePair]:
    ports = shared_laboratory.pair(DIALECTS[request.param])
    with live_pair(ports, dialect=request.param) as made:
        yield made


@pytest.mark.parametrize("expected", [True, False], ids=["expected", "unexpected"])
@pytest.mark.parametrize("synchronous", [False, True], ids=["plain", "synchronous"])
@pytest.mark.parametrize("size", SIZES)
def test_every_kind_of_message_arrives_in_both_directions_at_once(pair, size, synchronous, expected):
    ways = list(pair.ways())
    receives = [way[2].ireceive(7, maximum=size) for way in ways] if expected else []
    sends = [
        (sender.issend if synchronous else sender.isend)(partner, content(size, seed), 7)
        for seed, (sender, partner, _) in enumerate(ways)
    ]
    if not expected:
        for _, _, receiver in ways:
            assert receiver.probe(7, timeout=PATIENCE).length == size
        if synchronous:
            assert not any(each.done for each in sends)
        receives = [way[2].ireceive(7, maximum=size) for way in ways]
    for seed, ((sender, _, receiver), receive, sent) in enumerate(zip(ways, receives, sends, strict=True)):
        message = receiver.wait(receive, PATIENCE)
        assert (bytes(message), message.status) == (content(size, seed), Status.SUCCESS)
        assert sender.wait(sent, PATIENCE) is Status.SUCCESS


def test_thirty_two_endpoints_serve_at_once(pair):
    others = [number for number in range(32) if number != pair.two.number]
    endpoints = [pair.two, *(open_endpoint(pair.ports[1], pair.beta, number) for number in others)]
    try:
        for size in (16, 20_000, 70_000):
            partners = [pair.one.connect("beta", each.number, timeout=PATIENCE) for each in endpoints]
            sent = [
                pair.one.isend(partner, content(size, each.number), each.number)
                for partner, each in zip(partners, endpoints, strict=True)
            ]
            for each in endpoints:
                message = each.receive(timeout=PATIENCE)
                assert (bytes(message), message.match_info) == (content(size, each.number), each.number)
            pair.one.wait_all(sent, PATIENCE)
    finally:
        for each in endpoints[1:]:
            each.close()


@pytest.mark.parametrize("dialect", ["mxoe", "omx:1500"])
def test_four_hosts_on_a_bridge_all_talk_to_all(laboratory, dialect):
    ports = laboratory.bridged(4, DIALECTS[dialect])
    with ExitStack() as stack:
        hosts = [
            stack.enter_context(open_host(port, f"h{number}", dialect=dialect)) for number, port in enumerate(ports)
        ]
        endpoints = [open_endpoint(port, host, 0) for port, host in zip(ports, hosts, strict=True)]
        sent = []
        for here, there in itertools.permutations(range(4), 2):
            partner = endpoints[here].connect(f"h{there}", 0, timeout=PATIENCE)
            for size in (5, 3000, 90_000):
                match = here << 8 | size % 251
                sent.append((endpoints[here], endpoints[here].isend(partner, content(size, here), match)))
        for here, there in itertools.permutations(range(4), 2):
            for size in (90_000, 3000, 5):
                message = endpoints[there].receive(here << 8 | size % 251, timeout=PATIENCE)
                assert bytes(message) == content(size, here)
                assert message.source is not None and message.source.peer.name == f"h{here}:0"
        for endpoint, request in sent:
            assert endpoint.wait(request, PATIENCE) is Status.SUCCESS


@pytest.mark.parametrize("rate", [0.01, 0.1])
@pytest.mark.parametrize("kind", ["loss", "duplicate", "reorder"])
def test_a_bad_cable_costs_time_and_nothing_else(laboratory, kind, rate):
    sizes = [0, 100, 5000, 32768, 40_000, 200_000] * 2
    with live_pair(laboratory.pair(9000), Faults(**{kind: rate})) as pair:
        receives = [[way[2].ireceive(maximum=size) for size in sizes] for way in pair.ways()]
        sends = [
            [sender.issend(partner, content(size, place), place) for place, size in enumerate(sizes)]
            for sender, partner, _ in pair.ways()
        ]
        for (sender, _, receiver), expected, sent in zip(pair.ways(), receives, sends, strict=True):
            for place, (size, message) in enumerate(zip(sizes, receiver.wait_all(expected, PATIENCE), strict=True)):
                assert (message.match_info, bytes(message)) == (place, content(size, place))
            assert sender.wait_all(sent, PATIENCE) == [Status.SUCCESS] * len(sizes)
            assert receiver.iprobe() is None and sender.undelivered == 0


def test_an_interface_that_goes_down_and_up_again_loses_nothing(laboratory):
    ports = laboratory.pair(9000)
    with live_pair(ports) as pair:
        size = 2_000_000
        sent = [pair.one.isend(pair.to_two, content(size, each), each) for each in range(3)]
        assert bytes(pair.two.receive(0, timeout=PATIENCE)) == content(size, 0)
        for port in ports:
            port.down()
            small = pair.one.isend(pair.to_two, b"sent while it was down", 9)
            port.up()
            assert bytes(pair.two.receive(9, timeout=PATIENCE)) == b"sent while it was down"
            pair.one.wait(small, PATIENCE)
        for each in (1, 2):
            assert bytes(pair.two.receive(each, timeout=PATIENCE)) == content(size, each)
        assert pair.one.wait_all(sent, PATIENCE) == [Status.SUCCESS] * 3
