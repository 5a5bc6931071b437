"""Dictionaries with a bounded number of keys: captures of any length are analysed in bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class FirstKeys(dict[_Key, _Value]):
    """A dictionary that keeps the first ``most`` keys, and forgets the values of all others.

    ``make`` makes the value of a key that is missing, as in a defaultdict.
    """

    def __init__(self, most: int, make: Callable[[], _Value] | None = None) -> None:
        super().__init__()
        self._most = most
        self._make = make

    def __setitem__(self, key: _Key, value: _Value) -> None:
        """Set the value of a key, if it is one of the first."""
        if key in self or len(self) < self._most:
            super().__setitem__(key, value)

    def __missing__(self, key: _Key) -> _Value:
        """The new value of a key, kept if the key is one of the first."""
        if self._make is None:
            raise KeyError(key)
        return self.setdefault(key, self._make())

    def setdefault(self, key: _Key, default: _Value) -> _Value:
        """The value of a key, by default ``default``, kept if the key is one of the first."""
        self[key] = value = self.get(key, default)
        return value
