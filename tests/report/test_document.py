"""Blocks as plain text."""

from __future__ import annotations

from io import StringIO

import pytest

from mxwire.report.document import Column, Listing, Paragraph, Row, Table, _styled_block, plain


@pytest.mark.parametrize("width", range(30, 60))
@pytest.mark.parametrize("block", [Paragraph, lambda text: Listing((text,))])
def test_no_line_begins_with_a_unit(block, width):
    text = "a message was refused after 0.25 ms (frame 8, at 3.257710 s), and again 12 us later"
    lines = plain([block(text)], width).splitlines()
    assert " ".join(each.strip().removeprefix("- ") for each in lines) == text
    assert not [each for each in lines if each.split()[0].rstrip("),") in ("s", "ms", "us")]
    assert max(map(len, lines)) <= width


WIDE = Table(
    (Column("median of all µs", right=True), Column("host"), Column("what it says", wraps=True), Column("most")),
    (
        Row(("527535.5", "52:54:00:0a:00:01", "a reply does not tell where it goes", "2622117.4")),
        Row(("1343148.7", "52:54:00:0a:00:02", "no", "1.0")),
    ),
)


@pytest.mark.parametrize("width", [30, 50, 60, 80, 100])
def test_cells_of_a_table_are_never_cut(width):
    """Text wraps first, then headings of several words; what still does not fit makes the table wider."""
    from rich.console import Console

    shown = StringIO()
    with_rich = Console(file=shown, width=200)
    with_rich.print(_styled_block(WIDE, width))
    for text in (plain([WIDE], width), shown.getvalue()):
        words = text.split()
        assert {each for row in WIDE.rows for cell in row.cells for each in cell.split()} <= {*words}
        assert {each for column in WIDE.columns for each in column.heading.split()} <= {*words}
        if width >= 55:
            assert max(len(line.rstrip()) for line in text.splitlines()) <= width


def test_headings_stay_on_one_line_where_there_is_room():
    assert plain([WIDE], 120).splitlines()[0].startswith("median of all µs  host ")
    narrow = plain([WIDE], 55).splitlines()
    assert narrow[0].split() == ["median"] or narrow[0].split() == ["median", "of"]
    assert narrow[1].split()[-1] == "most" or narrow[2].split()[-1] == "most"


@pytest.mark.parametrize("width", [20, 30, 80])
def test_a_divisible_table_continues_below_with_its_first_column(width):
    columns = (Column("size"), *(Column(f"rate {place}", right=True) for place in range(6)))
    rows = tuple(Row((f"{size}", *(f"{size * place:,}" for place in range(6)))) for size in (4, 1_000_000))
    lines = plain([Table(columns, rows, divisible=True)], width).splitlines()
    assert all(len(line) <= width for line in lines)
    parts = "\n".join(lines).split("\n\n")
    assert all(part.splitlines()[-2].split()[0] == "4" for part in parts)
    shown = [cell for part in parts for cell in part.splitlines()[-1].split()[1:]]
    assert shown == list(rows[1].cells[1:])
    assert (len(parts) == 1) is (width == 80)
