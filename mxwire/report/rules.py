"""The rules of the specification as tables, details and JSON lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from mxwire.errors import MxwireError
from mxwire.report.document import Block, Heading, Listing, Paragraph, Row, Table, columns_of
from mxwire.rules.catalogue import CATALOGUE, Rule, chapters
from mxwire.rules.index import Places, places
from mxwire.words import suggestion

_ONE_DIGIT: Final = re.compile(r"^R-[A-Z]+-(?=\d$)")
"""A number without its leading zero, up to the digit."""
_COLUMNS: Final = columns_of("`rule, force, judged, ~rule text, #engine, #tests")
_JUDGED: Final = {"wire": "from the wire", "inside": "only from inside a host", "not": "not at all"}
FORCES: Final = (
    "MUST: a real peer drops or refuses the frame otherwise, or suffers (a breach is a violation). SHOULD: peers "
    "survive a breach (a deviation). MAY: permitted. fact: a description of real hosts, which requires nothing."
)
LEGEND: Final = (
    f"{FORCES} judged: from the wire (by mxwire.rules.Judge), only inside a host, or not at all. engine, tests: number "
    "of references to the rule in the engine, and in tests and scenarios; mxwire rules -v NUMBER lists them."
)


def select(numbers: Sequence[str] = (), chapter: str | None = None) -> list[Rule]:
    """Select rules by ``numbers`` (or their prefixes, in any case) and by chapter title; all by default.

    A zero before the last digit may be missing: R-SEQ-5 is R-SEQ-05.
    Raises :class:`~mxwire.errors.MxwireError` for an unknown number or chapter.
    """
    rules = list(CATALOGUE.values())
    if numbers:
        selected = {rule.number for number in numbers for rule in _numbered(number)}
        rules = [rule for rule in rules if rule.number in selected]
    if chapter is not None:
        titles = _chapters(chapter)
        rules = [rule for rule in rules if rule.chapter in titles]
    return rules


def _numbered(number: str) -> list[Rule]:
    prefix = _ONE_DIGIT.sub(r"\g<0>0", number.strip().upper())
    if prefix in CATALOGUE:
        return [CATALOGUE[prefix]]
    found = [rule for rule in CATALOGUE.values() if rule.number.startswith(prefix.rstrip("-") + "-")]
    if prefix and found:
        return found
    form = "; numbers look like R-SEQ-05, R-SEQ, D-1 or W-6.4"
    raise MxwireError(f"no rule {number!r}{suggestion(prefix, CATALOGUE) or form}")


def _chapters(title: str) -> list[str]:
    found = [each for each in chapters() if title.strip().lower() in each.lower()]
    if not title.strip() or not found:
        raise MxwireError(f"no chapter {title!r}: there are {', '.join(chapters())}")
    return found


def overview(rules: Sequence[Rule]) -> list[Block]:
    """One table per chapter."""
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


def details(rules: Sequence[Rule], *, tests: bool = False) -> list[Block]:
    """Each rule in full: its text, how it is judged, where it is implemented, and with ``tests`` where it is tested."""
    blocks = [block for rule in rules for block in _details(rule, places()[rule.number], tests)]
    return [*blocks, Paragraph(FORCES)]


def _details(rule: Rule, found: Places, tests: bool) -> Iterator[Block]:
    yield Heading(f"{rule.number} ({rule.chapter}, {rule.force})")
    yield Paragraph(rule.text)
    judged = f"Judged {_JUDGED[rule.judged]}"
    if rule.why:
        judged += f": {rule.why}"
    yield Paragraph(f"{judged}.")
    if rule.checker_only:
        yield Paragraph("Only for checkers of real hosts; the engine has nothing to implement.")
    tested = found.tests if tests else ()
    for title, listed in (("In the engine", found.engine), ("Judged by", found.judge), ("Tested by", tested)):
        if listed:
            yield Heading(title, 3)
            yield Listing(listed)


def rule_records(rules: Sequence[Rule]) -> Iterator[dict[str, Any]]:
    """One JSON object per rule: the fields of :class:`~mxwire.rules.Rule`, and its references."""
    found = places()
    return (asdict(rule) | asdict(found[rule.number]) for rule in rules)
