"""Frames in the order of their times, where a capture has them in another one.

A card with several queues, or a program that records several interfaces, writes frames a little out of order; each has
its right time all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.frames import FrameBatch, concatenate

WINDOW_NS: Final = 100_000_000
"""A frame whose time is further back than this is where it belongs: the clock was set back."""
STEPS: Final = 64
"""Steps of the clock in one batch that are told from disorder; after so many the rest is left as it is."""


def in_time_order(batches: Iterable[FrameBatch], window_ns: int = WINDOW_NS) -> Iterator[FrameBatch]:
    """The same frames, each as far back as its time says, up to ``window_ns``; frames keep their numbers.

    Each batch is held back until the next one is there. Batches that are in order are handed on as they are. Where two
    batches overlap in time, their frames must have the same link type to be put in order.
    """
    held: FrameBatch | None = None
    for batch in batches:
        if not len(batch):
            continue
        batch = _sorted(batch, window_ns)
        if held is not None:
            yield_now, batch = _parted(held, batch, window_ns)
            yield from yield_now
        held = batch
    if held is not None:
        yield held


def _parted(held: FrameBatch, batch: FrameBatch, window_ns: int) -> tuple[list[FrameBatch], FrameBatch]:
    """What of two batches is certain, and what is still to be compared with the next one."""
    latest, first = int(held.timestamp_ns[-1]), int(batch.timestamp_ns[0])
    if latest <= first or latest - first > window_ns or held.link_type != batch.link_type:
        return [held], batch
    split = int(np.searchsorted(_running(held.timestamp_ns), first, side="right"))
    certain = [held.select(np.arange(split))] if split else []
    return certain, _sorted(concatenate([held.select(np.arange(split, len(held))), batch]), window_ns)


def _running(times: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.maximum.accumulate(times)


def _sorted(batch: FrameBatch, window_ns: int) -> FrameBatch:
    times = batch.timestamp_ns
    if bool((times[1:] >= times[:-1]).all()):
        return batch
    order = np.arange(len(times))
    start = 0
    for _ in range(STEPS):
        late = np.flatnonzero(times[start:] < _running(times[start:]) - window_ns)
        end = start + int(late[0]) if len(late) else len(times)
        order[start:end] = start + np.argsort(times[start:end], kind="stable")
        start = end
        if start == len(times):
            break
    return batch.select(order)
