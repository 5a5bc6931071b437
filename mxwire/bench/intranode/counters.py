"""Counters of events of the processor for this process (``perf_event_open``), and a buffer that shows cache misses."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import time
from functools import cache
from typing import Final, Self

import numpy as np

from mxwire.bench.intranode.mechanism import LINE, checked, library

CACHE_MISSES: Final = (0, 3)
"""Type and number of the event: misses of the last level, as the kernel maps them to the processor."""
PAGE_FAULTS: Final = (1, 2)
"""An event that the kernel counts by itself, on every machine."""
_PERF_EVENT_OPEN: Final = 298
"""Number of the call on x86-64, the only machine on which mechanisms are measured."""
_ATTRIBUTES: Final = 112
"""Bytes of ``struct perf_event_attr`` in its fifth version, Linux 4.1."""
_USER_ONLY: Final = 1 << 5 | 1 << 6
"""Neither the kernel nor a hypervisor: an unprivileged process may count its own events."""
_CLOSE_ON_EXEC: Final = 8


class EventCounter:
    """Counts an event of this process. Raises :class:`OSError` if the system does not count it."""

    def __init__(self, kind: int, event: int) -> None:
        (call,) = library("syscall")
        attributes = bytearray(_ATTRIBUTES)
        struct.pack_into("=IIQ", attributes, 0, kind, _ATTRIBUTES, event)
        struct.pack_into("=Q", attributes, 40, _USER_ONLY)
        memory = (ctypes.c_char * _ATTRIBUTES).from_buffer(attributes)
        this_process, any_processor, no_group = 0, -1, -1
        self._descriptor = checked(
            call(_PERF_EVENT_OPEN, memory, this_process, any_processor, no_group, _CLOSE_ON_EXEC), "perf_event_open"
        )

    def read(self) -> int:
        """The events so far."""
        (count,) = struct.unpack("=Q", os.read(self._descriptor, 8))
        return int(count)

    def __enter__(self) -> Self:
        """Count."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the counter."""
        os.close(self._descriptor)


@cache
def missing_counter() -> str | None:
    """The reason why cache misses cannot be counted here, found by a trial; None if they can."""
    try:
        with EventCounter(*CACHE_MISSES):
            return None
    except OSError as error:
        reasons = {
            errno.ENOENT: "the processor has no such counter, or its hypervisor hides it",
            errno.EACCES: "kernel.perf_event_paranoid forbids it",
            errno.EPERM: "kernel.perf_event_paranoid or a seccomp filter forbids it",
            errno.ENOSYS: "the kernel has no performance events",
        }
        return f"{error.filename}: {reasons.get(error.errno or 0, error.strerror)}"


class ProbedBuffer:
    """A buffer that is read at one word per line, in an order that no prefetcher foresees."""

    def __init__(self, size: int, counter: EventCounter | None) -> None:
        self.lines = size // LINE
        self._counter = counter
        # Pages that were never written are all the same one.
        self._buffer = np.ones(self.lines * LINE // 8, np.int64)
        self._order = np.random.default_rng(1).permutation(self.lines) * (LINE // 8)
        self._into = np.ones(self.lines, np.int64)

    def read(self) -> tuple[int, int]:
        """Read all lines. Return the time in ns, and the cache misses, which are 0 without a counter."""
        before = 0 if self._counter is None else self._counter.read()
        begin = time.perf_counter_ns()
        np.take(self._buffer, self._order, out=self._into)
        took = time.perf_counter_ns() - begin
        return took, (0 if self._counter is None else self._counter.read() - before)
