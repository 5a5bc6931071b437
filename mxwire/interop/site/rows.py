"""Rows of a ladder: similar frames are folded, and of a long exchange only notable frames are shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from mxwire.interop.site.exchange import ShownFrame, runs

FEWEST_FOLDED: Final = 4
"""Minimum number of similar frames that are folded."""
MOST_ROWS: Final = 120
"""Maximum number of steps on the page of a cell; with fewer frames, each has a step of its own."""
MOST_ROWS_WHOLE: Final = 2_000
"""Maximum number of steps on the page with all frames, one per frame."""
_HEAD: Final = 60
_TAIL: Final = 30
_AROUND: Final = 3
"""Steps shown before and after a notable one."""
_PAUSE_NS: Final = 20_000_000
"""Minimum silence that the ladder shows as a pause."""


@dataclass(frozen=True, slots=True)
class FrameStep:
    """A frame, or a run of similar frames."""

    frames: Sequence[ShownFrame]

    @property
    def first(self) -> ShownFrame:
        """The first frame, which represents the step."""
        return self.frames[0]

    @property
    def last(self) -> ShownFrame:
        """The last frame of the run."""
        return self.frames[-1]


@dataclass(frozen=True, slots=True)
class Pause:
    """Time without frames."""

    duration_ns: int


@dataclass(frozen=True, slots=True)
class Omission:
    """Frames that are not shown."""

    frames: int


Row = FrameStep | Pause | Omission


def rows_of(frames: list[ShownFrame], *, whole: bool = False) -> list[Row]:
    """Return the rows of a ladder from top to bottom; with ``whole`` nothing is folded."""
    if whole or len(frames) <= MOST_ROWS:
        steps = [FrameStep([frame]) for frame in frames]
    else:
        steps = [FrameStep(each) for each in runs(frames, FEWEST_FOLDED)]
    kept = set(range(MOST_ROWS_WHOLE)) if whole else _chosen(steps)
    return list(_with_pauses(_with_omissions(steps, kept)))


def is_everything(rows: list[Row]) -> bool:
    """Return whether each frame has a step of its own."""
    return all(isinstance(row, Pause) or (isinstance(row, FrameStep) and len(row.frames) == 1) for row in rows)


def _chosen(steps: list[FrameStep]) -> set[int]:
    """Return the indexes of the shown steps: all, or the first, the last and the notable ones."""
    if len(steps) <= MOST_ROWS:
        return set(range(len(steps)))
    chosen = {*range(_HEAD), *range(len(steps) - _TAIL, len(steps))}
    concerned = [place for place, step in enumerate(steps) if step.first.concerned]
    marked = [place for place, step in enumerate(steps) if not step.first.is_plain]
    for places in (concerned, marked):
        for place in places:
            if len(chosen) >= MOST_ROWS:
                return chosen
            chosen.update(range(max(place - _AROUND, 0), min(place + _AROUND + 1, len(steps))))
    return chosen


def _with_omissions(steps: list[FrameStep], kept: set[int]) -> Iterator[FrameStep | Omission]:
    left_out = 0
    for place, step in enumerate(steps):
        if place not in kept:
            left_out += len(step.frames)
            continue
        if left_out:
            yield Omission(left_out)
            left_out = 0
        yield step
    if left_out:
        yield Omission(left_out)


def _with_pauses(rows: Iterator[FrameStep | Omission]) -> Iterator[Row]:
    last: ShownFrame | None = None
    for row in rows:
        if isinstance(row, FrameStep):
            if last is not None and row.first.time_ns - last.time_ns >= _PAUSE_NS:
                yield Pause(row.first.time_ns - last.time_ns)
            last = row.last
        else:
            last = None
        yield row
