"""Reads the hex dumps and tables of ``tests/data/sequence-examples.md``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mxwire.wire.dialect import MXOE, Dialect, omx

from .support import DATA

_DUMP = re.compile(r"[0-9a-f]{4}((?: (?: ?)(?:[0-9a-f]{2}|\.\.))+)$")
_LIMIT = re.compile(r"`omx`, M = (\d+)")


@dataclass(frozen=True)
class Example:
    """One dump, as far as it is printed."""

    heading: str
    dialect: Dialect | None
    """None where the heading names none: the packet is the same in all."""
    shown: tuple[int | None, ...]
    """The bytes; None for an undefined one."""
    complete: bool

    @property
    def frame(self) -> bytes:
        """The bytes with zeros for the undefined ones."""
        return bytes(byte or 0 for byte in self.shown)

    def __str__(self) -> str:
        return f"{self.heading.split()[0]} type {self.shown[16]}"


@dataclass(frozen=True)
class Table:
    """One table of numbers."""

    heading: str
    dialect: Dialect | None
    rows: tuple[dict[str, str], ...]


def examples() -> list[Example]:
    found = []
    for heading, dialect, lines in _sections():
        inside, dump, complete = False, [], True
        for line in lines:
            if line == "```":
                if inside and dump:
                    found.append(Example(heading, dialect, tuple(dump), complete))
                inside, dump, complete = not inside, [], True
            elif inside and line.startswith("..."):
                complete = False
            elif inside:
                text = _DUMP.fullmatch(line)
                assert text, line
                dump += [None if byte == ".." else int(byte, 16) for byte in text.group(1).split()]
    return found


def tables(first_column: str) -> list[Table]:
    """The tables whose first column has a name."""
    found = []
    for heading, dialect, lines in _sections():
        names: list[str] = []
        rows: list[dict[str, str]] = []
        for line in [*lines, ""]:
            cells = [each.strip().strip("`") for each in line.strip("|").split("|")]
            if not line.startswith("|"):
                if rows and names[0] == first_column:
                    found.append(Table(heading, dialect, tuple(rows)))
                names, rows = [], []
            elif not names:
                names = cells
            elif not set(line) <= set("|-: "):
                rows.append(dict(zip(names, cells, strict=True)))
    return found


def _sections() -> Iterator[tuple[str, Dialect | None, list[str]]]:
    """Heading, the dialect it names, and the lines below it."""
    heading, lines = "", []
    for line in [*(DATA / "sequence-examples.md").read_text().splitlines(), "# end"]:
        if line.startswith("#"):
            limit = _LIMIT.search(heading)
            yield heading, omx(int(limit.group(1))) if limit else MXOE if "`mxoe`" in heading else None, lines
            heading, lines = line.lstrip("# "), []
        else:
            lines.append(line)
