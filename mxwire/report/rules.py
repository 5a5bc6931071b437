"""The rules of the specification as a person or a program wants to read them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Final

from mxwire.errors import MxwireError
from mxwire.report.document import Block, Column, Heading, Listing, Paragraph, Row, Table
from mxwire.report.json_line import json_line
from mxwire.rules.catalogue import CATALOGUE, Rule, chapters
from mxwire.rules.index import Places, places

_SUGGESTIONS: Final = 3
_COLUMNS: Final = (
    Column("rule", code=True),
    Column("force"),
    Column("judged"),
    Column("what it says", wraps=True),
    Column("engine", right=True),
    Column("tests", right=True),
)
_JUDGED: Final = {
    "wire": "from the wire",
    "inside": "only from inside a host",
    "not": "by nobody",
}
LEGEND: Final = (
    "judged: from the wire (by mxwire.rules.Judge), only inside a host, or not at all. engine, tests: in how many "
    "places of the engine and of the tests the rule is named; mxwire rules NUMBER lists them."
)


def select(numbers: Sequence[str] = (), chapter: str | None = None) -> list[Rule]:
    """The rules with these numbers, or beginnings of numbers, in these cases or any, and of a chapter.

    Raises :class:`~mxwire.errors.MxwireError` for a number or chapter that does not exist.
    """
    rules = list(CATALOGUE.values())
    if numbers:
        wanted = {rule.number for number in numbers for rule in _numbered(number)}
        rules = [rule for rule in rules if rule.number in wanted]
    if chapter is not None:
        titles = _chapters(chapter)
        rules = [rule for rule in rules if rule.chapter in titles]
    return rules


def _numbered(number: str) -> list[Rule]:
    wanted = number.strip().upper()
    if wanted in CATALOGUE:
        return [CATALOGUE[wanted]]
    found = [rule for rule in CATALOGUE.values() if rule.number.startswith(wanted.rstrip("-") + "-")]
    if wanted and found:
        return found
    similar = difflib.get_close_matches(wanted, CATALOGUE, _SUGGESTIONS)
    hint = f" Did you mean {' or '.join(similar)}?" if similar else " Numbers look like R-SEQ-05, R-SEQ, D-1 or W-6.4"
    raise MxwireError(f"no rule {number!r}.{hint}")


def _chapters(title: str) -> list[str]:
    found = [each for each in chapters() if title.strip().lower() in each.lower()]
    if not title.strip() or not found:
        raise MxwireError(f"no chapter {title!r}: there are {', '.join(chapters())}")
    return found


def overview(rules: Sequence[Rule]) -> list[Block]:
    """A table for each chapter."""
    found = places()
    blocks: list[Block] = []
    for title in dict.fromkeys(rule.chapter for rule in rules):
        rows = [_row(rule, found[rule.number]) for rule in rules if rule.chapter == title]
        blocks += [Heading(title), Table(_COLUMNS, tuple(rows))]
    return [*blocks, Paragraph(LEGEND)]


def _row(rule: Rule, found: Places) -> Row:
    cells = (
        rule.number,
        rule.force,
        rule.judged,
        rule.text,
        str(len(found.engine)) if found.engine else "-",
        str(len(found.tests)) if found.tests else "-",
    )
    return Row(cells, muted=rule.judged != "wire")


def details(rules: Sequence[Rule]) -> list[Block]:
    """Everything about each rule: its text, who judges it, and where it is implemented and tested."""
    return [block for rule in rules for block in _details(rule, places()[rule.number])]


def _details(rule: Rule, found: Places) -> Iterator[Block]:
    yield Heading(f"{rule.number} ({rule.chapter}, {rule.force})")
    yield Paragraph(rule.text)
    judged = f"Judged {_JUDGED[rule.judged]}"
    if rule.why:
        judged += f": {rule.why}"
    yield Paragraph(f"{judged}.")
    if rule.checker_only:
        yield Paragraph("Of use to a checker of real hosts only; the engine has nothing to implement.")
    for title, listed in (("In the engine", found.engine), ("Judged by", found.judge), ("Tested by", found.tests)):
        if listed:
            yield Heading(title, 3)
            yield Listing(listed)


def json_lines(rules: Sequence[Rule]) -> Iterator[str]:
    """One JSON object for each rule: the fields of :class:`~mxwire.rules.Rule`, and its places."""
    found = places()
    for rule in rules:
        yield json_line(asdict(rule) | asdict(found[rule.number]))
