"""The packet formats as tables, lists of receiver checks, diagrams and JSON lines.

Everything is derived from the layouts, so it cannot disagree with the decoder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from mxwire.errors import MxwireError
from mxwire.report.diagram import LEGEND, diagram, has_undefined_bytes
from mxwire.report.document import Block, Heading, Listing, Paragraph, Row, Table, Verbatim, columns_of, tabulate
from mxwire.wire.checks import CHECKS, FRAME_MAXIMUM, FrameCheck, Reason
from mxwire.wire.dialect import MXOE, Dialect, Family, omx
from mxwire.wire.enums import RESERVED_TYPES, PacketType
from mxwire.wire.formats import PacketFormat
from mxwire.wire.layout import TYPE_OFFSET, Field, Layout, layout_of
from mxwire.words import suggestion

DialectChoice = Literal["both", "mxoe", "omx"]

_DIALECTS: Final[dict[DialectChoice, tuple[Dialect, ...]]] = {"both": (MXOE, omx()), "mxoe": (MXOE,), "omx": (omx(),)}
_TESTS: Final = (
    "A frame is malformed if it fails one of these checks, in this order; only then does a receiver look at its "
    "endpoints, sessions and peers:"
)

_OVERVIEW_COLUMNS: Final = columns_of("#value, `packet type, section, #header, dialects, ~purpose")
_FIELD_COLUMNS: Final = columns_of("#frame, #body, #size, `field, ~meaning, ~section")


@dataclass(frozen=True, slots=True)
class LayoutView:
    """A layout and the dialect to show it for."""

    layout: Layout
    dialect: Dialect
    """The dialect whose sizes appear in the receiver's checks."""
    is_common: bool
    """True if both dialects have this layout."""

    @property
    def title(self) -> str:
        """The packet type, the layout's name if the type has several, and the dialect."""
        packet_type = self.layout.packet_type
        name = f"{packet_type.name} ({packet_type.value})"
        if has_own_name(self.layout):
            name += f": {self.layout.name}"
        return f"{name}, {'both dialects' if self.is_common else f'dialect {self.dialect.family}'}"


def has_own_name(layout: Layout) -> bool:
    """Return True if the name of ``layout`` differs from that of its packet type."""
    return layout.name != layout.packet_type.name.lower()


# Selection


def views(name: str | None = None, dialect: DialectChoice = "both") -> list[LayoutView]:
    """The layouts of the packet type or layout ``name`` (all without a name), in order of type.

    A layout that differs between the dialects appears once per dialect. Raises :class:`~mxwire.errors.MxwireError` for
    an unknown name.
    """
    names = None if name is None else _layout_names(name)
    views: dict[tuple[PacketType, str], list[LayoutView]] = {}
    for each in _DIALECTS[dialect]:
        for packet_format in each.formats:
            if names is None or packet_format.name in names:
                known = views.setdefault((packet_format.packet_type, packet_format.name), [])
                # Formats that both dialects share are the same object.
                if all(view.layout.format is not packet_format for view in known):
                    known.append(LayoutView(layout_of(packet_format), each, _is_common(packet_format)))
    return [view for known in views.values() for view in known]


def type_names() -> list[str]:
    """Names of the packet types that have a layout, in the specification's spelling."""
    return list(dict.fromkeys(each.packet_type.name for each in MXOE.formats))


def layout_names() -> list[str]:
    """The names of all layouts."""
    return [each.name for each in MXOE.formats]


def _is_common(packet_format: PacketFormat) -> bool:
    return all(any(each is packet_format for each in dialect.formats) for dialect in _DIALECTS["both"])


def _layout_names(name: str) -> set[str]:
    """Resolve the name or number of a packet type, or the name of a layout, to names of layouts."""
    key = name.strip().lower().replace("-", "_")
    # Decimal or hexadecimal: users copy types from the specification, and from dumps of bytes.
    number = _number(key)
    of_type = {each.name for each in MXOE.formats if each.packet_type.name.lower() == key or each.packet_type == number}
    # Types before layouts: RAW is also the name of one of its two layouts.
    if of_type:
        return of_type
    if key in layout_names():
        return {key}
    for each in PacketType:
        if key == each.name.lower() or number == each:
            raise MxwireError(f"packet type {each.name} ({each.value}) has no layout: {_reason(each).explanation}")
    raise MxwireError(_unknown(name, key))


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


def _unknown(name: str, wanted: str) -> str:
    hint = suggestion(wanted, [*(each.lower() for each in type_names()), *layout_names()])
    others = [each for each in layout_names() if each.upper() not in type_names()]
    known = f"{', '.join(type_names())} and the layouts {', '.join(others)}"
    return f"no packet type {name!r}{hint}; there are {known}"


def _reason(packet_type: PacketType) -> Reason:
    return Reason.INVALID_TYPE if packet_type in RESERVED_TYPES else Reason.UNKNOWN_TYPE


# All packets


def overview(dialect: DialectChoice = "both") -> list[Block]:
    """A table of all packet types, and usage lines."""
    return [
        overview_table(dialect),
        Paragraph(
            "header: bytes from the destination address to the last fixed field, in mxoe and in omx where they differ."
        ),
        Paragraph("One packet: mxwire formats PULL; as a diagram: mxwire formats PULL --diagram; as JSON: --json."),
    ]


def overview_table(dialect: DialectChoice = "both") -> Table:
    """All packet types as a table, including those without a layout."""
    by_type: dict[PacketType, dict[str, list[LayoutView]]] = {each: {} for each in PacketType}
    for view in views(dialect=dialect):
        by_type[view.layout.packet_type].setdefault(view.layout.name, []).append(view)
    rows = []
    for packet_type, by_name in by_type.items():
        rows += [_overview_row(packet_type, each) for each in by_name.values()]
        if not by_name:
            explanation = _reason(packet_type).explanation
            cells = (str(packet_type.value), packet_type.name, "6", "-", "-", _sentence(explanation))
            rows.append(Row(cells, muted=True))
    return Table(_OVERVIEW_COLUMNS, tuple(rows))


def _overview_row(packet_type: PacketType, of_layout: list[LayoutView]) -> Row:
    view = of_layout[0]
    name = packet_type.name + (f"\n{view.layout.name}" if has_own_name(view.layout) else "")
    headers = "/".join(str(each.layout.header_end) for each in _distinct_headers(of_layout))
    dialects = "same" if view.is_common else "differ"
    return Row(
        (str(packet_type.value), name, view.layout.format.section, headers, dialects, view.layout.format.summary)
    )


def _distinct_headers(of_layout: list[LayoutView]) -> list[LayoutView]:
    same = len({view.layout.header_end for view in of_layout}) == 1
    return of_layout[:1] if same else of_layout


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


# One packet


def details(shown: Sequence[LayoutView], *, drawn: bool = False, listed: bool = True) -> list[Block]:
    """Layouts as diagrams (``drawn``), tables (``listed``) or both, and the differences between dialects."""
    blocks: list[Block] = []
    for place, view in enumerate(shown):
        blocks += [Heading(view.title), *describe(view)]
        blocks += drawing(view) if drawn else []
        blocks += listing(view) if listed else []
        before = shown[place - 1].layout if place else None
        if before is not None and before.name == view.layout.name:
            blocks += [
                Heading(f"{view.layout.packet_type.name}: where the dialects differ"),
                difference_table(before, view.layout),
            ]
    return blocks


def describe(view: LayoutView) -> list[Block]:
    """The purpose of a packet and its length."""
    layout = view.layout
    return [Paragraph(f"{layout.format.summary} {_length_text(layout)} [section {layout.format.section}]")]


def listing(view: LayoutView) -> list[Block]:
    """The fields of a layout as a table, and the receiver's checks."""
    tests = Listing(tuple(check_sentences(view)), numbered=True)
    return [field_table(view.layout), Paragraph(_TESTS), tests]


def drawing(view: LayoutView) -> list[Block]:
    """The diagram of a layout, with a legend if needed."""
    legend = [Paragraph(LEGEND)] if has_undefined_bytes(view.layout) else []
    return [Verbatim(diagram(view.layout)), *legend]


def field_table(layout: Layout) -> Table:
    """A table of the fields of a layout: offset, size, name, meaning and section."""
    return Table(_FIELD_COLUMNS, tuple(_field_row(layout, each) for each in layout.fields))


def check_sentences(view: LayoutView) -> list[str]:
    """The conditions of a well-formed frame, in the order in which a receiver checks them."""
    layout = view.layout
    tests = [(Reason.BAD_HEADER_LENGTH, f"the frame has at least {layout.header_end} bytes, the whole header")]
    if layout.name in FRAME_MAXIMUM:
        tests.append((Reason.RAW_TOO_LARGE, f"the frame has at most {FRAME_MAXIMUM[layout.name]} bytes"))
    tests += [(check.reason, _check_text(check, view)) for check in CHECKS.get(layout.name, ())]
    return [f'"{reason.text}" unless {text}' for reason, text in tests]


def difference_table(one: Layout, other: Layout) -> Table:
    """The fields that differ in offset or size between two layouts of a packet, or exist in only one."""
    names = dict.fromkeys(each.name for layout in (one, other) for each in layout.fields)
    places = ((name, *(_place(layout.by_name.get(name)) for layout in (one, other))) for name in names)
    return tabulate("`field, ~mxoe, ~omx", (each for each in places if each[1] != each[2]))


def _length_text(layout: Layout) -> str:
    minimum = layout.format.minimum_length
    payload = layout.payload
    header = f"The header has {layout.header_end} bytes"
    if payload is None:
        padded = f"; the frame is padded to {minimum}" if layout.header_end < minimum else ", as has the frame"
        return f"{header}{padded}."
    if layout.format.extra_length is not None:
        return f"{header}, {payload.name} follows; the frame has {minimum} + {layout.format.extra_length} bytes."
    if payload.length_field is None:
        return f"{header}, {payload.name} follows up to the end of the frame."
    return f"{header}, {payload.name} follows; the frame is padded to at least {minimum} bytes."


def _field_row(layout: Layout, each: Field) -> Row:
    body = str(each.offset - TYPE_OFFSET) if each.offset >= TYPE_OFFSET else "-"
    size = "n" if each.size is None else str(each.size)
    meaning = each.meaning
    if each.size is None:
        meaning += f"\nn = {each.length_field}." if each.length_field else "\nn: the rest of the frame."
    values = _shown_values(layout, each)
    if values:
        meaning += f"\nValues: {values}."
    return Row((str(each.offset), body, size, each.name, meaning, each.section), muted=each.kind == "undefined")


def _shown_values(layout: Layout, each: Field) -> str:
    """The names of values; for ``ptype`` only this layout's own."""
    own = layout.packet_type
    # Each diagram would otherwise list all packet types.
    names = ((own.value, own.name),) if each.name == "ptype" else each.values
    return ", ".join(f"{value} {name}" for value, name in names)


def _check_text(check: FrameCheck, view: LayoutView) -> str:
    if check.test == "fits the frame":
        return f"{check.field} is at most the length of the frame - {view.layout.header_end}"
    if check.bound != "receive_slot":
        return f"{check.field} is {check.test} {check.bound}"
    # Only in omx does the receive slot depend on the frame limit.
    limit = "" if view.dialect.family == "mxoe" else f" of frame limit {view.dialect.frame_limit}"
    return f"{check.field} is {check.test} {view.dialect.receive_slot}, the receive slot{limit}"


def _place(each: Field | None) -> str:
    if each is None:
        return "absent"
    size = "" if each.size is None else f", {each.size} byte{'s' if each.size > 1 else ''}"
    return f"offset {each.offset}{size}{', undefined' if each.kind == 'undefined' else ''}"


# JSON


def field_records(name: str | None = None, dialect: DialectChoice = "both") -> Iterator[dict[str, object]]:
    """One JSON object per field and dialect."""
    for family in (each.family for each in _DIALECTS[dialect]):
        for view in views(name, family):
            for each in view.layout.fields:
                yield _field_record(view.layout, family, each)


def _field_record(layout: Layout, family: Family, each: Field) -> dict[str, object]:
    return {
        "type": layout.packet_type.name,
        "layout": layout.name,
        "dialect": family,
        "field": each.name,
        "offset": each.offset,
        "size": each.size,
        "length_field": each.length_field,
        "kind": each.kind,
        "meaning": each.meaning,
        "section": each.section,
        "default": each.default,
        "values": {name: value for value, name in each.values},
        "sender_order": each.sender_order,
    }
