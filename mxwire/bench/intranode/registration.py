"""Registration of memory as a card needs it: pages are pinned before data moves; with a cache, and deferred release."""

from __future__ import annotations

import ctypes
import time
from collections import OrderedDict
from statistics import median
from typing import Final

from mxwire.bench.intranode.mechanism import Piece, Pool, checked, library

_PAGE: Final = 4096
_REGIONS: Final = 16


class RegistrationCache:
    """Regions that remain pinned after their use, until more than ``most`` of them are unused: then all are released.

    With ``most`` at 0 each region is released at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._pinned: OrderedDict[tuple[int, int], int] = OrderedDict()
        """Number of users of each region, by address and length."""
        self._lock, self._unlock = library("mlock", "munlock")

    def register(self, piece: Piece) -> None:
        """Pin a region, unless it is pinned. Raises :class:`OSError` if the system does not permit it."""
        key = piece.address, piece.size
        if key not in self._pinned:
            checked(self._lock(ctypes.c_void_p(key[0]), ctypes.c_size_t(key[1])), "mlock")
        self._pinned[key] = self._pinned.get(key, 0) + 1

    def deregister(self, piece: Piece) -> None:
        """End a use of a region."""
        self._pinned[piece.address, piece.size] -= 1
        if sum(not users for users in self._pinned.values()) > self._most:
            self.release()

    def release(self) -> None:
        """Release all regions that are not used."""
        for key in [each for each, users in self._pinned.items() if not users]:
            del self._pinned[key]
            checked(self._unlock(ctypes.c_void_p(key[0]), ctypes.c_size_t(key[1])), "munlock")


def registration_times(size: int, count: int) -> dict[str, float]:
    """Median times in ns to register and deregister a region at once, from the cache, and with deferred release.

    ``deferred`` is the time of the release of a region when all are released together.
    """
    step = -(-size // _PAGE) * _PAGE
    pieces = Pool(step * _REGIONS, full=True).pieces(size, _REGIONS, step)
    clock = time.perf_counter_ns
    times: dict[str, list[float]] = {"register": [], "deregister": [], "cached": [], "deferred": []}
    at_once, kept = RegistrationCache(0), RegistrationCache(_REGIONS)
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
