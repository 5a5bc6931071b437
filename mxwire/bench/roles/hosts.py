"""Hosts of mxwire."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mxwire.bench.roles.common import (
    LARGE,
    PATIENCE,
    PATTERNS,
    SPIN,
    TINY_UNDER_WAY,
    UNDER_WAY,
    Found,
    Meter,
    RoleSide,
    compare,
    half_trips,
)
from mxwire.host import Endpoint, Host
from mxwire.link import LinkKind
from mxwire.protocol import Partner
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD

OVER_XDP = " over xdp"
"""Appended to a dialect: both hosts use AF_XDP. In the same way `` over xdp-send`` chooses that kind of link."""


def host_options(carrier: str, other: bytes, *, active: bool) -> dict[str, Any]:
    """The options of one of two hosts with different names, which run only within the calls of their side.

    ``other`` is the Ethernet address of the other side.
    """
    return {
        "name": "alpha" if active else "beta",
        "dialect": carrier.partition(" over ")[0],
        "peers": {other: "beta:0" if active else "alpha:0"},
        "announce": False,
        "background": False,
    }


def link_kind(carrier: str) -> LinkKind:
    """The kind of link of the hosts of a carrier."""
    return LinkKind(carrier.partition(" over ")[2] or LinkKind.PACKET)


@contextmanager
def _opened(side: RoleSide, contestant: str, spin: bool | float = True) -> Iterator[tuple[Endpoint, Partner | None]]:
    """Yield an endpoint of a new host; on the active side with a partner."""
    options = host_options(contestant, side.other, active=side.active)
    with Host.open(side.interface, spin=spin, link=link_kind(contestant), **options) as host:
        endpoint = host.open_endpoint(0)
        partner = endpoint.connect("beta", 0, timeout=PATIENCE) if side.active else None
        yield endpoint, partner
        endpoint.close(1.0)


def large_sender(side: RoleSide, dialect: str, count: int) -> Found:
    """Send ``count`` large messages, several in flight; the receiver's answer ends the measurement."""
    with _opened(side, dialect, SPIN) as (endpoint, partner):
        assert partner is not None
        meter = Meter()
        under_way = [endpoint.isend(partner, PATTERNS[each % len(PATTERNS)]) for each in range(UNDER_WAY)]
        for number in range(UNDER_WAY, count + UNDER_WAY):
            endpoint.wait(under_way.pop(0), PATIENCE)
            if number < count:
                under_way.append(endpoint.isend(partner, PATTERNS[number % len(PATTERNS)]))
        endpoint.receive(timeout=PATIENCE)
        return meter.large(count)


def large_receiver(side: RoleSide, dialect: str, count: int) -> Found:
    """Receive ``count`` large messages, and compare their content."""
    with _opened(side, dialect, SPIN) as (endpoint, _):
        buffers = [bytearray(LARGE) for _ in range(UNDER_WAY)]
        receives = [endpoint.ireceive(buffer=each) for each in buffers]
        meter = Meter()
        for number in range(count):
            message = endpoint.wait(receives[number % UNDER_WAY], PATIENCE)
            compare(buffers[number % UNDER_WAY], number)
            if number + UNDER_WAY < count:
                receives[number % UNDER_WAY] = endpoint.ireceive(buffer=buffers[number % UNDER_WAY])
        assert message.partner is not None
        endpoint.send(message.partner, b"done")
        endpoint.flush(PATIENCE)
        return meter.passive()


def trip_active(side: RoleSide, dialect: str, count: int) -> Found:
    """Measure half round trips of messages without data."""
    with _opened(side, dialect) as (endpoint, partner):
        assert partner is not None

        def trip() -> None:
            endpoint.isend(partner, b"")
            # While it is on its way.
            answer = endpoint.ireceive(maximum=0)
            endpoint.wait(answer, PATIENCE)

        return half_trips(trip, count)


def trip_passive(side: RoleSide, dialect: str, count: int) -> Found:
    """Answer ``count`` messages without data."""
    with _opened(side, dialect) as (endpoint, _):
        answer = endpoint.ireceive(maximum=0)
        for number in range(count):
            message = endpoint.wait(answer, PATIENCE)
            assert message.partner is not None
            endpoint.isend(message.partner, b"")
            if number + 1 < count:
                answer = endpoint.ireceive(maximum=0)
    return {}


def rate_active(side: RoleSide, dialect: str, count: int) -> Found:
    """Send messages of 8 bytes, and wait for an answer to each group of them."""
    with _opened(side, dialect) as (endpoint, partner):
        assert partner is not None
        start = time.perf_counter()
        for _ in range(count // TINY_UNDER_WAY):
            for _ in range(TINY_UNDER_WAY):
                endpoint.isend(partner, b"12345678")
            endpoint.receive(timeout=PATIENCE)
        seconds = time.perf_counter() - start
    return {"value": count / seconds}


def rate_passive(side: RoleSide, dialect: str, count: int) -> Found:
    """Receive messages of 8 bytes, and answer each group of them."""
    with _opened(side, dialect) as (endpoint, _):
        for _ in range(count // TINY_UNDER_WAY):
            receives = [endpoint.ireceive(maximum=8) for _ in range(TINY_UNDER_WAY)]
            messages = endpoint.wait_all(receives, PATIENCE)
            partner = messages[-1].partner
            assert partner is not None
            endpoint.isend(partner, b"")
    return {}


def mixture_active(side: RoleSide, dialect: str, seconds: float) -> Found:
    """Echo messages of all lengths for a while, ended by a stop message."""
    lengths = [0, 1, 32, 33, 128, 129, 4097, RENDEZVOUS_THRESHOLD, RENDEZVOUS_THRESHOLD + 1, 1 << 20]
    count = 0
    with _opened(side, dialect, SPIN) as (endpoint, partner):
        assert partner is not None
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for length in lengths:
                answer = endpoint.ireceive(maximum=length)
                sent = endpoint.isend(partner, PATTERNS[0][:length], 1)
                endpoint.wait_all([sent, answer], PATIENCE)
                count += 1
        endpoint.isend(partner, b"", 2)
    return {"value": count / seconds}


def mixture_passive(side: RoleSide, dialect: str, seconds: float) -> Found:
    """Return all messages until the one that ends the exchange."""
    with _opened(side, dialect, SPIN) as (endpoint, _):
        while (message := endpoint.receive(timeout=PATIENCE)).match_info != 2:
            assert message.partner is not None
            endpoint.send(message.partner, message.data, timeout=PATIENCE)
    return {}
