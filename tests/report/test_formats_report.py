"""The packet formats as shown: nothing left out, nothing cut, the same in every look."""

from __future__ import annotations

import re

import pytest

from mxwire.errors import MxwireError
from mxwire.report.diagram import MARGIN, diagram, has_undefined_bytes
from mxwire.report.document import markdown, plain
from mxwire.report.formats import (
    DialectChoice,
    LayoutView,
    check_sentences,
    details,
    difference_table,
    field_records,
    field_table,
    layout_names,
    overview,
    overview_table,
    type_names,
    views,
)
from mxwire.wire.checks import CHECKS
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.enums import PacketType
from mxwire.wire.formats import MEDIUM_OMX_N3
from mxwire.wire.layout import Layout, layout_of

EVERY_VIEW = views()
EVERY_LAYOUT = [*(view.layout for view in EVERY_VIEW), layout_of(MEDIUM_OMX_N3)]


def label(value: object) -> str | None:
    match value:
        case LayoutView():
            return value.title
        case Layout():
            return f"{value.name}-{value.header_end}"
    return None


def boxes_of(drawing: str) -> dict[int, list[str]]:
    """The names in each row of a diagram, by its offset, with continuations in the lines below joined."""
    rows: dict[int, list[str]] = {}
    offset = -1
    for line in drawing.splitlines()[1:]:
        margin, drawn = line[:MARGIN], line[MARGIN:]
        if margin.strip():
            offset = int(margin)
            rows[offset] = [""] * len(cells(drawn))
        if drawn[:1] in "|/" and "--" not in drawn:
            found = cells(drawn)
            if len(found) == len(rows[offset]):
                rows[offset] = [old + new for old, new in zip(rows[offset], found, strict=True)]
    return rows


def cells(drawn: str) -> list[str]:
    return [cell.strip(" ~") for cell in re.split(r"[|/]", drawn)[1:-1]]


def test_every_packet_type_and_both_dialects_have_views() -> None:
    formats = {id(packet_format) for dialect in (MXOE, omx()) for packet_format in dialect.formats}
    assert {id(view.layout.format) for view in EVERY_VIEW} == formats
    assert len(EVERY_VIEW) == len(formats)
    assert [view.layout.packet_type for view in EVERY_VIEW] == sorted(view.layout.packet_type for view in EVERY_VIEW)


@pytest.mark.parametrize("layout", EVERY_LAYOUT, ids=label)
def test_the_table_has_every_field(layout: Layout) -> None:
    rows = field_table(layout).rows
    assert [row.cells[3] for row in rows] == [field.name for field in layout.fields]
    assert [int(row.cells[0]) for row in rows] == [field.offset for field in layout.fields]
    for row, field in zip(rows, layout.fields, strict=True):
        assert field.meaning in row.cells[4]
        assert row.cells[5] == field.section
        assert all(name in row.cells[4] for value, name in field.values if field.name != "ptype")
        assert row.muted == (field.kind == "undefined")
        body = row.cells[1]
        assert body == "-" if field.offset < 16 else int(body) == field.offset - 16


@pytest.mark.parametrize("layout", EVERY_LAYOUT, ids=label)
def test_the_diagram_has_every_field_in_its_place(layout: Layout) -> None:
    drawing = diagram(layout)
    assert drawing.isascii()
    assert max(len(line) for line in drawing.splitlines()) <= 79
    assert all(line == line.rstrip() for line in drawing.splitlines())
    rows = boxes_of(drawing)
    for field in layout.fields:
        start, end = field.offset // 4 * 4, max(field.end, field.offset + 1)
        near = [name.split(" = ")[0] for row in range(start, -(-end // 4) * 4 + 1, 4) for name in rows.get(row, [])]
        assert field.name in [name.split("(")[0] for name in near], f"{field.name} is not drawn near {field.offset}"


@pytest.mark.parametrize("layout", EVERY_LAYOUT, ids=label)
def test_the_diagram_shades_undefined_bytes_and_nothing_else(layout: Layout) -> None:
    shaded = "".join(line for line in diagram(layout).splitlines() if "~" in line)
    for field in layout.fields:
        if field.kind == "undefined":
            assert f"{field.name} ~" in shaded or f"{field.name}~" in shaded
    assert bool(shaded) == has_undefined_bytes(layout)


def test_addresses_straddle_rows_without_a_border_inside() -> None:
    lines = diagram(layout_of(MXOE.pull_format)).splitlines()
    assert lines[2].split() == ["0", "|", "dst_mac", "|"]
    assert lines[3].strip().startswith("|  ") and lines[3].endswith("-+")
    assert lines[5].strip().startswith("+--") and lines[5].endswith(" |")
    assert lines[6].split() == ["8", "|", "src_mac", "|"]


@pytest.mark.parametrize("view", EVERY_VIEW, ids=label)
@pytest.mark.parametrize("drawn", [False, True])
def test_all_looks_hold_the_same_words(view: LayoutView, drawn: bool) -> None:
    blocks = details([view], drawn=drawn, listed=not drawn)
    text = plain(blocks, 100)
    assert text.isascii(), "the output of a command must not depend on the locale"
    assert max(len(line) for line in text.splitlines()) <= 100
    page = re.sub(r"<br>|\\(?=[^\w\s])|`|[|#*]", " ", markdown(blocks))
    for word in {word for word in re.findall(r"\w{4,}", text) if "_" not in word}:
        assert word in page


@pytest.mark.parametrize("width", [79, 100, 140])
def test_plain_text_keeps_to_the_width(width: int) -> None:
    assert max(len(line) for line in plain(overview(), width).splitlines()) <= width
    assert max(len(line) for line in plain(details(views("connect")), width).splitlines()) <= width


def test_the_overview_names_every_packet_type() -> None:
    rows = overview_table().rows
    assert {row.cells[0] for row in rows} == {str(packet_type.value) for packet_type in PacketType}
    differing = {row.cells[1] for row in rows if row.cells[4] == "differ"}
    assert differing == {"MEDIUM", "PULL"}
    assert {row.cells[1].split("\n")[-1].lower() for row in rows if not row.muted} == set(layout_names())
    assert [row.cells[3] for row in rows if row.cells[1] == "PULL"] == ["48/60"]
    assert [row.cells[3] for row in overview_table("omx").rows if row.cells[1] == "PULL"] == ["60"]


@pytest.mark.parametrize("view", EVERY_VIEW, ids=label)
def test_every_check_is_in_words(view: LayoutView) -> None:
    sentences = check_sentences(view)
    checks = CHECKS.get(view.layout.name, ())
    assert sentences[0].startswith('"bad header length" unless')
    assert str(view.layout.header_end) in sentences[0]
    for sentence, check in zip(sentences[-len(checks) :] if checks else [], checks, strict=True):
        assert sentence.startswith(f'"{check.reason.text}" unless {check.field} is ')
        if isinstance(check.bound, int) and check.test != "fits the frame":
            assert sentence.endswith(f" {check.bound}")


def test_the_receive_slot_is_that_of_the_dialect() -> None:
    texts = [check_sentences(view)[1] for view in views("MEDIUM")]
    assert texts == [
        '"bad data length" unless frag_length is at most 4096, the receive slot',
        '"bad data length" unless frag_length is at most 8192, the receive slot of frame limit 9000',
    ]


def test_differences_name_every_field_that_moves() -> None:
    medium = {row.cells for row in difference_table(*(view.layout for view in views("medium"))).rows}
    assert medium == {
        ("length", "offset 20, 2 bytes", "offset 20, 4 bytes"),
        ("pad", "offset 22, 2 bytes, undefined", "absent"),
        ("frag_pipeline", "offset 43, 1 byte", "absent"),
        ("pad1", "absent", "offset 43, 1 byte, undefined"),
    }


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("MEDIUM", ["medium", "medium"]),
        ("Tiny", ["tiny"]),
        ("connect", ["connect_request", "connect_reply"]),
        ("CONNECT_REPLY", ["connect_reply"]),
        ("raw", ["raw", "raw_omxoed"]),
        ("raw_omxoed", ["raw_omxoed"]),
        ("pull-reply", ["pull_reply"]),
        ("41", ["pull", "pull"]),
        ("0x2A", ["pull_reply"]),
    ],
)
def test_names_that_are_understood(name: str, found: list[str]) -> None:
    assert [view.layout.name for view in views(name)] == found


@pytest.mark.parametrize("name", [*type_names(), *layout_names()])
@pytest.mark.parametrize("dialect", ["mxoe", "omx"])
def test_one_dialect_shows_each_layout_once(name: str, dialect: DialectChoice) -> None:
    shown = views(name, dialect)
    assert len({view.layout.name for view in shown}) == len(shown) >= 1
    assert all(view.dialect.family == dialect for view in shown)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("medum", r"no packet type 'medum' \(did you mean medium\?\); there are RAW, HOST_QUERY"),
        ("pull_", r"did you mean pull or pull_reply\?"),
        ("connect_r", r"did you mean connect, connect_reply or connect_request"),
        ("xyz", r"no packet type 'xyz'; there are RAW, .* and the layouts raw_omxoed, connect_request, connect_reply"),
        ("", r"no packet type ''; there are"),
        ("99", r"no packet type '99'; there are"),
        ("-1", r"no packet type '-1'; there are"),
        ("ETHER_NATIVE", r"packet type ETHER_NATIVE \(34\) has no layout: .* reserved for native MX"),
        ("2", r"packet type MFM_NIC_REPLY \(2\) has no layout"),
        ("none", r"packet type NONE \(0\) has no layout: no packet has this type"),
    ],
)
def test_names_that_do_not_exist(name: str, expected: str) -> None:
    with pytest.raises(MxwireError, match=expected) as caught:
        views(name)
    assert "\n" not in str(caught.value)


KEYS = [
    "type",
    "layout",
    "dialect",
    "field",
    "offset",
    "size",
    "length_field",
    "kind",
    "meaning",
    "section",
    "default",
    "values",
    "sender_order",
]


def test_records_have_every_field_of_every_dialect() -> None:
    objects = [*field_records()]
    assert all(list(each) == KEYS for each in objects)
    expected = [
        (dialect.family, packet_format.name, field.name, field.offset, field.size)
        for dialect in (MXOE, omx())
        for packet_format in dialect.formats
        for field in layout_of(packet_format).fields
    ]
    assert [
        tuple(each[key] for key in ("dialect", "layout", "field", "offset", "size")) for each in objects
    ] == expected
    status = next(each for each in objects if each["field"] == "connect_status_code")
    assert status["values"] == {"SUCCESS": 0, "BAD_KEY": 11}
    assert next(each for each in objects if each["field"] == "ethertype")["sender_order"] is False
