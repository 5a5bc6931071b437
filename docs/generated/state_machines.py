"""The state machines of the engine, read from their tables."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import textwrap
from collections.abc import Iterator

import mxwire.protocol  # noqa: F401  (its state machines are found once it is imported)
from mxwire.protocol.state_machine import StateMachine
from mxwire.report.document import Column, Row
from rendering.tables import table_of_markdown

DOT_STYLE = ("-Nfontname=sans-serif", "-Efontname=sans-serif", "-Efontsize=10", "-Nshape=box", "-Nstyle=rounded")


def made() -> str:
    """Return every table of the engine, with its module, diagram and rows."""
    blocks = []
    for machine in sorted(_machines(StateMachine), key=lambda each: (each.__module__, each.__name__)):
        path = f"mxwire/{machine.__module__.removeprefix('mxwire.').replace('.', '/')}.py"
        rows = [
            Row((str(row.state), str(row.event), str(row.next), ", ".join(f"`{rule}`" for rule in row.rules)))
            for row in machine.table.rows
        ]
        columns = tuple(Column(title) for title in ("state", "event", "next state", "rules"))
        summary = inspect.cleandoc(machine.__doc__ or "").partition("\n")[0].replace("``", "`")
        blocks.append(
            f"### {machine.table.name.capitalize()}\n\n{summary} `{path}`\n\n{_drawn(machine.table.diagram())}\n\n"
            f'??? note "The table"\n\n{textwrap.indent(table_of_markdown(columns, rows), "    ")}'
        )
    return "\n".join(blocks)


def _machines(kind: type[StateMachine]) -> Iterator[type[StateMachine]]:
    """Yield all subclasses of ``kind`` that define a table."""
    for each in kind.__subclasses__():
        if "table" in vars(each):
            yield each
        yield from _machines(each)


def _drawn(diagram: str) -> str:
    """Return a diagram as an inline SVG in the colour of the page's text; as DOT source if Graphviz is absent."""
    dot = shutil.which("dot")
    if dot is None:
        return f"```dot\n{diagram}\n```"
    done = subprocess.run([dot, "-Tsvg", *DOT_STYLE], input=diagram, capture_output=True, encoding="utf-8", check=True)
    picture = done.stdout[done.stdout.index("<svg") :]
    for colour, instead in (('stroke="black"', 'stroke="currentColor"'), ('fill="black"', 'fill="currentColor"')):
        picture = picture.replace(colour, instead)
    # Text has no fill attribute, and the background must be that of the page.
    picture = picture.replace("<text ", '<text fill="currentColor" ').replace('fill="white"', 'fill="none"')
    return '<div class="diagram">' + re.sub(r"<!--.*?-->|\n", "", picture, flags=re.DOTALL) + "</div>"
