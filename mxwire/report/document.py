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
    """Print to standard output: styled on a terminal, plain text anywhere else."""
    if sys.stdout.isatty():
        _show_styled(blocks)
    else:
        sys.stdout.write(plain(blocks))


def plain(blocks: Sequence[Block], width: int | None = None) -> str:
    """The blocks as plain text, at most ``width`` columns wide where their words allow it."""
    width = width or _output_width()
    return "\n".join(_plain_block(block, width) for block in blocks)


def markdown(blocks: Sequence[Block]) -> str:
    """The blocks as Markdown, for the documentation."""
    return "\n\n".join(_markdown_block(block) for block in blocks) + "\n"


def _output_width() -> int:
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
    headings = [column.heading for column in table.columns]
    yield _GAP.join(_aligned(*each) for each in zip(headings, widths, table.columns, strict=True)).rstrip()
    yield _GAP.join("-" * each for each in widths)
    for row in table.rows:
        cells = [_wrapped(cell, each) for cell, each in zip(row.cells, widths, strict=True)]
        for line in range(max(map(len, cells))):
            pieces = [cell[line] if line < len(cell) else "" for cell in cells]
            yield _GAP.join(_aligned(*each) for each in zip(pieces, widths, table.columns, strict=True)).rstrip()


def _column_widths(table: Table, width: int) -> list[int]:
    """Natural widths; what is too much for the line is taken from the columns that wrap."""
    widths = [
        max(len(column.heading), *(len(line) for row in table.rows for line in row.cells[place].split("\n")), 0)
        for place, column in enumerate(table.columns)
    ]
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    while excess > 0:
        candidates = [
            place
            for place, column in enumerate(table.columns)
            if column.wraps and widths[place] > _least_width(table, place)
        ]
        if not candidates:
            break
        widest = max(candidates, key=lambda place: widths[place])
        widths[widest] -= 1
        excess -= 1
    return widths


def _least_width(table: Table, place: int) -> int:
    words = [word for row in table.rows for word in row.cells[place].split()]
    longest = max((len(word) for word in words), default=0)
    return max(len(table.columns[place].heading), min(longest, _SMALLEST_COLUMN))


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
    from rich.console import Console

    console = Console(width=_output_width(), highlight=False)
    for place, block in enumerate(blocks):
        if place:
            console.print()
        console.print(_styled_block(block))


def renderable(block: Block) -> RenderableType:
    """A block for rich, for who shows it in a way of his own."""
    return _styled_block(block)


def _styled_block(block: Block) -> RenderableType:
    from rich.text import Text

    match block:
        case Heading(text, level):
            return Text(text, style="bold cyan" if level <= 2 else "bold")
        case Paragraph(text) | Verbatim(text):
            return Text(text.rstrip("\n"), no_wrap=isinstance(block, Verbatim))
        case Listing():
            return _styled_listing(block)
        case Table():
            return _styled_table(block)


def _styled_listing(listing: Listing) -> RichTable:
    from rich.table import Table as RichTable
    from rich.text import Text

    grid = RichTable.grid(padding=(0, 1))
    for mark, item in zip(_marks(listing), listing.items, strict=True):
        grid.add_row(Text(f"  {mark.rstrip()}", style="cyan"), Text(item))
    return grid


def _styled_table(table: Table) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    styled = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for place, column in enumerate(table.columns):
        styled.add_column(
            column.heading,
            justify="right" if column.right else "left",
            style="cyan" if column.code else "",
            no_wrap=not column.wraps,
            min_width=_least_width(table, place) if column.wraps else None,
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
