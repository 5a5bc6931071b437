"""Packet diagrams as in RFCs, four bytes per row, drawn from a layout."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Final

from mxwire.wire.layout import Field, Layout

ROW_BYTES: Final = 4
CELL_WIDTH: Final = 16
"""Characters per byte; wide enough for most names of one-byte fields."""
MARGIN: Final = 9
"""Characters to the left of the drawing, for the frame offsets."""
UNDEFINED_FILL: Final = "~"
"""Shading of undefined bytes."""
LEGEND: Final = "~ marks bytes without meaning, undefined or padding: receivers ignore them."

_SELECTORS: Final = frozenset({"ptype", "is_reply"})
"""Fields whose value selects the layout; they are drawn with that value."""


@dataclass(frozen=True, slots=True, eq=False)
class _Box:
    """A range of bytes drawn as one box: a field, or the payload or padding after the last one."""

    lines: tuple[str, ...]
    start: int
    end: int
    undefined: bool

    @property
    def fill(self) -> str:
        return UNDEFINED_FILL if self.undefined else " "

    @property
    def named_in(self) -> int:
        """The offset of the row in which to print the name: the first row that holds the largest part of the box."""
        rows = range(self.start // ROW_BYTES * ROW_BYTES, self.end, ROW_BYTES)
        return max(rows, key=lambda row: min(row + ROW_BYTES, self.end) - max(row, self.start))


_BoxRow = list[_Box | None]
"""The box of each byte of a row; None outside the packet."""
_OUTSIDE: Final[_BoxRow] = [None] * ROW_BYTES


def diagram(layout: Layout) -> str:
    """Draw a packet, at most 79 columns wide; offsets count from the start of the Ethernet frame."""
    boxes = [_box(each) for each in layout.fields if each.kind != "payload"]
    tail_start = -(-layout.header_end // ROW_BYTES) * ROW_BYTES
    tail = _Box(_tail_text(layout), layout.header_end, tail_start + ROW_BYTES, undefined=layout.payload is None)
    if tail.lines:
        # The tail may start inside the last row of the header; its name goes into the row below.
        boxes.append(tail)
    lines = [_ruler()]
    above = _OUTSIDE
    for start in range(0, tail_start, ROW_BYTES):
        row = _row(boxes, start)
        lines += [_border(above, row), *_row_lines(row, start)]
        above = row
    below = _row(boxes, tail_start)
    lines.append(_border(above, below))
    if tail.lines:
        lines += [*_tail_lines(tail, tail_start), _border(below, _OUTSIDE)]
    return "".join(f"{line}\n" for line in lines)


def has_undefined_bytes(layout: Layout) -> bool:
    """Return True if the diagram of ``layout`` has shaded bytes and so needs the legend."""
    is_padded = layout.payload is None and layout.header_end < layout.format.minimum_length
    return is_padded or any(each.kind == "undefined" for each in layout.fields)


def _box(each: Field) -> _Box:
    selects = each.name in _SELECTORS and each.default is not None
    name = f"{each.name} = {each.default}" if selects else each.name
    return _Box(_name_lines(name, each.end - each.offset), each.offset, each.end, each.kind == "undefined")


def _name_lines(name: str, size: int) -> tuple[str, ...]:
    """Break a name after underscores or dots into the lines it needs; it is never cut."""
    if len(name) <= _room(min(size, ROW_BYTES)):
        return (name,)
    lines = [""]
    for piece in name.replace("_", "_ ").replace(".", ". ").split():
        if lines[-1] and len(lines[-1]) + len(piece) > _room(size):
            lines.append("")
        lines[-1] += piece
    return tuple(lines)


def _tail_text(layout: Layout) -> tuple[str, ...]:
    """The name and length of the payload or padding after the header; empty if there is none."""
    payload = layout.payload
    if payload is not None:
        return payload.name, f"({payload.length_field} bytes)" if payload.length_field else "(to the frame's end)"
    if layout.header_end < layout.format.minimum_length:
        return (f"padding to {layout.format.minimum_length} bytes",)
    return ()


def _row(boxes: list[_Box], start: int) -> _BoxRow:
    places = range(start, start + ROW_BYTES)
    return [next((box for box in boxes if box.start <= place < box.end), None) for place in places]


def _room(columns: int) -> int:
    """Characters inside a box that spans ``columns`` bytes."""
    return columns * (CELL_WIDTH + 1) - 1


def _ruler() -> str:
    columns = " ".join(f"+{number}".center(CELL_WIDTH) for number in range(ROW_BYTES))
    return ("frame".rjust(MARGIN - 2).ljust(MARGIN + 1) + columns).rstrip()


def _row_lines(row: _BoxRow, start: int) -> list[str]:
    parts = [(box, _room(len(list(group)))) for box, group in groupby(row)]
    texts = [box.lines if box is not None and box.named_in == start else () for box, _ in parts]
    lines = []
    for number in range(max(1, *map(len, texts))):
        cells = [
            _centred(text[number] if number < len(text) else "", room, box.fill if box is not None else " ")
            for (box, room), text in zip(parts, texts, strict=True)
        ]
        lines.append(_margin(start, number) + "|" + "|".join(cells) + "|")
    return lines


def _tail_lines(tail: _Box, start: int) -> list[str]:
    """The last row, with slanted sides, since it stands for any number of bytes."""
    room = _room(ROW_BYTES)
    return [_margin(start, n) + "/" + _centred(text, room, tail.fill) + "/" for n, text in enumerate(tail.lines)]


def _margin(start: int, line: int) -> str:
    """The left margin: the frame offset on the first line of a row, else blank."""
    return (str(start).rjust(MARGIN - 2) if line == 0 else "").ljust(MARGIN)


def _centred(text: str, room: int, fill: str) -> str:
    # A name directly beside the shading would be hard to read.
    if fill != " " and text and len(text) + 2 < room:
        text = f" {text} "
    return text.center(room, fill)


def _border(above: _BoxRow, below: _BoxRow) -> str:
    """The line between two rows, open where a box continues from one to the other."""
    closed = [False, *(upper is not lower for upper, lower in zip(above, below, strict=True)), False]
    line = " " * MARGIN
    for column in range(ROW_BYTES + 1):
        fill = _fill(above, column)
        line += _joint(closed[column], closed[column + 1], _has_wall(above, column), _has_wall(below, column), fill)
        if column < ROW_BYTES:
            line += ("-" if closed[column + 1] else fill) * CELL_WIDTH
    return line


def _fill(row: _BoxRow, column: int) -> str:
    box = row[column] if column < ROW_BYTES else None
    return box.fill if box is not None else " "


def _has_wall(row: _BoxRow, column: int) -> bool:
    """Return True if ``row`` has a vertical line before the byte in ``column``."""
    left = row[column - 1] if column > 0 else None
    right = row[column] if column < ROW_BYTES else None
    return left is not right


def _joint(left: bool, right: bool, above: bool, below: bool, fill: str) -> str:
    """The character where lines from up to four sides meet."""
    if not (above or below):
        return "-" if left and right else fill
    return "+" if left or right else "|"
