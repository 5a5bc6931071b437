"""UDP."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from live_roles.common import TINY_UNDER_WAY, Found, There, half_trips
from live_roles.sockets import GREETING, PORT, addressed, busy_trip, meet, serve_busy, taker


@contextmanager
def _opened(there: There) -> Iterator[socket.socket]:
    with addressed(there) as (own, other), socket.socket(type=socket.SOCK_DGRAM) as opened:
        opened.bind((own, PORT))
        opened.connect((other, PORT))
        meet(opened, GREETING, there.active)
        yield opened


def trip_active(there: There, _name: str, count: int) -> Found:
    with _opened(there) as opened:
        return half_trips(busy_trip(lambda: opened.send(b"!"), lambda: opened.recv(64)), count)


def trip_passive(there: There, _name: str, count: int) -> Found:
    with _opened(there) as opened:
        serve_busy(count, lambda: opened.send(b"!"), taker(opened))
    return {}


def rate_active(there: There, _name: str, count: int) -> Found:
    with _opened(there) as opened:
        start = time.perf_counter()
        for _ in range(count // TINY_UNDER_WAY):
            for _ in range(TINY_UNDER_WAY - 1):
                opened.send(b"12345678")
            busy_trip(lambda: opened.send(b"12345678"), lambda: opened.recv(64))()
        seconds = time.perf_counter() - start
    return {"value": count / seconds}


def rate_passive(there: There, _name: str, count: int) -> Found:
    with _opened(there) as opened:
        for _ in range(count // TINY_UNDER_WAY):
            serve_busy(TINY_UNDER_WAY - 1, lambda: None, taker(opened))
            serve_busy(1, lambda: opened.send(b"!"), taker(opened))
    return {}
