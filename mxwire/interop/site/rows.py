"""Which frames a ladder shows: runs of like ones folded, and of a long exchange what matters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from mxwire.interop.site.exchange import Seen, runs

FEWEST_FOLDED: Final = 4
"""Fewer like frames than this are shown one by one."""
MOST_ROWS: Final = 120
"""Steps of a ladder on the page of a cell; where there are no more frames, each has its own."""
MOST_ROWS_WHOLE: Final = 2_000
"""Steps on the page that shows all, one for each frame."""
_HEAD: Final = 60
_TAIL: Final = 30
_AROUND: Final = 3
"""Steps before and after one that matters."""
_PAUSE_NS: Final = 20_000_000
"""How long nothing must be sent for the ladder to show it."""


@dataclass(frozen=True, slots=True)
class Step:
    """A frame, or a run of like frames."""

    frames: Sequence[Seen]

    @property
    def first(self) -> Seen:
        """The frame that stands for the step."""
        return self.frames[0]

    @property
    def last(self) -> Seen:
        """The end of the run."""
        return self.frames[-1]


@dataclass(frozen=True, slots=True)
class Pause:
    """Time in which nothing was sent."""

    duration_ns: int


@dataclass(frozen=True, slots=True)
class Omission:
    """Frames that are not shown here."""

    frames: int


Row = Step | Pause | Omission


def rows_of(frames: list[Seen], *, whole: bool = False) -> list[Row]:
    """What a ladder of the frames shows, from its top to its bottom; ``whole`` folds nothing."""
    if whole or len(frames) <= MOST_ROWS:
        steps = [Step([frame]) for frame in frames]
    else:
        steps = [Step(each) for each in runs(frames, FEWEST_FOLDED)]
    kept = set(range(MOST_ROWS_WHOLE)) if whole else _chosen(steps)
    return list(_with_pauses(_with_omissions(steps, kept)))


def is_everything(rows: list[Row]) -> bool:
    """Whether each frame has a step of its own."""
    return all(isinstance(row, Pause) or (isinstance(row, Step) and len(row.frames) == 1) for row in rows)


def _chosen(steps: list[Step]) -> set[int]:
    """The places of the steps that are shown: all, or the first, the last and those that matter."""
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


def _with_omissions(steps: list[Step], kept: set[int]) -> Iterator[Step | Omission]:
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


def _with_pauses(rows: Iterator[Step | Omission]) -> Iterator[Row]:
    last: Seen | None = None
    for row in rows:
        if isinstance(row, Step):
            if last is not None and row.first.time_ns - last.time_ns >= _PAUSE_NS:
                yield Pause(row.first.time_ns - last.time_ns)
            last = row.last
        else:
            last = None
        yield row
