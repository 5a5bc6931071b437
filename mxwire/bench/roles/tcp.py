"""TCP."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mxwire.bench.roles.common import LARGE, PATIENCE, PATTERNS, UNDER_WAY, Found, Meter, RoleSide, compare, half_trips
from mxwire.bench.roles.sockets import PORT, addressed, busy_trip, serve_busy


@contextmanager
def _opened(side: RoleSide) -> Iterator[socket.socket]:
    with addressed(side) as (own, other), socket.socket() as opened:
        if side.active:
            connect(opened, other)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield opened
            return
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((own, PORT))
        opened.listen()
        opened.settimeout(PATIENCE)
        accepted, _ = opened.accept()
        with accepted:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield accepted


def connect(opened: socket.socket, other: str) -> None:
    """Connect as soon as the other side listens; raise the last error after the patience."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            opened.connect((other, PORT))
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


def large_sender(side: RoleSide, _name: str, count: int) -> Found:
    """Send ``count`` large messages, several in flight; the receiver's answer ends the measurement."""
    with _opened(side) as connection:
        meter = Meter()
        for number in range(count):
            connection.sendall(PATTERNS[number % len(PATTERNS)])
        _read(connection, memoryview(bytearray(1)))
        return meter.large(count)


def large_receiver(side: RoleSide, _name: str, count: int) -> Found:
    """Receive ``count`` large messages, and compare their content."""
    with _opened(side) as connection:
        buffers = [bytearray(LARGE) for _ in range(UNDER_WAY)]
        meter = Meter()
        for number in range(count):
            _read(connection, memoryview(buffers[number % UNDER_WAY]))
            compare(buffers[number % UNDER_WAY], number)
        connection.sendall(b"!")
        return meter.passive()


def _read(connection: socket.socket, view: memoryview) -> None:
    while view.nbytes:
        count = connection.recv_into(view)
        if not count:
            raise EOFError("the other side has closed the connection")
        view = view[count:]


def trip_active(side: RoleSide, _name: str, count: int) -> Found:
    """Measure half round trips of messages without data."""
    with _opened(side) as connection:
        connection.setblocking(False)
        return half_trips(busy_trip(lambda: connection.send(b"!"), lambda: connection.recv(64)), count)


def trip_passive(side: RoleSide, _name: str, count: int) -> Found:
    """Answer ``count`` messages without data."""
    with _opened(side) as connection:
        connection.setblocking(False)
        serve_busy(count, lambda: connection.send(b"!"), lambda: connection.recv(64))
    return {}
