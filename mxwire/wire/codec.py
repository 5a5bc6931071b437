"""The scalar codec: parses and builds one frame at a time, compiled from the layouts.

The scalar path defines the meaning of frames; :mod:`mxwire.wire.columns` gives the same results for whole batches.
"""

from __future__ import annotations

import dataclasses
import operator
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, Final

import numpy as np

from mxwire.wire.checks import CHECKS, FRAME_MAXIMUM, Reason
from mxwire.wire.dialect import Dialect, as_dialect
from mxwire.wire.enums import RESERVED_TYPES, PacketType
from mxwire.wire.formats import RAW, PacketFormat
from mxwire.wire.layout import TYPE_OFFSET, Field, Layout, layout_of
from mxwire.wire.packets import FRAME_CLASSES, Frame
from mxwire.wire.selection import ALTERNATIVES, ANNOUNCEMENT_LENGTH, REPLY_FLAG, formats_by_type, is_announcement

_CLASSES: Final = {each.__name__: each for each in FRAME_CLASSES}
_INTEGER_CODES: Final = {1: "B", 2: "H", 4: "I"}


@dataclass(frozen=True, slots=True)
class Malformed:
    """A frame that violates its format, with the fields that are readable."""

    reason: Reason
    offset: int
    """Offset of the offending field, or of the first missing byte, from the start of the frame."""
    packet_type: int | None
    """The type byte, or None if the frame ends before it."""
    layout_name: str | None = None
    """The layout of the packet type, or None if the type has none."""
    fields: Mapping[str, int | bytes] = field(default_factory=dict)
    """The readable fields, by specification name."""


class _Compiled:
    """A layout compiled for one dialect and byte order, with one :class:`struct.Struct` for all its fixed fields."""

    def __init__(self, layout: Layout, dialect: Dialect, swapped: bool) -> None:
        self.layout = layout
        self.name = layout.name
        self.frame_class = _CLASSES[layout.format.frame_class]
        self.defined = layout.defined
        self.header_end = layout.header_end
        self.payload = layout.payload
        self.codec = struct.Struct(("<" if swapped else ">") + "".join(_code(each, swapped) for each in layout.fields))
        self.names = tuple(each.name for each in self.defined)
        self.addresses = tuple(place for place, each in enumerate(self.defined) if each.kind == "mac")
        self.big_endian_always = tuple(
            place for place, each in enumerate(self.defined) if swapped and _is_fixed_order(each)
        )
        carried = [each.attribute for each in self.defined]
        self.make = _maker(self.frame_class, [*carried, self.payload.attribute] if self.payload else carried)
        self.take = operator.attrgetter(*(each.attribute for each in self.defined))
        self.payload_attribute = self.payload.attribute if self.payload else ""
        length_field = self.payload.length_field if self.payload else None
        self.length_place = self.names.index(length_field) if length_field else None
        self.checks = tuple(_bind(check, self.names, self.defined, dialect) for check in CHECKS.get(self.name, ()))
        self.frame_maximum = FRAME_MAXIMUM.get(self.name)
        self.checked = bool(self.checks) or self.frame_maximum is not None

    def values(self, frame: bytes) -> list[Any]:
        """The values of the fixed fields; the header of ``frame`` must be complete."""
        values = list(self.codec.unpack_from(frame))
        if self.big_endian_always:
            for place in self.big_endian_always:
                values[place] = int.from_bytes(values[place], "big")
        return values

    def frame(self, values: list[Any], frame: bytes, wire_length: int) -> Frame:
        """The typed frame of ``values``, with the payload taken from ``frame``."""
        if self.payload is not None:
            end = wire_length if self.length_place is None else self.header_end + values[self.length_place]
            payload = frame[self.header_end : end]
            # A copy, since a view would change with the buffer of the caller.
            values.append(payload if type(payload) is bytes else bytes(payload))
        return self.make(*values)

    def build(self, frame: Frame) -> bytes:
        """The bytes of a frame, padded as senders do."""
        values = list(self.take(frame))
        for place in self.addresses:
            # struct would silently truncate or pad an address of another size.
            if len(values[place]) != self.defined[place].size:
                raise ValueError(f"{self.names[place]} has {len(values[place])} bytes")
        for place in self.big_endian_always:
            values[place] = values[place].to_bytes(self.defined[place].size, "big")
        built = self.codec.pack(*values)
        if self.payload is not None:
            built += getattr(frame, self.payload_attribute)
        packet_format = self.layout.format
        shortest = packet_format.minimum_length
        if packet_format.extra_length is not None:
            shortest += getattr(frame, packet_format.extra_length)
        # RAW is opaque up to the frame's end, so padding would change its contents.
        return built if self.payload is not None and self.length_place is None else built.ljust(shortest, b"\0")

    def readable(self, frame: bytes) -> dict[str, int | bytes]:
        """The fields that lie completely within a frame with an incomplete header."""
        values = self.values(bytes(frame).ljust(self.header_end, b"\0"))
        return {each.name: value for each, value in zip(self.defined, values, strict=True) if each.end <= len(frame)}


def _maker(frame_class: type[Frame], carried: list[str]) -> Callable[..., Frame]:
    """A function that makes frames of a class from the values of the attributes ``carried``; the others are None.

    The constructor of a frozen class is five times slower, since it sets each value through ``object.__setattr__``.
    Therefore the values are set on an object of an unfrozen class with the same slots, whose class is then changed.
    """
    unguarded = {"__init__": object.__init__, "__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    slots = {"__slots__": vars(frame_class)["__slots__"]}
    unfinished = type(frame_class.__name__, frame_class.__bases__, slots | unguarded)
    names = [each.name for each in dataclasses.fields(frame_class)]
    sets = [f"made.{name} = {name if name in carried else None}" for name in names]
    lines = [f"def make({', '.join(carried)}):", "made = unfinished()", *sets, "made.__class__ = frame_class"]
    made: dict[str, Any] = {"unfinished": unfinished, "frame_class": frame_class}
    exec("\n    ".join([*lines, "return made"]), made)
    maker: Callable[..., Frame] = made["make"]
    return maker


@dataclass(frozen=True, slots=True)
class _BoundCheck:
    place: int
    offset: int
    lowest: int
    highest: int
    reason: Reason


def _bind(check: Any, names: tuple[str, ...], fields: tuple[Field, ...], dialect: Dialect) -> _BoundCheck:
    """A check with numeric limits; ``highest`` is -1 for the room that the frame has."""
    bound = dialect.receive_slot if check.bound == "receive_slot" else int(check.bound)
    place = names.index(check.field)
    lowest, highest = {"at least": (bound, 1 << 32), "at most": (0, bound), "fits the frame": (0, -1)}[check.test]
    return _BoundCheck(place, fields[place].offset, lowest, highest, check.reason)


def _is_fixed_order(each: Field) -> bool:
    return each.kind == "integer" and each.size != 1 and not each.sender_order


def _code(each: Field, swapped: bool) -> str:
    """The :mod:`struct` code of a field; big-endian integers of a swapped sender are handled as bytes."""
    if each.kind == "undefined":
        return f"{each.size}x"
    if each.kind == "payload":
        return ""
    if each.kind == "mac" or (swapped and _is_fixed_order(each)):
        return f"{each.size}s"
    return _INTEGER_CODES[each.size or 0]


class Codec:
    """Parses and builds the frames of one dialect and byte order."""

    def __init__(self, dialect: Dialect, *, swapped: bool = False) -> None:
        self.dialect = dialect
        self.swapped = swapped
        self._by_type: list[_Compiled | None] = [None] * 256
        self._by_name: dict[str, _Compiled] = {}
        for packet_type, packet_format in formats_by_type(dialect).items():
            self._by_type[packet_type] = self._compile(packet_format)
        # RAW has no fields but those that all packets begin with.
        self._head = self._by_name[RAW.name]
        self._alternatives = {int(kind): self._compile(each) for kind, each in ALTERNATIVES.items()}
        self._readers: dict[tuple[str, ...], struct.Struct] = {}
        self._stretches: dict[tuple[str, ...], tuple[int, struct.Struct]] = {}

    def _compile(self, packet_format: PacketFormat) -> _Compiled:
        compiled = _Compiled(layout_of(packet_format), self.dialect, self.swapped)
        self._by_name[compiled.name] = compiled
        return compiled

    def parse(self, frame: bytes, wire_length: int | None = None) -> Frame | Malformed:
        """Decode an Ethernet frame without VLAN tags.

        ``frame`` is its captured bytes, from the destination address on; ``wire_length`` is its length on the wire in
        bytes, if the capture cut it. Never raises, whatever the bytes: a frame that violates its format is returned as
        :class:`Malformed`. The EtherType is not checked.
        """
        # Some captures claim a shorter length than they hold.
        length = len(frame) if wire_length is None else max(wire_length, len(frame))
        if len(frame) <= TYPE_OFFSET:
            return Malformed(_missing(length, TYPE_OFFSET + 1), len(frame), None, None, self._head.readable(frame))
        packet_type = frame[TYPE_OFFSET]
        compiled = self._by_type[packet_type]
        if compiled is None:
            return self._without_layout(frame, packet_type)
        if packet_type in self._alternatives and _is_alternative(frame, packet_type, length):
            compiled = self._alternatives[packet_type]
        if len(frame) < compiled.header_end:
            reason = _missing(length, compiled.header_end)
            return Malformed(reason, len(frame), packet_type, compiled.name, compiled.readable(frame))
        values = compiled.values(frame)
        failed = _failure(compiled, values, length) if compiled.checked else None
        if failed is not None:
            return Malformed(*failed, packet_type, compiled.name, dict(zip(compiled.names, values, strict=True)))
        return compiled.frame(values, frame, length)

    def _without_layout(self, frame: bytes, packet_type: int) -> Malformed:
        """A frame of a type without a layout; only its head is readable."""
        reason = Reason.INVALID_TYPE if packet_type in RESERVED_TYPES else Reason.UNKNOWN_TYPE
        return Malformed(reason, TYPE_OFFSET, packet_type, None, self._head.readable(frame[: TYPE_OFFSET + 1]))

    def layout(self, name: str) -> Layout:
        """The layout of this dialect by specification name, such as ``pull_reply``."""
        return self._by_name[name].layout

    def header(self, name: str) -> tuple[struct.Struct, int]:
        """A struct that packs the defined fields of a layout in order of offset, and the minimum frame length in bytes.

        For senders of many similar frames, without typed values or checks. The caller appends the payload, and zeros
        up to the minimum length. Undefined bytes are zero; values that do not fit raise :class:`struct.error`.
        """
        compiled = self._by_name[name]
        return compiled.codec, compiled.layout.format.minimum_length

    def reader(self, name: str, *fields: str) -> struct.Struct:
        """A struct that unpacks only some fields of a layout, given in order of offset, from the start of a frame.

        For receivers of many frames. The length of the struct is that of the header.
        """
        reader = self._readers.get((name, *fields))
        if reader is None:
            codes = [
                _code(each, self.swapped) if each.name in fields or each.size is None else f"{each.size}x"
                for each in self._by_name[name].layout.fields
            ]
            reader = struct.Struct(("<" if self.swapped else ">") + "".join(codes))
            self._readers[name, *fields] = reader
        return reader

    def stretch(self, name: str, *fields: str) -> tuple[int, struct.Struct]:
        """The offset of adjacent fields of a layout, and a struct that packs their values.

        For senders of many frames that differ only in these fields. Raises :class:`ValueError` if the fields are not
        adjacent.
        """
        stretch = self._stretches.get((name, *fields))
        if stretch is None:
            by_name = self._by_name[name].layout.by_name
            found = [by_name[each] for each in fields]
            if any(one.end != other.offset for one, other in pairwise(found)):
                raise ValueError(f"{', '.join(fields)} are not adjacent in {name}")
            order = "<" if self.swapped else ">"
            stretch = found[0].offset, struct.Struct(order + "".join(_code(each, self.swapped) for each in found))
            self._stretches[name, *fields] = stretch
        return stretch

    def build(self, frame: Frame) -> bytes:
        """Encode a frame as senders of this dialect do, padded to its minimum length, with zeros as undefined bytes.

        Raises :class:`ValueError` if a value does not fit its field in this dialect, or a field of this dialect is
        None.
        """
        compiled = self._by_name.get(frame.layout_name)
        if compiled is None:
            raise ValueError(f"{type(frame).__name__} is not a packet itself: build one of its subclasses")
        try:
            return compiled.build(frame)
        except (struct.error, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise ValueError(
                f"{type(frame).__name__} cannot be built in dialect {self.dialect.name}: {error}"
            ) from None


@cache
def codec_of(dialect: Dialect, *, swapped: bool = False) -> Codec:
    """The codec of a dialect, compiled once."""
    return Codec(dialect, swapped=swapped)


def parse(frame: bytes, dialect: Dialect | str, wire_length: int | None = None) -> Frame | Malformed:
    """Decode one Ethernet frame, from its destination address on, into a typed value.

    ``dialect`` is a :class:`~mxwire.wire.dialect.Dialect` or its name; ``wire_length`` is the length on the wire where
    ``frame`` was cut. A frame that breaks its format becomes a :class:`Malformed`, never an error. Raises
    :class:`TypeError` for arguments of other types.
    """
    if not isinstance(frame, (bytes, bytearray, memoryview)):
        raise TypeError(f"a frame is bytes, not {type(frame).__name__}")
    return codec_of(as_dialect(dialect)).parse(bytes(frame), wire_length)


def build(frame: Frame, dialect: Dialect | str) -> bytes:
    """Encode ``frame``, one of the classes of :mod:`mxwire.wire.packets`, as bytes from the destination address on.

    Raises :class:`~mxwire.errors.MxwireError` for values that do not fit, and :class:`TypeError` for arguments of other
    types.
    """
    if not isinstance(frame, Frame):
        raise TypeError(f"a frame to build is an instance of a class of mxwire.wire.packets, not {frame!r}")
    return codec_of(as_dialect(dialect)).build(frame)


def _is_alternative(frame: bytes, packet_type: int, length: int) -> bool:
    if packet_type == PacketType.CONNECT:
        return len(frame) > REPLY_FLAG and frame[REPLY_FLAG] != 0
    if len(frame) < ANNOUNCEMENT_LENGTH:
        return False
    # A row of one, for the test that the batch path uses, so that both agree.
    row = np.frombuffer(frame, np.uint8, ANNOUNCEMENT_LENGTH).reshape(1, ANNOUNCEMENT_LENGTH)
    return bool(is_announcement(row, np.array([length]))[0])


def _failure(compiled: _Compiled, values: list[Any], length: int) -> tuple[Reason, int] | None:
    """The first check that fails, as reason and offset."""
    if compiled.frame_maximum is not None and length > compiled.frame_maximum:
        return Reason.RAW_TOO_LARGE, compiled.frame_maximum
    for check in compiled.checks:
        highest = check.highest if check.highest >= 0 else length - compiled.header_end
        if not check.lowest <= values[check.place] <= highest:
            return check.reason, check.offset
    return None


def _missing(length: int, needed: int) -> Reason:
    return Reason.BAD_HEADER_LENGTH if length < needed else Reason.CUT_BY_CAPTURE
