"""The common part of the roles of TCP, UDP and packet sockets: addresses and polling."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mxwire.bench.roles.common import IP_ADDRESSES, PATIENCE, RoleSide

PORT = 7777
GREETING = bytes(100)
"""A length above that of all messages of the contests."""


@contextmanager
def addressed(side: RoleSide) -> Iterator[tuple[str, str]]:
    """Yield the local and the remote IP address, once both exist."""
    own, other = IP_ADDRESSES if side.active else IP_ADDRESSES[::-1]
    subprocess.run(["ip", "addr", "replace", f"{own}/24", "dev", side.interface], check=True)
    yield own, other


def meet(opened: socket.socket, greeting: bytes, active: bool) -> None:
    """Return when the other side listens: earlier messages would be lost.

    The active side sends greetings until it receives one. The passive side answers only once, and must ignore further
    greetings.
    """
    opened.settimeout(0.02)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            if active:
                opened.send(greeting)
            if len(opened.recv(2048)) >= len(GREETING):
                break
        except (TimeoutError, ConnectionRefusedError):
            continue
    if not active:
        opened.send(greeting)
    opened.setblocking(False)


def busy_trip(send: Callable[[], object], take: Callable[[], object]) -> Callable[[], None]:
    """Return a round trip that polls for the answer."""

    def trip() -> None:
        send()
        while True:
            try:
                take()
                return
            except BlockingIOError:
                pass

    return trip


def serve_busy(count: int, send: Callable[[], object], take: Callable[[], object]) -> None:
    """Answer ``count`` messages, polling for them."""
    until = time.monotonic() + PATIENCE
    for _ in range(count):
        while True:
            try:
                take()
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise
        send()


def taker(opened: socket.socket) -> Callable[[], None]:
    """Return a function that takes a message other than a greeting; it raises BlockingIOError if there is none."""
    receive = opened.recv

    def take() -> None:
        if len(receive(256)) >= len(GREETING):
            raise BlockingIOError

    return take
