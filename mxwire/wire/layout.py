"""Layouts: the formats flattened into fields with offsets, the source of every offset in mxwire.

Construct's own ``Struct.compile()`` is not used: the code it generates is unsafe on hostile input.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

import construct

from mxwire.wire.enums import PacketType
from mxwire.wire.formats import RAW, Mac, PacketFormat, Payload, SenderOrder, TextPayload, Undefined

if TYPE_CHECKING:
    import numpy as np

FieldKind = Literal["integer", "mac", "undefined", "payload"]

_SECTION = re.compile(r"\s*\[([^\]]*)\]$")


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a packet, with its properties from the formats."""

    name: str
    """The specification's name; a field of the liback inside TRUC is ``liback.…``."""
    offset: int
    """Bytes from the start of the Ethernet frame, without VLAN tags."""
    size: int | None
    """Size in bytes; None for a payload."""
    kind: FieldKind
    meaning: str
    section: str
    sender_order: bool = False
    """True if a sender built with the endian option off writes it in little-endian order."""
    hexadecimal: bool = False
    """True if the value is shown in hexadecimal."""
    text: bool = False
    """True for a payload that contains a NUL-terminated name."""
    default: int | None = None
    length_field: str | None = None
    """The field with the length of a payload; None if it extends to the end of the frame."""
    values: tuple[tuple[int, str], ...] = ()
    """Values with their names, if the protocol defines any."""

    @property
    def attribute(self) -> str:
        """The name of the field in the frame classes."""
        return self.name.replace(".", "_")

    @property
    def end(self) -> int:
        """Offset of the first byte after the field; for a payload, its start."""
        return self.offset + (self.size or 0)

    def value_name(self, value: int) -> str | None:
        """The protocol's name of a value, or None."""
        return dict(self.values).get(value)


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """One packet layout with its fields in order of offset."""

    format: PacketFormat
    fields: tuple[Field, ...]
    name: str = field(init=False)
    """The specification's name of the layout, for example ``pull_reply``."""
    packet_type: PacketType = field(init=False)
    """The packet type, as in ``ptype``."""
    payload: Field | None = field(init=False)
    """The field of variable length at the end, or None."""
    by_name: dict[str, Field] = field(init=False)
    header_end: int = field(init=False)
    """Bytes of a frame needed for its fixed fields."""

    def __post_init__(self) -> None:
        """Index the fields, and derive the other attributes."""
        last = self.fields[-1]
        object.__setattr__(self, "name", self.format.name)
        object.__setattr__(self, "packet_type", self.format.packet_type)
        object.__setattr__(self, "payload", last if last.kind == "payload" else None)
        object.__setattr__(self, "by_name", {each.name: each for each in self.fields})
        object.__setattr__(self, "header_end", max(each.end for each in self.fields))

    @property
    def defined(self) -> tuple[Field, ...]:
        """The fields of fixed size, except undefined ones."""
        return tuple(each for each in self.fields if each.kind in ("integer", "mac"))


@cache
def layout_of(packet_format: PacketFormat) -> Layout:
    """The layout of a packet format."""
    return Layout(packet_format, tuple(_walk(packet_format.struct, "", 0)))


def _walk(struct: construct.Construct, prefix: str, offset: int) -> list[Field]:
    fields: list[Field] = []
    for member in struct.subcons:
        name = prefix + member.name
        inner = _unnamed(member)
        if isinstance(inner, construct.Struct):
            fields += _walk(inner, name + ".", offset)
        else:
            fields.append(_field(name, offset, inner, member.docs))
        offset = fields[-1].end
    return fields


def _unnamed(element: Any) -> construct.Construct:
    """Remove the wrappers that hold a name and documentation."""
    while isinstance(element, construct.Renamed):
        element = element.subcon
    return element


def _field(name: str, offset: int, element: construct.Construct, docs: str) -> Field:
    """Unwrap one field from the outside in, collecting the property that each wrapper stands for."""
    section = _SECTION.search(docs)
    properties: dict[str, Any] = {"kind": "integer", "size": None}
    while True:
        match element:
            case construct.Default():
                properties["default"] = int(element.value)
            case construct.Hex():
                properties["hexadecimal"] = True
            case construct.Enum():
                properties["values"] = tuple(
                    sorted((int(value), str(key)) for value, key in element.ksymapping.items())
                )
            case SenderOrder():
                properties["sender_order"] = True
            case TextPayload():
                properties["text"] = True
            case Undefined():
                properties["kind"] = "undefined"
            case Mac():
                properties["kind"] = "mac"
            case Payload():
                properties |= {"kind": "payload", "length_field": element.length_field}
                break
            case construct.FormatField() | construct.Bytes():
                properties["size"] = element.sizeof()
                break
            case _ if element is construct.GreedyBytes:
                properties["kind"] = "payload"
                break
            case _:
                raise TypeError(f"field {name} of the formats uses {element!r}, which the layouts do not know")
        element = element.subcon
    meaning = _SECTION.sub("", docs)
    return Field(name, offset, meaning=meaning, section=section.group(1) if section else "", **properties)


@cache
def header_type(layout: Layout, *, swapped: bool = False, size: int | None = None) -> np.dtype[np.void]:
    """A structured dtype with every defined field of ``layout`` by specification name.

    Integers are in network order, or for ``swapped`` as a little-endian sender writes them; addresses are arrays of six
    bytes. An element has ``size`` bytes, by default ``layout.header_end``. In an array made with :func:`numpy.zeros`,
    undefined bytes are zero.
    """
    import numpy as np

    defined = layout.defined
    return np.dtype(
        {
            "names": [each.name for each in defined],
            "formats": [_dtype_of(each, swapped) for each in defined],
            "offsets": [each.offset for each in defined],
            "itemsize": layout.header_end if size is None else size,
        }
    )


def _dtype_of(field: Field, swapped: bool) -> str | tuple[str, int | None]:
    if field.kind == "mac":
        # numpy parses "6u1" in Python, which takes eight times as long.
        return "u1", field.size
    return f"{'<' if swapped and field.sender_order else '>'}u{field.size}"


TYPE_OFFSET: Final = layout_of(RAW).by_name["ptype"].offset
"""Offset of ``ptype``; a frame that ends before it has no known type."""
