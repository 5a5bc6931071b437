"""The difference of two reports as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from mxwire.capture.text import printable
from mxwire.interop.diff import KINDS, Change, ReportDifference
from mxwire.interop.result import Cell, InteropReport
from mxwire.report.document import Block, Column, Heading, Paragraph, Row, Table

SHOWN: Final = 20
"""Changes shown per kind by default; those of ``worse`` are always shown."""
_COLUMNS: Final = (Column("verdict"), Column("cell and reason", wraps=True))
_TITLES: Final = {"worse": "Worse", "better": "Better", "new": "New", "gone": "Gone"}


def blocks(difference: ReportDifference, *, everything: bool = False) -> list[Block]:
    """Return the changes in tables by kind, after their counts."""
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


def _summary(difference: ReportDifference) -> str:
    counts = ", ".join(f"{count} {kind}" for kind, count in difference.counts.items())
    return f"{counts}, {difference.same} the same"


def _cautions(difference: ReportDifference) -> Iterator[str]:
    """Yield remarks on the completeness of the numbers."""
    partial = [name for name, report in (("old", difference.old), ("new", difference.new)) if not report.complete]
    if partial:
        which = f"The {partial[0]} report is" if len(partial) == 1 else "Both reports are"
        yield f"{which} partial: missing cells were not tried."
    failing = sum(each.kind == "new" and each.cell.verdict == "fail" for each in difference.changes)
    if failing:
        yield f"{failing} of the new cells fail{'s' if failing == 1 else ''}."


def _row(change: Change) -> Row:
    cell = change.cell
    verdicts = " → ".join(_verdict(each) for each in (change.old, change.new) if each is not None)
    name = f"{cell.case}, {cell.impairment}: {cell.left} → {cell.right}"
    # The reason of a missing cell is in the old report; the reason of its absence is not known.
    told = [name] if change.new is None or (cell.verdict == "pass" and cell.works) else [name, cell.reason]
    return Row((verdicts, "\n".join(printable(each) for each in told)))


def _verdict(cell: Cell) -> str:
    """Return the verdict, marked if "pass" means a documented failure."""
    return "pass (fails)" if cell.verdict == "pass" and not cell.works else cell.verdict


def json_lines(difference: ReportDifference) -> Iterator[str]:
    """Yield one JSON object per change, then one with the counts."""
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


def _report(report: InteropReport) -> dict[str, Any]:
    return {"version": report.version, "started": report.started, "complete": report.complete}


def _line(**entry: object) -> str:
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
