"""UDP."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mxwire.bench.roles.common import TINY_UNDER_WAY, Found, RoleSide, half_trips
from mxwire.bench.roles.sockets import GREETING, PORT, addressed, busy_trip, meet, serve_busy, taker


@contextmanager
def _opened(side: RoleSide) -> Iterator[socket.socket]:
    with addressed(side) as (own, other), socket.socket(type=socket.SOCK_DGRAM) as opened:
        opened.bind((own, PORT))
        opened.connect((other, PORT))
        meet(opened, GREETING, side.active)
        yield opened


def trip_active(side: RoleSide, _name: str, count: int) -> Found:
    """Measure half round trips of messages without data."""
    with _opened(side) as opened:
        return half_trips(busy_trip(lambda: opened.send(b"!"), lambda: opened.recv(64)), count)


def trip_passive(side: RoleSide, _name: str, count: int) -> Found:
    """Answer ``count`` messages without data."""
    with _opened(side) as opened:
        serve_busy(count, lambda: opened.send(b"!"), taker(opened))
    return {}


def rate_active(side: RoleSide, _name: str, count: int) -> Found:
    """Send messages of 8 bytes, and wait for an answer to each group of them."""
    with _opened(side) as opened:
        start = time.perf_counter()
        for _ in range(count // TINY_UNDER_WAY):
            for _ in range(TINY_UNDER_WAY - 1):
                opened.send(b"12345678")
            busy_trip(lambda: opened.send(b"12345678"), lambda: opened.recv(64))()
        seconds = time.perf_counter() - start
    return {"value": count / seconds}


def rate_passive(side: RoleSide, _name: str, count: int) -> Found:
    """Receive messages of 8 bytes, and answer each group of them."""
    with _opened(side) as opened:
        for _ in range(count // TINY_UNDER_WAY):
            serve_busy(TINY_UNDER_WAY - 1, lambda: None, taker(opened))
            serve_busy(1, lambda: opened.send(b"!"), taker(opened))
    return {}
