"""The difference of two reports, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from mxwire.capture.text import printable
from mxwire.interop.diff import KINDS, Change, Difference
from mxwire.interop.result import Cell, Report
from mxwire.report.document import Block, Column, Heading, Paragraph, Row, Table

SHOWN: Final = 20
"""Changes of a kind that are shown unless all are asked for; of what is worse, all are."""
_COLUMNS: Final = (Column("verdict"), Column("cell and reason", wraps=True))
_TITLES: Final = {"worse": "Worse", "better": "Better", "new": "New", "gone": "Gone"}


def blocks(difference: Difference, *, everything: bool = False) -> list[Block]:
    """The changes in tables by their kind, after how many there are."""
    shown: list[Block] = [Paragraph(_summary(difference))]
    shown += [Paragraph(text) for text in _cautions(difference)]
    for kind in KINDS:
        changes = [each for each in difference.changes if each.kind == kind]
        if not changes:
            continue
        kept = changes if everything or kind == "worse" else changes[:SHOWN]
        shown += [Heading(_TITLES[kind], 3), Table(_COLUMNS, tuple(_row(each) for each in kept))]
        if len(kept) < len(changes):
            shown.append(Paragraph(f"… and {len(changes) - len(kept)} more (--all shows them)"))
    return shown


def _summary(difference: Difference) -> str:
    counts = ", ".join(f"{count} {kind}" for kind, count in difference.counts.items())
    return f"{counts}, {difference.same} the same"


def _cautions(difference: Difference) -> Iterator[str]:
    """What a reader of the numbers has to know."""
    partial = [name for name, report in (("old", difference.old), ("new", difference.new)) if not report.complete]
    if partial:
        which = f"The {partial[0]} report is" if len(partial) == 1 else "Both reports are"
        yield f"{which} partial: what is not there was not tried."
    failing = sum(each.kind == "new" and each.cell.verdict == "fail" for each in difference.changes)
    if failing:
        yield f"Of the new cells {failing} fail{'s' if failing == 1 else ''}."


def _row(change: Change) -> Row:
    cell = change.cell
    verdicts = " → ".join(_verdict(each) for each in (change.old, change.new) if each is not None)
    name = f"{cell.case}, {cell.impairment}: {cell.left} → {cell.right}"
    # What a cell that is gone said is in the old report, and why it is not here is not known.
    told = [name] if change.new is None or (cell.verdict == "pass" and cell.works) else [name, cell.reason]
    return Row((verdicts, "\n".join(printable(each) for each in told)))


def _verdict(cell: Cell) -> str:
    """The verdict, and what it means where one word has two meanings."""
    return "pass (fails)" if cell.verdict == "pass" and not cell.works else cell.verdict


def json_lines(difference: Difference) -> Iterator[str]:
    """A change an object, then one with the counts."""
    for each in difference.changes:
        cell = each.cell
        yield _line(
            record="change",
            change=each.kind,
            left=cell.left,
            right=cell.right,
            case=cell.case,
            impairment=cell.impairment,
            seed=cell.seed,
            old=_side(each.old),
            new=_side(each.new),
            command=cell.command,
        )
    yield _line(
        record="summary",
        **difference.counts,
        same=difference.same,
        old_report=_report(difference.old),
        new_report=_report(difference.new),
    )


def _side(cell: Cell | None) -> dict[str, Any] | None:
    return None if cell is None else {"verdict": cell.verdict, "works": cell.works, "reason": cell.reason}


def _report(report: Report) -> dict[str, Any]:
    return {"version": report.version, "started": report.started, "complete": report.complete}


def _line(**entry: object) -> str:
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
