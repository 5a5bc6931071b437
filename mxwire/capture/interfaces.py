"""The interfaces of a pcapng section: their clocks, and a table for lookups for all frames of a batch at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mxwire.capture.metadata import SUPPORTED_LINK_TYPES
from mxwire.units import SECOND


@dataclass(frozen=True, slots=True)
class TimestampClock:
    """The timestamp unit of a pcapng interface, ``base ** -exponent`` seconds, and its offset from 1970."""

    base: int = 10
    exponent: int = 6
    offset_seconds: int = 0

    @classmethod
    def from_option(cls, resolution: int, offset_seconds: int) -> TimestampClock:
        """The clock for the values of the options ``if_tsresol`` and ``if_tsoffset``."""
        return cls(2 if resolution & 0x80 else 10, resolution & 0x7F, offset_seconds)

    @property
    def ticks_per_second(self) -> int:
        """Number of ticks per second."""
        return int(self.base**self.exponent)

    def nanoseconds(self, ticks: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Convert ticks to nanoseconds, rounded down; times beyond int64 (after 2262) wrap around."""
        if self.base == 2:
            counted = _binary_ticks(ticks, self.exponent)
        elif self.exponent <= 9:
            counted = ticks * np.uint64(10 ** (9 - self.exponent))
        elif self.exponent <= 28:
            counted = ticks // np.uint64(10 ** (self.exponent - 9))
        else:
            counted = np.zeros_like(ticks)  # even the largest number of ticks is less than a nanosecond
        # Unsigned arithmetic wraps silently where a hostile offset would overflow int64.
        offset = np.uint64(self.offset_seconds * SECOND % 2**64)
        return (counted + offset).view(np.int64)


def _binary_ticks(ticks: NDArray[np.uint64], exponent: int) -> NDArray[np.uint64]:
    """Convert ticks of ``2**-exponent`` seconds to nanoseconds."""
    per_second = np.uint64(SECOND)
    if exponent >= 64:
        seconds, fraction = np.zeros_like(ticks), ticks
    else:
        seconds = ticks >> np.uint64(exponent)
        fraction = ticks & np.uint64(2**exponent - 1)
    if exponent <= 32:
        nanoseconds = fraction * per_second >> np.uint64(exponent)
    else:
        # fraction * 10**9 needs up to 94 bits, so it is computed from two halves of 32 bits. Rounding down twice,
        # by 2**32 and then by the rest, equals rounding down once.
        high, low = fraction >> np.uint64(32), fraction & np.uint64(2**32 - 1)
        upper = high * per_second + (low * per_second >> np.uint64(32))
        nanoseconds = upper >> np.uint64(min(exponent - 32, 63))
    return seconds * per_second + nanoseconds


class InterfaceTable:
    """One column per property, indexed by interface number.

    Capacity doubles as needed, because a file may add an interface after every frame.
    """

    def __init__(self) -> None:
        """Create an empty table, as at the start of a section."""
        self.labels: list[str] = []
        """Name of each interface in messages."""
        self._columns = np.zeros((5, 4), np.int64)
        self._clocks: list[TimestampClock] = []
        self._clock_places: dict[TimestampClock, int] = {}

    def __len__(self) -> int:
        """The number of interfaces."""
        return len(self.labels)

    def add(self, label: str, link_type: int, snap_length: int, frame_check_bytes: int, clock: TimestampClock) -> None:
        """Add the next interface of the section."""
        place = self._clock_places.setdefault(clock, len(self._clocks))
        if place == len(self._clocks):
            self._clocks.append(clock)
        if len(self) == self._columns.shape[1]:
            self._columns = np.concatenate([self._columns, np.zeros_like(self._columns)], axis=1)
        supported = link_type in SUPPORTED_LINK_TYPES
        self._columns[:, len(self)] = link_type, snap_length, frame_check_bytes, place, supported
        self.labels.append(label)

    @property
    def link_type(self) -> NDArray[np.int64]:
        """The link type of each interface."""
        return self._column(0)

    @property
    def snap_length(self) -> NDArray[np.int64]:
        """Snap length of each interface in bytes; 0 for none."""
        return self._column(1)

    @property
    def frame_check_bytes(self) -> NDArray[np.int64]:
        """Length in bytes of the frame check sequence of each interface's frames."""
        return self._column(2)

    @property
    def supported(self) -> NDArray[np.bool_]:
        """Mask of the interfaces with a supported link type."""
        return self._column(4).astype(np.bool_)

    def nanoseconds(self, interface: NDArray[np.int64], ticks: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Convert the timestamps of frames to nanoseconds, each by the clock of its interface."""
        if len(self._clocks) == 1:
            return self._clocks[0].nanoseconds(ticks)
        clock = self._column(3)[interface]
        order = np.argsort(clock, kind="stable")
        bounds = np.flatnonzero(np.diff(clock[order])) + 1
        times = np.empty(len(ticks), np.int64)
        for frames in np.split(order, bounds):
            times[frames] = self._clocks[clock[frames[0]]].nanoseconds(ticks[frames])
        return times

    def _column(self, index: int) -> NDArray[np.int64]:
        return self._columns[index, : len(self)]
