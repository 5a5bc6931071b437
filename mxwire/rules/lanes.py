"""Frames sorted by conversation, each of whose two directions is a lane, for computations over many lanes at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


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
