"""An animated SVG of a terminal: scenes of a command and its output, one after another, without end.

Each frame of the animation is text with a fixed width per character, so that it is sharp at any size and can be
searched. The picture follows the light or dark scheme of its reader; with reduced motion it shows the first scene.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

COLUMNS = 68
ROWS = 22
_CHARACTER, _LINE, _MARGIN, _FONT = 9.7, 22, 12, 16
_SECONDS = 20.0
_WORD, _OUTPUT, _NEXT_LINE = 0.15, 0.4, 0.05
"""Seconds: from one word of a command to the next, until the output begins, and from one of its lines to the next."""
_STYLES = {"1": "bold", "36": "cyan", "32": "green", "33": "yellow", "31": "red"}
_ESCAPE = re.compile(r"\x1b\[([\d;]*)m")

Scene = tuple[str, Sequence[str]]
"""A command, and the lines of its output."""


def drawn(scenes: Sequence[Scene]) -> str:
    """Return the picture."""
    width = COLUMNS * _CHARACTER + 2 * _MARGIN
    height = ROWS * _LINE + 2 * _MARGIN
    length = _SECONDS / len(scenes)
    body: list[str] = []
    frames: list[str] = []
    for number, (command, lines) in enumerate(scenes):
        begin, end = number * length, (number + 1) * length
        moments = _moments(command, lines)
        for place, (time, row, column, text) in enumerate(moments):
            name = f"s{number}-{place}"
            shown = f"{100 * (begin + time) / _SECONDS:.2f}%"
            gone = f"{100 * end / _SECONDS:.2f}%"
            frames.append(f"@keyframes {name}{{0%{{opacity:0}}{shown}{{opacity:1}}{gone},100%{{opacity:0}}}}")
            still = "" if number else " still"
            body.append(f'<g class="moment{still}" style="animation-name:{name}">{_text(row, column, text)}</g>')
    title = "; ".join(command for command, _ in scenes)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">
<title>mxwire in a terminal: {escape(title)}</title>
<style>
svg {{ background: #f6f8fa; color: #1f2328 }}
text {{ font: {_FONT}px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace }}
text {{ fill: currentColor; white-space: pre }}
.bold {{ font-weight: bold }}
.prompt, .green {{ fill: #1a7f37 }} .cyan {{ fill: #0550ae }} .yellow {{ fill: #7d4e00 }} .red {{ fill: #a40e26 }}
.moment {{ opacity: 0; animation: {_SECONDS:g}s step-end infinite }}
@media (prefers-color-scheme: dark) {{
svg {{ background: #0d1117; color: #e6edf3 }}
.prompt, .green {{ fill: #7ee787 }} .cyan {{ fill: #79c0ff }} .yellow {{ fill: #f2cc60 }} .red {{ fill: #ff7b72 }}
}}
@media (prefers-reduced-motion: reduce) {{
.moment {{ animation: none }} .still {{ opacity: 1 }}
}}
{chr(10).join(frames)}
</style>
{chr(10).join(body)}
</svg>
"""


def _moments(command: str, lines: Sequence[str]) -> list[tuple[float, int, int, str]]:
    """Return the time, row, column and text of each part of a scene."""
    time, row, column = 0.0, 0, 0
    moments = [(time, row, column, "\x1b[32m$\x1b[0m")]
    column = 2
    for word in command.split():
        if column + len(word) > COLUMNS:
            row, column = row + 1, 4
        time += _WORD
        moments.append((time, row, column, f"\x1b[1m{word}\x1b[0m"))
        column += len(word) + 1
    time += _OUTPUT
    for line in lines[: ROWS - row - 1]:
        row += 1
        time += _NEXT_LINE
        if line:
            moments.append((time, row, 0, line))
    return moments


def _text(row: int, column: int, line: str) -> str:
    return "".join(
        f'<text x="{_MARGIN + place * _CHARACTER:g}" y="{_MARGIN + (row + 1) * _LINE - 6:g}"'
        f' textLength="{len(part) * _CHARACTER:g}"{classes}>{escape(part)}</text>'
        for place, part, classes in _parts(column, line)
    )


def _parts(column: int, line: str) -> Iterator[tuple[int, str, str]]:
    """Divide a line by its colours, and where several spaces follow each other."""
    styles: list[str] = []
    pieces = _ESCAPE.split(line)
    for number, piece in enumerate(pieces):
        if number % 2:
            styles = (
                [] if piece in ("", "0") else styles + [_STYLES[each] for each in piece.split(";") if each in _STYLES]
            )
            continue
        for found in re.finditer(r"\S+(?: \S+)*", piece[: max(0, COLUMNS - column)]):
            classes = f' class="{" ".join(styles)}"' if styles else ""
            yield column + found.start(), found[0], classes
        column += len(piece)
