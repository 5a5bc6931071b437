"""Decoded frames as one wide table: one row per frame, one column per field."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations.frame_marks import ROLES, FrameMarks, flag_names
from mxwire.analysis.marks import MARK_COLUMNS
from mxwire.analysis.table_columns import ColumnKind, TableColumn, column_of, constant, polars_table
from mxwire.analysis.table_file import TableFile, TableSink
from mxwire.ethernet import mac_text
from mxwire.wire.checks import Reason
from mxwire.wire.codes import CodeTable
from mxwire.wire.columns import NO_TYPE, Columns, LayoutBlock
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.enums import hostname_text, packet_type_name
from mxwire.wire.layout import layout_of

if TYPE_CHECKING:
    import polars as pl

VLAN_ID_BITS: Final = 12

_UNSIGNED: Final[dict[int, ColumnKind]] = {1: "UInt8", 2: "UInt16", 4: "UInt32"}


def _field_widths() -> dict[str, int]:
    """Return all integer fields of all layouts, in the order of the formats, with the size of the widest in bytes."""
    widths: dict[str, int] = {}
    for dialect in (MXOE, omx()):
        for packet_format in dialect.formats:
            for field in layout_of(packet_format).defined:
                if field.kind == "integer" and field.name != "ethertype":
                    widths[field.name] = max(widths.get(field.name, 0), field.size or 0)
    return widths


FIELD_WIDTHS: Final = _field_widths()
"""Size in bytes of each field's column."""

# A frame's own length is wire_length here: `length` is the specification's name of a field.
FRAME_COLUMNS: Final = (
    "frame",
    "time_ns",
    "wire_length",
    "captured",
    "source",
    "destination",
    "vlan",
    "dialect",
    "type",
)
TAIL_COLUMNS: Final = ("hostname", "payload_offset", "payload_length", "malformed_reason", "malformed_offset")
COLUMN_NAMES: Final = ("file", *FRAME_COLUMNS, *MARK_COLUMNS, *FIELD_WIDTHS, *TAIL_COLUMNS)
"""The columns of the table, in order."""


class TableBuilder:
    """Converter of decoded batches to rows; use one builder per table, so that each address is formatted once.

    ``columns`` are the names of the columns wanted, in order; all of ``COLUMN_NAMES`` by default.
    """

    def __init__(self, columns: Sequence[str] | None = None) -> None:
        self._order = list(columns or COLUMN_NAMES)
        self._wanted = set(self._order)
        self._hosts: CodeTable | None = None
        self._host_names: list[str] = []

    def frame(
        self, decoded: DecodedBatch, file: str, which: NDArray[np.intp] | None = None, marks: FrameMarks | None = None
    ) -> pl.DataFrame:
        """Return a data frame with one row per MXoE frame of a batch, or per frame at the places ``which``.

        ``file`` is the value of the column of that name; without ``marks`` the columns ``MARK_COLUMNS`` are null.
        Raises :class:`~mxwire.extras.MissingExtraError` without polars.
        """
        table = polars_table(self.columns(decoded, file, None, marks))
        return table if which is None else table[which]

    def columns(
        self,
        decoded: DecodedBatch,
        file: str,
        which: NDArray[np.intp] | None = None,
        marks: FrameMarks | None = None,
        before: int = 0,
    ) -> dict[str, TableColumn]:
        """Return the same rows as columns by name; ``before`` frames of other files precede those of ``file``."""
        columns = decoded.columns
        every = self._general(decoded, columns, file, before) | self._fields(columns) | self._tail(decoded, columns)
        every |= _mark_columns(marks, len(decoded))
        return {name: every[name] if which is None else every[name].select(which) for name in self._order}

    def _general(self, decoded: DecodedBatch, columns: Columns, file: str, before: int) -> dict[str, TableColumn]:
        batch, located, count = decoded.batch, decoded.located, len(decoded)
        destination = self._addresses(decoded.assignment.destination, located.destination, decoded)
        if not located.has_destination:
            destination = constant(None, count, "String")
        return {
            "file": constant(file, count, "String"),
            "frame": TableColumn("Int64", batch.number - before if before else batch.number),
            "time_ns": TableColumn("Int64", batch.timestamp_ns),
            # A damaged record may claim fewer bytes on the wire than it holds.
            "wire_length": TableColumn("UInt32", np.maximum(batch.wire_length, batch.length).astype(np.uint32)),
            "captured": TableColumn("UInt32", batch.length.astype(np.uint32)),
            "source": self._addresses(decoded.assignment.source, located.source, decoded),
            "destination": destination,
            "vlan": _vlan(decoded),
            "dialect": _dialects(decoded),
            "type": TableColumn("String", columns.packet_type.astype(np.int64) - NO_TYPE, distinct=_type_names()),
        }

    def _addresses(self, codes: NDArray[np.intp], addresses: NDArray[np.uint64], decoded: DecodedBatch) -> TableColumn:
        """Return addresses as text, formatted once per host."""
        # In a full table of codes, one code stands for many hosts.
        if decoded.hosts.is_full:
            found, codes = np.unique(addresses, return_inverse=True)
            return TableColumn("String", codes, distinct=[mac_text(each) for each in found.tolist()])
        if self._hosts is not decoded.hosts:
            self._hosts, self._host_names = decoded.hosts, []
        self._host_names += [mac_text(key) for key in decoded.hosts.keys[len(self._host_names) :]]
        return TableColumn("String", codes, distinct=self._host_names)

    def _fields(self, columns: Columns) -> dict[str, TableColumn]:
        """Return all requested fields; those absent from the batch cost almost nothing."""
        count = len(columns)
        holders: dict[str, list[int]] = {}
        for number, block in enumerate(columns.blocks):
            for name in block.names:
                holders.setdefault(name, []).append(number)
        presence: dict[tuple[int, ...], NDArray[np.bool_]] = {}
        fields: dict[str, TableColumn] = {}
        for name in FIELD_WIDTHS.keys() & self._wanted:
            kind = _UNSIGNED[FIELD_WIDTHS[name]]
            blocks = [columns.blocks[number] for number in holders.get(name, ())]
            held = sum(len(block) for block in blocks)
            if not held:
                fields[name] = constant(None, count, kind)
                continue
            if len(blocks) == 1 and held == count:
                fields[name] = TableColumn(kind, blocks[0][name])
                continue
            values = np.zeros(count, f"u{FIELD_WIDTHS[name]}")
            for block in blocks:
                values[block.place] = block[name]
            if held == count:
                fields[name] = TableColumn(kind, values)
                continue
            # Many fields occur in the same packets, so they share a mask.
            which = tuple(holders[name])
            if which not in presence:
                presence[which] = _presence(count, blocks)
            fields[name] = TableColumn(kind, values, present=presence[which])
        return fields

    def _tail(self, decoded: DecodedBatch, columns: Columns) -> dict[str, TableColumn]:
        faulty = columns.reason != Reason.NONE
        has_payload = columns.payload_length >= 0
        reasons = [None, *(reason.text for reason in Reason if reason)]
        return {
            "hostname": _hostnames(decoded, columns),
            "payload_offset": TableColumn("UInt32", columns.payload_offset.astype(np.uint32), present=has_payload),
            "payload_length": TableColumn("UInt32", columns.payload_length.astype(np.uint32), present=has_payload),
            "malformed_reason": TableColumn("String", columns.reason, distinct=reasons),
            "malformed_offset": TableColumn("UInt32", columns.reason_offset.astype(np.uint32), present=faulty),
        }


def _mark_columns(marks: FrameMarks | None, count: int) -> dict[str, TableColumn]:
    kinds: tuple[ColumnKind, ...] = ("UInt64", "String", "List(String)", "UInt32", "UInt64")
    if marks is None:
        return {name: constant(None, count, kind) for name, kind in zip(MARK_COLUMNS, kinds, strict=True)}
    distinct, codes = np.unique(marks.flags, return_inverse=True)
    return {
        "message": TableColumn("UInt64", marks.message.astype(np.uint64), present=marks.message > 0),
        "role": TableColumn("String", marks.role, distinct=[None if each is None else each.value for each in ROLES]),
        "flags": TableColumn("List(String)", codes, distinct=[flag_names(each) or None for each in distinct.tolist()]),
        "repeat": TableColumn("UInt32", marks.repeat, present=marks.repeat > 0),
        "acknowledges": TableColumn("UInt64", marks.acknowledges.astype(np.uint64), present=marks.acknowledges > 0),
    }


def _presence(count: int, blocks: Sequence[LayoutBlock]) -> NDArray[np.bool_]:
    """Mark the frames that are in one of ``blocks``."""
    present = np.zeros(count, np.bool_)
    for block in blocks:
        present[block.place] = True
    return present


@cache
def _type_names() -> list[str | None]:
    """Return the names of the types, from -1 (no type) upwards."""
    return [None, *(packet_type_name(value) for value in range(256))]


def _vlan(decoded: DecodedBatch) -> TableColumn:
    """Return the VLAN ids per frame, null if untagged: a column of empty lists would cost more than all others."""
    vlan = decoded.located.vlan
    if not vlan.shape[1]:
        return constant(None, len(decoded), "List(Int32)")
    # One number stands for all tags of a frame, since few combinations of tags occur.
    stacks = np.zeros(len(vlan), np.int64)
    for depth in range(vlan.shape[1]):
        stacks = stacks << VLAN_ID_BITS + 1 | vlan[:, depth] + 1
    _, first, codes = np.unique(stacks, return_index=True, return_inverse=True)
    return TableColumn("List(Int32)", codes, distinct=[decoded.vlan(int(index)) or None for index in first])


def _dialects(decoded: DecodedBatch) -> TableColumn:
    assignment = decoded.assignment
    names = [None, *(dialect.name for dialect in assignment.dialects)]
    return TableColumn("String", np.where(assignment.decided, assignment.which + 1, 0), distinct=names)


def _hostnames(decoded: DecodedBatch, columns: Columns) -> TableColumn:
    """Return the only text field, which is rare, from the typed frames."""
    names: list[str | None] = [None] * len(columns)
    replies = [int(place) for block in columns.of("host_reply") for place in block.place]
    if not replies:
        return constant(None, len(columns), "String")
    for place in replies:
        names[place] = hostname_text(getattr(decoded.frame(place), "hostname", b""))
    return column_of(names, "String")


class TableWriter(TableFile):
    """Writer of a table of frames, batch by batch, one row per frame.

    Raises :class:`~mxwire.errors.MxwireError` for an unknown suffix, or when the file cannot be written.
    """

    def __init__(
        self, path: Path, columns: Sequence[str] | None = None, opener: Callable[..., TableSink] | None = None
    ) -> None:
        super().__init__(path, opener)
        self._builder = TableBuilder(columns)

    def write(
        self, decoded: DecodedBatch, file: str, which: NDArray[np.intp] | None = None, marks: FrameMarks | None = None
    ) -> None:
        """Add the frames of a batch, or those at the places ``which``."""
        self.put(self._builder.columns(decoded, file, which, marks))
