"""FrameBatch: the coin that captures, links, the simulator and the decoders pay each other with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LINKTYPE_ETHERNET = 1
LINKTYPE_LINUX_SLL = 113
LINKTYPE_LINUX_SLL2 = 276


@dataclass(frozen=True, slots=True)
class FrameBatch:
    """Many frames in one buffer; nothing is copied to hand them on.

    Frame *i* is ``buffer[offset[i] : offset[i] + length[i]]``. All arrays but the buffer have shape
    ``(n,)`` and type int64.
    """

    buffer: NDArray[np.uint8]
    """The bytes of all frames, and whatever lies between them."""
    offset: NDArray[np.int64]
    """Where each frame starts in the buffer, in bytes."""
    length: NDArray[np.int64]
    """How many bytes of each frame are in the buffer (captured)."""
    wire_length: NDArray[np.int64]
    """How many bytes each frame had on the wire, without frame check sequence; more than ``length`` where
    the capture cut it."""
    timestamp_ns: NDArray[np.int64]
    """When each frame was seen, in nanoseconds since 1970 (or since whatever the source counts from)."""
    number: NDArray[np.int64]
    """The place of each frame in its source, counted from 1."""
    link_type: int = LINKTYPE_ETHERNET
    """How the frames start: a LINKTYPE number of the pcap registry, the same for all frames of a batch."""

    def __len__(self) -> int:
        """The number of frames."""
        return len(self.offset)

    def frame(self, index: int) -> bytes:
        """The captured bytes of the frame at ``index`` (from 0), as a copy."""
        start = int(self.offset[index])
        return self.buffer[start : start + int(self.length[index])].tobytes()

    def select(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> FrameBatch:
        """The frames that a mask or an array of places picks, over the same buffer."""
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
        """The frames from ``first`` to before ``end``, like a slice: a view, nothing is copied."""
        return FrameBatch(
            self.buffer,
            self.offset[first:end],
            self.length[first:end],
            self.wire_length[first:end],
            self.timestamp_ns[first:end],
            self.number[first:end],
            self.link_type,
        )

    def compact(self) -> FrameBatch:
        """The same frames over a copy of their bytes alone."""
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
        """A batch that holds a copy of each of ``frames``, complete as on the wire.

        ``timestamps_ns`` has one entry a frame; without it all are 0.
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
    """The frames of one or more batches of one link type, one after the other, over a buffer of their own."""
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
