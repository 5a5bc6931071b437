"""Sets of the bytes of a message, as ranges."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

RANGES_KEPT: Final = 4096
"""Maximum number of separate ranges that are remembered per message; only hostile traffic exceeds it."""


class Ranges:
    """A set of bytes as ascending ranges that do not touch each other."""

    __slots__ = ("_ends", "_starts", "total")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self.total = 0
        """Total number of bytes."""

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield start and end (exclusive) of each range."""
        return zip(self._starts, self._ends, strict=True)

    def __len__(self) -> int:
        """The number of ranges."""
        return len(self._starts)

    def add(self, start: int, end: int) -> int:
        """Add the bytes from ``start`` to ``end`` (exclusive); return the number of new ones."""
        if end <= start:
            return 0
        starts, ends = self._starts, self._ends
        # Replies in order extend the last range: the usual case, without a search.
        if ends and ends[-1] == start:
            ends[-1] = end
            self.total += end - start
            return end - start
        # The ranges from `low` to `high` (exclusive) touch the new one.
        low, high = bisect_left(ends, start), bisect_right(starts, end)
        if low == high:
            if len(starts) >= RANGES_KEPT:
                return 0
            starts.insert(low, start)
            ends.insert(low, end)
            self.total += end - start
            return end - start
        known = sum(ends[place] - starts[place] for place in range(low, high))
        first, last = min(start, starts[low]), max(end, ends[high - 1])
        starts[low:high], ends[low:high] = [first], [last]
        self.total += last - first - known
        return last - first - known

    def holds(self, start: int, end: int) -> bool:
        """Return whether all bytes from ``start`` to ``end`` (exclusive) are in the set."""
        if end <= start:
            return True
        place = bisect_right(self._starts, start) - 1
        return place >= 0 and self._ends[place] >= end

    def touches(self, start: int, end: int) -> bool:
        """Return whether any byte from ``start`` to ``end`` (exclusive) is in the set."""
        place = bisect_right(self._ends, start)
        return start < end and place < len(self._starts) and self._starts[place] < end

    def missing(self, start: int, end: int) -> tuple[int, int]:
        """Return the number of missing bytes from ``start`` to ``end`` (exclusive), and the longest gap."""
        total = longest = 0
        at = start
        for place in range(bisect_right(self._ends, start), len(self._starts) + 1):
            inside = place < len(self._starts) and self._starts[place] < end
            gap = (self._starts[place] if inside else end) - at
            if gap > 0:
                total += gap
                longest = max(longest, gap)
            if not inside:
                break
            at = self._ends[place]
        return total, longest

    def gaps(self, length: int) -> list[tuple[int, int]]:
        """Return the ranges below ``length`` that are not in the set, as start and end (exclusive)."""
        missing = []
        at = 0
        for start, end in self:
            if start >= length:
                break
            if start > at:
                missing.append((at, start))
            at = max(at, end)
        if at < length:
            missing.append((at, length))
        return missing
