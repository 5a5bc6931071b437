"""Bare frames through packet sockets."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from live_roles.common import Found, There, half_trips
from live_roles.sockets import GREETING, busy_trip, meet, serve_busy, taker

_ETHERTYPE = 0x88B5


@contextmanager
def _opened(there: There) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETHERTYPE)) as opened:
        opened.bind((there.interface, _ETHERTYPE))
        meet(opened, _frame(there) + GREETING, there.active)
        yield opened


def _frame(there: There) -> bytes:
    return there.other + there.own + _ETHERTYPE.to_bytes(2, "big") + bytes(46)


def trip_active(there: There, _name: str, count: int) -> Found:
    with _opened(there) as opened:
        frame = _frame(there)
        return half_trips(busy_trip(lambda: opened.send(frame), lambda: opened.recv(64)), count)


def trip_passive(there: There, _name: str, count: int) -> Found:
    with _opened(there) as opened:
        frame = _frame(there)
        serve_busy(count, lambda: opened.send(frame), taker(opened))
    return {}
