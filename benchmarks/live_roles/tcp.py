"""TCP."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from live_roles.common import LARGE, PATIENCE, PATTERNS, UNDER_WAY, Found, Meter, There, compare, half_trips
from live_roles.sockets import PORT, addressed, busy_trip, serve_busy


@contextmanager
def _opened(there: There) -> Iterator[socket.socket]:
    with addressed(there) as (own, other), socket.socket() as opened:
        if there.active:
            _connect(opened, other)
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


def _connect(opened: socket.socket, other: str) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            opened.connect((other, PORT))
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


def large_sender(there: There, _name: str, count: int) -> Found:
    with _opened(there) as connection:
        meter = Meter()
        for number in range(count):
            connection.sendall(PATTERNS[number % len(PATTERNS)])
        _read(connection, memoryview(bytearray(1)))
        return meter.large(count)


def large_receiver(there: There, _name: str, count: int) -> Found:
    with _opened(there) as connection:
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


def trip_active(there: There, _name: str, count: int) -> Found:
    with _opened(there) as connection:
        connection.setblocking(False)
        return half_trips(busy_trip(lambda: connection.send(b"!"), lambda: connection.recv(64)), count)


def trip_passive(there: There, _name: str, count: int) -> Found:
    with _opened(there) as connection:
        connection.setblocking(False)
        serve_busy(count, lambda: connection.send(b"!"), lambda: connection.recv(64))
    return {}
