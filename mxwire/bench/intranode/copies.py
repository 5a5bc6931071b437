"""The program that copies memory to memory in one process, by several routines, as the paper's figure 2.

    python -m mxwire.bench.intranode.copies PROCESSOR

It reads lines as pairs do (``pair.py``), with a routine in place of the role: ``slice`` of a memoryview and ``numpy``,
and ``release``. Both call the C library's memcpy, which copies past the caches from a length that a variable of its
environment sets (:data:`PAST_CACHES`). The twin in C has memcpy, the processor's instruction for strings, and stores
past the caches at every length.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Final

import numpy as np

from mxwire.bench.intranode.mechanism import Piece, run_program
from mxwire.bench.intranode.memory import KeptPool
from mxwire.lab.machine import pin

PAST_CACHES: Final = {"GLIBC_TUNABLES": "glibc.cpu.x86_non_temporal_threshold=0x4040"}
"""The least length from which the GNU C library copies past the caches: 16 KiB."""


def _slices(source: Piece, target: Piece) -> Callable[[], object]:
    taken, placed, everything = source.view, target.view, slice(None)
    return lambda: placed.__setitem__(everything, taken)


def _arrays(source: Piece, target: Piece) -> Callable[[], object]:
    taken, placed = np.frombuffer(source.view, np.uint8), np.frombuffer(target.view, np.uint8)
    return lambda: np.copyto(placed, taken)


ROUTINES: Final = {"slice": _slices, "numpy": _arrays}


class CopyMeter:
    """Copies between two pools of this process."""

    def __init__(self) -> None:
        self._sources, self._targets = KeptPool(full=True), KeptPool(full=False)

    def measure(self, routine: str, size: int, turns: int, step: int, length: int) -> dict[str, float]:
        """The time of a copy in ns. Raises :class:`MechanismError` if the last one has other content."""
        pool, sources = self._sources.pieces(size, turns, step, length)
        _, targets = self._targets.pieces(size, turns, step, length)
        # Made before the clock is read, so that only copies are timed.
        calls = [ROUTINES[routine](*pair) for pair in zip(sources, targets, strict=True)]
        begin = time.perf_counter_ns()
        for call in calls:
            call()
        took = time.perf_counter_ns() - begin
        pool.check(sources[-1], targets[-1].view)
        return {"ns": took / turns}

    def release(self) -> dict[str, float]:
        """Free both pools."""
        self._sources.release()
        self._targets.release()
        return {}


def _serve() -> None:
    """Answer the lines of standard input."""
    pin(int(sys.argv[1]))
    meter = CopyMeter()
    for line in sys.stdin:
        name, *numbers = line.split()
        found = meter.release() if name == "release" else meter.measure(name, *map(int, numbers))
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    sys.exit(run_program(_serve))
