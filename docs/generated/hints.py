"""The evidence from which the dialect of two hosts is detected."""

from __future__ import annotations

from mxwire.report.document import Column, Row, Table, markdown
from mxwire.wire.detection import Hint


def made() -> str:
    """Return a table of evidence, with the dialect that it supports and its strength."""
    columns = (Column("evidence"), Column("supports"), Column("strength", right=True))
    rows = tuple(Row((hint.text, hint.supports, f"{hint.strength:.0%}")) for hint in Hint)
    return markdown([Table(columns, rows)])
