"""The sizes by which the dialects differ."""

from __future__ import annotations

from collections.abc import Callable

from mxwire.report.document import Column, Row, Table, markdown
from mxwire.wire.dialect import MXOE, Dialect, omx
from mxwire.wire.layout import layout_of


def made() -> str:
    """Return a table with a column for each dialect."""
    dialects = (MXOE, omx(1500), omx(4096), omx(9000))
    rows: list[tuple[str, Callable[[Dialect], object]]] = [
        ("longest frame (M in omx)", lambda dialect: dialect.frame_limit),
        ("data of a MEDIUM fragment (F)", lambda dialect: dialect.fragment_payload),
        ("longest fragment that is received (receive slot)", lambda dialect: dialect.receive_slot),
        ("most fragments of a MEDIUM message", lambda dialect: dialect.fragments_maximum),
        ("longest message that MEDIUM can be set to carry", lambda dialect: dialect.medium_maximum),
        ("data of a full PULL_REPLY (P)", lambda dialect: dialect.reply_payload),
        ("most replies of one PULL (B)", lambda dialect: dialect.frames_per_block),
        ("most bytes of one PULL (P x B)", lambda dialect: dialect.block_length),
        ("header of PULL", lambda dialect: layout_of(dialect.pull_format).header_end),
    ]
    columns = (Column("bytes, or number"), *(Column(f"`{dialect}`", right=True) for dialect in dialects))
    return markdown(
        [Table(columns, tuple(Row((text, *(str(value(dialect)) for dialect in dialects))) for text, value in rows))]
    )
