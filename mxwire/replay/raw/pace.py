"""When each frame is due."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.errors import MxwireError
from mxwire.units import SECOND

_PREFIXES: Final = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9}
_RATE: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<prefix>[kKMG]?)(?P<bit>bit)?/s", re.ASCII)


class Pace(ABC):
    """Gives the times of frames that follow each other; what it has given so far decides what comes next."""

    hurried = False
    """Whether nothing is ever waited for."""

    @abstractmethod
    def due(self, timestamp_ns: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.int64]:
        """When the next frames are due, in ns since the first of all; never less than for those before.

        Both arrays have shape ``(n,)``: when the frames were recorded, and how many bytes they have.
        """

    def repeat(self) -> None:
        """The next frame is the first of the capture once more."""
        return


class AtTopSpeed(Pace):
    """Everything is due at once."""

    hurried = True

    def due(self, timestamp_ns: NDArray[np.int64], _length: NDArray[np.int64]) -> NDArray[np.int64]:
        """Zeros."""
        return np.zeros(len(timestamp_ns), np.int64)


class AsRecorded(Pace):
    """As in the capture, or so many times as fast; times that run backwards there are those before them here.

    When the capture begins again, it does so after the mean distance of its frames.
    """

    def __init__(self, speed: float = 1.0) -> None:
        if not 0 < speed < float("inf"):
            raise MxwireError(f"a speed of {speed:g} cannot be: give a number greater than 0, like 2 or 0.5")
        self._speed = speed
        self._origin: int | None = None
        self._begin = self._last = 0
        self._count = 0

    def due(self, timestamp_ns: NDArray[np.int64], _length: NDArray[np.int64]) -> NDArray[np.int64]:
        """The recorded distances, divided by the speed."""
        if not len(timestamp_ns):
            return np.zeros(0, np.int64)
        if self._origin is None:
            self._origin = int(timestamp_ns[0])
        found = self._begin + ((timestamp_ns - self._origin) / self._speed).astype(np.int64)
        found = np.maximum(np.maximum.accumulate(found), self._last)
        self._last = int(found[-1])
        self._count += len(found)
        return found

    def repeat(self) -> None:
        """Begin anew, a mean distance later."""
        mean = (self._last - self._begin) // max(1, self._count - 1)
        self._begin = self._last = self._last + mean
        self._origin, self._count = None, 0


class AtFrameRate(Pace):
    """So many frames a second, at equal distances."""

    def __init__(self, frames_per_second: float) -> None:
        self._gap = SECOND / frames_per_second
        self._next = 0

    def due(self, timestamp_ns: NDArray[np.int64], _length: NDArray[np.int64]) -> NDArray[np.int64]:
        """The place of each frame, times the distance."""
        places = np.arange(self._next, self._next + len(timestamp_ns))
        self._next += len(timestamp_ns)
        return (places * self._gap).astype(np.int64)


class AtBitRate(Pace):
    """So many bits a second: a frame is due when those before it would have left.

    Counted is what is in the capture, from the destination's address to the last byte.
    """

    def __init__(self, bits_per_second: float) -> None:
        self._ns_per_byte = 8 * SECOND / bits_per_second
        self._bytes = 0

    def due(self, _timestamp_ns: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.int64]:
        """The bytes before each frame, times the time of a byte."""
        before = self._bytes + np.cumsum(length) - length
        self._bytes += int(length.sum())
        return (before * self._ns_per_byte).astype(np.int64)


def pace_at(rate: str) -> Pace:
    """The pace that a user writes as ``50000/s`` (frames), ``50k/s`` or ``1Gbit/s``.

    Raises :class:`~mxwire.errors.MxwireError` for anything else.
    """
    found = _RATE.fullmatch(rate.strip())
    value = float(found["number"]) * _PREFIXES[found["prefix"]] if found else 0.0
    if found is None or not value:
        raise MxwireError(f"{rate!r} is no rate: write it like 50000/s (frames), 50k/s, 100Mbit/s or 1Gbit/s")
    return AtBitRate(value) if found["bit"] else AtFrameRate(value)
