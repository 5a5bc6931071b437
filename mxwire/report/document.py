"""The content of a report as blocks, rendered as plain text, styled terminal output or Markdown.

A command builds one list of blocks and passes it to :func:`show`; :func:`markdown` renders the same blocks for the
documentation. Pipes, terminals and the site therefore always have the same content.
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from mxwire.ethernet import MAC_TEXT
from mxwire.report.ascii_text import is_ascii, spelled
from mxwire.report.terminal import is_coloured, styled_console, terminal_width

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as RichTable

PLAIN_WIDTH = 100
"""Width of text written to a pipe or file, unless COLUMNS sets another."""
WIDEST_WIDTH = 140
"""Maximum width, however wide the terminal: longer lines are hard to read."""
_GAP = "  "
_NARROW_GAP = " "
_ADDRESS_END = len("00:00:00")
_TIME = re.compile(r"(\d) (s|ms|us)\b")
_MARKS = ("#", "`", "~")
_SMALLEST_COLUMN = 8
"""Minimum width of a column that wraps, unless its longest word is shorter."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A title."""

    text: str
    level: int = 2
    """2 for a section of a page, 3 for a subsection."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    text: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of items, one per line."""

    items: tuple[str, ...]
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Preformatted lines, such as a drawing."""

    text: str


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    heading: str
    right: bool = False
    """True if the column is right-aligned, as numbers are."""
    wraps: bool = False
    """True if the column has the width that the other columns leave, and its text wraps."""
    code: bool = False
    """True if the column contains identifiers rather than prose."""
    short: str = ""
    """The heading on a terminal that is too narrow for the table."""


def columns_of(headings: str) -> tuple[Column, ...]:
    """Columns by their headings, separated by commas: # is before numbers, ` before identifiers, ~ before wrapped text.

    ``#retransmits|rtx`` has the short heading rtx.
    """
    found = []
    for each in headings.split(", "):
        mark, heading = (each[0], each[1:]) if each[:1] in _MARKS else ("", each)
        heading, _, short = heading.partition("|")
        found.append(Column(heading, right=mark == "#", wraps=mark == "~", code=mark == "`", short=short))
    return tuple(found)


def number_columns(*headings: str) -> tuple[Column, ...]:
    """Right-aligned columns; ``retransmits|rtx`` has the short heading rtx."""
    pairs = (each.partition("|") for each in headings)
    return tuple(Column(heading, right=True, short=short) for heading, _, short in pairs)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table; cells may contain newlines."""

    cells: tuple[str, ...]
    muted: bool = False
    """Dimmed on terminals, as less important than other rows."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with column headings."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    divisible: bool = False
    """If too wide, it is printed as several tables below each other, which repeat the first column."""


def tabulate(columns: str | tuple[Column, ...], rows: Iterable[Iterable[object]]) -> Table:
    """Make a table of rows of cells, which become text; ``columns`` may be headings for :func:`columns_of`."""
    named = columns_of(columns) if isinstance(columns, str) else columns
    return Table(named, tuple(Row(tuple(map(str, cells))) for cells in rows))


Block = Heading | Paragraph | Listing | Verbatim | Table


def show(blocks: Sequence[Block]) -> None:
    """Print blocks to standard output: styled where colours are on, as on a terminal, else as plain text."""
    blocks = [*map(_spelled, blocks)] if is_ascii() else blocks
    blocks = [_fitted(each) if isinstance(each, Table) else each for each in blocks]
    if is_coloured():
        _show_styled(blocks)
    else:
        sys.stdout.write(plain(blocks))


def plain(blocks: Sequence[Block], width: int | None = None) -> str:
    """Render blocks as plain text of at most ``width`` columns, or more if words do not fit."""
    width = width or output_width()
    return "\n".join(_plain_block(block, width) for block in _divided(blocks, width))


def markdown(blocks: Sequence[Block]) -> str:
    """Render blocks as Markdown, for the documentation."""
    return "\n\n".join(_markdown_block(block) for block in blocks) + "\n"


def output_width() -> int:
    """The width of the terminal, or ``PLAIN_WIDTH`` without one; at most ``WIDEST_WIDTH``."""
    return min(shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns, WIDEST_WIDTH)


# Plain text


def _plain_block(block: Block, width: int) -> str:
    match block:
        case Heading(text, level):
            return f"{text}\n{'=' * len(text)}\n" if level <= 2 else _filled(text, width)
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
    """Wrap text to ``width`` columns, keeping each number on one line with its unit."""
    lines = textwrap.fill(
        _TIME.sub("\\1\N{NO-BREAK SPACE}\\2", text),
        width,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines.replace("\N{NO-BREAK SPACE}", " ") + "\n"


def _spelled(block: Block) -> Block:
    """The block as standard output prints it, so that its width is known."""
    match block:
        case Listing(items):
            return replace(block, items=tuple(map(spelled, items)))
        case Table(columns, rows):
            columns = tuple(replace(each, heading=spelled(each.heading), short=spelled(each.short)) for each in columns)
            return replace(
                block, columns=columns, rows=tuple(replace(row, cells=tuple(map(spelled, row.cells))) for row in rows)
            )
        case _:
            return replace(block, text=spelled(block.text))


def _fitted(table: Table) -> Table:
    """The table, or if it exceeds the width of the terminal a form with short addresses, and then short headings."""
    width = terminal_width()
    if width is None or _table_width(table, width) <= width:
        return table
    addresses = {each[0] for row in table.rows for cell in row.cells for each in MAC_TEXT.finditer(cell)}
    holders = Counter(each[-_ADDRESS_END:] for each in addresses)

    def shortened(found: re.Match[str]) -> str:
        end = found[0][-_ADDRESS_END:]
        return f"{spelled('…')}{end}" if holders[end] == 1 else found[0]

    rows = (replace(row, cells=tuple(MAC_TEXT.sub(shortened, each) for each in row.cells)) for row in table.rows)
    table = replace(table, rows=tuple(rows))
    if _table_width(table, width) <= width:
        return table
    return replace(table, columns=tuple(replace(each, heading=each.short or each.heading) for each in table.columns))


def _divided(blocks: Sequence[Block], width: int) -> Iterator[Block]:
    """The blocks, with divisible tables that exceed ``width`` as several tables."""
    for block in blocks:
        if isinstance(block, Table) and block.divisible:
            yield from _parts(block, width)
        else:
            yield block


def _parts(table: Table, width: int) -> Iterator[Table]:
    """The table in as few parts as fit ``width``, each with the first column and at least one other."""
    chosen = [0]
    for place in range(1, len(table.columns)):
        if len(chosen) > 1 and _table_width(_with_columns(table, [*chosen, place]), width) > width:
            yield _with_columns(table, chosen)
            chosen = [0]
        chosen.append(place)
    yield _with_columns(table, chosen)


def _with_columns(table: Table, places: Sequence[int]) -> Table:
    """The table with some of its columns only."""
    rows = tuple(replace(row, cells=tuple(row.cells[place] for place in places)) for row in table.rows)
    return replace(table, columns=tuple(table.columns[place] for place in places), rows=rows)


def _gap(widths: Sequence[int]) -> str:
    """The gap between columns: narrower if the terminal requires that."""
    width = terminal_width()
    fits = width is None or sum(widths) + len(_GAP) * (len(widths) - 1) <= width
    return _GAP if fits else _NARROW_GAP


def _table_lines(table: Table, width: int) -> Iterator[str]:
    widths = _column_widths(table, width)
    gap = _gap(widths)
    line = gap.join(
        f"{{:{'>' if column.right else '<'}{each}}}" for column, each in zip(table.columns, widths, strict=True)
    ).format
    for pieces in zip(*_headings(table, widths), strict=True):
        yield line(*pieces).rstrip()
    yield gap.join("-" * each for each in widths)
    fits = all(map(_all_fit, zip(*(row.cells for row in table.rows), strict=True), widths))
    for row in table.rows:
        for pieces in [row.cells] if fits else zip_longest(*map(_wrapped, row.cells, widths), fillvalue=""):
            yield line(*pieces).rstrip()


def _column_widths(table: Table, width: int) -> list[int]:
    """Column widths that fit ``width``: natural ones, reduced first in columns that wrap, then by breaking headings
    of several words. Other cells are never cut, even if the table then exceeds ``width``."""
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
    """The lines of each heading, padded at the top to the same number of lines."""
    broken = [_wrapped(column.heading, width) for column, width in zip(table.columns, widths, strict=True)]
    most = max(map(len, broken), default=1)
    return [[""] * (most - len(lines)) + lines for lines in broken]


def _longest_line(table: Table, place: int) -> int:
    cells = [row.cells[place] for row in table.rows]
    return max(map(len, "\n".join(cells).split("\n")))


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


def _all_fit(cells: Sequence[str], width: int) -> bool:
    """Return whether no cell of a column needs to be wrapped, as of nearly all columns; textwrap takes much longer to
    find that."""
    longest = max(map(len, cells), default=0)
    return longest <= max(width, 1) and "".join(cells).isprintable() and not any(each.endswith(" ") for each in cells)


def _wrapped(cell: str, width: int) -> list[str]:
    width = max(width, 1)
    if _all_fit([cell], width):
        return [cell]
    return [piece for line in cell.split("\n") for piece in textwrap.wrap(line, width, break_on_hyphens=False) or [""]]


# A terminal


def _show_styled(blocks: Sequence[Block]) -> None:
    """Print with rich, imported lazily because its import takes longer than most commands."""
    width = output_width()
    blocks = list(_divided(blocks, width))
    needed = [max(width, _table_width(block, width)) if isinstance(block, Table) else width for block in blocks]
    # A table wider than the terminal overflows its lines rather than losing the contents of its cells.
    console = styled_console(max(needed, default=width))
    for place, block in enumerate(blocks):
        if place:
            console.print()
        console.print(_styled_block(block, width), width=needed[place])


def _table_width(table: Table, width: int) -> int:
    widths = _column_widths(table, width)
    return sum(widths) + len(_gap(widths)) * (len(widths) - 1)


def renderable(block: Block) -> RenderableType:
    """A block as a rich renderable, for embedding in other rich output."""
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
    # Padding plus the column separator equals the gap of plain text.
    padding = (0, len(_gap(widths)) - 1, 0, 0)
    styled = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=padding, header_style="bold", show_edge=False)
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
    """Escape text for Markdown and HTML."""
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
