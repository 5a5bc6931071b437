"""The fields of decoded frames: columns of the table, names for ``--fields``, with type and meaning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mxwire.analysis.table import COLUMN_NAMES, TableBuilder
from mxwire.frames import FrameBatch
from mxwire.report.document import Block, Column, Paragraph, Row, Table
from mxwire.report.formats import type_names, views
from mxwire.report.json_line import json_line
from mxwire.wire.decoder import Decoder

_MEANINGS: Final = {
    "file": "The capture, as it was named on the command line.",
    "frame": "Number of the frame in its capture, from 1, frames of other protocols counted too.",
    "time_ns": "When the frame was captured, in nanoseconds since 1970 (UTC).",
    "wire_length": "Bytes of the frame on the wire, without frame check sequence.",
    "captured": "Bytes of the frame in the capture; fewer than wire_length where a snap length cut it.",
    "source": "Ethernet address of the sender.",
    "destination": "Ethernet address of the receiver; null in Linux cooked captures, which do not have it.",
    "vlan": "VLAN ids, the outermost first; null for untagged frames.",
    "dialect": "What the two hosts speak; null where nothing decides it and the frame was read as mxoe.",
    "type": "Name of the packet type, or its number where it has no name.",
    "hostname": "The name in a HOST_REPLY.",
    "payload_offset": "Where the data starts in the captured frame.",
    "payload_length": "Announced bytes of data; null for frames without data and for malformed ones.",
    "malformed_reason": "Why the frame cannot be what it claims; null where nothing is wrong.",
    "malformed_offset": "The byte of the captured frame where it went wrong.",
}
"""Of the columns that are no fields of packets."""


@dataclass(frozen=True, slots=True)
class FieldMeaning:
    """What a field means in some packet types."""

    name: str
    data_type: str
    """The polars type of its column."""
    packet_types: tuple[str, ...]
    meaning: str


def field_meanings() -> Iterator[FieldMeaning]:
    """All fields in the order of the table's columns; one has several entries where its meaning depends on the type."""
    schema = TableBuilder().frame(Decoder().decode(FrameBatch.from_frames([])), "").schema
    meanings: dict[str, dict[str, list[str]]] = {}
    for view in views():
        for field in view.layout.defined:
            types = meanings.setdefault(field.name, {}).setdefault(field.meaning, [])
            if view.layout.packet_type.name not in types:
                types.append(view.layout.packet_type.name)
    for name in COLUMN_NAMES:
        for meaning, types in (meanings.get(name) or {_MEANINGS[name]: type_names()}).items():
            yield FieldMeaning(name, str(schema[name]), tuple(types), meaning)


def fields_table() -> Table:
    """All fields with their types and meanings."""
    rows, before = [], ""
    for each in field_meanings():
        where = "all" if len(each.packet_types) == len(type_names()) else ", ".join(each.packet_types)
        again = each.name == before
        rows.append(Row(("" if again else each.name, "" if again else each.data_type, where, each.meaning)))
        before = each.name
    columns = (
        Column("field", code=True),
        Column("type", code=True),
        Column("packet types", wraps=True),
        Column("meaning", wraps=True),
    )
    return Table(columns, tuple(rows))


def fields_overview() -> list[Block]:
    """The table, and its use."""
    use = "mxwire decode --fields frame,type,lib_seqnum FILE prints fields; --to FILE.parquet writes all as columns."
    return [fields_table(), Paragraph(use)]


def fields_json() -> Iterator[str]:
    """One JSON object per field and meaning."""
    for each in field_meanings():
        made = {"field": each.name, "type": each.data_type, "packet_types": each.packet_types, "meaning": each.meaning}
        yield json_line(made)
