"""The columns of the table that ``mxwire decode --to`` writes, each with its type and origin."""

from __future__ import annotations

from mxwire.report.document import markdown
from mxwire.report.fields import fields_table


def made() -> str:
    """Return a table of the columns, with the meaning of each field."""
    return markdown([fields_table()])
