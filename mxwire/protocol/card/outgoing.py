"""What waits to leave through an interface: single frames, and bulk pieces that write themselves."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from mxwire.frames import FrameBatch

_NOTHING: Final = FrameBatch.from_frames(())
"""What leaves where nothing waits, which is nearly always."""

_FIRST: Final = np.zeros(1, np.int64)
_FIRST.flags.writeable = False


FEW: Final = 4
"""Up to so many frames are handled one by one faster than as a batch."""


class Bulk(Protocol):
    """Many frames that are only built when they leave, straight into the batch."""

    lengths: list[int]
    """The length of each frame in bytes."""
    even: int
    """The length of all frames, where all are alike; 0 where they are not."""

    def write(self, out: NDArray[np.uint8]) -> None:
        """Build the frames into ``out``, one behind the other; it has exactly the sum of ``lengths`` bytes."""

    def append(self, more: Any, /) -> bool:
        """Take over another piece of the same kind that goes on where this one ends; False: it does not."""


class Outgoing:
    """The frames that wait to leave, in order."""

    __slots__ = ("_pieces", "bulk_bytes", "frames")

    def __init__(self) -> None:
        self._pieces: list[bytes | Bulk] = []
        self.frames = 0
        """How many frames wait."""
        self.bulk_bytes = 0
        """Bytes of them that are only built when they leave."""

    def put(self, frame: bytes) -> None:
        """Let a frame wait."""
        self._pieces.append(frame)
        self.frames += 1

    def put_bulk(self, bulk: Bulk) -> None:
        """Let many frames wait."""
        self.frames += len(bulk.lengths)
        self.bulk_bytes += sum(bulk.lengths)
        last = self._pieces[-1] if self._pieces else b""
        if type(last) is not type(bulk) or not last.append(bulk):
            self._pieces.append(bulk)

    def drain_few(self) -> list[bytes] | None:
        """All frames that wait, by themselves; None, and they go on waiting, where they are many or bulk."""
        pieces = self._pieces
        if not pieces:
            return []
        if self.bulk_bytes or len(pieces) > FEW:
            return None
        self._pieces, self.frames = [], 0
        return pieces  # type: ignore[return-value]  # Without bulk there are only frames.

    def drain(self, now: int, first_number: int) -> FrameBatch:
        """All frames that wait, as one batch with the time ``now`` (ns) and numbers from ``first_number`` on."""
        if not self._pieces:
            return _NOTHING
        pieces, bulky = self._pieces, self.bulk_bytes > 0
        self._pieces, self.frames, self.bulk_bytes = [], 0, 0
        if len(pieces) == 1 and type(pieces[0]) is bytes:
            return _single(pieces[0], now, first_number)
        offset, length = _places(pieces)
        count = len(length)
        if bulky:
            buffer = np.empty(int(offset[-1]) + int(length[-1]), np.uint8)
            _write(pieces, buffer)
        else:
            buffer = np.frombuffer(b"".join(pieces), np.uint8)  # type: ignore[arg-type]
        return FrameBatch(
            buffer=buffer,
            offset=offset,
            length=length,
            wire_length=length,
            timestamp_ns=np.full(count, now, np.int64),
            number=np.arange(first_number, first_number + count, dtype=np.int64),
        )


def _places(pieces: list[bytes | Bulk]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each frame starts, and how long it is."""
    lengths: list[int] = []
    evens: set[int] = set()
    for piece in pieces:
        if isinstance(piece, bytes):
            lengths.append(len(piece))
            evens.add(0)
        else:
            lengths += piece.lengths
            evens.add(piece.even)
    if len(evens) == 1 and lengths[0] in evens:
        return _evenly(lengths[0], len(lengths))
    length = np.array(lengths, dtype=np.int64)
    return length.cumsum() - length, length


@lru_cache(maxsize=256)
def _evenly(length: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same for frames that are all alike: nobody may write to it."""
    lengths = np.full(count, length, np.int64)
    offset = np.arange(count, dtype=np.int64) * length
    lengths.flags.writeable = offset.flags.writeable = False
    return offset, lengths


def _single(frame: bytes, now: int, number: int) -> FrameBatch:
    """A batch of one frame, as nearly all are where somebody waits for an answer."""
    length = np.array((len(frame),), np.int64)
    return FrameBatch(
        buffer=np.frombuffer(frame, np.uint8),
        offset=_FIRST,
        length=length,
        wire_length=length,
        timestamp_ns=np.array((now,), np.int64),
        number=np.array((number,), np.int64),
    )


def _write(pieces: list[bytes | Bulk], buffer: NDArray[np.uint8]) -> None:
    at = 0
    for piece in pieces:
        if isinstance(piece, bytes):
            buffer[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
            at += len(piece)
        else:
            size = sum(piece.lengths)
            piece.write(buffer[at : at + size])
            at += size
