"""Paces: the transmission times of the frames of a replay."""

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
    """Computes the due times of consecutive frames; stateful, since each time depends on the frames before."""

    hurried = False
    """True if all frames are due at once."""

    @abstractmethod
    def due(self, timestamp_ns: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the times at which the next frames are due, in ns since the first frame; never decreasing.

        Both arrays have shape ``(n,)``: the recorded timestamps in ns, and the frame lengths in bytes.
        """

    def repeat(self) -> None:
        """Restart at the first frame of the capture, for another loop."""
        return


class AtTopSpeed(Pace):
    """Every frame is due at once."""

    hurried = True

    def due(self, timestamp_ns: NDArray[np.int64], _length: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return 0 for each frame: its time in the capture does not matter."""
        return np.zeros(len(timestamp_ns), np.int64)


class AsRecorded(Pace):
    """The recorded times, divided by ``speed``; if recorded times run backwards, the latest time so far is used.

    A repetition of the capture begins after the mean interval of its frames.
    """

    def __init__(self, speed: float = 1.0) -> None:
        if not 0 < speed < float("inf"):
            raise MxwireError(f"invalid speed {speed:g}: give a number greater than 0, like 2 or 0.5")
        self._speed = speed
        self._origin: int | None = None
        self._begin = self._last = 0
        self._count = 0

    def due(self, timestamp_ns: NDArray[np.int64], _length: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the recorded intervals, divided by the speed."""
        if not len(timestamp_ns):
            return np.zeros(0, np.int64)
        if self._origin is None:
            self._origin = int(timestamp_ns[0])
        due = self._begin + ((timestamp_ns - self._origin) / self._speed).astype(np.int64)
        due = np.maximum(np.maximum.accumulate(due), self._last)
        self._last = int(due[-1])
        self._count += len(due)
        return due

    def repeat(self) -> None:
        """Restart, one mean interval after the last frame."""
        mean = (self._last - self._begin) // max(1, self._count - 1)
        self._begin = self._last = self._last + mean
        self._origin, self._count = None, 0


class AtFrameRate(Pace):
    """A fixed number of frames per second, at equal intervals."""

    def __init__(self, frames_per_second: float) -> None:
        self._gap = SECOND / frames_per_second
        self._next = 0

    def due(self, timestamp_ns: NDArray[np.int64], _length: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index of each frame, times the interval."""
        # Multiples of the interval: a sum of rounded ones would drift.
        places = np.arange(self._next, self._next + len(timestamp_ns))
        self._next += len(timestamp_ns)
        return (places * self._gap).astype(np.int64)


class AtBitRate(Pace):
    """A fixed bit rate: a frame is due when the frames before it would have been transmitted.

    Each frame counts with its captured length, from the destination address to the last byte.
    """

    def __init__(self, bits_per_second: float) -> None:
        self._ns_per_byte = 8 * SECOND / bits_per_second
        self._bytes = 0

    def due(self, _timestamp_ns: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of bytes before each frame, times the duration of a byte."""
        before = self._bytes + np.cumsum(length) - length
        self._bytes += int(length.sum())
        return (before * self._ns_per_byte).astype(np.int64)


def parse_rate(rate: str) -> tuple[float, bool]:
    """Parse a rate such as ``50000/s`` (frames), ``50k/s`` or ``1Gbit/s``: the number, and True for bits.

    Raises :class:`~mxwire.errors.MxwireError` for anything else.
    """
    match = _RATE.fullmatch(rate.strip())
    value = float(match["number"]) * _PREFIXES[match["prefix"]] if match else 0.0
    if match is None or not 0 < value < float("inf"):
        raise MxwireError(f"{rate!r} is not a rate: use a form like 50000/s (frames), 50k/s, 100Mbit/s or 1Gbit/s")
    return value, bool(match["bit"])


def pace_at(rate: str) -> Pace:
    """Return the pace for a rate in the form of :func:`parse_rate`."""
    value, bits = parse_rate(rate)
    return AtBitRate(value) if bits else AtFrameRate(value)
