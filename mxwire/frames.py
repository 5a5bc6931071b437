"""FrameBatch: many frames as one value, exchanged by captures, links, the simulator and the decoders.

A batch is one buffer and a few arrays over it. Selecting frames by a slice or a mask copies nothing.
Methods for single frames are meant for tests and small captures; use array operations on the columns otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import index as as_index
from typing import overload

import numpy as np
from numpy.typing import NDArray

from mxwire.words import count_of

LINKTYPE_ETHERNET = 1
LINKTYPE_LINUX_SLL = 113
LINKTYPE_LINUX_SLL2 = 276


@dataclass(frozen=True, slots=True)
class FrameBatch:
    """Many frames in one buffer; passing a batch on copies nothing.

    Frame *i* is ``buffer[offset[i] : offset[i] + length[i]]``. All arrays but the buffer have shape
    ``(n,)`` and type int64.
    """

    buffer: NDArray[np.uint8]
    """The bytes of all frames, possibly with other bytes between them."""
    offset: NDArray[np.int64]
    """Start of each frame in the buffer, in bytes."""
    length: NDArray[np.int64]
    """Number of bytes of each frame in the buffer (captured)."""
    wire_length: NDArray[np.int64]
    """Number of bytes of each frame on the wire, without frame check sequence; greater than ``length`` if the
    capture truncated it."""
    timestamp_ns: NDArray[np.int64]
    """Time of capture, in nanoseconds since 1970 (or since the epoch of the source)."""
    number: NDArray[np.int64]
    """Position of each frame in its source, counted from 1."""
    link_type: int = LINKTYPE_ETHERNET
    """Link-layer header of all frames of the batch, as a LINKTYPE number of the pcap registry."""

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self.offset)

    def __iter__(self) -> Iterator[bytes]:
        """Iterate over the captured bytes of each frame, as copies."""
        memory = self.buffer.data
        for start, length in zip(self.offset.tolist(), self.length.tolist(), strict=True):
            yield bytes(memory[start : start + length])

    @overload
    def __getitem__(self, which: int) -> bytes: ...

    @overload
    def __getitem__(self, which: slice | NDArray[np.bool_] | NDArray[np.intp]) -> FrameBatch: ...

    def __getitem__(self, which: int | slice | NDArray[np.bool_] | NDArray[np.intp]) -> bytes | FrameBatch:
        """Return the captured bytes of one frame (``batch[3]``), as :meth:`frame`, or a batch for a slice, a mask or an
        array of positions, as :meth:`select`.

        Raises :class:`IndexError` if there is no such frame, and :class:`TypeError` for other types.
        """
        if isinstance(which, (slice, np.ndarray)):
            return self.select(which)
        return self.frame(as_index(which))

    def __repr__(self) -> str:
        """Return the number of frames and bytes, and the range of frame numbers."""
        count = count_of(len(self.offset), "frame")
        if not len(self.offset):
            return f"<FrameBatch of {count}>"
        octets = count_of(int(self.length.sum()), "byte")
        return f"<FrameBatch of {count}, numbers {self.number[0]} to {self.number[-1]}, {octets}>"

    def frame(self, index: int) -> bytes:
        """Return the captured bytes of the frame at ``index`` (from 0), as a copy."""
        start = int(self.offset[index])
        return self.buffer[start : start + int(self.length[index])].tobytes()

    def select(self, which: slice | NDArray[np.bool_] | NDArray[np.intp]) -> FrameBatch:
        """Return the frames selected by a slice, a mask or an array of positions, over the same buffer."""
        return FrameBatch(
            self.buffer,
            self.offset[which],
            self.length[which],
            self.wire_length[which],
            self.timestamp_ns[which],
            self.number[which],
            self.link_type,
        )

    def part(self, first: int, end: int) -> FrameBatch:
        """Return the frames from ``first`` up to, not including, ``end``, over the same buffer."""
        return self.select(slice(first, end))

    def compact(self) -> FrameBatch:
        """Return the same frames over a buffer that holds only their bytes."""
        copied = FrameBatch.from_frames([self.frame(place) for place in range(len(self))])
        return FrameBatch(
            copied.buffer,
            copied.offset,
            self.length,
            self.wire_length,
            self.timestamp_ns,
            self.number,
            self.link_type,
        )

    @classmethod
    def from_frames(
        cls,
        frames: Iterable[bytes],
        timestamps_ns: Sequence[int] | None = None,
        *,
        link_type: int = LINKTYPE_ETHERNET,
        first_number: int = 1,
    ) -> FrameBatch:
        """Return a batch with a copy of each of ``frames``, which are complete as on the wire.

        ``timestamps_ns`` has one entry per frame; without it all are 0.
        """
        pieces = list(frames)
        length = np.array([len(piece) for piece in pieces], dtype=np.int64)
        offset = np.cumsum(length) - length
        times = np.zeros(len(pieces), np.int64) if timestamps_ns is None else np.array(timestamps_ns, np.int64)
        if len(times) != len(pieces):
            raise ValueError(f"{len(pieces)} frames but {len(times)} timestamps")
        return cls(
            buffer=np.frombuffer(b"".join(pieces), dtype=np.uint8),
            offset=offset,
            length=length,
            wire_length=length.copy(),
            timestamp_ns=times,
            number=np.arange(first_number, first_number + len(pieces), dtype=np.int64),
            link_type=link_type,
        )


def concatenate(batches: Sequence[FrameBatch]) -> FrameBatch:
    """Return the frames of one or more batches of one link type, in order, over a new buffer."""
    # A batch that uses little of its buffer is compacted first, so that the copy does not include the rest.
    batches = [each.compact() if 2 * int(each.length.sum()) < each.buffer.nbytes else each for each in batches]
    starts = np.cumsum([0, *(len(each.buffer) for each in batches)])[:-1].tolist()
    return FrameBatch(
        np.concatenate([each.buffer for each in batches]),
        np.concatenate([each.offset + start for each, start in zip(batches, starts, strict=True)]),
        np.concatenate([each.length for each in batches]),
        np.concatenate([each.wire_length for each in batches]),
        np.concatenate([each.timestamp_ns for each in batches]),
        np.concatenate([each.number for each in batches]),
        batches[0].link_type,
    )
