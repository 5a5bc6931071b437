"""The scapy layers, generated from the formats, so that no offset, size or name is written here."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, Final

import numpy as np
from scapy.fields import (
    ByteEnumField,
    ByteField,
    Field,
    FieldLenField,
    IntEnumField,
    IntField,
    ShortEnumField,
    ShortField,
    StrField,
    StrLenField,
    XByteField,
    XIntField,
    XShortField,
    XStrFixedLenField,
)
from scapy.layers.l2 import CookedLinux, CookedLinuxV2, Dot1AD, Dot1Q, Ether
from scapy.packet import Packet, Padding, bind_layers, bind_top_down

from mxwire.errors import MxwireError
from mxwire.ethernet import BROADCAST, ETHERTYPE_MXOE, SHORTEST_FRAME, mac_text
from mxwire.report.summary import endpoints_text, summary, type_text
from mxwire.report.tree import SEQUENCE_FIELDS
from mxwire.scapy.dialects import DialectLike, dialect_of
from mxwire.wire.codec import Malformed, codec_of
from mxwire.wire.dialect import MXOE, Dialect, omx
from mxwire.wire.encapsulation import HEADER_LENGTH
from mxwire.wire.enums import PacketType, sequence_text
from mxwire.wire.formats import RAW, PacketFormat
from mxwire.wire.layout import TYPE_OFFSET, Layout, layout_of
from mxwire.wire.layout import Field as FormatField
from mxwire.wire.packets import Frame
from mxwire.wire.selection import ALTERNATIVES, ANNOUNCEMENT_LENGTH, REPLY_FLAG, formats_by_type, is_announcement

BODY_OFFSET: Final = TYPE_OFFSET + 1
"""Offset of the layer after the head, from the first byte of the Ethernet frame."""

_LAYOUT_DIALECTS: Final = {
    "Mxoe": MXOE,
    "Omx": omx(),
    "OmxN3": omx(generation="N3"),
    "OmxN2": omx(generation="N2"),
}
"""One dialect per set of layouts; a layout is named after the first dialect that has it."""


# Fields


class SequenceField(ShortField):
    """A sequence number, shown with a separate session number if that is not 0."""

    def i2repr(self, pkt: Packet | None, x: Any) -> str:
        """Return ``4097``, or ``20481 (1/4097)``."""
        text = sequence_text(x) if isinstance(x, int) else repr(x)
        return text if text == str(x) or not isinstance(x, int) else f"{x} ({text})"


_INTEGERS: Final = {1: ByteField, 2: ShortField, 4: IntField}
_HEXADECIMALS: Final = {1: XByteField, 2: XShortField, 4: XIntField}
_ENUMERATIONS: Final = {1: ByteEnumField, 2: ShortEnumField, 4: IntEnumField}
_LENGTH_CODES: Final = {1: "B", 2: "H", 4: "I"}


def _scapy_field(layout: Layout, field: FormatField) -> Field[Any, Any]:
    """Return the scapy field for a field of the formats; integers are big-endian."""
    name, size = field.attribute, field.size or 0
    if field.kind == "payload":
        return _payload_field(layout, field)
    if field.kind == "undefined":
        return XStrFixedLenField(name, bytes(size), length=size)
    payload = layout.payload
    if payload is not None and payload.length_field == field.name:
        return FieldLenField(name, None, length_of=payload.attribute, fmt=_LENGTH_CODES[size])
    if payload is not None and (layout.name, field.name) in _MESSAGE_LENGTHS:
        adjust = _at_most(size, _MESSAGE_LENGTHS[layout.name, field.name])
        return FieldLenField(name, None, length_of=payload.attribute, fmt=_LENGTH_CODES[size], adjust=adjust)
    default = field.default if field.default is not None else _DEFAULTS.get((layout.name, field.name), 0)
    if field.values:
        return _ENUMERATIONS[size](name, default, dict(field.values))
    if field.name in SEQUENCE_FIELDS:
        return SequenceField(name, default)
    return (_HEXADECIMALS if field.hexadecimal else _INTEGERS)[size](name, default)


def _payload_field(layout: Layout, field: FormatField) -> Field[Any, Any]:
    empty = b"\0" if field.text else b""
    if field.length_field is None:
        return StrField(field.attribute, empty)
    length = layout.by_name[field.length_field]
    # Values made by scapy's fuzz() must fit the length field; two bytes are enough for all of them.
    most = 0xFF if length.size == 1 else None
    return StrLenField(
        field.attribute, empty, length_from=lambda packet: packet.getfieldval(length.attribute), max_length=most
    )


def _end_of_fragment(packet: Packet, length: int) -> int:
    """Return the length of a message whose last fragment is a given MEDIUM."""
    return int(packet.getfieldval("frag_seqnum")) * fragment_payload(packet) + length


def _at_most(size: int, adjust: Callable[[Packet, int], int]) -> Callable[[Packet, int], int]:
    return lambda packet, length: min(adjust(packet, length), (1 << 8 * size) - 1)


_MESSAGE_LENGTHS: Final = {("medium", "length"): _end_of_fragment}
"""Lengths of a whole message; if omitted, the packet is assumed to be its end."""
_DEFAULTS: Final = {("medium", "frag_pipeline"): MXOE.fragment_payload.bit_length() - 1}
"""Values in new packets of fields without a default in the formats, if 0 would be invalid."""


def fragment_payload(packet: Packet) -> int:
    """Return the size in bytes of all fragments but the last: 2^pipeline of a MEDIUM, or the dialect's F."""
    pipeline = packet.fields.get("frag_pipeline", packet.default_fields.get("frag_pipeline"))
    # Only the low five bits of a shift matter, as in mxwire.report.summary.
    return int(packet.dialect.fragment_payload) if pipeline is None else 1 << (int(pipeline) & 31)


# Layers


class _InDialect(Packet):
    """A packet with a dialect: that of ``dialect=``, else of the layer below, else of ``conf``."""

    __slots__ = ["dialect", "dialect_given"]

    def __init__(self, *args: Any, dialect: DialectLike = None, **fields: Any) -> None:
        below = fields.get("_underlayer")
        given = dialect is not None or (isinstance(below, _InDialect) and below.dialect_given)
        object.__setattr__(self, "dialect", _chosen(dialect, below))
        object.__setattr__(self, "dialect_given", given)
        super().__init__(*args, **fields)

    def _as(self, other: _InDialect) -> None:
        object.__setattr__(self, "dialect", other.dialect)
        object.__setattr__(self, "dialect_given", other.dialect_given)

    def copy(self) -> Any:
        """Return a deep copy in the same dialect."""
        clone = super().copy()
        clone._as(self)
        return clone

    def clone_with(self, payload: Any = None, **fields: Any) -> Any:
        """Return the packets that scapy builds from a packet with sets of values."""
        clone = super().clone_with(None, **fields)
        clone._as(self)
        if payload is not None:
            clone.add_payload(payload)
        return clone


def _chosen(given: DialectLike, below: Packet | None) -> Dialect:
    """Return the dialect of a packet to be built on another."""
    return below.dialect if given is None and isinstance(below, _InDialect) else dialect_of(given)


class MXoE(_InDialect):
    """The rest of the 16-byte head after the Ethernet header, and the packet type (sections 4 and 6)."""

    name = "MXoE"
    show_summary = False
    fields_desc: ClassVar[list[Any]] = [
        _scapy_field(layout_of(RAW), each)
        for each in layout_of(RAW).fields
        if HEADER_LENGTH <= each.offset <= TYPE_OFFSET
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Return the layer for the packet type in this dialect, or one bound by the user for another type."""
        packet_type = self.getfieldval("ptype")
        layer = _layers_by_type(self.dialect).get(packet_type)
        if layer is None:
            return super().guess_payload_class(payload)
        return _ALTERNATIVE_LAYERS[packet_type] if _is_alternative(packet_type, payload) else layer

    def add_payload(self, payload: Packet | bytes) -> None:
        """Put a layer on top. If only one of the two has an explicit dialect, the other takes it."""
        if isinstance(payload, MXoEBody):
            if self.dialect_given:
                if payload.dialect_given and payload.dialect != self.dialect:
                    raise MxwireError(
                        f"{type(payload).__name__} is in dialect {payload.dialect}, the MXoE below it in {self.dialect}"
                    )
                payload = payload.in_dialect(self.dialect)
            else:
                self._as(payload)
        super().add_payload(payload)

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Add padding up to the minimum length of an Ethernet frame, and of a host reply."""
        if self.underlayer is None:
            return pkt + pay
        least = SHORTEST_FRAME - HEADER_LENGTH
        if isinstance(self.payload, MXoEBody):
            least += self.payload.extra_length(pay)
        padding = self.getlayer(Padding)
        there = len(pkt) + len(pay) + (0 if padding is None else len(padding.load))
        return pkt + pay + bytes(max(least - there, 0))

    def hashret(self) -> bytes:
        """Return a value that a packet and its answers have in common."""
        return self.payload.hashret()

    def answers(self, other: Packet) -> int:
        """Return whether this may be the answer to another packet; compares addresses if both have them."""
        if not isinstance(other, MXoE) or not self.payload.answers(other.payload):
            return 0
        return int(_comes_back(self.underlayer, other.underlayer))

    def mysummary(self) -> str:
        """Summarise a frame without a layer for its type, in the words of ``mxwire decode``."""
        return _summary_line(self)


def _comes_back(answer: Packet | None, request: Packet | None) -> bool:
    """Return whether the addresses of two frames are those of a request and its answer."""
    if not isinstance(answer, Ether) or not isinstance(request, Ether):
        return True
    return bool(answer.dst == request.src) and request.dst in (answer.src, mac_text(BROADCAST))


class MXoEBody(_InDialect):
    """Base class of all layers after the head."""

    match_subclass = True
    layout: ClassVar[Layout]
    own_dialect: ClassVar[Dialect | None] = None
    """A dialect with this layout, if not all have it."""

    def __init__(self, *args: Any, dialect: DialectLike = None, **fields: Any) -> None:
        if self.own_dialect is not None:
            chosen = _chosen(dialect, fields.get("_underlayer"))
            if _layer_in(type(self), chosen) is not type(self):
                if dialect is not None:
                    raise MxwireError(f"{type(self).__name__} is not a layout of dialect {chosen}")
                dialect = self.own_dialect
        super().__init__(*args, dialect=dialect, **fields)

    def in_dialect(self, dialect: DialectLike) -> MXoEBody:
        """Return this packet in another dialect: itself if the layout is the same, else a copy with the same values."""
        target = dialect_of(dialect)
        cls = _layer_in(type(self), target)
        if cls is type(self):
            object.__setattr__(self, "dialect", target)
            object.__setattr__(self, "dialect_given", True)
            return self
        converted: MXoEBody = cls(dialect=target)
        undefined = {each.attribute for each in self.layout.fields if each.kind == "undefined"}
        for name, value in self.fields.items():
            if name in converted.default_fields:
                converted.setfieldval(name, value)
            elif name not in undefined:
                raise MxwireError(f"{self.layout.packet_type.name} has no {name} in dialect {target}")
        if self.payload:
            converted.add_payload(self.payload.copy())
        return converted

    def extra_length(self, built: bytes) -> int:
        """Return the number of bytes added to the minimum frame length: those of the name in a host reply."""
        name = self.layout.format.extra_length
        if name is None:
            return 0
        field = self.layout.by_name[name]
        return int.from_bytes(built[field.offset - BODY_OFFSET : field.end - BODY_OFFSET], "big")

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        """Return the bytes after the packet as padding."""
        return b"", s

    def hashret(self) -> bytes:
        """Return a value that is the same for a packet and its possible answers."""
        return _hash(self)

    def answers(self, other: Packet) -> int:
        """Return whether this answers another packet: as a reply, or as a nack."""
        answers = _ANSWERS.get((self.layout.name, getattr(getattr(other, "layout", None), "name", "")))
        return int(answers is not None and answers(self, other))

    def mysummary(self) -> tuple[str, list[type[Packet]]]:  # type: ignore[override]
        """Return type, endpoints and the important fields, in the words of ``mxwire decode``."""
        below = self.underlayer
        return _summary_line(below if isinstance(below, MXoE) else MXoE(dialect=self.dialect) / self), [Ether]


def frame_of(head: Packet, addresses: bytes = bytes(HEADER_LENGTH)) -> Frame | Malformed:
    """Decode a packet that starts with a head by mxwire's codec; ``addresses`` is the Ethernet header before it."""
    frame = addresses + bytes(head)
    lowest = head.firstlayer()
    missing = max(lowest.wirelen - len(lowest.original), 0) if lowest.wirelen and lowest.original else 0
    return codec_of(head.dialect).parse(frame, len(frame) + missing)


def _summary_line(head: Packet) -> str:
    frame = frame_of(head)
    words = ("MXoE", endpoints_text(frame), type_text(frame), summary(frame, head.dialect))
    return " ".join(each for each in words if each)


# Requests and their answers


def _mirrored(answer: Packet, request: Packet) -> bool:
    return (answer.src_endpoint, answer.dst_endpoint) == (request.dst_endpoint, request.src_endpoint)


def _connected(reply: Packet, request: Packet) -> bool:
    if reply.connect_seqnum != request.connect_seqnum or reply.src_session_id != request.src_session_id:
        return False
    return _mirrored(reply, request)


def _refused(nack: Packet, refused: Packet) -> bool:
    return bool(nack.lib_seqnum == refused.lib_seqnum) and _mirrored(nack, refused)


def _pulled(reply: Packet, pull: Packet) -> bool:
    payload = pull.dialect.reply_payload
    frames = -(-(pull.first_frame_offset + pull.block_length) // payload)
    requested = (reply.frame_seqnum - pull.frame_index) % 256 < frames
    return requested and (reply.dst_pull_handle, reply.dst_magic) == (pull.src_pull_handle, pull.src_magic)


def _pull_refused(nack: Packet, pull: Packet) -> bool:
    return (nack.src_pull_handle, nack.src_magic) == (pull.src_pull_handle, pull.src_magic)


_ANSWERS: Final[dict[tuple[str, str], Callable[[Any, Any], bool]]] = {
    ("host_reply", "host_query"): lambda reply, query: bool(reply.magic == query.magic),
    ("connect_reply", "connect_request"): _connected,
    ("pull_reply", "pull"): _pulled,
    ("nack_mcp", "pull"): _pull_refused,
} | {
    ("nack_lib", refused): _refused
    for refused in ("connect_request", "connect_reply", "tiny", "small", "medium", "rndv", "notify")
}
"""The comparison of answer and request, by their layouts."""

_HASHED: Final = (("magic",), ("src_pull_handle", "src_magic"), ("dst_pull_handle", "dst_magic"))


def _hash(packet: MXoEBody) -> bytes:
    """Return the number that identifies a query or a pull, else the two endpoints in either direction."""
    has = packet.layout.by_name
    for names in _HASHED:
        if all(name in has for name in names):
            return b"".join(packet.getfieldval(name).to_bytes(4, "big") for name in names)
    if "src_endpoint" in has and "dst_endpoint" in has:
        return bytes(sorted((packet.src_endpoint, packet.dst_endpoint)))
    return b""


# The layers, from the formats


def _layer(packet_format: PacketFormat, name: str, bases: tuple[type[Packet], ...], **more: Any) -> type[MXoEBody]:
    """Return the class of a layout."""
    layout = layout_of(packet_format)
    make: Any = type(MXoEBody)
    layer = make(
        name,
        bases,
        {
            "__module__": __name__,
            "__doc__": f"{packet_format.summary} [{packet_format.section}]",
            "name": name,
            "layout": layout,
            "fields_desc": [_scapy_field(layout, each) for each in layout.fields if each.offset >= BODY_OFFSET],
            **more,
        },
    )
    index = next(each for each in layout.fields if each.offset == HEADER_LENGTH)
    values = {"ptype": int(packet_format.packet_type)}
    if index.kind == "undefined" or index.default is None:
        values[index.attribute] = 0
    else:
        values[index.attribute] = index.default
    bind_top_down(MXoE, layer, **values)
    return layer  # type: ignore[no-any-return]


def _dispatch(frame_class: str) -> Any:
    """A metaclass that makes ``MXoEMedium(…)`` a packet in the layout of its dialect."""

    def dispatch_hook(cls: type[Packet], _pkt: bytes = b"", *args: Any, **fields: Any) -> type[Packet]:
        below = fields.get("_underlayer")
        given = fields.get("dialect")
        try:
            dialect = _chosen(given, below)
        except MxwireError:
            # scapy discards exceptions raised here; the packet itself reports an unknown dialect.
            dialect = MXOE
        return _frame_class_in(frame_class, dialect)

    return classmethod(dispatch_hook)


def _make_layers() -> tuple[dict[str, type[MXoEBody]], dict[PacketFormat, type[MXoEBody]]]:
    """Return the layers by name, and those of single layouts by format."""
    layouts: dict[str, dict[PacketFormat, str]] = {}
    for suffix, dialect in _LAYOUT_DIALECTS.items():
        for each in dialect.formats:
            layouts.setdefault(each.frame_class, {}).setdefault(each, suffix)
    named: dict[str, type[MXoEBody]] = {}
    by_format: dict[PacketFormat, type[MXoEBody]] = {}
    for frame_class, formats in layouts.items():
        name = f"MXoE{frame_class}"
        first = next(iter(formats))
        if len(formats) == 1:
            named[name] = by_format[first] = _layer(first, name, (MXoEBody,))
            continue
        named[name] = general = _layer(first, name, (MXoEBody,), dispatch_hook=_dispatch(frame_class))
        for packet_format, suffix in formats.items():
            layer = _layer(packet_format, name + suffix, (general,), own_dialect=_LAYOUT_DIALECTS[suffix])
            named[name + suffix] = by_format[packet_format] = layer
    return named, by_format


_MADE: Final = _make_layers()

LAYERS: Final = _MADE[0]
"""All layers after the head by name: one per frame class, and one per layout if the dialects differ."""

_BY_FORMAT: Final = _MADE[1]

_ALTERNATIVE_LAYERS: Final = {int(kind): _BY_FORMAT[each] for kind, each in ALTERNATIVES.items()}


@cache
def _layers_by_type(dialect: Dialect) -> dict[int, type[MXoEBody]]:
    return {int(kind): _BY_FORMAT[each] for kind, each in formats_by_type(dialect).items()}


@cache
def _frame_class_in(frame_class: str, dialect: Dialect) -> type[MXoEBody]:
    return _BY_FORMAT[next(each for each in dialect.formats if each.frame_class == frame_class)]


def _layer_in(cls: type[MXoEBody], dialect: Dialect) -> type[MXoEBody]:
    return _frame_class_in(cls.layout.format.frame_class, dialect)


def _is_alternative(packet_type: int, payload: bytes) -> bool:
    """Return whether a packet has the second layout of its type, by the same rules as :mod:`mxwire.wire.codec`."""
    if packet_type == PacketType.CONNECT:
        place = REPLY_FLAG - BODY_OFFSET
        return len(payload) > place and payload[place] != 0
    if packet_type != PacketType.RAW or len(payload) != ANNOUNCEMENT_LENGTH - BODY_OFFSET:
        return False
    row = np.frombuffer(bytes(BODY_OFFSET) + payload, np.uint8).reshape(1, -1)
    return bool(is_announcement(row, np.array([ANNOUNCEMENT_LENGTH]))[0])


for _lower in (Ether, Dot1Q, Dot1AD):
    bind_layers(_lower, MXoE, type=ETHERTYPE_MXOE)
for _cooked in (CookedLinux, CookedLinuxV2):
    bind_layers(_cooked, MXoE, proto=ETHERTYPE_MXOE)
