"""Copies of a message in memory, followed from one place to the next.

A traced process stops at each call of memcpy, memmove and mempcpy. All copies of Python, NumPy, compiled mxwire and
libmyriexpress are such calls, except those of a few bytes, which compilers turn into moves. A copy counts if its source
is part of a message: the message itself, memory into which the kernel or an earlier copy has put it, or a ring that the
kernel fills.
"""

from __future__ import annotations

import ctypes
from bisect import insort
from collections.abc import Iterator
from pathlib import Path
from typing import Final

LEAST: Final = 16
"""Shortest copy in bytes that is followed."""
SENT: Final = "sent"
RECEIVED: Final = "received"
_ROUTINES: Final = ("memcpy", "memmove", "mempcpy")
RINGS: Final = ("socket:", "[xdp]")
"""Part of the name of a mapping that the kernel fills."""


class CopyTrail:
    """The places of messages in the memory of a process, and the bytes that were copied from them."""

    def __init__(self, message: tuple[int, int], rings: list[tuple[int, int]]) -> None:
        self.copied = {SENT: 0, RECEIVED: 0}
        """Bytes copied, of messages that this process sends and receives."""
        self._fixed = [(*message, SENT), *((start, end, RECEIVED) for start, end in rings)]
        self._places: list[tuple[int, int, str]] = []

    def forget(self) -> None:
        """Forget all places except the message and the rings, because the memory will be reused."""
        self._places.clear()

    def arrived(self, start: int, length: int) -> None:
        """Note that the kernel has written received bytes to memory."""
        self._replace(start, start + length, [(start, start + length, RECEIVED)])

    def copy(self, target: int, source: int, length: int) -> None:
        """Count a copy if its source is part of a message, and note its target."""
        if length < LEAST:
            return
        sources = []
        for start, end, kind in self._parts(source, source + length):
            self.copied[kind] += end - start
            sources.append((start - source + target, end - source + target, kind))
        self._replace(target, target + length, sources)

    def _parts(self, start: int, end: int) -> Iterator[tuple[int, int, str]]:
        for low, high, kind in (*self._fixed, *self._places):
            if low < end and start < high:
                yield max(low, start), min(high, end), kind

    def _replace(self, start: int, end: int, parts: list[tuple[int, int, str]]) -> None:
        """Forget the content of a range that is overwritten."""
        remaining = []
        for low, high, kind in self._places:
            if high <= start or end <= low:
                remaining.append((low, high, kind))
                continue
            if low < start:
                remaining.append((low, start, kind))
            if end < high:
                remaining.append((end, high, kind))
        for each in parts:
            insort(remaining, each)
        self._places = remaining


def mappings(process: int | str, names: tuple[str, ...]) -> list[tuple[int, int]]:
    """The ranges of memory of a process whose mapping's name contains one of ``names``."""
    mapped = []
    for line in Path(f"/proc/{process}/maps").read_text(encoding="utf-8").splitlines():
        place, _, rest = line.partition(" ")
        if any(each in rest for each in names):
            start, _, end = place.partition("-")
            mapped.append((int(start, 16), int(end, 16)))
    return mapped


def routines_of(process: int) -> list[int]:
    """The addresses of the copying routines in a process, which has the C library of this one."""
    library = ctypes.CDLL(None)
    own = {ctypes.cast(getattr(library, each), ctypes.c_void_p).value or 0 for each in _ROUTINES}
    here, there = (min(mappings(each, ("/libc.so", "/libc-", "/ld-musl")), default=None) for each in ("self", process))
    if here is None or there is None:
        return []
    # Each process has the library at another random address; distances within it are equal.
    return [address - here[0] + there[0] for address in own]
