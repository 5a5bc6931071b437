"""Sorting of frames by time.

A network card with several queues, or a program that records several interfaces, delivers frames slightly out of order,
but with correct times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.frames import FrameBatch, concatenate

WINDOW_NS: Final = 100_000_000
"""Maximum time in ns by which a frame is moved: if a later frame in the file is earlier by more, the clock was set
back."""
CLOCK_STEPS: Final = 64
"""Maximum clock steps recognised per batch; after them, the rest of the batch is left unsorted."""


def in_time_order(batches: Iterable[FrameBatch]) -> Iterator[FrameBatch]:
    """Yield the same frames sorted by time, except across clock steps of more than ``WINDOW_NS``.

    Frames keep their numbers. Each batch is held back until the next one is available. Batches already in order are
    passed unchanged. Batches that overlap in time are sorted together only if they have the same link type.
    """
    held: FrameBatch | None = None
    for batch in batches:
        if not len(batch):
            continue
        batch = _sorted(batch)
        if held is not None:
            certain, batch = _parted(held, batch)
            yield from certain
        held = batch
    if held is not None:
        yield held


def _parted(held: FrameBatch, batch: FrameBatch) -> tuple[list[FrameBatch], FrameBatch]:
    """Split two batches into frames with a final position, and frames to compare with the next batch."""
    latest, first = int(held.timestamp_ns[-1]), int(batch.timestamp_ns[0])
    if latest <= first or latest - first > WINDOW_NS or held.link_type != batch.link_type:
        return [held], batch
    split = int(np.searchsorted(_running(held.timestamp_ns), first, side="right"))
    certain = [held.select(np.arange(split))] if split else []
    return certain, _sorted(concatenate([held.select(np.arange(split, len(held))), batch]))


def _running(times: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.maximum.accumulate(times)


def _sorted(batch: FrameBatch) -> FrameBatch:
    times = batch.timestamp_ns
    if bool((times[1:] >= times[:-1]).all()):
        return batch
    order = np.arange(len(times))
    start = 0
    for _ in range(CLOCK_STEPS):
        late = np.flatnonzero(times[start:] < _running(times[start:]) - WINDOW_NS)
        end = start + int(late[0]) if len(late) else len(times)
        order[start:end] = start + np.argsort(times[start:end], kind="stable")
        start = end
        if start == len(times):
            break
    return batch.select(order)
