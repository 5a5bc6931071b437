"""Names of hosts instead of their addresses in blocks of a report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mxwire.ethernet import MAC_TEXT, mac_bytes
from mxwire.report.document import Block, Listing, Paragraph, Row, Table

if TYPE_CHECKING:
    from mxwire.analysis.host_names import HostNames

_LONGEST: Final = 32
"""Maximum length of a name that is shown, in characters."""


def labelled(blocks: Iterable[Block], names: HostNames) -> Iterator[Block]:
    """Replace addresses by names that belong to one host only.

    Numbered lists are not changed, because they contain commands, which users copy and which need addresses.
    """
    labels = names.labels(_LONGEST)
    if not labels:
        yield from blocks
        return

    def name(found: re.Match[str]) -> str:
        return labels.get(int.from_bytes(mac_bytes(found[0]), "big"), found[0])

    def text(given: str) -> str:
        return MAC_TEXT.sub(name, given)

    for block in blocks:
        if isinstance(block, Paragraph):
            yield Paragraph(text(block.text))
        elif isinstance(block, Listing) and not block.numbered:
            yield replace(block, items=tuple(map(text, block.items)))
        elif isinstance(block, Table):
            yield replace(block, rows=tuple(Row(tuple(map(text, row.cells)), row.muted) for row in block.rows))
        else:
            yield block
