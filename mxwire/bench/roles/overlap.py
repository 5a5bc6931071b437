"""Roles of ``bench overlap``: a receiver that posts a message, works, and waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from mxwire.bench.channels.channel import Channel
from mxwire.lab.machine import processors_of

_WARM: Final = 3
"""Messages before those that are timed."""
_FACTOR: Final = 2
"""Work per idle time of a message."""
_LOOPS: Final = 50_000
_CALIBRATIONS: Final = 15


def post_work_wait(channel: Channel, size: int, repetitions: int, burnt: int) -> dict[str, Any]:
    """Receive messages of ``size`` bytes while the passive side works, slept or ``burnt``.

    The passive side returns times in ns, one per repetition: ``idle`` of a message without work, ``alone`` of the work,
    which takes about twice as long, and ``total`` of both; and the processors of all parties.
    """
    if channel.active:
        return _send(channel, size, 2 * repetitions + _WARM)
    channel.barrier()
    for _ in range(_WARM):
        _message(channel, size, None)
    idle = [_message(channel, size, None) for _ in range(repetitions)]
    duration = _FACTOR * sorted(idle)[repetitions // 2]
    work = _burner(duration) if burnt else lambda: time.sleep(duration / 1e9)
    alone, total = [], []
    for _ in range(repetitions):
        begin = channel.clock()
        work()
        alone.append(channel.clock() - begin)
        total.append(_message(channel, size, work))
    channel.check(size)
    channel.send(1)
    return {"idle": idle, "alone": alone, "total": total, "processors": processors_of(0), **channel.helpers()}


def _send(channel: Channel, size: int, count: int) -> dict[str, Any]:
    """Send a message per request of the passive side."""
    channel.barrier()
    for _ in range(count):
        channel.receive(1)
        channel.send(size)
    channel.receive(1)
    return {"processors": processors_of(0)}


def _message(channel: Channel, size: int, work: Callable[[], object] | None) -> int:
    """Time in ns from the request of a message to its end, with work in between; its receive is posted already."""
    begin = channel.clock()
    channel.send(1)
    if work is not None:
        work()
    channel.receive(size)
    return channel.clock() - begin


def _burner(duration: int) -> Callable[[], object]:
    """A fixed amount of work that takes ``duration`` ns undisturbed, and longer if other processes run in between."""

    def burn(loops: int) -> int:
        found = 0
        for number in range(loops):
            found += number
        return found

    best = duration
    for _ in range(_CALIBRATIONS):
        begin = time.perf_counter_ns()
        burn(_LOOPS)
        best = min(best, time.perf_counter_ns() - begin)
    loops = max(1, _LOOPS * duration // max(best, 1))
    return lambda: burn(loops)
