"""The columns of the table that ``mxwire decode --to`` writes, each with its type and where it comes from."""

from __future__ import annotations

from mxwire.analysis.table import COLUMN_NAMES, TableBuilder
from mxwire.frames import FrameBatch
from mxwire.report.document import Column, Row, Table, markdown
from mxwire.report.formats import type_names, views
from mxwire.wire.decoder import Decoder
from rendering.basics import PageError

_MEANINGS = {
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


def made() -> str:
    """A table of the columns, with the meaning of each field."""
    schema = TableBuilder().frame(Decoder().decode(FrameBatch.from_frames([])), "").schema
    meanings: dict[str, dict[str, list[str]]] = {}
    for view in views():
        for field in view.layout.defined:
            types = meanings.setdefault(field.name, {}).setdefault(field.meaning, [])
            if view.layout.packet_type.name not in types:
                types.append(view.layout.packet_type.name)
    rows = []
    for name in COLUMN_NAMES:
        if name not in meanings and name not in _MEANINGS:
            raise PageError(f"column {name} of the table has no description in docs/generated/columns.py")
        of_column = meanings.get(name) or {_MEANINGS[name]: type_names()}
        places = ["all" if len(types) == len(type_names()) else ", ".join(types) for types in of_column.values()]
        for number, (where, meaning) in enumerate(zip(places, of_column, strict=True)):
            rows.append(Row(("" if number else name, "" if number else str(schema[name]), where, meaning)))
    columns = (Column("column", code=True), Column("type", code=True), Column("packet types"), Column("meaning"))
    return markdown([Table(columns, tuple(rows))])
