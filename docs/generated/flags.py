"""The flags of frames, and their meanings."""

from __future__ import annotations

from mxwire.analysis.marks import FLAGS
from mxwire.report.document import Column, Row, Table, markdown


def made() -> str:
    """Return a table of all flags."""
    columns = (Column("flag", code=True), Column("meaning"))
    return markdown([Table(columns, tuple(Row((name, each.meaning)) for name, each in FLAGS.items()))])
