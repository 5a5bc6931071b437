"""The generations of Open-MX's own dialect, by release."""

from __future__ import annotations

from mxwire.report.document import Column, Row, Table, markdown
from mxwire.wire.dialect import Generation, omx
from mxwire.wire.layout import layout_of


def made() -> str:
    """Return a table with a row for each generation."""
    releases: dict[Generation, str] = {
        "N1": "0.1.0 to 0.5.0",
        "N2": "0.6.0 to 1.0.6",
        "N3": "1.0.901 to 1.3.1",
        "N4": "1.3.2 to 1.5.4",
    }
    rows = []
    for generation, release in releases.items():
        dialect = omx(generation=generation)
        fields = layout_of(dialect.medium_format).by_name
        pipeline = "with" if "frag_pipeline" in fields else "without"
        medium = f"{(fields['length'].size or 0) * 8}-bit length, {pipeline} pipeline"
        rows.append(Row((generation, release, medium, str(dialect.reply_payload), str(dialect.frames_per_block))))
    columns = (
        Column("generation"),
        Column("Open-MX"),
        Column("MEDIUM"),
        Column("P at M = 9000", right=True),
        Column("B", right=True),
    )
    return markdown([Table(columns, tuple(rows))])
