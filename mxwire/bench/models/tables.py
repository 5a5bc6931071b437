"""The tables 1 to 3 of Araki and others (1998), printed from the facts of the models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from mxwire.bench.models.facts import FACTS, STAGES, ModelFacts
from mxwire.report.document import Block, Column, Heading, Listing, Paragraph, Row, Table

TITLES: Final = {
    1: "Table 1: choices of the models",
    2: "Table 2: choices of the implementations, for long messages from and to any memory",
    3: "Table 3: the parameter of LogP that each stage of a message is part of",
}
_COLUMNS: Final = {
    1: {
        "model": "model",
        "transfer": "control and data",
        "within": "protection within the node",
        "between": "between nodes",
        "multiprogramming": "several processes",
        "overflow": "buffer overflow",
        "errors": "network errors",
        "management": "network management",
    },
    2: {
        "send": "send data",
        "receive": "receive data",
        "protection": "protection",
        "reliability": "reliability",
        "notification": "notification",
        "in_place": "copies in place",
        "elsewhere": "copies elsewhere",
    },
}
"""Attributes of the facts and headings of their columns."""
_NOTES: Final = {
    1: "Protection within the node: a process cannot stop the network of its host. Between nodes: forged frames are "
    "refused.",
    2: "PIO: written to the adapter by a processor (WC: write combining); DMA: transferred by the adapter; v2p: "
    "translation of virtual to physical addresses. Copies per byte are those of a processor, at the sender + at the "
    "receiver, if the program uses the library's buffers (in place), or memory of its own (elsewhere).",
    3: "o_s, o_r: overhead of the sender and of the receiver; L: latency; -: there is no such stage.",
}


def table_records(number: int, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of a table as objects for JSON: only their attributes in this table."""
    for name in names:
        facts = FACTS[name]
        values = asdict(facts)
        if number == 3:
            shown: dict[str, Any] = {"stages": dict(zip(STAGES, facts.stages, strict=True))}
        else:
            shown = {key: values[key] for key in _COLUMNS[number]}
        remark = {"remark": facts.remark} if _remarked(number, facts) else {}
        yield {"name": name, "title": facts.title} | shown | remark


def _remarked(number: int, facts: ModelFacts) -> bool:
    """Return whether a row has a remark in a table."""
    return bool(facts.remark) and facts.remark_table in (0, number)


def table_blocks(number: int, names: Sequence[str]) -> Iterator[Block]:
    """A table, with one row per library, its notes, and the remarks about its rows."""
    rows = [(name, FACTS[name]) for name in names]
    yield Heading(TITLES[number])
    headings = list(STAGES) if number == 3 else list(_COLUMNS[number].values())
    columns = (Column("library"), *(Column(each, wraps=number == 2) for each in headings))
    yield Table(columns, tuple(Row((facts.title, *_cells(number, facts))) for _, facts in rows), divisible=True)
    yield Paragraph(_NOTES[number])
    remarks = tuple(f"{facts.title}: {facts.remark}" for _, facts in rows if _remarked(number, facts))
    if remarks:
        yield Listing(remarks)


def _cells(number: int, facts: ModelFacts) -> Iterator[str]:
    if number == 3:
        yield from facts.stages
        return
    for each in _COLUMNS[number]:
        value = getattr(facts, each)
        match value:
            case bool():
                yield "yes" if value else "no"
            case tuple():
                yield " + ".join(map(str, value))
            case _:
                yield str(value)
