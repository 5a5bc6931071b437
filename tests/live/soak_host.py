"""A host of the soak as a process: it sends messages of all sizes to its peer, and receives those of the peer.

It reports one event per line on standard output, so that the events survive ``kill -9``, and obeys the lines of
standard input: ``pause``, ``resume``, ``measure``, ``reopen`` and ``end``. The content of a message follows from its
match information, which consists of the session of the sending endpoint and a number.

Run it as ``python -m tests.live.soak_host``, from the root of the repository.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import select
import time
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

from mxwire.host import Endpoint, Host, HostTimeoutError
from mxwire.protocol import LocalProtocolError, Partner, Status

POSTED = 8
"""Receives that are posted at any time."""
_WINDOW = 16
"""Sends that are unfinished at any time, at most."""
_CLASSES = ((0, 32, 6), (33, 128, 4), (129, 32_768, 6), (32_769, 400_000, 3))
"""Size classes (TINY, SMALL, MEDIUM, LARGE): from, to, weight."""
LARGEST = max(to for _, to, _ in _CLASSES)
_PAUSE = 0.05
"""Longest time in seconds between two looks at standard input."""
_BURST = 0.05
"""Probability that a message is followed by others at once, until the window is full."""
_TIMEOUT = 2.0
"""Seconds without an answer after which the peer is abandoned; it is then connected again."""


def content_of(match_info: int) -> tuple[bool, bytes]:
    """Return whether a message is synchronous, and its content."""
    random = Random(match_info)
    low, high, _ = random.choices(_CLASSES, [weight for _, _, weight in _CLASSES])[0]
    return random.random() < 0.5, random.randbytes(random.choice((low, high, random.randint(low, high))))


def report(*words: object) -> None:
    """Report an event in one line, at once."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


class _AllocatorStatistics(ctypes.Structure):
    """The ``struct mallinfo2`` of the C library, of which two fields are of interest."""

    _names = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    _fields_ = [(name, ctypes.c_size_t) for name in _names]


def memory_in_use() -> int:
    """Return the bytes that are allocated and not freed; with PYTHONMALLOC=malloc these include all objects."""
    statistics = ctypes.CDLL(None).mallinfo2
    statistics.restype = _AllocatorStatistics
    gc.collect()
    found = statistics()
    return int(found.uordblks + found.hblkhd)


class Talk:
    """One opening of the endpoint: its receives, its sends, and its connection to the peer."""

    def __init__(self, endpoint: Endpoint, peer: str, rate: float, random: Random) -> None:
        self._endpoint = endpoint
        self._peer = peer
        self._gap = 1 / rate
        self._random = random
        self._partner: Partner | None = None
        self._connecting = False
        self._number = 0
        self._unfinished = 0
        self._due = time.monotonic()
        self.paused = False
        self._idle = False
        endpoint.set_timeout(_TIMEOUT)
        for _ in range(POSTED):
            self._receive()

    def turn(self) -> None:
        """Send what is due, and handle the requests that end until the next send."""
        now = time.monotonic()
        if self._partner is None:
            self._connect(now)
        elif not self.paused and now >= self._due and self._unfinished < _WINDOW:
            self._send(self._partner)
            if self._random.random() > _BURST:
                self._due = now + self._random.expovariate(1 / self._gap)
        idle = self.paused and not self._unfinished
        if idle != self._idle:
            self._idle = idle
            report("idle" if idle else "busy")
        waiting = self.paused or self._partner is None or self._unfinished >= _WINDOW
        with suppress(HostTimeoutError):
            self._handle(self._endpoint.wait_next(timeout=_PAUSE if waiting else min(max(self._due - now, 0), _PAUSE)))

    def _connect(self, now: float) -> None:
        if self._connecting or now < self._due:
            return
        self._due = now + _PAUSE
        try:
            self._endpoint.iconnect(self._peer, context="connect")
            self._connecting = True
        except LocalProtocolError as error:
            if error.status is not Status.PEER_NOT_FOUND:
                raise

    def _receive(self) -> None:
        self._endpoint.ireceive(maximum=LARGEST, context="receive")

    def _send(self, partner: Partner) -> None:
        match_info = self._endpoint.engine.card.session << 32 | self._number
        self._number += 1
        synchronous, content = content_of(match_info)
        send = self._endpoint.issend if synchronous else self._endpoint.isend
        send(partner, content, match_info, context=(match_info, int(synchronous), partner.fwd))
        self._unfinished += 1

    def _handle(self, ended: Any) -> None:
        match ended.context:
            case "receive":
                self._receive()
                if ended.status is Status.SUCCESS:
                    message = ended.result()
                    same = content_of(message.match_info)[1] == message.data
                    report("got", message.match_info, int(same), len(message))
                else:
                    report("broken", ended.status.name)
            case "connect":
                self._connecting = False
                if ended.status is Status.SUCCESS:
                    self._partner = ended.result()
                report("connect", ended.status.name)
            case match_info, synchronous, session:
                self._unfinished -= 1
                if ended.status is Status.SUCCESS:
                    report("delivered", match_info, session, synchronous)
                else:
                    report("failed", match_info, ended.status.name)
                    self._partner = None


def commands() -> Iterator[str]:
    """The commands that have arrived on standard input; ``end`` at its end."""
    while select.select([0], [], [], 0)[0]:
        line = b""
        while not line.endswith(b"\n"):
            byte = os.read(0, 1)
            if not byte:
                yield "end"
                return
            line += byte
        yield line.decode().strip()


def talk(host: Host, peer: str, rate: float, random: Random) -> bool:
    """Open the endpoint and use it until it is to be reopened (True) or the host is to end (False)."""
    with host.open_endpoint(0, completions=True, acked_sends=True) as endpoint:
        opened = Talk(endpoint, peer, rate, random)
        report("open", endpoint.engine.card.session)
        while True:
            for each in commands():
                match each:
                    case "pause":
                        opened.paused = True
                    case "resume":
                        opened.paused = False
                    case "measure":
                        report("measured", memory_in_use())
                    case _:
                        endpoint.close()
                        return each == "reopen"
            opened.turn()


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--interface", required=True)
    options.add_argument("--name", required=True)
    options.add_argument("--peer", required=True)
    options.add_argument("--dialect", required=True)
    options.add_argument("--rate", type=float, required=True, help="messages per second")
    options.add_argument("--seed", required=True)
    given = options.parse_args()
    random = Random(given.seed)
    with Host.open(given.interface, name=given.name, dialect=given.dialect) as host:
        while talk(host, given.peer, given.rate, random):
            pass


if __name__ == "__main__":
    main()
