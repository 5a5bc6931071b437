"""Frames sorted by conversation, each of whose two directions is a lane, for computations over many lanes at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mxwire.wire.numbers import NUMBER_MASK

_HALF = NUMBER_MASK // 2 + 1


class LaneOrder:
    """The conversation and the side of frames that are sorted by conversation; arrays of shape (n,).

    ``conversation`` numbers the conversations from 0 in ascending order; ``side`` is 0 or 1.
    """

    def __init__(self, conversation: NDArray[np.intp], side: NDArray[np.intp]) -> None:
        self.side = side
        begins = np.flatnonzero(np.diff(conversation, prepend=-1))
        lengths = np.diff(begins, append=len(conversation))
        self.first = np.repeat(begins, lengths)
        """The first frame of the conversation of each frame."""

    def before(self, counted: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the number of ``counted`` frames before each frame, in its lane and in the other one."""
        both: NDArray[np.int64] = np.cumsum(counted) - counted
        one = counted & (self.side == 0)
        one_before = np.cumsum(one) - one
        both, one_before = both - both[self.first], one_before - one_before[self.first]
        mine = np.where(self.side == 0, one_before, both - one_before)
        return mine, both - mine

    def last(self, values: NDArray[Any], initial: NDArray[Any], *, other: bool = False) -> NDArray[Any]:
        """Return the value of the last frame before each frame in its lane, or in the ``other`` one of its
        conversation; ``initial`` if there is none."""
        found = initial.copy()
        places = np.arange(len(values))
        for lane in (0, 1):
            last = np.maximum.accumulate(np.where(self.side == lane, places, -1))
            last = np.concatenate([[-1], last[:-1]])
            known = (last >= self.first) & ((self.side == lane) != other)
            found[known] = values[last[known]]
        return found

    def repeats(
        self, numbers: NDArray[Any], next_: NDArray[np.int64], numbered: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return which of the ``numbered`` frames carry a number that their lane had before, and how many numbers
        each is behind the next one of its lane.

        ``next_`` is the position of the next number of the lane at the beginning. After a frame whose number is ahead
        of the next one, the results are undefined.
        """
        at = np.flatnonzero(numbered)
        lane = 2 * self.first[at] + self.side[at]
        at = at[np.argsort(lane, kind="stable")]
        begins = np.diff(2 * self.first[at] + self.side[at], prepend=-1) != 0
        values = numbers[at].astype(np.int64)
        former = np.concatenate([values[:1], values[:-1]])
        former[begins] = next_[at][begins] - 1
        steps = ((values - former + _HALF) & NUMBER_MASK) - _HALF
        total = np.cumsum(steps)
        lengths = np.diff(np.flatnonzero(begins), append=len(at))
        # Numbers of messages from the beginning of the lane; lanes are kept apart, so that one maximum serves all.
        place = total - np.repeat((total - steps)[begins], lengths)
        apart = np.repeat(np.arange(len(lengths)), lengths) << 32
        highest = np.concatenate([[0], np.maximum.accumulate(place + apart)[:-1]])
        behind = np.zeros(len(numbers), np.int64)
        behind[at] = np.where(begins, 0, np.maximum(highest - apart, 0)) + 1 - place
        return behind > 0, behind
