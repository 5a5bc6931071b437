"""Registration of memory before data moves, with a cache and deferred release: pinned pages, and tokens of an agent."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from statistics import median
from typing import Final, Protocol

from mxwire.bench.intranode.mechanism import Piece, Pool, checked, library

_PAGE: Final = 4096
_REGIONS: Final = 16


class Registrar(Protocol):
    """Registers memory, and releases it."""

    def register(self, piece: Piece) -> int:
        """Register a region, and return its handle. Raises :class:`OSError` if the system does not permit it."""

    def release(self, handles: Sequence[int]) -> None:
        """Release regions."""


class PinnedPages:
    """Pages that the kernel keeps in place, as a card needs them; the handle of a region is its address."""

    def __init__(self) -> None:
        self._lock, self._unlock = library("mlock", "munlock")
        self._sizes: dict[int, int] = {}

    def register(self, piece: Piece) -> int:
        """Pin a region."""
        checked(self._lock(ctypes.c_void_p(piece.address), ctypes.c_size_t(piece.size)), "mlock")
        self._sizes[piece.address] = piece.size
        return piece.address

    def release(self, handles: Sequence[int]) -> None:
        """Unpin regions, by one call per region."""
        for each in handles:
            checked(self._unlock(ctypes.c_void_p(each), ctypes.c_size_t(self._sizes.pop(each))), "munlock")


class RegistrationCache:
    """Regions that remain registered after their use, until more than ``most`` of them are unused: then all are
    released.

    With ``most`` at 0 each region is released at once.
    """

    def __init__(self, most: int, registrar: Registrar) -> None:
        self._most, self._registrar = most, registrar
        self._handles: dict[tuple[int, int], int] = {}
        """Handle of each region, by address and length."""
        self._users: dict[tuple[int, int], int] = {}
        """Number of users of each region that is in use."""

    def register(self, piece: Piece) -> int:
        """Register a region, unless it is registered, and return its handle."""
        key = piece.address, piece.size
        if key not in self._handles:
            self._handles[key] = self._registrar.register(piece)
        self._users[key] = self._users.get(key, 0) + 1
        return self._handles[key]

    def deregister(self, piece: Piece) -> None:
        """End a use of a region."""
        key = piece.address, piece.size
        self._users[key] -= 1
        if not self._users[key]:
            del self._users[key]
        if len(self._handles) - len(self._users) > self._most:
            self.release()

    def release(self) -> None:
        """Release all regions that are not used."""
        unused = [key for key in self._handles if key not in self._users]
        if unused:
            self._registrar.release([self._handles.pop(key) for key in unused])


def registration_times(registrar: Registrar, size: int, count: int) -> dict[str, float]:
    """Median times in ns to register and deregister a region at once, from the cache, and with deferred release.

    ``deferred`` is the time of the release of a region when all are released together.
    """
    step = -(-size // _PAGE) * _PAGE
    pieces = Pool(step * _REGIONS, full=True).pieces(size, _REGIONS, step)
    clock = time.perf_counter_ns
    times: dict[str, list[float]] = {"register": [], "deregister": [], "cached": [], "deferred": []}
    at_once, kept = RegistrationCache(0, registrar), RegistrationCache(_REGIONS, registrar)
    for number in range(count):
        piece = pieces[number % _REGIONS]
        begin = clock()
        at_once.register(piece)
        middle = clock()
        at_once.deregister(piece)
        times["deregister"].append(clock() - middle)
        times["register"].append(middle - begin)
    for _ in range(-(-count // _REGIONS)):
        for piece in pieces:
            kept.register(piece)
            kept.deregister(piece)
        for piece in pieces:
            begin = clock()
            kept.register(piece)
            kept.deregister(piece)
            times["cached"].append(clock() - begin)
        begin = clock()
        kept.release()
        times["deferred"].append((clock() - begin) / _REGIONS)
    return {name: median(each) for name, each in times.items()}
