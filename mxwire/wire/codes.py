"""Numbering of 64-bit keys (addresses, pairs of hosts) by small codes, in order of appearance; groups of equal ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

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
        # The place after the last key is not valid; the key differs at any other as well.
        place[place == len(self._sorted)] = 0
        known: NDArray[np.bool_] = self._sorted[place] == keys
        return place, known

    def _add(self, keys: NDArray[np.uint64]) -> None:
        fresh, first = np.unique(keys, return_index=True)
        # In order of appearance: codes must not depend on how a capture is cut into batches.
        fresh = fresh[np.argsort(first)][: LIMIT - len(self.keys)]
        codes = np.arange(len(self.keys), len(self.keys) + len(fresh))
        self.keys += fresh.tolist()
        if len(self.keys) == LIMIT:
            self.keys.append(0)
        merged = np.concatenate([self._sorted, fresh])
        order = np.argsort(merged)
        self._sorted = merged[order]
        self._codes = np.concatenate([self._codes, codes])[order]


def groups_of(key: NDArray[np.signedinteger[Any]]) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Yield each distinct value of an array with its places, ascending."""
    if not len(key):
        return
    if (key == key[0]).all():
        yield int(key[0]), np.arange(len(key))
        return
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order])) + 1
    for members in np.split(order, starts):
        yield int(key[members[0]]), members
