"""Bare frames through packet sockets."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from mxwire.bench.roles.common import BARE_ETHERTYPE, Found, RoleSide, half_trips
from mxwire.bench.roles.sockets import GREETING, busy_trip, meet, serve_busy, taker


@contextmanager
def _opened(side: RoleSide) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(BARE_ETHERTYPE)) as opened:
        opened.bind((side.interface, BARE_ETHERTYPE))
        meet(opened, _frame(side) + GREETING, side.active)
        yield opened


def _frame(side: RoleSide) -> bytes:
    return side.other + side.own + BARE_ETHERTYPE.to_bytes(2, "big") + bytes(46)


def trip_active(side: RoleSide, _name: str, count: int) -> Found:
    """Measure half round trips of messages without data."""
    with _opened(side) as opened:
        frame = _frame(side)
        return half_trips(busy_trip(lambda: opened.send(frame), lambda: opened.recv(64)), count)


def trip_passive(side: RoleSide, _name: str, count: int) -> Found:
    """Answer ``count`` messages without data."""
    with _opened(side) as opened:
        frame = _frame(side)
        serve_busy(count, lambda: opened.send(frame), taker(opened))
    return {}
