"""Numbering of 64-bit keys (addresses, pairs of hosts) by small codes, in order of appearance."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

LIMIT: Final = 1 << 16
"""Maximum distinct keys of a table: more than the number of hosts in any fabric, so that only hostile traffic exceeds
it."""


class CodeTable:
    """Assigns each distinct 64-bit key the next free code, from 0.

    Keys beyond the first :data:`LIMIT` share one code, ``others``, which bounds memory on any input.
    """

    others: Final = LIMIT

    def __init__(self) -> None:
        self._sorted = np.empty(0, np.uint64)
        self._codes = np.empty(0, np.intp)
        self.keys: list[int] = []
        """The keys in order of their codes; in a full table the last is 0, for all others."""

    def __len__(self) -> int:
        """The number of codes assigned."""
        return len(self.keys)

    def codes(self, keys: NDArray[np.uint64]) -> NDArray[np.intp]:
        """The code of each key, shape (n,); new keys get new codes."""
        place, known = self._find(keys)
        if known.all():
            return self._codes[place]
        if not self.is_full:
            self._add(keys[~known])
            place, known = self._find(keys)
        return np.where(known, self._codes[place], self.others)

    @property
    def is_full(self) -> bool:
        """True once new keys share the code ``others``."""
        return len(self.keys) > LIMIT

    def _find(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        if not len(self._sorted):
            return np.zeros(len(keys), np.intp), np.zeros(len(keys), np.bool_)
        place = np.searchsorted(self._sorted, keys)
        place[place == len(self._sorted)] = 0
        known: NDArray[np.bool_] = self._sorted[place] == keys
        return place, known

    def _add(self, keys: NDArray[np.uint64]) -> None:
        fresh, first = np.unique(keys, return_index=True)
        fresh = fresh[np.argsort(first)][: LIMIT - len(self.keys)]
        codes = np.arange(len(self.keys), len(self.keys) + len(fresh))
        self.keys += fresh.tolist()
        if len(self.keys) == LIMIT:
            self.keys.append(0)
        merged = np.concatenate([self._sorted, fresh])
        order = np.argsort(merged)
        self._sorted = merged[order]
        self._codes = np.concatenate([self._codes, codes])[order]
