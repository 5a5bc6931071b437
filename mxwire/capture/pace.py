"""Play the frames of a capture at the pace at which they were recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np

from mxwire.frames import FrameBatch
from mxwire.units import SECOND

STEP: Final = 0.05
"""Longest wait in seconds, and the time whose frames are yielded together."""


def at_pace(
    batches: Iterable[FrameBatch], wait: Callable[[float], bool], *, clock: Callable[[], int] = time.monotonic_ns
) -> Iterator[tuple[FrameBatch, int]]:
    """Yield frames when as much time has passed since the first one as in the capture, with the time in the capture.

    A batch may be empty. ``wait`` sleeps for some seconds, and returns True to end the iteration. ``batches`` are
    sorted by time; frames from before others are yielded with these.
    """
    began = start = None
    for batch in batches:
        if not len(batch):
            continue
        times = np.maximum.accumulate(batch.timestamp_ns)
        if began is None or start is None:
            began, start = clock(), int(times[0])
        first = 0
        while first < len(batch):
            now = start + clock() - began
            end = int(np.searchsorted(times, now, "right"))
            yield batch.part(first, max(first, end)), now
            first = max(first, end)
            left = (int(times[first]) - now) / SECOND if first < len(batch) else 0.0
            if left > 0 and wait(min(max(left, STEP / 4), STEP)):
                return
