"""Reference of the fields of decoded frames: table columns and ``--fields`` names, with types and meanings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mxwire.analysis.marks import FLAGS
from mxwire.analysis.table import COLUMN_NAMES, TableBuilder
from mxwire.frames import FrameBatch
from mxwire.report.document import Block, Paragraph, Table, tabulate
from mxwire.report.formats import type_names, views
from mxwire.texts import table_rows
from mxwire.wire.decoder import Decoder


@dataclass(frozen=True, slots=True)
class FieldMeaning:
    """The meaning of a field in a group of packet types."""

    name: str
    data_type: str
    """The polars type of its column."""
    packet_types: tuple[str, ...]
    meaning: str


def field_meanings() -> Iterator[FieldMeaning]:
    """All fields in column order; a field has several entries if its meaning depends on the packet type."""
    schema = TableBuilder().frame(Decoder().decode(FrameBatch.from_frames([])), "").schema
    meanings: dict[str, dict[str, list[str]]] = {}
    for view in views():
        for field in view.layout.defined:
            types = meanings.setdefault(field.name, {}).setdefault(field.meaning, [])
            if view.layout.packet_type.name not in types:
                types.append(view.layout.packet_type.name)
    for _, (name, meaning) in table_rows(__file__, "fields.md"):
        meanings.setdefault(name, {meaning.format(flags=", ".join(FLAGS)): type_names()})
    for name in COLUMN_NAMES:
        for meaning, types in meanings[name].items():
            yield FieldMeaning(name, str(schema[name]), tuple(types), meaning)


def fields_table() -> Table:
    """All fields with their types and meanings."""
    rows, before = [], ""
    for each in field_meanings():
        where = "all" if len(each.packet_types) == len(type_names()) else ", ".join(each.packet_types)
        repeated = each.name == before
        rows.append(("" if repeated else each.name, "" if repeated else each.data_type, where, each.meaning))
        before = each.name
    return tabulate("`field, `type, ~packet types, ~meaning", rows)


def fields_overview() -> list[Block]:
    """The table of fields and a usage line."""
    use = "mxwire decode --fields frame,type,lib_seqnum FILE prints fields; --to FILE.parquet writes all as columns."
    return [fields_table(), Paragraph(use)]


def named_field_records() -> Iterator[dict[str, Any]]:
    """One JSON object per field and meaning."""
    for each in field_meanings():
        yield {"field": each.name, "type": each.data_type, "packet_types": each.packet_types, "meaning": each.meaning}
