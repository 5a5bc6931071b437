"""What all roles share: where a side is, what is sent, and what is measured."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

LARGE = 4 << 20
UNDER_WAY = 4
"""Large messages under way."""
TINY_UNDER_WAY = 64
"""Messages of 8 bytes under way."""
SPIN = 0.0002
"""Seconds that hosts with large messages look before they sleep, as who has not got a processor for himself should."""
PATIENCE = 30.0
"""Seconds to wait for the other side."""
_WARM = 0.1
"""Part of the round trips that are not counted."""
PATTERNS = [Random(seed).randbytes(LARGE) for seed in range(UNDER_WAY + 1)]
"""What is sent in turn; a buffer gets another one each time that it is used."""
Found = dict[str, float]


@dataclass(frozen=True)
class There:
    """Where a side is, and who is at the other end."""

    interface: str
    own: bytes
    other: bytes

    @property
    def active(self) -> bool:
        return self.interface == "veth0"


class Meter:
    """Wall and processor time since it was made."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), _processor_seconds()

    def large(self, count: int, length: int = LARGE) -> Found:
        """What there is to say of so many messages of one length."""
        seconds = time.perf_counter() - self._wall
        return {"value": count * length * 8 / seconds / 1e9, "bytes": count * length} | self.passive()

    def passive(self) -> Found:
        """The same at the other side."""
        return {"cpu": _processor_seconds() - self._processor}


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def compare(buffer: Any, number: int) -> None:
    """Is it what is sent as the message with this number?"""
    if buffer != PATTERNS[number % len(PATTERNS)]:
        raise AssertionError(f"message {number} is not what was sent")


def half_trips(trip: Callable[[], None], count: int) -> Found:
    """Median and 99th percentile of half a round trip in µs."""
    clock, times = time.perf_counter_ns, []
    before = clock()
    for _ in range(count):
        trip()
        now = clock()
        times.append(now - before)
        before = now
    counted = sorted(times[int(count * _WARM) :])
    return {"value": counted[len(counted) // 2] / 2000, "p99": counted[int(len(counted) * 0.99)] / 2000}
