"""Frames as JSON records with stable keys."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from mxwire.analysis.marks import MARK_COLUMNS, FrameMarks, flag_names
from mxwire.ethernet import mac_text
from mxwire.report.summary import type_text
from mxwire.report.tree import FieldLine, field_lines
from mxwire.wire.codec import Malformed
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.enums import hostname_text
from mxwire.wire.layout import Layout
from mxwire.wire.packets import Frame

RECORD_KEYS: Final = (
    *("frame", "time_ns", "wire_length", "captured", "source", "destination", "vlan", "dialect", "type"),
    *MARK_COLUMNS,
    *("fields", "payload", "malformed"),
)
"""Keys of every record, in order."""


def record(
    decoded: DecodedBatch, index: int, *, verbose: bool = False, marks: FrameMarks | None = None
) -> dict[str, Any]:
    """The frame at ``index`` as a record: the keys of :data:`RECORD_KEYS`, and ``layout`` if ``verbose``.

    Without ``marks`` the values of :data:`~mxwire.analysis.marks.MARK_COLUMNS` are None.
    """
    batch, located = decoded.batch, decoded.located
    frame = decoded.frame(index)
    captured, shift = int(batch.length[index]), int(located.shift[index])
    entry: dict[str, Any] = {
        "frame": int(batch.number[index]),
        "time_ns": int(batch.timestamp_ns[index]),
        "wire_length": max(int(batch.wire_length[index]), captured),
        "captured": captured,
        "source": mac_text(int(located.source[index])),
        "destination": mac_text(int(located.destination[index]))
        if located.has_destination or located.destination[index]
        else None,
        "vlan": decoded.vlan(index),
        "dialect": decoded.dialect_name(index),
        "type": None if isinstance(frame, Malformed) and frame.packet_type is None else type_text(frame),
        "message": marks and (int(marks.message[index]) or None),
        "role": marks and marks.role_at(index),
        "flags": marks and (flag_names(int(marks.flags[index])) if marks.flags[index] else []),
        "repeat": marks and (int(marks.repeat[index]) or None),
        "acknowledges": marks and (int(marks.acknowledges[index]) or None),
        "fields": fields_of(frame, decoded, index),
        "payload": _payload(frame, decoded, index, shift),
        "malformed": None,
    }
    if isinstance(frame, Malformed):
        entry["malformed"] = {"reason": frame.reason.text, "offset": frame.offset + shift}
    if decoded.is_swapped(index):
        entry["byte_order"] = "little"
    if verbose:
        entry["layout"] = [_detail(line) for line in field_lines(decoded, index)]
    return entry


def fields_of(frame: Frame | Malformed, decoded: DecodedBatch, index: int) -> dict[str, int | str]:
    """The readable fields of ``frame`` by specification name: integers, or text for addresses and host names."""
    if isinstance(frame, Malformed):
        raw = dict(frame.fields)
    else:
        names = _attributes(decoded.codec(index).layout(frame.layout_name))
        raw = {name: getattr(frame, attribute) for name, attribute in names}
    if not decoded.located.has_destination:
        raw.pop("dst_mac", None)
    return {name: _plain(name, value) for name, value in raw.items()}


@cache
def _attributes(layout: Layout) -> tuple[tuple[str, str], ...]:
    """Pairs of a field's specification name and its attribute in the frame classes."""
    shown = [each for each in layout.fields if each.kind in ("mac", "integer") or each.text]
    return tuple((each.name, each.attribute) for each in shown)


def _plain(name: str, value: int | bytes) -> int | str:
    if isinstance(value, int):
        return value
    return mac_text(value) if name.endswith("_mac") else hostname_text(value)


def _payload(frame: Frame | Malformed, decoded: DecodedBatch, index: int, shift: int) -> dict[str, int] | None:
    """Offset of the data in the captured frame, and its announced length, even if the capture cut it."""
    if isinstance(frame, Malformed):
        return None
    payload = decoded.codec(index).layout(frame.layout_name).payload
    if payload is None or payload.text:
        return None
    if payload.length_field is None:
        length = int(decoded.located.wire_length[index]) - payload.offset
    else:
        length = getattr(frame, payload.length_field)
    return {"offset": payload.offset + shift, "length": length}


def _detail(line: FieldLine) -> dict[str, Any]:
    return {
        "name": line.name,
        "offset": line.offset,
        "size": line.size,
        "bytes": line.raw.hex(),
        "value": line.value if isinstance(line.value, int) else None,
        "text": line.text,
        "meaning": line.meaning,
        "defined": line.defined,
    }
