"""Slots: the memory from which a generator sends, one frame per slot, patched by array operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.linerate.template import (
    RUN_SHIFT,
    STAMP,
    STREAM_SHIFT,
    STREAMS_MAXIMUM,
    FieldPatch,
    FrameTemplate,
    prepare_stamps,
)

_LINE: Final = 64
"""Bytes of a cache line, to which slots are aligned."""
_FEW: Final = 256
"""Minimum number of slots: batches of 64 frames, some of which a link may still be sending."""
_BYTES_MAXIMUM: Final = 256 << 20

Room = Callable[[int], NDArray[np.uint8]]
"""Allocates a number of bytes from which a link sends without a copy."""


def _plain_room(count: int) -> NDArray[np.uint8]:
    return np.zeros(count, np.uint8)


class FrameSlots:
    """Frames in memory, each in a fixed slot; sending a slot again changes only the stamp and the patched fields.

    Slot *i* holds template *i* modulo their number, and belongs to stream *i* modulo ``streams``. The frames end at the
    same offset of each slot, so that the stamps of all slots are one array with a stride. ``least`` is the minimum
    number of slots, unless they would exceed ``most_bytes``; ``room`` allocates the memory.
    """

    def __init__(
        self,
        templates: Sequence[FrameTemplate],
        *,
        streams: int = 1,
        run: int = 0,
        room: Room = _plain_room,
        least: int = _FEW,
        most_bytes: int | None = None,
    ) -> None:
        if not 1 <= streams <= STREAMS_MAXIMUM:
            raise MxwireError(f"a generator has 1 to {STREAMS_MAXIMUM} streams, not {streams}")
        # Whole cycles of both, so that a slot always has the same template and the same stream.
        cycle = math.lcm(len(templates), streams)
        longest = max(map(len, templates))
        stride = -(-longest // _LINE) * _LINE
        if most_bytes is not None:
            least = min(least, max(most_bytes // stride // cycle, 1) * cycle)
        self.count = -(-least // cycle) * cycle
        """Number of slots."""
        self.streams = streams
        if self.count * stride > _BYTES_MAXIMUM:
            raise MxwireError(
                f"{len(templates)} frames in {streams} streams need {self.count * stride >> 20} MiB: use fewer streams"
            )
        self.memory = room(self.count * stride)
        rows = self.memory[: self.count * stride].reshape(self.count, stride)
        lengths = np.array([len(each) for each in templates], np.int64)
        for place, template in enumerate(templates):
            rows[place :: len(templates), longest - len(template) : longest] = np.frombuffer(template.frame, np.uint8)
        self.length = np.resize(lengths, self.count)
        """Length of the frame in each slot, in bytes."""
        self.octets = [0, *np.cumsum(self.length).tolist()]
        """Sum of the lengths of the frames before each slot, and of all."""
        offset = np.arange(self.count, dtype=np.int64) * stride + longest - self.length
        self._stamps = np.ndarray(self.count, STAMP, self.memory, longest - STAMP.itemsize, (stride,))
        prepare_stamps(self._stamps, streams, captured=templates[0].captured)
        self._place, self._time = self._stamps["place"], self._stamps["time"]
        self._number = np.arange(self.count, dtype=np.uint64) // np.uint64(streams)
        stream = np.arange(self.count, dtype=np.uint64) % np.uint64(streams)
        self._mark = np.uint64(run << RUN_SHIFT) | stream << np.uint64(STREAM_SHIFT)
        self._patches = [
            (place, patch, self._column(stride, longest - len(template), patch, place, len(templates)))
            for place, template in enumerate(templates)
            for patch in template.patches
        ]
        self._cycle = len(templates)
        numbers = np.arange(1, self.count + 1, dtype=np.int64)
        zeros = np.zeros(self.count, np.int64)
        self._batch = FrameBatch(self.memory, offset, self.length, self.length, zeros, numbers)

    def _column(
        self, stride: int, start: int, patch: FieldPatch, place: int, cycle: int
    ) -> NDArray[np.unsignedinteger]:
        """The patched field of each slot with one template, as an array."""
        slots = len(range(place, self.count, cycle))
        at = place * stride + start + patch.offset
        return np.ndarray(slots, patch.dtype, self.memory, at, (stride * cycle,))

    @property
    def offset(self) -> NDArray[np.int64]:
        """Start of the frame in each slot, in bytes from the start of ``memory``."""
        return self._batch.offset

    def frames(self, first: int, end: int) -> FrameBatch:
        """Return the frames in the slots from ``first`` up to, not including, ``end``."""
        return self._batch.part(first, end)

    def batch(self, total: int, count: int, time_ns: int) -> FrameBatch:
        """Number and stamp the next ``count`` frames, and return them; ``total`` were sent before."""
        at = self.stamp(total, count, time_ns)
        return self._batch.part(at, at + count)

    def stamp(self, total: int, count: int, time_ns: int) -> int:
        """Number and stamp the next ``count`` frames, and return the first slot; ``total`` were sent before.

        The frames must not extend past the last slot: ``room`` is how many are left.
        """
        at = total % self.count
        end = at + count
        sequence = self._number[at:end] + np.uint64(total // self.count * (self.count // self.streams))
        np.bitwise_or(sequence, self._mark[at:end], out=self._place[at:end])
        self._time[at:end] = time_ns
        if self._cycle == 1:
            for _, patch, column in self._patches:
                column[at:end] = patch.values(sequence)
        else:
            self._patch_each(at, end, sequence)
        return at

    def _patch_each(self, at: int, end: int, sequence: NDArray[np.uint64]) -> None:
        cycle = self._cycle
        for place, patch, column in self._patches:
            first = -(-(at - place) // cycle)
            last = -(-(end - place) // cycle)
            if last > first:
                column[first:last] = patch.values(sequence[first * cycle + place - at :: cycle])

    def room(self, total: int) -> int:
        """Number of frames that can be sent before the slots begin again, when ``total`` were sent."""
        return self.count - total % self.count
