"""What a report says, apart from how it looks: blocks that become plain text, a styled terminal or Markdown.

A command builds one list of blocks and hands it to :func:`show`; pages of the documentation are made of the same
blocks by :func:`markdown`. So a pipe, a terminal and the site always say the same.
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mxwire.report.terminal import is_coloured, styled_console

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as RichTable

PLAIN_WIDTH = 100
"""Columns of text that goes into a pipe or a file, unless COLUMNS says otherwise."""
WIDEST_WIDTH = 140
"""Longer lines than this are hard to read, however wide the terminal."""
_GAP = "  "
_TIME = re.compile(r"(\d) (s|ms|us)\b")
_SMALLEST_COLUMN = 8
"""A column that wraps is not made narrower than this, or than its longest word if that is shorter."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of what follows."""

    text: str
    level: int = 2
    """2 for a part of a page, 3 for a part of that."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    text: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Items one below the other."""

    items: tuple[str, ...]
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Lines that must stay as they are, such as a drawing."""

    text: str


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    heading: str
    right: bool = False
    """Aligned to the right, as numbers are."""
    wraps: bool = False
    """Takes the width that the other columns leave, and breaks its text over several lines."""
    code: bool = False
    """Holds names that users type or find in output, rather than words."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table; a cell may have several lines."""

    cells: tuple[str, ...]
    muted: bool = False
    """Less important than the others."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under the headings of their columns."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


Block = Heading | Paragraph | Listing | Verbatim | Table


def show(blocks: Sequence[Block]) -> None:
    """Print to standard output: styled where that gets colours, as on a terminal, plain text anywhere else."""
    if is_coloured():
        _show_styled(blocks)
    else:
        sys.stdout.write(plain(blocks))


def plain(blocks: Sequence[Block], width: int | None = None) -> str:
    """The blocks as plain text, at most ``width`` columns wide where their words allow it."""
    width = width or output_width()
    return "\n".join(_plain_block(block, width) for block in blocks)


def markdown(blocks: Sequence[Block]) -> str:
    """The blocks as Markdown, for the documentation."""
    return "\n\n".join(_markdown_block(block) for block in blocks) + "\n"


def output_width() -> int:
    """Columns to fill: those of the terminal, `PLAIN_WIDTH` where there is none, at most `WIDEST_WIDTH`."""
    return min(shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns, WIDEST_WIDTH)


# Plain text


def _plain_block(block: Block, width: int) -> str:
    match block:
        case Heading(text, level):
            return f"{text}\n{'=' * len(text)}\n" if level <= 2 else f"{text}\n"
        case Paragraph(text):
            return _filled(text, width)
        case Listing(items):
            return "".join(_plain_item(mark, item, width) for mark, item in zip(_marks(block), items, strict=True))
        case Verbatim(text):
            return text.rstrip("\n") + "\n"
        case Table():
            return "".join(line + "\n" for line in _table_lines(block, width))


def _marks(listing: Listing) -> list[str]:
    return [f"{number}. " if listing.numbered else "- " for number in range(1, len(listing.items) + 1)]


def _plain_item(mark: str, text: str, width: int) -> str:
    return _filled(text, width, first=f"  {mark}", others="  " + " " * len(mark))


def _filled(text: str, width: int, first: str = "", others: str = "") -> str:
    """Text in lines of a width; a number and its unit stay together."""
    lines = textwrap.fill(
        _TIME.sub("\\1\N{NO-BREAK SPACE}\\2", text),
        width,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines.replace("\N{NO-BREAK SPACE}", " ") + "\n"


def _table_lines(table: Table, width: int) -> Iterator[str]:
    widths = _column_widths(table, width)
    headings = _headings(table, widths)
    for pieces in zip(*headings, strict=True):
        yield _GAP.join(_aligned(*each) for each in zip(pieces, widths, table.columns, strict=True)).rstrip()
    yield _GAP.join("-" * each for each in widths)
    for row in table.rows:
        cells = [_wrapped(cell, each) for cell, each in zip(row.cells, widths, strict=True)]
        for line in range(max(map(len, cells))):
            pieces = tuple(cell[line] if line < len(cell) else "" for cell in cells)
            yield _GAP.join(_aligned(*each) for each in zip(pieces, widths, table.columns, strict=True)).rstrip()


def _column_widths(table: Table, width: int) -> list[int]:
    """Natural widths; what is too much for the line is taken from the columns that wrap, and then from headings of
    several words. What is in the other cells is never cut: rather the table is wider than the line."""
    widths = [max(len(column.heading), _longest_line(table, place)) for place, column in enumerate(table.columns)]
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    for least in (_least_width, _least_with_broken_heading):
        while excess > 0:
            candidates = [place for place in range(len(widths)) if widths[place] > least(table, place)]
            if not candidates:
                break
            widest = max(candidates, key=lambda place: widths[place])
            widths[widest] -= 1
            excess -= 1
    return widths


def _headings(table: Table, widths: Sequence[int]) -> list[list[str]]:
    """The lines of each heading, the same number for all, the last ones on a line."""
    broken = [_wrapped(column.heading, width) for column, width in zip(table.columns, widths, strict=True)]
    most = max(map(len, broken), default=1)
    return [[""] * (most - len(lines)) + lines for lines in broken]


def _longest_line(table: Table, place: int) -> int:
    return max((len(line) for row in table.rows for line in row.cells[place].split("\n")), default=0)


def _least_width(table: Table, place: int) -> int:
    heading = len(table.columns[place].heading)
    return max(heading, _least_of_cells(table, place))


def _least_with_broken_heading(table: Table, place: int) -> int:
    longest_word = max(map(len, table.columns[place].heading.split()), default=0)
    return max(longest_word, _least_of_cells(table, place))


def _least_of_cells(table: Table, place: int) -> int:
    if not table.columns[place].wraps:
        return _longest_line(table, place)
    words = [word for row in table.rows for word in row.cells[place].split()]
    return min(max((len(word) for word in words), default=0), _SMALLEST_COLUMN)


def _wrapped(cell: str, width: int) -> list[str]:
    return [
        piece
        for line in cell.split("\n")
        for piece in textwrap.wrap(line, max(width, 1), break_on_hyphens=False) or [""]
    ]


def _aligned(text: str, width: int, column: Column) -> str:
    return text.rjust(width) if column.right else text.ljust(width)


# A terminal


def _show_styled(blocks: Sequence[Block]) -> None:
    """Print with rich, which is imported only here because that takes longer than most commands."""
    width = output_width()
    needed = [max(width, _table_width(block, width)) if isinstance(block, Table) else width for block in blocks]
    # A table that is wider than the terminal goes over the end of its lines, rather than losing what is in its cells.
    console = styled_console(max(needed, default=width))
    for place, block in enumerate(blocks):
        if place:
            console.print()
        console.print(_styled_block(block, width), width=needed[place])


def _table_width(table: Table, width: int) -> int:
    widths = _column_widths(table, width)
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def renderable(block: Block) -> RenderableType:
    """A block for rich, for who shows it in a way of his own."""
    return _styled_block(block, output_width())


def _styled_block(block: Block, width: int) -> RenderableType:
    from rich.text import Text

    match block:
        case Heading(text, level):
            return Text(text, style="bold cyan" if level <= 2 else "bold")
        case Paragraph(text) | Verbatim(text):
            return Text(text.rstrip("\n"), no_wrap=isinstance(block, Verbatim))
        case Listing():
            return _styled_listing(block)
        case Table():
            return _styled_table(block, width)


def _styled_listing(listing: Listing) -> RichTable:
    from rich.table import Table as RichTable
    from rich.text import Text

    grid = RichTable.grid(padding=(0, 1))
    for mark, item in zip(_marks(listing), listing.items, strict=True):
        grid.add_row(Text(f"  {mark.rstrip()}", style="cyan"), Text(item))
    return grid


def _styled_table(table: Table, width: int) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    widths = _column_widths(table, width)
    headings = _headings(table, widths)
    # With the line between the columns, the padding is the gap of plain text.
    styled = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", show_edge=False)
    for column, lines, wide in zip(table.columns, headings, widths, strict=True):
        styled.add_column(
            "\n".join(lines),
            justify="right" if column.right else "left",
            style="cyan" if column.code else "",
            width=wide,
            overflow="fold",
        )
    for row in table.rows:
        styled.add_row(*(Text(cell) for cell in row.cells), style="dim" if row.muted else None)
    return styled


# Markdown


def _markdown_block(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {text}"
        case Paragraph(text):
            return markdown_text(text)
        case Listing(items):
            return "\n".join(mark + markdown_text(item) for mark, item in zip(_marks(block), items, strict=True))
        case Verbatim(text):
            return f"```text\n{text.rstrip()}\n```"
        case Table():
            return _markdown_table(block)


def markdown_text(text: str) -> str:
    """Text with whatever means something to Markdown or HTML made harmless."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for special in "\\`*_[]|":
        text = text.replace(special, "\\" + special)
    return text


def _markdown_table(table: Table) -> str:
    rules = ["---:" if column.right else "---" for column in table.columns]
    lines = ["| " + " | ".join(column.heading for column in table.columns) + " |", "|" + "|".join(rules) + "|"]
    for row in table.rows:
        cells = [_markdown_cell(*each) for each in zip(row.cells, table.columns, strict=True)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _markdown_cell(cell: str, column: Column) -> str:
    lines = cell.split("\n")
    return "<br>".join(f"`{line}`" if column.code and line else markdown_text(line) for line in lines)
