"""Memory of another process as that of a message: an agent receives into it, and sends from it, without memory of its
own in between. It is shared by both, or reached through the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol

import numpy as np

from mxwire.protocol.arguments import SEGMENTS_MAXIMUM, Bytes, Segments

_PARTS: Final = 1024
"""Maximum number of buffers per call (IOV_MAX)."""


class RemoteMemory(Protocol):
    """The memory of another process, by address."""

    def read(self, place: int, parts: list[Any]) -> bool:
        """Read from an address into writable buffers; return False if any of the memory does not exist."""

    def write(self, place: int, parts: list[Any]) -> bool:
        """Write buffers to an address; return False if any of the memory does not exist."""


class SharedSegments(Segments):
    """A segment of a message in memory that another process has mapped too, so that no call is needed to access it."""

    __slots__ = ("failed",)

    def __init__(self, view: memoryview) -> None:
        super().__init__(view, writable=True)
        self.failed = False
        """False: the memory is that of this process, too."""

    def detach(self) -> None:
        """Read zeros and write nothing from now on, since the application may use the memory for something else."""
        self._only = self._arrays = None

    def view(self, offset: int, length: int) -> Bytes | None:
        """A view of ``length`` bytes from ``offset``; after :meth:`detach` an array of zeros."""
        return np.zeros(length, np.uint8) if self._only is None else super().view(offset, length)

    def take(self, offset: int, out: Bytes) -> None:
        """Copy ``len(out)`` bytes, starting at ``offset``, into ``out``."""
        if self._only is None:
            out[:] = 0
        else:
            super().take(offset, out)

    def copy(self) -> bytes:
        """A copy of all bytes."""
        return bytes(self.length) if self._only is None else super().copy()

    def _spans(self, offset: int, length: int) -> Iterator[tuple[int, int, int]]:
        """None: there are no segments after :meth:`detach`, and one before it needs no search."""
        return iter(())


class RemoteSegments(Segments):
    """Segments of a message in ``memory``, given by the address and length of each.

    Memory that does not exist any more (its process has unmapped it, or has ended) reads as zeros, and is not written;
    ``failed`` is then true. Raises :class:`ValueError` for more segments than a message may have.
    """

    __slots__ = ("_memory", "_places", "failed")

    def __init__(self, memory: RemoteMemory, places: list[tuple[int, int]]) -> None:
        super().__init__([])
        if len(places) > SEGMENTS_MAXIMUM:
            raise ValueError(f"{len(places)} segments")
        self._memory = memory
        self._places = places
        self.failed = False
        """True if some of the memory could not be read or written."""
        self.length = sum(size for _, size in places)

    def detach(self) -> None:
        """Read zeros and write nothing from now on, since the application may use the memory for something else."""
        self._places = []

    def view(self, offset: int, length: int) -> Bytes | None:
        """A copy of ``length`` bytes from ``offset``: enough for callers that read it."""
        out = np.empty(length, np.uint8)
        self.take(offset, out)
        return out

    def part(self, offset: int, length: int) -> memoryview | None:
        """A copy of ``length`` bytes from ``offset``, as a view that is not an array."""
        return memoryview(self.view(offset, length))  # type: ignore[arg-type]

    @property
    def only(self) -> bytes | memoryview | None:
        """None: the memory is not that of this process."""
        return None

    def take(self, offset: int, out: Bytes) -> None:
        """Copy ``len(out)`` bytes, starting at ``offset``, into ``out``."""
        done = 0
        for place, size in self._ranges(offset, len(out)):
            part = out[done : done + size]
            if not self._memory.read(place, [part]):
                part[:] = 0
                self.failed = True
            done += size
        out[done:] = 0

    def put(self, offset: int, data: Bytes | bytes | memoryview, start: int = 0, size: int = -1) -> int:
        """Store data as :meth:`Segments.put` does."""
        room = min(len(data) if size < 0 else size, max(0, self.length - offset))
        for place, count in self._ranges(offset, room):
            if not self._memory.write(place, [data[start : start + count]]):
                self.failed = True
            start += count
        return room

    @property
    def remote(self) -> bool:
        """True: the memory is that of another process."""
        return True

    def put_rows(self, offset: int, rows: Any) -> bool:
        """Store ``rows`` one after another from ``offset``, by one call; return False if they do not fit into one
        segment."""
        if len(rows) > _PARTS:
            return False
        length = sum(map(len, rows))
        ranges = self._ranges(offset, length)
        if len(ranges) != 1 or ranges[0][1] != length:
            return False
        if not self._memory.write(ranges[0][0], list(rows)):
            self.failed = True
        return True

    def copy(self) -> bytes:
        """A copy of all bytes."""
        out = np.empty(self.length, np.uint8)
        self.take(0, out)
        return out.tobytes()

    def kept(self) -> Segments:
        """The message in memory that does not change: a copy."""
        return Segments(self.copy())

    def places(self) -> list[tuple[int, int]]:
        """None: the memory is not that of this process."""
        return []

    def _ranges(self, offset: int, length: int) -> list[tuple[int, int]]:
        """Address and number of bytes of each segment in a range."""
        found: list[tuple[int, int]] = []
        for place, size in self._places:
            if length <= 0:
                break
            if offset >= size:
                offset -= size
                continue
            count = min(size - offset, length)
            found.append((place + offset, count))
            length -= count
            offset = 0
        return found
