"""A mapping whose growth never takes long.

A dict that has no place left moves all its entries at one insertion: 5 to 20 ms for 100,000 of them, depending on how
many of their hashes share their low bits. A table therefore has layers of a limited size, between which nothing moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, TypeVar

_LAYER: Final = 21_845
"""Maximum number of entries of a layer: as many as a dict of 2^15 places takes before it grows."""

Key = TypeVar("Key")
Entry = TypeVar("Entry")


class LayeredTable(Generic[Key, Entry]):
    """Entries by key; a search takes a step per layer, of which most tables have one."""

    __slots__ = ("_key", "_layers", "_newest", "_only")

    def __init__(self) -> None:
        self._key: Key | None = None
        self._only: Entry | None = None
        """The entry of ``_key``, if it was added to an empty table and is still alone: a ping-pong then needs no dict,
        which takes several times as long."""
        self._newest: dict[Key, Entry] = {}
        self._layers = [self._newest]

    def __len__(self) -> int:
        """The number of entries."""
        return sum(map(len, self._layers)) + (self._only is not None)

    def get(self, key: Key) -> Entry | None:
        """The entry of a key, or None."""
        if self._only is not None:
            return self._only if self._key == key else None
        for layer in self._layers:
            found = layer.get(key)
            if found is not None:
                return found
        return None

    def add(self, key: Key, entry: Entry) -> None:
        """Add an entry for a key that has none."""
        if self._only is not None:
            assert self._key is not None
            self._newest[self._key] = self._only
            self._key = self._only = None
        elif not self._newest and len(self._layers) == 1:
            self._key, self._only = key, entry
            return
        if len(self._newest) >= _LAYER:
            self._renew()
        self._newest[key] = entry

    def _renew(self) -> None:
        """Make a layer the newest one: one that is half empty, so that there are few in the end, or a new one."""
        self._newest = next((each for each in self._layers if len(each) <= _LAYER // 2), {})
        self._layers = [*(each for each in self._layers if each is not self._newest), self._newest]

    def replace(self, key: Key, entry: Entry) -> None:
        """Replace the entry of a key."""
        if self._only is not None and self._key == key:
            self._only = entry
        for layer in self._layers:
            if key in layer:
                layer[key] = entry
                return

    def pop(self, key: Key) -> Entry | None:
        """Remove the entry of a key, and return it, or None if there is none."""
        only = self._only
        if only is not None:
            if self._key != key:
                return None
            self._key = self._only = None
            return only
        for layer in self._layers:
            found = layer.pop(key, None)
            if found is not None:
                if not layer and layer is not self._newest:
                    self._layers = [each for each in self._layers if each is not layer]
                return found
        return None

    def __iter__(self) -> Iterator[Key]:
        """The keys; entries may be removed, but not added, while they are iterated."""
        if self._key is not None:
            yield self._key
        for layer in list(self._layers):
            left = list(layer)
            left.reverse()
            # Taken from the list, which would otherwise release all of them at once.
            while left:
                yield left.pop()
