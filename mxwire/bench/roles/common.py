"""The common part of all roles: sides, messages, and measurements."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from mxwire.order_statistics import percentile

LARGE = 4 << 20
UNDER_WAY = 4
"""Large messages in flight."""
TINY_UNDER_WAY = 64
"""Messages of 8 bytes in flight."""
SPIN = 0.0002
"""Seconds for which hosts with large messages poll before they sleep, which suits hosts without a dedicated CPU."""
PATIENCE = 30.0
"""Seconds to wait for the other side."""
WARM = 0.1
"""Fraction of the operations, the first ones, that are not counted."""
BARE_ETHERTYPE = 0x88B6
"""EtherType of bare frames: the second for local experiments."""
IP_ADDRESSES = ("10.77.0.1", "10.77.0.2")
"""IPv4 addresses of the active and the passive side."""
PATTERNS = [Random(seed).randbytes(LARGE) for seed in range(UNDER_WAY + 1)]
"""Contents of messages, in turn; a buffer gets another one each time it is used."""
Found = dict[str, float]


@dataclass(frozen=True)
class RoleSide:
    """A side: its interface, and the address of the other side."""

    interface: str
    own: bytes
    other: bytes

    @property
    def active(self) -> bool:
        """True for the side that measures."""
        return self.interface == "veth0"


class Meter:
    """Wall and CPU time since creation."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), _processor_seconds()

    def large(self, count: int, length: int = LARGE) -> Found:
        """Return the measurements for ``count`` messages of one length."""
        seconds = time.perf_counter() - self._wall
        return {"value": count * length * 8 / seconds / 1e9, "bytes": count * length} | self.passive()

    def passive(self) -> Found:
        """Return the measurements of the passive side."""
        return {"cpu": _processor_seconds() - self._processor}


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def compare(buffer: Any, number: int) -> None:
    """Check that a buffer holds the content of the message with this number."""
    if buffer != PATTERNS[number % len(PATTERNS)]:
        raise AssertionError(f"message {number} is not what was sent")


def half_trips(trip: Callable[[], None], count: int) -> Found:
    """Return median and 99th percentile of half a round trip, in µs."""
    clock, times = time.perf_counter_ns, []
    before = clock()
    for _ in range(count):
        trip()
        now = clock()
        times.append(now - before)
        before = now
    counted = sorted(times[int(count * WARM) :])
    return {"value": percentile(counted, 50) / 2000, "p99": percentile(counted, 99) / 2000}
