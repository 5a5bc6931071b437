"""Tables whose cells contain Markdown, which :mod:`mxwire.report.document` would escape."""

from __future__ import annotations

from mxwire.report.document import Column, Row


def table_of_markdown(columns: tuple[Column, ...], rows: list[Row]) -> str:
    """Return a table from cells that are already Markdown."""
    lines = ["| " + " | ".join(column.heading for column in columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join(lines + ["| " + " | ".join(row.cells) + " |" for row in rows]) + "\n"
