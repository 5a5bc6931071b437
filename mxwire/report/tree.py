"""The tree form of a frame: every field with offset, value, bytes and meaning."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mxwire.ethernet import mac_text
from mxwire.report.summary import type_text
from mxwire.wire.codec import Malformed
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.enums import hostname_text, sequence_text
from mxwire.wire.formats import RAW
from mxwire.wire.layout import Field, Layout, layout_of
from mxwire.words import count_of

SEQUENCE_FIELDS: Final = frozenset({"lib_seqnum", "lib_piggyack", "liback.lib_seqnum", "target_recv_seqnum_start"})
_BYTES_SHOWN: Final = 16
_TEXT_SHOWN: Final = 32
_MEANING_ROOM: Final = 30
"""Minimum columns for a meaning beside the bytes; with fewer, it is printed below the value."""


@dataclass(frozen=True, slots=True)
class FieldLine:
    """One line of the tree."""

    name: str
    offset: int
    """Offset in the captured frame, in bytes."""
    size: int
    raw: bytes
    """The captured bytes; fewer than ``size`` if the capture or the frame was cut."""
    value: int | None
    text: str
    """The value as text."""
    meaning: str
    defined: bool
    """False for undefined bytes, which the sender never writes."""


def field_lines(decoded: DecodedBatch, index: int) -> Iterator[FieldLine]:
    """Every field of a frame in order of offset, then its padding; for a malformed frame, the readable fields."""
    frame = decoded.frame(index)
    name = frame.layout_name
    layout = layout_of(RAW) if name is None else decoded.codec(index).layout(name)
    row = decoded.located.frame(index)
    shift = int(decoded.located.shift[index])
    wire_length = int(decoded.located.wire_length[index])
    has_destination = decoded.located.has_destination
    values = _values(frame, layout)
    end = 0
    for field in layout.fields:
        if (name is None and field.kind == "payload") or (field.name == "dst_mac" and not has_destination):
            continue
        size = _size(field, values, wire_length)
        raw = row[field.offset : field.offset + size]
        # The capture, or the frame, ends here; the following fields have no bytes either.
        if len(row) <= field.offset and size:
            return
        end = field.offset + size
        place = decoded.located.place(index, field.offset)
        yield _line(field, place, size, raw, values.get(field.name))
    # Ethernet pads short frames, and hosts may send more than the packet needs.
    if len(row) > end:
        rest = row[end:]
        meaning = "Undefined bytes after the packet." if name else "Not decoded."
        yield FieldLine("padding", end + shift, len(rest), rest, None, f"{count_of(len(rest), 'byte')}", meaning, False)


def _values(frame: object, layout: Layout) -> dict[str, int | bytes]:
    if isinstance(frame, Malformed):
        return dict(frame.fields)
    return {
        each.name: getattr(frame, each.attribute)
        for each in layout.fields
        if each.kind in ("integer", "mac", "payload")
    }


def _size(field: Field, values: dict[str, int | bytes], wire_length: int) -> int:
    if field.size is not None:
        return field.size
    room = max(wire_length - field.offset, 0)
    announced = values.get(field.length_field) if field.length_field else room
    # A malformed frame may announce more than it has.
    return min(announced if isinstance(announced, int) else room, room)


def _line(field: Field, offset: int, size: int, raw: bytes, value: int | bytes | None) -> FieldLine:
    number = value if isinstance(value, int) else None
    return FieldLine(
        name=field.name,
        offset=offset,
        size=size,
        raw=raw,
        value=number,
        text=_text(field, raw, number, size),
        meaning=field.meaning,
        defined=field.kind != "undefined",
    )


def _text(field: Field, raw: bytes, number: int | None, size: int) -> str:
    if field.kind == "undefined":
        return "undefined"
    if field.kind == "mac":
        return mac_text(raw)
    if field.text:
        return hostname_text(raw)
    if field.kind == "payload":
        return _data_text(raw, size)
    if number is None:
        return "cut off"
    named = field.value_name(number)
    if named is not None:
        return f"{number} ({named})"
    if field.name in SEQUENCE_FIELDS:
        text = sequence_text(number)
        return text if text == str(number) else f"{number} (session number/sequence {text})"
    if field.hexadecimal:
        return f"0x{number:0{2 * size}x}"
    return str(number)


def _data_text(raw: bytes, size: int) -> str:
    cut = f", {len(raw)} captured" if len(raw) < size else ""
    head = raw[:_TEXT_SHOWN]
    shown = f" {head.decode('ascii')!r}" if head and all(32 <= each < 127 for each in head) else ""
    more = "…" if shown and size > len(head) else ""
    return f"{count_of(size, 'byte')}{cut}{shown}{more}"


def tree(decoded: DecodedBatch, index: int, width: int | None = None) -> Iterator[str]:
    """The lines of a frame's tree: offset, name, value, bytes and meaning of each field.

    With a ``width`` in columns, bytes and meanings that do not fit wrap to further lines.
    """
    frame = decoded.frame(index)
    dialect = decoded.dialect_name(index) or "undetermined"
    order = ", little-endian sender" if decoded.is_swapped(index) else ""
    tags = "".join(f", VLAN {each}" for each in decoded.vlan(index))
    layout = f" ({frame.layout_name})" if frame.layout_name else ""
    yield f"  {type_text(frame)}{layout}, dialect {dialect}{order}{tags}"
    if isinstance(frame, Malformed):
        offset = frame.offset + int(decoded.located.shift[index])
        yield f"  MALFORMED at byte {offset}: {frame.reason.text}, {frame.reason.explanation}"
    lines = list(field_lines(decoded, index))
    name_width = max((len(line.name) for line in lines), default=0)
    for line in lines:
        yield from _fitted(line, name_width, width)


def _fitted(line: FieldLine, name_width: int, width: int | None) -> Iterator[str]:
    shown = line.raw[:_BYTES_SHOWN].hex(" ", 2) + (" …" if len(line.raw) > _BYTES_SHOWN else "")
    start = f"  {line.offset:5}  {line.name:{name_width}}  {line.text}"
    value_at = len(start) - len(line.text)
    bytes_at = value_at + 30
    whole = f"{start:{bytes_at - 2}}  {shown:24}  {line.meaning}".rstrip()
    if width is None or len(whole) <= width:
        yield whole
        return
    head = f"{start:{bytes_at - 2}}  {shown:24}  "
    if width - len(head) >= _MEANING_ROOM:
        first, *others = _wrapped(line.meaning, width - len(head))
        yield head + first
        yield from (" " * len(head) + each for each in others)
        return
    # The meaning goes below the value; the bytes do too if they do not fit beside it.
    beside = f"{start:{bytes_at - 2}}  {shown}".rstrip()
    if len(beside) <= width:
        yield beside
    else:
        yield start
        yield from _below(shown, value_at, width)
    yield from _below(line.meaning, value_at, width)


def _below(text: str, indent: int, width: int) -> Iterator[str]:
    return (" " * indent + each for each in _wrapped(text, max(width - indent, _MEANING_ROOM)))


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]
