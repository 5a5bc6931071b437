"""The fields whose values have names."""

from __future__ import annotations

import re

from mxwire.report.document import Block, Column, Heading, Paragraph, Row, Table, markdown
from mxwire.wire.enums import ConnectStatus, NackType, PacketType, TrucType


def made() -> str:
    """Return a table for each such field."""
    blocks: list[Block] = []
    for kind in (PacketType, TrucType, ConnectStatus, NackType):
        rows = tuple(Row((str(each.value), f"0x{each.value:02X}", each.name)) for each in kind)
        blocks += [
            Heading(_words(kind.__name__), 3),
            Paragraph((kind.__doc__ or "").partition("\n")[0]),
            Table((Column("value", right=True), Column("hex", right=True), Column("name", code=True)), rows),
        ]
    return markdown(blocks)


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize()
