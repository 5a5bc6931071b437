"""Conversion of timestamps of any resolution to nanoseconds, in exact integer arithmetic on arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
