"""Play the frames of a capture at the pace at which they were recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np

from mxwire.frames import FrameBatch
from mxwire.units import SECOND

STEP: Final = 0.05
"""Maximum wait in seconds, and the span of time whose frames are yielded together."""


def at_pace(
    batches: Iterable[FrameBatch], wait: Callable[[float], bool], *, clock: Callable[[], int] = time.monotonic_ns
) -> Iterator[tuple[FrameBatch, int]]:
    """Yield each frame when as much time has passed since the first frame as in the capture, with the time in the
    capture.

    A batch may be empty. ``wait`` sleeps for some seconds, and returns True to end the iteration. ``batches`` are
    sorted by time; frames that are out of order are yielded with those before them.
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
