"""Reference of the fields of decoded frames: table columns and ``--fields`` names, with types and meanings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mxwire.analysis.marks import FLAGS
from mxwire.analysis.table import COLUMN_NAMES, TableBuilder
from mxwire.frames import FrameBatch
from mxwire.report.document import Block, Column, Paragraph, Row, Table
from mxwire.report.formats import type_names, views
from mxwire.report.json_line import json_line
from mxwire.wire.decoder import Decoder

_MEANINGS: Final = {
    "file": "The capture, as named on the command line.",
    "frame": "Frame number in its capture, from 1, including frames of other protocols.",
    "time_ns": "Capture time in nanoseconds since 1970 (UTC).",
    "wire_length": "Length of the frame on the wire in bytes, without frame check sequence.",
    "captured": "Captured bytes of the frame; fewer than wire_length if a snap length cut it.",
    "source": "Ethernet address of the sender.",
    "destination": "Ethernet address of the receiver; null in Linux cooked captures, which do not record it.",
    "vlan": "VLAN ids, outermost first; null for untagged frames.",
    "dialect": "Dialect of the pair of hosts; null if undetermined, in which case the frame was decoded as mxoe.",
    "type": "Packet type: name, or number if it has no name.",
    "message": "Number of the message to which the frame belongs, as in mxwire messages; of an ack of its own, the "
    "newest message that it acknowledges. Null for other frames, and with --no-analysis.",
    "role": "Role of the frame in the message: data, rndv, pull, reply, notify, ack or nack.",
    "flags": f"Marks of the frame: {', '.join(FLAGS)}.",
    "repeat": "Which retransmission of the message, or re-request of the block, the frame is, from 1.",
    "acknowledges": "Number of the newest message that the frame acknowledges.",
    "hostname": "Host name in a HOST_REPLY.",
    "payload_offset": "Offset of the data in the captured frame, in bytes.",
    "payload_length": "Announced length of the data in bytes; null for frames without data and for malformed ones.",
    "malformed_reason": "Reason why the frame is malformed; null for well-formed frames.",
    "malformed_offset": "Offset of the offending byte in the captured frame.",
}
"""Meanings of the columns that are not packet fields."""


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
    for name in COLUMN_NAMES:
        for meaning, types in (meanings.get(name) or {_MEANINGS[name]: type_names()}).items():
            yield FieldMeaning(name, str(schema[name]), tuple(types), meaning)


def fields_table() -> Table:
    """All fields with their types and meanings."""
    rows, before = [], ""
    for each in field_meanings():
        where = "all" if len(each.packet_types) == len(type_names()) else ", ".join(each.packet_types)
        repeated = each.name == before
        rows.append(Row(("" if repeated else each.name, "" if repeated else each.data_type, where, each.meaning)))
        before = each.name
    columns = (
        Column("field", code=True),
        Column("type", code=True),
        Column("packet types", wraps=True),
        Column("meaning", wraps=True),
    )
    return Table(columns, tuple(rows))


def fields_overview() -> list[Block]:
    """The table of fields and a usage line."""
    use = "mxwire decode --fields frame,type,lib_seqnum FILE prints fields; --to FILE.parquet writes all as columns."
    return [fields_table(), Paragraph(use)]


def fields_json() -> Iterator[str]:
    """One JSON object per field and meaning."""
    for each in field_meanings():
        entry = {"field": each.name, "type": each.data_type, "packet_types": each.packet_types, "meaning": each.meaning}
        yield json_line(entry)
