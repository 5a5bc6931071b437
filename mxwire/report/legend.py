"""Legend of the one-line form of frames: its words and the fields they show, read from ``legend.md``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from mxwire.texts import table_rows


class LegendEntry(NamedTuple):
    """A word of the line, with the fields it shows."""

    shown: str
    """The word with an example value, as in a line."""
    fields: tuple[str, ...]
    """Names of the fields for ``--fields``; the packet type determines which of them applies."""
    meaning: str
    joint: bool = False
    """True if the value combines all ``fields``; else the packet type selects one."""

    @property
    def fields_text(self) -> str:
        """The fields joined by "and" or "or"."""
        return (" and " if self.joint else " or ").join(self.fields)


def _read() -> Iterator[tuple[str, LegendEntry]]:
    for _, (label, shown, fields, meaning) in table_rows(__file__, "legend.md"):
        joint = " and " in fields
        yield label, LegendEntry(shown, tuple(fields.split(" and " if joint else " or ")), meaning, joint)


LEGEND: Final = dict(_read())
"""Legend entries by word."""


def legend_text() -> str:
    """The legend as text, one line per word."""
    width = max(len(each.shown) for each in LEGEND.values()) + 2
    return "".join(f"  {each.shown:{width}}{each.meaning}  ({each.fields_text})\n" for each in LEGEND.values())
