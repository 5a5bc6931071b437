"""Decoded frames as one wide table: a row a frame, a column a field, written to a file through polars."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mxwire.analysis.table_file import TableFile
from mxwire.wire.address import mac_text
from mxwire.wire.checks import Reason
from mxwire.wire.codes import CodeTable
from mxwire.wire.columns import NO_TYPE, Block, Columns
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.enums import packet_type_name
from mxwire.wire.layout import layout_of
from mxwire.wire.text import hostname_text

VLAN_ID_BITS: Final = 12

_UNSIGNED: Final = {1: pl.UInt8, 2: pl.UInt16, 4: pl.UInt32}


def _field_widths() -> dict[str, int]:
    """Every integer field of every layout, in the order of the formats, with the bytes of its widest form."""
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
COLUMN_NAMES: Final = ("file", *FRAME_COLUMNS, *FIELD_WIDTHS, *TAIL_COLUMNS)
"""The columns of the table, in order."""


class TableBuilder:
    """Turns decoded batches into polars frames; one builder for a table, so that it names each host once."""

    def __init__(self, columns: Sequence[str] | None = None) -> None:
        self._wanted = set(columns or COLUMN_NAMES)
        self._order = list(columns or COLUMN_NAMES)
        self._hosts: CodeTable | None = None
        self._host_names: list[str] = []

    def frame(self, decoded: DecodedBatch, file: str, which: NDArray[np.intp] | None = None) -> pl.DataFrame:
        """One row for each MXoE frame of a batch, or for those at the places ``which``."""
        columns = decoded.columns
        made = self._general(decoded, columns, file) | self._fields(columns) | self._tail(decoded, columns)
        table = pl.DataFrame([made[name].alias(name) for name in self._order])
        return table if which is None else table[which]

    def _general(self, decoded: DecodedBatch, columns: Columns, file: str) -> dict[str, pl.Series]:
        batch, located, count = decoded.batch, decoded.located, len(decoded)
        destination = self._addresses(decoded.assignment.destination, located.destination, decoded)
        if not located.has_destination:
            destination = _nothing(count, pl.String)
        return {
            "file": _same(file, count, pl.String),
            "frame": pl.Series(batch.number),
            "time_ns": pl.Series(batch.timestamp_ns),
            "wire_length": pl.Series(np.maximum(batch.wire_length, batch.length).astype(np.uint32)),
            "captured": pl.Series(batch.length.astype(np.uint32)),
            "source": self._addresses(decoded.assignment.source, located.source, decoded),
            "destination": destination,
            "vlan": _vlan(decoded),
            "dialect": _dialects(decoded),
            "type": _named(columns.packet_type.astype(np.int64) - NO_TYPE, _type_names()),
        }

    def _addresses(self, codes: NDArray[np.intp], addresses: NDArray[np.uint64], decoded: DecodedBatch) -> pl.Series:
        """Addresses as text, made once for each host."""
        if decoded.hosts.is_full:
            distinct, codes = np.unique(addresses, return_inverse=True)
            return _named(codes, [mac_text(each) for each in distinct.tolist()])
        if self._hosts is not decoded.hosts:
            self._hosts, self._host_names = decoded.hosts, []
        self._host_names += [mac_text(key) for key in decoded.hosts.keys[len(self._host_names) :]]
        return _named(codes, self._host_names)

    def _fields(self, columns: Columns) -> dict[str, pl.Series]:
        """All fields; those that no frame of the batch has cost next to nothing."""
        count = len(columns)
        holders: dict[str, list[int]] = {}
        for number, block in enumerate(columns.blocks):
            for name in block.names:
                holders.setdefault(name, []).append(number)
        presence: dict[tuple[int, ...], pl.Series] = {}
        made: dict[str, pl.Series] = {}
        for name in FIELD_WIDTHS.keys() & self._wanted:
            kind = _UNSIGNED[FIELD_WIDTHS[name]]
            blocks = [columns.blocks[number] for number in holders.get(name, ())]
            held = sum(len(block) for block in blocks)
            if not held:
                made[name] = _nothing(count, kind)
                continue
            if len(blocks) == 1 and held == count:
                made[name] = pl.Series(blocks[0][name], dtype=kind)
                continue
            values = np.zeros(count, f"u{FIELD_WIDTHS[name]}")
            for block in blocks:
                values[block.place] = block[name]
            if held == count:
                made[name] = pl.Series(values)
                continue
            # Many fields come in the same packets, so they have their mask in common.
            which = tuple(holders[name])
            if which not in presence:
                presence[which] = _presence(count, blocks)
            made[name] = _masked(values, presence[which])
        return made

    def _tail(self, decoded: DecodedBatch, columns: Columns) -> dict[str, pl.Series]:
        faulty = columns.reason != Reason.NONE
        has_payload = columns.payload_length >= 0
        return {
            "hostname": _hostnames(decoded, columns),
            "payload_offset": _masked(columns.payload_offset.astype(np.uint32), pl.Series(has_payload)),
            "payload_length": _masked(columns.payload_length.astype(np.uint32), pl.Series(has_payload)),
            "malformed_reason": _named(columns.reason, [None, *(reason.text for reason in Reason if reason)]),
            "malformed_offset": _masked(columns.reason_offset.astype(np.uint32), pl.Series(faulty)),
        }


def _same(value: Any, count: int, kind: Any) -> pl.Series:
    return pl.Series([value], dtype=kind).new_from_index(0, count)


def _nothing(count: int, kind: Any) -> pl.Series:
    return _null(kind).new_from_index(0, count)


@cache
def _null(kind: Any) -> pl.Series:
    return pl.Series([None], dtype=kind)


def _presence(count: int, blocks: Sequence[Block]) -> pl.Series:
    """Which frames are in one of some blocks."""
    present = np.zeros(count, np.bool_)
    for block in blocks:
        present[block.place] = True
    return pl.Series(present)


def _masked(values: NDArray[Any], present: pl.Series) -> pl.Series:
    """A column that is null where ``present`` is False."""
    series = pl.Series(values)
    return series.zip_with(present, _null(series.dtype))


def _named(codes: NDArray[Any], names: Sequence[Any], kind: Any = pl.String) -> pl.Series:
    """A column of texts (or what ``kind`` says), given by their places in ``names``."""
    if len(codes) and (codes == codes[0]).all():
        return _same(names[codes[0]], len(codes), kind)
    return pl.Series(names, dtype=kind).gather(pl.Series(codes.astype(np.uint32)))


@cache
def _type_names() -> list[str | None]:
    """Names of the types from -1 (none) on."""
    return [None, *(packet_type_name(value) for value in range(256))]


def _vlan(decoded: DecodedBatch) -> pl.Series:
    """Null for untagged frames: a column of empty lists would cost more than all others."""
    kind = pl.List(pl.Int32)
    vlan = decoded.located.vlan
    if not vlan.shape[1]:
        return _nothing(len(decoded), kind)
    # One number for all tags of a frame: few frames have tags that no other has.
    stacks = np.zeros(len(vlan), np.int64)
    for depth in range(vlan.shape[1]):
        stacks = stacks << VLAN_ID_BITS + 1 | vlan[:, depth] + 1
    _, first, codes = np.unique(stacks, return_index=True, return_inverse=True)
    return _named(codes, [decoded.vlan(int(index)) or None for index in first], kind)


def _dialects(decoded: DecodedBatch) -> pl.Series:
    assignment = decoded.assignment
    names = [None, *(dialect.name for dialect in assignment.dialects)]
    return _named(np.where(assignment.decided, assignment.which + 1, 0), names)


def _hostnames(decoded: DecodedBatch, columns: Columns) -> pl.Series:
    """The rare text field: taken from the typed frames."""
    names: list[str | None] = [None] * len(columns)
    found = [int(place) for block in columns.of("host_reply") for place in block.place]
    if not found:
        return _nothing(len(columns), pl.String)
    for place in found:
        names[place] = hostname_text(getattr(decoded.frame(place), "hostname", b""))
    return pl.Series(names, dtype=pl.String)


class TableWriter(TableFile):
    """Writes a table of frames batch by batch, a row a frame.

    Raises :class:`~mxwire.errors.MxwireError` for an unknown suffix, or when the file cannot be written.
    """

    def __init__(self, path: Path, columns: Sequence[str] | None = None) -> None:
        super().__init__(path)
        self._builder = TableBuilder(columns)

    def write(self, decoded: DecodedBatch, file: str, which: NDArray[np.intp] | None = None) -> None:
        """Add the frames of a batch, or those at the places ``which``."""
        self.put(self._builder.frame(decoded, file, which))
