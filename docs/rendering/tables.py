"""Tables that :mod:`mxwire.report.document` cannot make."""

from __future__ import annotations

from mxwire.report.document import Column, Row


def table_of_markdown(columns: tuple[Column, ...], rows: list[Row]) -> str:
    """A table whose cells are Markdown already."""
    lines = ["| " + " | ".join(column.heading for column in columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join(lines + ["| " + " | ".join(row.cells) + " |" for row in rows]) + "\n"
