"""The reasons for which a frame is malformed."""

from __future__ import annotations

from mxwire.report.document import Column, Row, Table, markdown
from mxwire.wire.checks import Reason


def made() -> str:
    """Return a table of all reasons."""
    columns = (Column("value", right=True), Column("reason", code=True), Column("meaning"))
    rows = tuple(Row((str(each.value), each.text, each.explanation)) for each in Reason if each)
    return markdown([Table(columns, rows)])
