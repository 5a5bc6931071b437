"""Which room of the house imports which, read from the source."""

from __future__ import annotations

import ast
import re

from mxwire.report.document import Column, Row
from rendering.basics import ROOT
from rendering.tables import table_of_markdown

_IMPORT = re.compile(r"^ *(?:from|import) mxwire\.(\w+)", re.MULTILINE)
"""A line that imports from a room; parsing all modules would take a second."""


def made() -> str:
    """A table of the rooms: what each is, and what it imports."""
    package = ROOT / "mxwire"
    rooms = sorted(path.name for path in package.iterdir() if (path / "__init__.py").exists())
    rows = []
    for room in rooms:
        sources = [path.read_text(encoding="utf-8") for path in (package / room).rglob("*.py")]
        imported = {name for text in sources for name in _IMPORT.findall(text)}
        summary = ast.get_docstring(ast.parse((package / room / "__init__.py").read_text(encoding="utf-8"))) or ""
        described = summary.partition("\n")[0].replace("``", "`")
        rows.append(Row((room, described, ", ".join(sorted(imported - {room})))))
    return table_of_markdown((Column("room"), Column("what it is"), Column("imports")), rows)
