"""Packet diagrams as in RFCs: four bytes a row, drawn from a layout."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Final

from mxwire.wire.layout import Field, Layout

BYTES_A_ROW: Final = 4
CELL_WIDTH: Final = 16
"""Characters of one byte; wide enough for most names of one-byte fields."""
MARGIN: Final = 9
"""Characters to the left of the drawing, where the frame offsets stand."""
UNDEFINED_FILL: Final = "~"
"""Shades the bytes that mean nothing."""
LEGEND: Final = "~ marks bytes without meaning, undefined or padding: receivers ignore them."

_TELLING_FIELDS: Final = frozenset({"ptype", "is_reply"})
"""The fields whose value tells this layout from the others; they are drawn with it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Box:
    """A stretch of the packet that is drawn as one: a field, or whatever follows the last one."""

    lines: tuple[str, ...]
    start: int
    end: int
    undefined: bool

    @property
    def fill(self) -> str:
        return UNDEFINED_FILL if self.undefined else " "

    @property
    def named_in(self) -> int:
        """The offset of the row that carries the name: the one with most of the box, the first of equals."""
        rows = range(self.start // BYTES_A_ROW * BYTES_A_ROW, self.end, BYTES_A_ROW)
        return max(rows, key=lambda row: min(row + BYTES_A_ROW, self.end) - max(row, self.start))


_BoxRow = list[_Box | None]
"""The box of each of the bytes of a row; None outside of the packet."""
_OUTSIDE: Final[_BoxRow] = [None] * BYTES_A_ROW


def diagram(layout: Layout) -> str:
    """The packet as a drawing, at most 79 columns wide; offsets count from the start of the Ethernet frame."""
    boxes = [_box(each) for each in layout.fields if each.kind != "payload"]
    tail_start = -(-layout.header_end // BYTES_A_ROW) * BYTES_A_ROW
    tail = _Box(_tail_text(layout), layout.header_end, tail_start + BYTES_A_ROW, undefined=layout.payload is None)
    if tail.lines:
        # It may start inside the last row of the header; its name stands in its own row, below.
        boxes.append(tail)
    lines = [_ruler()]
    above = _OUTSIDE
    for start in range(0, tail_start, BYTES_A_ROW):
        row = _row(boxes, start)
        lines += [_border(above, row), *_row_lines(row, start)]
        above = row
    below = _row(boxes, tail_start)
    lines.append(_border(above, below))
    if tail.lines:
        lines += [*_tail_lines(tail, tail_start), _border(below, _OUTSIDE)]
    return "".join(f"{line}\n" for line in lines)


def has_undefined_bytes(layout: Layout) -> bool:
    """Whether the diagram has shaded bytes, so that it wants the legend."""
    is_padded = layout.payload is None and layout.header_end < layout.format.minimum_length
    return is_padded or any(each.kind == "undefined" for each in layout.fields)


def _box(each: Field) -> _Box:
    told = each.name in _TELLING_FIELDS and each.default is not None
    name = f"{each.name} = {each.default}" if told else each.name
    return _Box(_name_lines(name, each.end - each.offset), each.offset, each.end, each.kind == "undefined")


def _name_lines(name: str, size: int) -> tuple[str, ...]:
    """A name in as many lines as it needs: broken behind an underscore or a dot, never cut."""
    if len(name) <= _room(min(size, BYTES_A_ROW)):
        return (name,)
    lines = [""]
    for piece in name.replace("_", "_ ").replace(".", ". ").split():
        if lines[-1] and len(lines[-1]) + len(piece) > _room(size):
            lines.append("")
        lines[-1] += piece
    return tuple(lines)


def _tail_text(layout: Layout) -> tuple[str, ...]:
    """The name of what follows the header, and how long it is; nothing if nothing follows."""
    payload = layout.payload
    if payload is not None:
        return payload.name, f"({payload.length_field} bytes)" if payload.length_field else "(to the frame's end)"
    if layout.header_end < layout.format.minimum_length:
        return (f"padding to {layout.format.minimum_length} bytes",)
    return ()


def _row(boxes: list[_Box], start: int) -> _BoxRow:
    places = range(start, start + BYTES_A_ROW)
    return [next((box for box in boxes if box.start <= place < box.end), None) for place in places]


def _room(columns: int) -> int:
    """Characters inside a box of so many bytes."""
    return columns * (CELL_WIDTH + 1) - 1


def _ruler() -> str:
    columns = " ".join(f"+{number}".center(CELL_WIDTH) for number in range(BYTES_A_ROW))
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
    """The last row, which stands for any number of bytes, as its slanted sides say."""
    room = _room(BYTES_A_ROW)
    return [_margin(start, n) + "/" + _centred(text, room, tail.fill) + "/" for n, text in enumerate(tail.lines)]


def _margin(start: int, line: int) -> str:
    """The frame offset before the first line of a row."""
    return (str(start).rjust(MARGIN - 2) if line == 0 else "").ljust(MARGIN)


def _centred(text: str, room: int, fill: str) -> str:
    if fill != " " and text and len(text) + 2 < room:
        text = f" {text} "
    return text.center(room, fill)


def _border(above: _BoxRow, below: _BoxRow) -> str:
    """The line between two rows; open where a box goes on from one to the other."""
    closed = [False, *(upper is not lower for upper, lower in zip(above, below, strict=True)), False]
    line = " " * MARGIN
    for column in range(BYTES_A_ROW + 1):
        fill = _fill(above, column)
        line += _joint(closed[column], closed[column + 1], _has_wall(above, column), _has_wall(below, column), fill)
        if column < BYTES_A_ROW:
            line += ("-" if closed[column + 1] else fill) * CELL_WIDTH
    return line


def _fill(row: _BoxRow, column: int) -> str:
    box = row[column] if column < BYTES_A_ROW else None
    return box.fill if box is not None else " "


def _has_wall(row: _BoxRow, column: int) -> bool:
    """Whether a row has a vertical line before the byte in this column."""
    left = row[column - 1] if column > 0 else None
    right = row[column] if column < BYTES_A_ROW else None
    return left is not right


def _joint(left: bool, right: bool, above: bool, below: bool, fill: str) -> str:
    """The character where the lines of four sides meet."""
    if not (above or below):
        return "-" if left and right else fill
    return "+" if left or right else "|"
