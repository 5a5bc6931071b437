"""Which room of the house imports which, read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from mxwire.report.document import Column, Row
from rendering.basics import ROOT
from rendering.tables import table_of_markdown


def made() -> str:
    """A table of the rooms: what each is, and what it imports."""
    package = ROOT / "mxwire"
    rooms = sorted(path.name for path in package.iterdir() if (path / "__init__.py").exists())
    rows = []
    for room in rooms:
        imported = {name for path in sorted((package / room).rglob("*.py")) for name in _imported_rooms(path)}
        summary = ast.get_docstring(ast.parse((package / room / "__init__.py").read_text(encoding="utf-8"))) or ""
        described = summary.partition("\n")[0].replace("``", "`")
        rows.append(Row((room, described, ", ".join(sorted(imported - {room})))))
    return table_of_markdown((Column("room"), Column("what it is"), Column("imports")), rows)


def _imported_rooms(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            package, _, rest = name.partition(".")
            if package == "mxwire" and rest:
                yield rest.partition(".")[0]
