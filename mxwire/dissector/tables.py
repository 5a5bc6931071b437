"""The tables of the plugin: the parts of :mod:`mxwire.wire` that the Lua code needs, as plain values."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Final

from mxwire.analysis.conversations.state import PULL_TIMER_NS, REORDER_NS, RESEND_NS
from mxwire.analysis.marks import FLAGS
from mxwire.dissector.lua import LuaValue
from mxwire.ethernet import ETHERTYPE_MXOE, SHORTEST_FRAME
from mxwire.texts import meanings
from mxwire.units import SECOND
from mxwire.wire import byteorder, detection, formats, numbers
from mxwire.wire.checks import CHECKS, FRAME_MAXIMUM, FrameCheck, Reason
from mxwire.wire.dialect import (
    DEFAULT_FRAME_LIMIT,
    LARGEST_FRAME_LIMIT,
    MXOE,
    SMALLEST_FRAME_LIMIT,
    Dialect,
    Generation,
    omx,
)
from mxwire.wire.encapsulation import HEADER_LENGTH
from mxwire.wire.enums import RESERVED_TYPES, ConnectStatus, NackType, PacketType, TrucType
from mxwire.wire.layout import Field, Layout, layout_of
from mxwire.wire.numbers import QUERY_MAGICS
from mxwire.wire.selection import ANNOUNCEMENT_LENGTH, REPLY_FLAG

LAYOUTS: Final[dict[str, formats.PacketFormat]] = {
    **{each.name: each for each in formats.COMMON_FORMATS},
    "medium": formats.MEDIUM_MXOE,
    "medium_omx": formats.MEDIUM_OMX,
    "medium_omx_n3": formats.MEDIUM_OMX_N3,
    "pull": formats.PULL_MXOE,
    "pull_omx": formats.PULL_OMX,
}
"""Every layout by its name in the plugin; those of dialect `mxoe` have the plain name."""

ENUMS: Final[dict[str, type[IntEnum]]] = {
    "ptype": PacketType,
    "liback.type": TrucType,
    "nack_type": NackType,
    "connect_status_code": ConnectStatus,
}
GENERATIONS: Final[tuple[Generation, ...]] = ("N1", "N2", "N3", "N4")
_SIZES: Final = ("fragment_payload", "receive_slot", "reply_payload", "frames_per_block", "fragments_maximum")
_WORDS: Final = meanings(__file__, "words.md", "Parts of names")
_BYTES: Final = re.compile(r"\bbytes\b|\bdata belongs\b", re.IGNORECASE)
_MODES: Final = {"at least": "least", "at most": "most", "fits the frame": "fits"}


@dataclass(frozen=True, slots=True)
class FilterField:
    """One display-filter field for bytes of the packet."""

    name: str
    """Name after ``mxoe.``."""
    type: str
    base: str
    title: str
    meaning: str
    """Meaning in every layout that has the field, with its section."""
    layouts: tuple[str, ...]
    values: tuple[tuple[int, str], ...] = ()
    bytes: bool = False
    """True if the value is a number of bytes."""


def filter_name(field: Field) -> str:
    """Return the name of a field after ``mxoe.``; undefined bytes get a prefix to keep names unique."""
    return f"undefined.{field.name}" if field.kind == "undefined" else field.name


def filter_fields() -> list[FilterField]:
    """Return all fields of all layouts, each name once, in order of appearance."""
    fields: dict[str, list[tuple[Layout, Field]]] = {}
    for layout in map(layout_of, LAYOUTS.values()):
        for field in layout.fields:
            fields.setdefault(filter_name(field), []).append((layout, field))
    return [_filter_field(name, places) for name, places in fields.items()]


def _filter_field(name: str, places: list[tuple[Layout, Field]]) -> FilterField:
    fields = [field for _, field in places]
    first = fields[0]
    if first.kind == "integer":
        size = max(field.size or 0 for field in fields)
        kind, base = {1: "uint8", 2: "uint16", 4: "uint32"}[4 if size == 3 else size], _base(first)
        # A name has one type in Wireshark, so the widest is used.
    elif first.kind == "mac":
        kind, base = "ether", "NONE"
    elif first.text:
        kind, base = "string", "NONE"
    else:
        kind, base = "bytes", "NONE"
    types = dict.fromkeys(layout.packet_type.name for layout, _ in places)
    return FilterField(
        name=name,
        type=kind,
        base=base,
        title=_title(name),
        meaning=_meaning(fields),
        layouts=("every type",) if len(types) > 12 else tuple(types),
        values=first.values,
        bytes=all(_counts_bytes(field) for field in fields),
    )


def _counts_bytes(field: Field) -> bool:
    """Return whether an integer is a length or an offset, according to its meaning in the formats."""
    if field.kind != "integer" or field.hexadecimal or field.values:
        return False
    return field.name.endswith(("length", "offset")) and _BYTES.search(field.meaning) is not None


def _base(field: Field) -> str:
    return "HEX" if field.hexadecimal else "DEC"


def _title(name: str) -> str:
    """Return the specification's name in words, as shown in the tree."""
    words = name.removeprefix("undefined.").removeprefix("liback.").split("_")
    plain = " ".join(filter(None, (_WORDS.get(word, word) for word in words)))
    return plain[0].upper() + plain[1:]


def _meaning(fields: list[Field]) -> str:
    texts = dict.fromkeys(f"{field.meaning} [{field.section}]" for field in fields)
    return " / ".join(texts)


def layouts() -> dict[str, LuaValue]:
    """Return every layout with its fields, offsets, sizes, and checks."""
    return {name: _layout(layout_of(packet_format)) for name, packet_format in LAYOUTS.items()}


def _layout(layout: Layout) -> dict[str, LuaValue]:
    payload = layout.payload
    entry: dict[str, LuaValue] = {
        "name": layout.name,
        "type": int(layout.packet_type),
        "header_end": layout.header_end,
        "minimum": layout.format.minimum_length,
        "frame_maximum": FRAME_MAXIMUM.get(layout.name),
        "checks": [_check(each) for each in CHECKS.get(layout.name, ())],
        "fields": [_field(each) for each in layout.fields if each.kind != "payload"],
    }
    if payload is not None:
        entry["payload"] = {"name": payload.name, "length": payload.length_field, "text": payload.text or None}
    return entry


def _field(field: Field) -> dict[str, LuaValue]:
    kinds = {"integer": None, "mac": "mac", "undefined": "undefined"}
    return {
        "name": field.name,
        "at": field.offset,
        "size": field.size,
        "kind": kinds[field.kind],
        "swaps": field.sender_order or None,
    }


def _check(check: FrameCheck) -> dict[str, LuaValue]:
    return {
        "field": check.field,
        "test": _MODES[check.test],
        "bound": check.bound if check.test != "fits the frame" else None,
        "reason": int(check.reason),
    }


def enums() -> dict[str, LuaValue]:
    """Return names of values, by field."""
    return {field: {int(each): each.name for each in values} for field, values in ENUMS.items()}


def named_numbers() -> dict[str, LuaValue]:
    """Return the named numbers of the protocol."""
    return {
        "ethertype": ETHERTYPE_MXOE,
        "header_length": HEADER_LENGTH,
        "type_offset": layout_of(formats.RAW).by_name["ptype"].offset,
        "reply_flag": REPLY_FLAG,
        "announcement_length": ANNOUNCEMENT_LENGTH,
        "nic_id": layout_of(formats.RAW_OMXOED).by_name["nic_id_hi"].offset,
        "minimum_frame": SHORTEST_FRAME,
        "unknown_index": numbers.NO_PEER_INDEX,
        "unknown_session": numbers.NO_SESSION,
        "hostname_maximum": numbers.HOST_NAME_MAXIMUM,
        "liback_length": numbers.LIBACK_LENGTH,
        "sequence_mask": numbers.NUMBER_MASK,
        "session_number_shift": numbers.SESSION_NUMBER_SHIFT,
        "early_window": numbers.EARLY_WINDOW,
        "outstanding_maximum": numbers.OUTSTANDING_MAXIMUM,
        "resend_delay": numbers.RESEND_DELAY / SECOND,
        "pull_timer": numbers.PULL_TIMER / SECOND,
        "blocks_in_flight": numbers.BLOCKS_IN_FLIGHT,
        "fragments_tracked": numbers.FRAGMENTS_TRACKED,
        "region_maximum": numbers.REGION_MAXIMUM,
        "longest_plain_query": numbers.LONGEST_PLAIN_QUERY,
        "pull_magic_prefix": byteorder.PULL_MAGIC_PREFIX,
        "default_limit": DEFAULT_FRAME_LIMIT,
        "smallest_limit": SMALLEST_FRAME_LIMIT,
        "largest_limit": LARGEST_FRAME_LIMIT,
        "votes_settle": byteorder.SETTLED * byteorder._STRONG,
        "pipeline_first": detection._PIPELINES.start,
        "pipeline_last": detection._PIPELINES.stop - 1,
        "pipeline_open_mx": detection._OPEN_MX_PIPELINE,
        "longest_medium": detection._LONGEST_MEDIUM,
        "resend_least": RESEND_NS / SECOND,
        "pull_timer_least": PULL_TIMER_NS / SECOND,
        "reordering": REORDER_NS / SECOND,
        "endpoint_maximum": numbers.ENDPOINT_MAXIMUM,
        "probe_magic_first": QUERY_MAGICS.start,
        "probe_magic_last": QUERY_MAGICS.stop - 1,
    }


def packet_types() -> dict[str, LuaValue]:
    """Return packet types by name."""
    return {each.name: int(each) for each in PacketType}


def reserved_types() -> dict[int, LuaValue]:
    """Return the packet types reserved for native MX."""
    return {int(each): True for each in sorted(RESERVED_TYPES)}


def reasons() -> dict[int, LuaValue]:
    """Return the reasons for malformed frames: name, words, and a sentence."""
    return {
        int(each): {"name": each.name.lower(), "text": each.text, "explanation": each.explanation} for each in Reason
    }


def common_layouts() -> dict[int, LuaValue]:
    """Return the layout of every packet type that is the same in all dialects."""
    chosen: dict[int, LuaValue] = {int(each.packet_type): each.name for each in formats.COMMON_FORMATS}
    return chosen | {int(PacketType.RAW): formats.RAW.name, int(PacketType.CONNECT): formats.CONNECT_REQUEST.name}


def alternatives() -> dict[str, LuaValue]:
    """Return the second layout of the two packet types that have one."""
    return {"reply": formats.CONNECT_REPLY.name, "announcement": formats.RAW_OMXOED.name}


@cache
def dialects() -> dict[str, LuaValue]:
    """Return the sizes of `mxoe`, and those of `omx` as linear pieces: starting at this M, M times slope plus
    constant.
    """
    sizes: dict[str, LuaValue] = {"mxoe": _named(MXOE)}
    for generation in GENERATIONS:
        sizes[generation] = _omx(generation)
    return sizes


def _named(dialect: Dialect) -> dict[str, LuaValue]:
    sizes: dict[str, LuaValue] = {name: int(getattr(dialect, name)) for name in ("frame_limit", *_SIZES)}
    layouts: dict[str, LuaValue] = {"medium": _key(dialect.medium_format), "pull": _key(dialect.pull_format)}
    return sizes | layouts


def _key(packet_format: formats.PacketFormat) -> str:
    return next(name for name, each in LAYOUTS.items() if each is packet_format)


def _omx(generation: Generation) -> dict[str, LuaValue]:
    # Bypass the cache: 65,000 dialects need not be kept.
    make: Callable[[int, Generation], Dialect] = omx.__wrapped__
    limits = range(SMALLEST_FRAME_LIMIT, LARGEST_FRAME_LIMIT + 1)
    every = [make(limit, generation) for limit in limits]
    pieces: dict[str, LuaValue] = {
        name: _pieces(limits.start, [int(getattr(each, name)) for each in every]) for name in _SIZES
    }
    return pieces | {"medium": _key(every[0].medium_format), "pull": _key(every[0].pull_format)}


def _pieces(start: int, values: list[int]) -> list[LuaValue]:
    """Return a function of M as linear pieces, ``{from, slope, constant}``, with slope 0 or 1."""
    pieces: list[LuaValue] = []
    slope, constant = -1, 0
    for place, value in enumerate(values):
        limit = start + place
        if slope >= 0 and slope * limit + constant == value:
            continue
        following = values[place + 1] if place + 1 < len(values) else value
        slope = 1 if following == value + 1 else 0
        constant = value - slope * limit
        pieces.append([limit, slope, constant])
    return pieces


def hints() -> list[LuaValue]:
    """Return the evidence for dialects, in the order of :class:`mxwire.wire.detection.Hint`."""
    return [
        {"name": hint.name, "family": hint.family, "strength": hint.strength, "text": hint.text}
        for hint in detection.Hint
    ]


def old_reply_limits() -> dict[int, LuaValue]:
    """Return P of old generations, each with a frame limit that results in it."""
    return dict(detection._OLD_REPLY_LIMITS)


def flags() -> list[LuaValue]:
    """Return the flags of frames, in their order."""
    return [
        {"name": name, "label": each.label, "severity": each.severity, "meaning": each.meaning}
        for name, each in FLAGS.items()
    ]


def byte_order() -> list[LuaValue]:
    """Return the fields that show a sender's byte order, each with its weight."""
    offsets: list[LuaValue] = []
    for packet_type, packet_format, name, prefix in byteorder._PREFIXES:
        offsets.append(_vote(packet_type, packet_format, name) | {"prefix": prefix, "weight": byteorder._STRONG})
    for packet_type, packet_format, name, value, weight in byteorder._VALUES:
        offsets.append(_vote(packet_type, packet_format, name) | {"value": value, "weight": weight})
    for packet_type, packet_format, most in byteorder._LENGTHS:
        offsets.append(_vote(packet_type, packet_format, "length") | {"most": most, "weight": byteorder._STRONG})
    return offsets


def _vote(packet_type: PacketType, packet_format: formats.PacketFormat, name: str) -> dict[str, LuaValue]:
    layout = layout_of(packet_format)
    field = layout.by_name[name]
    return {"type": int(packet_type), "at": field.offset, "size": field.size, "header_end": layout.header_end}
