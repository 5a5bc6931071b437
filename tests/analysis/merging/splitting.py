"""One capture as two, as if it had been recorded at both ends of the path, each with its own clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from mxwire.analysis.merging import Fingerprints, MergedBatch, MergePlan, merged, plan
from mxwire.frames import FrameBatch, concatenate
from tests.captures import Record, batch_of
from tests.wire.support import split as split_batch

FIRST_HOST = bytes.fromhex("5254000a0001")
"""The host at the first end; all others are at the second."""


@dataclass(frozen=True)
class Way:
    """The differences between the two recordings. Times are in nanoseconds."""

    offset: int = 0
    drift: float = 0.0
    delay: tuple[int, int] = (0, 0)
    """The least, from the first end and from the second."""
    jitter: int = 0
    loss: float = 0.0
    seed: int = 1

    def second_clock(self, time: int, start: int) -> int:
        """The time of the second clock when the first clock has ``time``."""
        return time + self.offset + round((time - start) * self.drift)


def split(frames: tuple[Record, ...], way: Way) -> tuple[list[Record], list[Record]]:
    """Both recordings; a frame that is lost is in that of its sender alone."""
    random, start = Random(way.seed), frames[0][0]
    ends: tuple[list[Record], list[Record]] = [], []
    for time, data, length in frames:
        begins = 0 if data[6:12] == FIRST_HOST else 1
        arrives = time + way.delay[begins] + random.randint(0, way.jitter)
        lost = random.random() < way.loss
        for end in (0, 1):
            if end == begins or not lost:
                ends[end].append((time if end == begins else arrives, data, length))
    ends[1][:] = [(way.second_clock(time, start), data, length) for time, data, length in ends[1]]
    return sorted(ends[0], key=lambda each: each[0]), sorted(ends[1], key=lambda each: each[0])


def batches(frames: Sequence[Record], size: int = 50) -> list[FrameBatch]:
    """The frames in several batches, as a file gives them."""
    return split_batch(batch_of(frames), size)


def planned(ends: tuple[list[Record], list[Record]], *, keep_both: bool = False) -> MergePlan:
    """The facts detected about two recordings."""
    captures = []
    for name, frames in zip(("A", "B"), ends, strict=True):
        capture = Fingerprints(name)
        for batch in batches(frames):
            capture.add(batch)
        captures.append(capture)
    return plan(*captures, keep_both=keep_both)


def together(ends: tuple[list[Record], list[Record]], *, keep_both: bool = False) -> tuple[MergePlan, MergedBatch]:
    """Both recordings as one, in one batch."""
    made = planned(ends, keep_both=keep_both)
    parts = list(merged(made, batches(ends[0]), batches(ends[1])))
    return made, MergedBatch(
        concatenate([each.batch for each in parts]), np.concatenate([each.origin for each in parts])
    )
