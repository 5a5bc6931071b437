"""The batch decoder: the frames of a :class:`~mxwire.frames.FrameBatch` as NumPy columns.

Its results equal those of the scalar path in :mod:`mxwire.wire.codec`, frame by frame and reason by reason, at some
tens of nanoseconds per frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.frames import FrameBatch
from mxwire.wire.checks import CHECKS, FRAME_MAXIMUM, FrameCheck, Reason
from mxwire.wire.dialect import Dialect
from mxwire.wire.encapsulation import ROW, Located, locate
from mxwire.wire.enums import RESERVED_TYPES, PacketType
from mxwire.wire.formats import PacketFormat
from mxwire.wire.layout import TYPE_OFFSET, Layout, header_type, layout_of
from mxwire.wire.selection import ALTERNATIVES, REPLY_FLAG, formats_by_type, is_announcement

NO_TYPE: Final = -1
"""Packet type of frames that end before their type byte."""


@dataclass(frozen=True)
class LayoutBlock:
    """The frames of a batch with the same layout, dialect and byte order."""

    layout: Layout
    dialect: Dialect
    swapped: bool
    place: NDArray[np.intp]
    """The places of these frames in the batch."""
    view: NDArray[np.void]
    """Their headers as a structured array with the specification's field names."""
    _native: dict[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        """The number of frames."""
        return len(self.place)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the defined integer fields."""
        return _integer_names(self.layout)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """A field as a contiguous unsigned integer array in host order, shape (n,)."""
        column = self._native.get(name)
        if column is None:
            # Once, because most fields are read several times, and arithmetic in network order is slow.
            column = self._native[name] = self.view[name].astype(_native_types(self.layout)[name])
        return column

    def joined(self, high: str, low: str) -> NDArray[np.uint64]:
        """Two fields of 32 bits as one integer of 64 bits, shape (n,)."""
        value: NDArray[np.uint64] = self[high].astype(np.uint64) << np.uint64(32) | self[low]
        return value


@dataclass(frozen=True)
class Columns:
    """The decoded MXoE frames of a batch. Arrays have shape (n,)."""

    located: Located
    packet_type: NDArray[np.int16]
    """``ptype``, or -1 if the frame ends before it."""
    reason: NDArray[np.uint8]
    """:class:`~mxwire.wire.checks.Reason` of malformed frames, 0 elsewhere."""
    reason_offset: NDArray[np.int64]
    """Offset of the offending byte in the captured frame."""
    payload_offset: NDArray[np.int64]
    """Offset of the data in the captured frame, in bytes; 0 for frames without data."""
    payload_length: NDArray[np.int64]
    """Announced length of the data in bytes; -1 for layouts without data and for malformed frames."""
    blocks: tuple[LayoutBlock, ...]
    """The frames with a complete header, by layout."""

    def __len__(self) -> int:
        """The number of MXoE frames."""
        return len(self.located.batch)

    @property
    def batch(self) -> FrameBatch:
        """The MXoE frames as captured."""
        return self.located.batch

    def of(self, *layout_names: str) -> Iterator[LayoutBlock]:
        """The blocks of the named layouts (the specification's names in lower case)."""
        return (block for block in self.blocks if block.layout.name in layout_names)

    def field(self, name: str) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
        """A field across all frames: its values, and a mask of the frames that have it."""
        values = np.zeros(len(self), np.uint32)
        present = np.zeros(len(self), np.bool_)
        for block in self.blocks:
            if name in block.names:
                values[block.place] = block[name]
                present[block.place] = True
        return values, present


def decode_columns(
    source: FrameBatch | Located,
    dialect: Dialect | Sequence[Dialect],
    which_dialect: NDArray[np.intp] | None = None,
    swapped: NDArray[np.bool_] | None = None,
) -> Columns:
    """Decode all MXoE frames of a batch.

    ``dialect`` applies to all frames, or is a sequence that ``which_dialect`` (shape (n,)) indexes for each frame;
    ``swapped`` (shape (n,)) marks frames of little-endian senders.
    """
    located = source if isinstance(source, Located) else locate(source)
    dialects = (dialect,) if isinstance(dialect, Dialect) else tuple(dialect)
    return _Pass(located, dialects, which_dialect, swapped).columns()


class _Pass:
    """One decoding pass: groups the frames by layout and checks each group at once."""

    def __init__(
        self,
        located: Located,
        dialects: tuple[Dialect, ...],
        which_dialect: NDArray[np.intp] | None,
        swapped: NDArray[np.bool_] | None,
    ) -> None:
        count = len(located.batch)
        self.located = located
        self.dialects = dialects
        self.which_dialect = which_dialect
        # Nearly all senders use the network's order: then no group of frames is divided by order.
        self.swapped = swapped if swapped is not None and swapped.any() else None
        self.captured = located.captured
        self.wire_length = located.wire_length
        # Nearly all frames hold any header: then no group of frames is compared with its own.
        self.least_captured = int(self.captured.min(initial=ROW))
        self.reason = np.zeros(count, np.uint8)
        self.reason_offset = np.zeros(count, np.int64)
        self.payload_offset = np.zeros(count, np.int64)
        self.payload_length = np.full(count, -1, np.int64)
        self.blocks: list[LayoutBlock] = []

    def columns(self) -> Columns:
        raw_type = self.located.row_bytes[:, TYPE_OFFSET]
        packet_type = raw_type.astype(np.int16)
        if self.least_captured <= TYPE_OFFSET:
            typeless = self.captured <= TYPE_OFFSET
            self._short(np.flatnonzero(typeless), TYPE_OFFSET + 1)
            packet_type[typeless] = NO_TYPE
        # Few types occur in a batch: a pass for each of them costs less than a sort. The least type is -1.
        counts = np.bincount(packet_type + 1, minlength=1)
        for value in np.flatnonzero(counts[1:]):
            self._type(int(value), np.flatnonzero(packet_type == value))
        faulty = self.reason != Reason.NONE
        if faulty.any():
            self.payload_length[faulty] = -1
            self.payload_offset[faulty] = 0
        # Until here, offsets count in the frame without its tags.
        shift = self.located.shift
        if shift.any():
            self.reason_offset[faulty] += shift[faulty]
            holding = self.payload_length >= 0
            self.payload_offset[holding] += shift[holding]
        return Columns(
            self.located,
            packet_type,
            self.reason,
            self.reason_offset,
            self.payload_offset,
            self.payload_length,
            tuple(self.blocks),
        )

    def _type(self, value: int, place: NDArray[np.intp]) -> None:
        if value not in _TYPES_WITH_LAYOUT:
            self.reason[place] = Reason.INVALID_TYPE if value in RESERVED_TYPES else Reason.UNKNOWN_TYPE
            self.reason_offset[place] = TYPE_OFFSET
            return
        packet_type = PacketType(value)
        alternative = ALTERNATIVES.get(packet_type)
        if alternative is not None:
            # Types with two layouts have the same ones in all dialects.
            second = self._is_alternative(packet_type, place)
            self._order(alternative, self.dialects[0], place[second])
            place = place[~second]
        if packet_type in _DIALECT_TYPES and self.which_dialect is not None:
            for number in np.flatnonzero(np.bincount(self.which_dialect[place])):
                dialect = self.dialects[number]
                chosen = place[self.which_dialect[place] == number]
                self._order(formats_by_type(dialect)[packet_type], dialect, chosen)
        else:
            self._order(formats_by_type(self.dialects[0])[packet_type], self.dialects[0], place)

    def _is_alternative(self, packet_type: PacketType, place: NDArray[np.intp]) -> NDArray[np.bool_]:
        rows = self.located.row_bytes[place]
        if packet_type == PacketType.CONNECT:
            flagged: NDArray[np.bool_] = (rows[:, REPLY_FLAG] != 0) & (self.captured[place] > REPLY_FLAG)
            return flagged
        # The bytes that a capture has cut off might differ from those of an announcement.
        whole = self.captured[place] >= self.wire_length[place]
        return whole & is_announcement(rows, self.wire_length[place])

    def _order(self, packet_format: PacketFormat, dialect: Dialect, place: NDArray[np.intp]) -> None:
        if self.swapped is None:
            self._layout(layout_of(packet_format), dialect, False, place)
            return
        for swapped in (False, True):
            self._layout(layout_of(packet_format), dialect, swapped, place[self.swapped[place] == swapped])

    def _layout(self, layout: Layout, dialect: Dialect, swapped: bool, place: NDArray[np.intp]) -> None:
        if self.least_captured < layout.header_end:
            complete = self.captured[place] >= layout.header_end
            self._short(place[~complete], layout.header_end)
            place = place[complete]
        if not len(place):
            return
        rows = self.located.rows
        # A batch of one layout, the usual case in a transfer, needs no copy.
        chosen = rows if len(place) == len(rows) else rows.take(place)
        block = LayoutBlock(
            layout, dialect, swapped, place, chosen.view(header_type(layout, swapped=swapped, size=ROW))
        )
        self.blocks.append(block)
        maximum = FRAME_MAXIMUM.get(layout.name)
        if maximum is not None:
            self._fail(place, self.wire_length[place] > maximum, Reason.RAW_TOO_LARGE, maximum)
        for check in CHECKS.get(layout.name, ()):
            self._fail(place, self._failing(block, check), check.reason, layout.by_name[check.field].offset)
        payload = layout.payload
        if payload is not None and not payload.text:
            self.payload_offset[place] = payload.offset
            announced = (
                block[payload.length_field] if payload.length_field else self.wire_length[place] - payload.offset
            )
            self.payload_length[place] = announced

    def _failing(self, block: LayoutBlock, check: FrameCheck) -> NDArray[np.bool_]:
        values = block[check.field]
        failing: NDArray[np.bool_]
        if check.test == "fits the frame":
            failing = values > self.wire_length[block.place] - block.layout.header_end
        else:
            bound = block.dialect.receive_slot if check.bound == "receive_slot" else int(check.bound)
            failing = values > bound if check.test == "at most" else values < bound
        return failing

    def _fail(self, place: NDArray[np.intp], failing: NDArray[np.bool_], reason: Reason, offset: int) -> None:
        """Record ``reason`` for failing frames without one: the first failed check decides."""
        if not failing.any():
            return
        new = place[failing]
        new = new[self.reason[new] == Reason.NONE]
        self.reason[new] = reason
        self.reason_offset[new] = offset

    def _short(self, place: NDArray[np.intp], needed: int) -> None:
        cut = self.wire_length[place] >= needed
        self.reason[place] = np.where(cut, Reason.CUT_BY_CAPTURE, Reason.BAD_HEADER_LENGTH)
        self.reason_offset[place] = self.captured[place]


_TYPES_WITH_LAYOUT: Final = frozenset(int(each) for each in PacketType) - RESERVED_TYPES - {PacketType.NONE}
_DIALECT_TYPES: Final = frozenset({PacketType.MEDIUM, PacketType.PULL})
"""The packet types whose layout depends on the dialect (wire format, section 1)."""


@cache
def _integer_names(layout: Layout) -> tuple[str, ...]:
    return tuple(each.name for each in layout.defined if each.kind == "integer")


@cache
def _native_types(layout: Layout) -> dict[str, np.dtype[Any]]:
    """The types of the defined fields in host order; an address is an array of bytes."""
    return {each.name: np.dtype("u1" if each.kind == "mac" else f"u{each.size}") for each in layout.defined}
