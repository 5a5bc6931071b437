"""Values that one side announces and the other must use afterwards: peer indexes, session numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.diagnosis.finding import Evidence, evidence
from mxwire.analysis.first_keys import FirstKeys

KEYS: Final = 1 << 14
SAMPLES: Final = 8
GRACE_NS: Final = 50_000_000
"""Grace period for frames that were in flight or queued when a new value was announced, in nanoseconds."""


class ValueColumns(NamedTuple):
    """Values that were announced or used: arrays of shape (n,), in the order of the capture."""

    key: NDArray[np.int64]
    """The user of the value and its partner, in one number."""
    place: NDArray[np.intp]
    value: NDArray[np.int64]

    @classmethod
    def joined(cls, found: list[tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.int64]]]) -> ValueColumns:
        """Return the columns of several blocks as one."""
        if not found:
            return cls(np.zeros(0, np.int64), np.zeros(0, np.intp), np.zeros(0, np.int64))
        key, place, value = (np.concatenate(each) for each in zip(*found, strict=True))
        return cls(key, place, value)


@dataclass(slots=True)
class Misuse:
    """Frames with a value that differs from the latest announcement."""

    announced: int
    announced_frame: int
    used: int
    first_ns: int
    frames: int = 0
    numbers: list[int] = field(default_factory=list)

    def evidence(self, text: str, times: int) -> Evidence:
        """The frames as evidence, which counts ``times`` times."""
        return evidence(text, [self.announced_frame, *self.numbers], self.first_ns, "sign", times)


class AnnouncedValues:
    """Comparison of the values announced and used per key, batch by batch."""

    def __init__(self) -> None:
        self.latest: FirstKeys[int, tuple[int, int, int]] = FirstKeys(KEYS)
        """By key: the value announced last, its time and frame."""
        self.misuses: FirstKeys[int, Misuse] = FirstKeys(KEYS)
        """The first misuse per key, with the number of occurrences."""

    def observe(
        self, announced: ValueColumns, used: ValueColumns, times: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> None:
        """Process a batch; ``times`` and ``numbers`` are those of its frames."""
        key = np.concatenate([announced.key, used.key])
        if not len(key):
            return
        place = np.concatenate([announced.place, used.place])
        value = np.concatenate([announced.value, used.value])
        is_announced = np.zeros(len(key), np.bool_)
        is_announced[: len(announced.key)] = True
        order = np.lexsort((place, key))
        key, place, value, is_announced = key[order], place[order], value[order], is_announced[order]
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        if len(announced.key):
            # The place of the last announcement before each frame, among the frames with the same key.
            last = np.maximum.accumulate(np.where(is_announced, np.arange(len(key)), -1))
            first = np.repeat(starts, np.diff(starts, append=len(key)))
            last = np.where(last >= first, last, -1)
        else:
            last = np.full(len(key), -1)
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(key)], strict=True):
            self._of_key(int(key[start]), slice(start, end), (place, value, is_announced, last), times, numbers)

    def _of_key(
        self,
        key: int,
        which: slice,
        columns: tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.bool_], NDArray[np.intp]],
        times: NDArray[np.int64],
        numbers: NDArray[np.int64],
    ) -> None:
        place, value, is_announced, last = columns
        before = self.latest.get(key)
        mine, used = last[which], value[which]
        known = mine >= 0
        if before is not None or known.any():
            was_announced = np.where(known, value[mine], before[0] if before else 0)
            when = np.where(known, times[place[mine]], before[1] if before else 0)
            wrong = ~is_announced[which] & (used != was_announced) & (times[place[which]] > when + GRACE_NS)
            if before is None:
                # A value that was used before any announcement in the capture may have been announced before it.
                wrong &= known
            at = np.flatnonzero(wrong)
            if len(at):
                announced_frame = int(numbers[place[mine[at[0]]]]) if known[at[0]] else (before[2] if before else 0)
                self._note(key, int(was_announced[at[0]]), announced_frame, used[at], place[which][at], times, numbers)
        announcing = np.flatnonzero(is_announced[which])
        if len(announcing):
            at_last = int(place[which][announcing[-1]])
            self.latest[key] = int(used[announcing[-1]]), int(times[at_last]), int(numbers[at_last])

    def _note(
        self,
        key: int,
        announced: int,
        announced_frame: int,
        used: NDArray[np.int64],
        places: NDArray[np.intp],
        times: NDArray[np.int64],
        numbers: NDArray[np.int64],
    ) -> None:
        new = Misuse(announced, announced_frame, int(used[0]), int(times[places[0]]))
        misuse = self.misuses.setdefault(key, new)
        misuse.frames += len(places)
        misuse.numbers += numbers[places[: SAMPLES - len(misuse.numbers)]].tolist()

    def misused(self, least: int) -> Iterator[tuple[int, Misuse]]:
        """Yield the keys under which at least ``least`` frames are wrong."""
        return ((key, each) for key, each in self.misuses.items() if each.frames >= least)
