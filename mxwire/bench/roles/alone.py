"""Roles of one side alone: copies, system calls, and mxwire's engine and hosts without a wire. Times are in ns."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any, Final

import numpy as np

from mxwire.bench.channels.channel import Channel
from mxwire.bench.channels.hosts import host_options
from mxwire.bench.roles.common import CONTENT
from mxwire.bench.roles.exchanges import summary
from mxwire.frames import FrameBatch
from mxwire.host import Host
from mxwire.lab.machine import cold_bytes
from mxwire.link import LinkStatistics
from mxwire.protocol import Node, Request, Status, profile_by_name
from mxwire.wire.dialect import as_dialect
from mxwire.wire.numbers import DEFAULT_KEY

_ADDRESSES: Final = (b"\x02\0\0\0\0\1", b"\x02\0\0\0\0\2")
_MTU: Final = 9000
_BARE: Final = 64
"""Content of a bare frame."""
_NOTHING: Final = FrameBatch.from_frames(())
_TIMES_LOOKS: Final = 1000
_SIGNALS: Final = 100


def memory_copy(sizes: list[int], counts: list[int], cold: bool = False) -> dict[str, Any]:
    """Copy memory with NumPy: the same buffers each time, or ``cold`` ones that are in no cache."""
    points = {}
    # Write to every page, so that it exists before it is copied.
    memory = np.ones(max(2 * max([4096, *sizes]), cold_bytes() if cold else 0), np.uint8)
    first = 0
    for size, count in zip(sizes, counts, strict=True):
        step = max(size, 4096)
        places = len(memory) // step // 2 if cold else 1
        times, clock = [], time.perf_counter_ns
        # Avoid the places of the shorter copies, which may be in a cache.
        for number in range(first, first := first + count):
            # Neighbouring places would be prefetched; a stride of a prime number of places jumps back and forth.
            at = (number * 7919 % places) * 2 * step
            target, source = memory[at : at + size], memory[at + step : at + step + size]
            begun = clock()
            target[:] = source
            times.append(clock() - begun)
        points[str(size)] = summary(times)
    return {"points": points}


def system_call(count: int) -> dict[str, Any]:
    """The cheapest system call, a look at the clock, which needs none, and a signal; all with the call from Python."""
    call, clock, times, looks = os.getppid, time.perf_counter_ns, [], []
    for _ in range(max(count // _TIMES_LOOKS, 3)):
        begun = clock()
        # Many calls between two readings of the clock, which takes about as long as one.
        for _ in range(_TIMES_LOOKS):
            call()
        middle = clock()
        for _ in range(_TIMES_LOOKS):
            clock()
        end = clock()
        times.append((middle - begun) // _TIMES_LOOKS)
        looks.append((end - middle) // _TIMES_LOOKS)
    return {"points": {"call": summary(times), "clock": summary(looks)} | _signal(max(count // _TIMES_LOOKS, 3))}


def _signal(count: int) -> dict[str, dict[str, float]]:
    """The time that a datagram takes longer if it raises a signal whose handler does nothing; only on a main thread."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    with ExitStack() as held:
        sender, receiver = map(held.enter_context, socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
        held.callback(signal.signal, signal.SIGIO, signal.signal(signal.SIGIO, lambda *_: None))
        fcntl.fcntl(receiver, fcntl.F_SETOWN, os.getpid())
        flags = fcntl.fcntl(receiver, fcntl.F_GETFL)

        def passed(own: int) -> int:
            fcntl.fcntl(receiver, fcntl.F_SETFL, own)
            begun = time.perf_counter_ns()
            for _ in range(_SIGNALS):
                sender.send(b"x")
                receiver.recv(1)
            return time.perf_counter_ns() - begun

        # With and without a signal in turns, so that both meet the same load.
        pairs = [(passed(flags | os.O_ASYNC), passed(flags)) for _ in range(count)]
        fcntl.fcntl(receiver, fcntl.F_SETFL, flags)
    return {"signal": summary([(longer - shorter) // _SIGNALS for longer, shorter in pairs])}


# The engine without links, and hosts without a wire


def engine(dialect: str, sizes: list[int], counts: list[int]) -> dict[str, Any]:
    """Half round trips between two nodes that hand each other their frames: only the engines of both sides."""
    points = {}
    for size, count, trip in zip(sizes, counts, engine_trips(dialect, sizes), strict=True):
        points[str(size)] = _timed(trip, count)
    return {"points": points}


def engine_trips(dialect: str, sizes: list[int]) -> Iterator[Callable[[], None]]:
    """A function per size that plays a round trip between two nodes of this process."""
    left, right = _node(0, dialect), _node(1, dialect)
    one, two = left.open_endpoint(0, DEFAULT_KEY), right.open_endpoint(0, DEFAULT_KEY)

    def drive(request: Request) -> None:
        while not request.done:
            _carry(left, right)
            _carry(right, left)
        assert request.status is Status.SUCCESS, request

    connects = one.connect(_ADDRESSES[1], 0, DEFAULT_KEY), two.connect(_ADDRESSES[0], 0, DEFAULT_KEY)
    for each in connects:
        drive(each)
    there, back = connects[0].partner, connects[1].partner
    assert there is not None and back is not None
    for size in sizes:
        buffers, content = (bytearray(max(size, 1)), bytearray(max(size, 1))), memoryview(CONTENT)[:size]

        def trip(buffers: tuple[bytearray, bytearray] = buffers, content: memoryview = content) -> None:
            arrived, answered = two.receive(buffers[0]), one.receive(buffers[1])
            one.send(there, content)
            drive(arrived)
            two.send(back, content)
            drive(answered)

        yield trip


def _node(number: int, dialect: str) -> Node:
    return Node(
        [_ADDRESSES[number]],
        ("alpha", "beta")[number],
        dialect=as_dialect(dialect),
        profile=profile_by_name("open-mx"),
        rng=Random(number),
        peers={_ADDRESSES[1 - number]: ("beta:0", "alpha:0")[number]},
        announce=False,
        report_completed=False,
    )


def _carry(source: Node, target: Node) -> None:
    now = time.monotonic_ns()
    frames = source.transmit_few(now)
    if isinstance(frames, FrameBatch):
        if len(frames):
            target.receive(frames, now)
    elif frames:
        target.receive_few(frames, now)
    # Taken, as they would accumulate.
    source.events()


def _timed(trip: Callable[[], None], count: int) -> dict[str, float]:
    clock, times = time.perf_counter_ns, []
    for _ in range(count):
        begun = clock()
        trip()
        times.append(clock() - begun)
    return summary(times, 2)


class DirectLink:
    """A link whose frames appear in the queue of another one: a wire that costs nothing."""

    def __init__(self, number: int) -> None:
        self.name = f"direct{number}"
        self.address = _ADDRESSES[number]
        self.mtu = _MTU
        self.other = self
        self._descriptor = os.eventfd(0)
        self._waiting: deque[bytes | FrameBatch] = deque()

    def send(self, batch: FrameBatch) -> int:
        """Hand over a batch; its frames are copied, as its buffer is reused."""
        self.other._waiting.append(FrameBatch.from_frames([batch.frame(each) for each in range(len(batch))]))
        return len(batch)

    def send_few(self, frames: list[bytes]) -> int:
        """Hand over single frames."""
        self.other._waiting.extend(frames)
        return len(frames)

    def receive(self, timeout: float | None = 0.0) -> FrameBatch:
        """Take what has been handed over."""
        frames = self.receive_few()
        return frames if isinstance(frames, FrameBatch) else FrameBatch.from_frames(frames) if frames else _NOTHING

    def receive_few(self) -> list[bytes] | FrameBatch:
        """Take the next batch, or the single frames before it."""
        waiting = self._waiting
        frames: list[bytes] = []
        while waiting:
            first = waiting[0]
            if isinstance(first, FrameBatch):
                if not frames:
                    waiting.popleft()
                    return first
                break
            frames.append(first)
            waiting.popleft()
        return frames

    def wake(self) -> None:
        """Do nothing: no thread waits."""

    def fileno(self) -> int:
        """A descriptor that is never readable: the hosts are polled."""
        return self._descriptor

    def statistics(self) -> LinkStatistics:
        """Nothing is counted."""
        return LinkStatistics()

    def close(self) -> None:
        """Close the descriptor."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


def hosts(dialect: str, sizes: list[int], counts: list[int]) -> dict[str, Any]:
    """Half round trips between two hosts of this process without a wire: both hosts, with their engines."""
    with _host_pair(dialect) as trip_of:
        timed = zip(sizes, counts, strict=True)
        return {"points": {str(size): _timed(trip_of(size, _nothing), count) for size, count in timed}}


def hosts_among_frames(channel: Channel, dialect: str, sizes: list[int], counts: list[int]) -> dict[str, Any]:
    """The same with a round trip of a bare frame between the sending and the receiving host, whose time is subtracted.

    Code that runs after the kernel's, or after a sleep, finds other content in the caches and branch predictors of its
    processor, and is slower.
    """
    channel.barrier()
    if not channel.active:
        for count in counts:
            # A trip has two messages, with a bare round trip in each.
            for _ in range(2 * count):
                channel.receive(_BARE)
                channel.send(_BARE)
        return {"points": {}}
    points, clock, spent = {}, time.perf_counter_ns, 0

    def between() -> None:
        nonlocal spent
        begun = clock()
        channel.send(_BARE)
        channel.receive(_BARE)
        spent += clock() - begun

    with _host_pair(dialect) as trip_of:
        for size, count in zip(sizes, counts, strict=True):
            trip, times = trip_of(size, between), []
            for _ in range(count):
                spent = 0
                begun = clock()
                trip()
                times.append(clock() - begun - spent)
            points[str(size)] = summary(times, 2)
    return {"points": points}


def _nothing() -> None:
    return


@contextmanager
def _host_pair(dialect: str) -> Iterator[Callable[[int, Callable[[], None]], Callable[[], None]]]:
    """Two connected hosts: yield a function that makes the round trip of a size.

    Its second parameter is called between the sending and the receipt of each message.
    """
    links = DirectLink(0), DirectLink(1)
    links[0].other, links[1].other = links[1], links[0]
    both = [
        Host(link, spin=True, **host_options(dialect, _ADDRESSES[1 - number], active=not number))
        for number, link in enumerate(links)
    ]
    one, two = (each.open_endpoint(0) for each in both)

    def drive(request: Any) -> Any:
        while not request.done:
            both[1].poll()
            both[0].poll()
        return request.result()

    there, back = drive(one.iconnect("beta", 0)), drive(two.iconnect("alpha", 0))

    def trip_of(size: int, between: Callable[[], None]) -> Callable[[], None]:
        buffers, content = (bytearray(max(size, 1)), bytearray(max(size, 1))), memoryview(CONTENT)[:size]

        def trip() -> None:
            arrived, answered = two.ireceive(buffer=buffers[0]), one.ireceive(buffer=buffers[1])
            one.isend(there, content)
            between()
            drive(arrived)
            two.isend(back, content)
            between()
            drive(answered)

        return trip

    yield trip_of
    for each in both:
        each.close()
