"""The application's memory: one buffer or a list of them, seen as one stretch of bytes (R-SND-07, R-MSC-03)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.protocol.errors import ArgumentTypeError, LocalProtocolError
from mxwire.protocol.status import Status

SEGMENTS_MAXIMUM: Final = 256
"""Most pieces of one message (R-MSC-03)."""

Bytes = NDArray[np.uint8]

_BUFFERS: Final = (bytes, bytearray, memoryview, np.ndarray)


class Segments:
    """A message's memory. Nothing is copied until bytes are taken out or put in.

    ``data`` is anything with the buffer protocol, or a sequence of up to 256 of them. Raises
    :class:`~mxwire.protocol.errors.LocalProtocolError` for more pieces, for something that is no buffer, and for one
    that cannot be written where ``writable`` asks for it.
    """

    __slots__ = ("_pieces", "_starts", "length")

    def __init__(self, data: Any, *, writable: bool = False) -> None:
        if isinstance(data, _BUFFERS) or not isinstance(data, Sequence) or _is_buffer(data):
            self._pieces: list[Bytes] = [_flat(data, writable)]
            self._starts = [0]
            self.length = len(self._pieces[0])
            return
        pieces = list(data)
        if len(pieces) > SEGMENTS_MAXIMUM:
            raise LocalProtocolError(
                Status.SEGMENTS_BAD_COUNT, f"{len(pieces)} segments: a message has {SEGMENTS_MAXIMUM} at most"
            )
        self._pieces = [_flat(piece, writable) for piece in pieces]
        self._starts = []
        self.length = 0
        for piece in self._pieces:
            self._starts.append(self.length)
            self.length += len(piece)

    def __len__(self) -> int:
        """The number of bytes."""
        return self.length

    def view(self, offset: int, length: int) -> Bytes | None:
        """The bytes from ``offset`` on without copying, where they lie in one piece."""
        if len(self._pieces) == 1:
            return self._pieces[0][offset : offset + length]
        for piece, start, count in self._spans(offset, length):
            return piece[start : start + count] if count == length else None
        return np.empty(0, np.uint8)

    def take(self, offset: int, out: Bytes) -> None:
        """Copy ``len(out)`` bytes from ``offset`` on into ``out``."""
        if len(self._pieces) == 1:
            out[:] = self._pieces[0][offset : offset + len(out)]
            return
        done = 0
        for piece, start, count in self._spans(offset, len(out)):
            out[done : done + count] = piece[start : start + count]
            done += count

    def put(self, offset: int, data: Bytes) -> int:
        """Store ``data`` at ``offset``, without what would lie behind the end; returns how many bytes were stored."""
        room = min(len(data), max(0, self.length - offset))
        if len(self._pieces) == 1:
            self._pieces[0][offset : offset + room] = data[:room]
            return room
        done = 0
        for piece, start, count in self._spans(offset, room):
            piece[start : start + count] = data[done : done + count]
            done += count
        return room

    def put_bytes(self, data: bytes) -> None:
        """Store a short message from the start on, as far as it fits."""
        if len(self._pieces) == 1:
            room = min(len(data), self.length)
            if room:
                self._pieces[0].data[:room] = data[:room]
        else:
            self.put(0, np.frombuffer(data, np.uint8))

    def copy(self) -> bytes:
        """All bytes, as a copy."""
        if len(self._pieces) == 1:
            return self._pieces[0].tobytes()
        return b"".join(piece.tobytes() for piece in self._pieces)

    def _spans(self, offset: int, length: int) -> Iterator[tuple[Bytes, int, int]]:
        """The pieces that a stretch of bytes lies in, with where it starts in each and how much of it is there."""
        place = bisect_right(self._starts, offset) - 1
        while length > 0:
            piece, start = self._pieces[place], offset - self._starts[place]
            count = min(length, len(piece) - start)
            if count > 0:
                yield piece, start, count
                offset += count
                length -= count
            place += 1


def _is_buffer(data: Any) -> bool:
    """Whether a sequence is one piece of memory as well, as an ``array.array`` is."""
    try:
        memoryview(data).release()
    except (TypeError, ValueError):
        return False
    return True


def _flat(piece: Any, writable: bool) -> Bytes:
    try:
        view = memoryview(piece)
    except TypeError:
        raise ArgumentTypeError(
            Status.BAD_REQUEST, f"expected a bytes-like object, not {type(piece).__name__}"
        ) from None
    except ValueError as error:
        # A view that was released, or an array of what has no bytes, such as dates.
        raise LocalProtocolError(Status.BAD_REQUEST, f"{type(piece).__name__} cannot be used: {error}") from None
    if not view.c_contiguous:
        raise LocalProtocolError(Status.BAD_REQUEST, f"{type(piece).__name__} is not contiguous in memory")
    if writable and view.readonly:
        raise LocalProtocolError(Status.BAD_REQUEST, f"{type(piece).__name__} cannot be received into: it is read-only")
    return np.frombuffer(view, np.uint8) if view.nbytes else np.empty(0, np.uint8)
