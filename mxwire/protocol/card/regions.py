"""Regions: memory of large sends that peers may pull from (R-RDV-01)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mxwire.protocol.buffers import Segments


@dataclass(slots=True, eq=False)
class Region:
    """One registered message."""

    number: int
    """Its id on the wire, 0 to 255."""
    use: int
    """The use counter of its slot (``pulled_rdma_seqnum``)."""
    offset: int
    """Where the message starts in the region, in bytes (R-RDV-02)."""
    memory: Segments
    asked: int = 0
    """How far a puller has asked for it, in bytes from the start of the region."""

    @property
    def length(self) -> int:
        """Bytes of the region."""
        return self.offset + self.memory.length

    def view(self, start: int, length: int) -> NDArray[np.uint8] | None:
        """The region's bytes from ``start`` on without copying, where they lie in one piece of the message."""
        return self.memory.view(start - self.offset, length) if start >= self.offset else None

    def take(self, start: int, out: NDArray[np.uint8]) -> None:
        """Copy the region's bytes from ``start`` on; what lies before the message is zero."""
        before = min(len(out), max(0, self.offset - start))
        out[:before] = 0
        self.memory.take(start + before - self.offset, out[before:])


class Regions:
    """The regions of an endpoint: ids are handed out last-freed-first, then lowest-first."""

    def __init__(self, maximum: int, first_use: int) -> None:
        self._free = list(range(maximum - 1, -1, -1))
        self._uses = [first_use] * maximum
        self._live: dict[int, Region] = {}

    def __len__(self) -> int:
        """How many are in use."""
        return len(self._live)

    @property
    def available(self) -> bool:
        """Whether another one can be had."""
        return bool(self._free)

    def register(self, memory: Segments, offset: int) -> Region:
        """Make a message available for pulling; the slot's use counter goes up by one, modulo 256."""
        number = self._free.pop()
        region = Region(number, self._uses[number], offset, memory)
        self._uses[number] = (self._uses[number] + 1) & 0xFF
        self._live[number] = region
        return region

    def release(self, region: Region) -> None:
        """Take a region back: from now on it is unknown to pullers."""
        del self._live[region.number]
        self._free.append(region.number)

    def at(self, number: int) -> Region | None:
        """The region with an id, or None."""
        return self._live.get(number)
