"""The tables 1 to 3 of Araki and others (1998), printed from the facts of the models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from mxwire.bench.models.facts import FACTS, STAGES, ModelFacts
from mxwire.report.document import Block, Column, Heading, Listing, Paragraph, Row, Table
from mxwire.texts import entries

_TABLES: Final = {int(number): table for number, table in entries(__file__, "tables.toml").items()}
TITLES: Final = {number: table["title"] for number, table in _TABLES.items()}


def table_records(number: int, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of a table as objects for JSON: only their attributes in this table."""
    for name in names:
        facts = FACTS[name]
        values = asdict(facts)
        if number == 3:
            shown: dict[str, Any] = {"stages": dict(zip(STAGES, facts.stages, strict=True))}
        else:
            shown = {key: values[key] for key in _TABLES[number]["columns"]}
        remark = {"remark": facts.remark} if _remarked(number, facts) else {}
        yield {"name": name, "title": facts.title} | shown | remark


def _remarked(number: int, facts: ModelFacts) -> bool:
    """Return whether a row has a remark in a table."""
    return bool(facts.remark) and facts.remark_table in (0, number)


def table_blocks(number: int, names: Sequence[str]) -> Iterator[Block]:
    """A table, with one row per library, its notes, and the remarks about its rows."""
    rows = [(name, FACTS[name]) for name in names]
    yield Heading(TITLES[number])
    headings = list(STAGES) if number == 3 else list(_TABLES[number]["columns"].values())
    columns = (Column("library"), *(Column(each, wraps=number == 2) for each in headings))
    yield Table(columns, tuple(Row((facts.title, *_cells(number, facts))) for _, facts in rows), divisible=True)
    yield Paragraph(_TABLES[number]["note"])
    remarks = tuple(f"{facts.title}: {facts.remark}" for _, facts in rows if _remarked(number, facts))
    if remarks:
        yield Listing(remarks)


def _cells(number: int, facts: ModelFacts) -> Iterator[str]:
    if number == 3:
        yield from facts.stages
        return
    for each in _TABLES[number]["columns"]:
        value = getattr(facts, each)
        match value:
            case bool():
                yield "yes" if value else "no"
            case tuple():
                yield " + ".join(map(str, value))
            case _:
                yield str(value)
