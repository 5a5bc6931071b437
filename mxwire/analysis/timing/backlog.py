"""Values by key, such as durations by pair of hosts, that are added late.

With many keys, adding the values of each batch takes longer than following its frames, and most are never printed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

_Sum = TypeVar("_Sum")
MOST: Final = 1 << 20
"""Number of rows that wait, at most."""


class Backlog(Generic[_Sum]):
    """Rows of integers, each with a key, that are added to the sum of their key when it is requested, or when more than
    :data:`MOST` wait.

    ``make`` makes an empty sum, and ``add`` adds columns of shape (n,) to it, in the order in which they were put.
    """

    def __init__(self, make: Callable[[], _Sum], add: Callable[..., None]) -> None:
        self._make, self._add = make, add
        self._sums: dict[int, _Sum] = {}
        self._parts: list[NDArray[np.int64]] = []
        self._count = 0
        self._sorted = np.zeros((0, 0), np.int64)
        self._waiting: dict[int, tuple[int, int]] = {}
        """Spans of ``_sorted``, by key."""

    def put(self, keys: NDArray[np.int64], *columns: NDArray[np.int64]) -> None:
        """Append rows, arrays of shape (n,)."""
        self._parts.append(np.stack([keys, *columns]))
        self._count += len(keys)
        if self._count > MOST:
            self._sort()
            for key in [*self._waiting]:
                self.get(key)
            self._sorted = self._sorted[:0]

    def get(self, key: int) -> _Sum:
        """Return the sum of all rows with a key."""
        if self._parts:
            self._sort()
        found = self._sums.get(key)
        if found is None:
            found = self._sums[key] = self._make()
        span = self._waiting.pop(key, None)
        if span is not None:
            self._add(found, *self._sorted[1:, slice(*span)])
        return found

    def _sort(self) -> None:
        """Sort the rows that wait by key."""
        left: list[Any] = [self._sorted[:, slice(*span)] for span in self._waiting.values()]
        rows = np.concatenate([*left, *self._parts], axis=1)
        self._parts, self._count = [], 0
        self._sorted = rows = rows[:, np.argsort(rows[0], kind="stable")]
        begins = np.flatnonzero(np.diff(rows[0], prepend=-1))
        ends = np.append(begins[1:], rows.shape[1])[: len(begins)]
        spans = zip(begins.tolist(), ends.tolist(), strict=True)
        self._waiting = dict(zip(rows[0, begins].tolist(), spans, strict=True))
