"""What the dialect of two hosts is recognised by."""

from __future__ import annotations

from mxwire.report.document import Column, Row, Table, markdown
from mxwire.wire.detection import HINTS


def made() -> str:
    """A table of what speaks for a dialect, and how strongly."""
    columns = (Column("evidence"), Column("speaks for"), Column("strength", right=True))
    rows = tuple(Row((hint.text, hint.supports, f"{hint.strength:.0%}")) for hint in HINTS.values())
    return markdown([Table(columns, rows)])
