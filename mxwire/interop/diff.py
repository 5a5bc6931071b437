"""Changes between two reports, as data, text and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from mxwire.interop.result import INTERRUPTED, Cell, InteropReport
from mxwire.report.document import Block, Heading, Paragraph, Row, Table, columns_of
from mxwire.rules import Verdict
from mxwire.words import printable

Kind = Literal["worse", "better", "new", "gone"]
"""``worse`` and ``better``: another verdict, or a change between working and failing as documented; ``new`` and
``gone``: a cell of only one report."""
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

_BAD_TO_GOOD: Final[tuple[Verdict, ...]] = ("fail", "non-strict", "info", "pass")


@dataclass(frozen=True, slots=True)
class Change:
    """A cell whose verdict differs between the reports, or which only one of them has."""

    kind: Kind
    old: Cell | None
    new: Cell | None

    @property
    def cell(self) -> Cell:
        """The cell of the newer report, or else that of the older."""
        cell = self.new or self.old
        assert cell is not None
        return cell


@dataclass(frozen=True, slots=True)
class ReportDifference:
    """All changes."""

    old: InteropReport
    new: InteropReport
    changes: list[Change]
    """By kind as in :data:`KINDS`, and within a kind in the order of the reports."""
    same: int
    """Number of cells with the same verdict in both."""

    @property
    def counts(self) -> dict[str, int]:
        """Number of changes by kind."""
        counts = Counter(each.kind for each in self.changes)
        return {kind: counts[kind] for kind in KINDS}

    @property
    def is_worse(self) -> bool:
        """True if any cell is worse."""
        return any(each.kind == "worse" for each in self.changes)


def compare(old: InteropReport, new: InteropReport) -> ReportDifference:
    """Compare two reports, cell by cell.

    A cell is worse if it could be run and no longer can, whatever its verdict was, or if it could not be run and now
    fails. Cells that an interrupted run did not reach are not compared.
    """
    before, after = _by_name(old), _by_name(new)
    changes = []
    for name, cell in after.items():
        was = before.get(name)
        if was is None:
            changes.append(Change("new", None, cell))
        elif (kind := _kind(was, cell)) is not None:
            changes.append(Change(kind, was, cell))
    changes += [Change("gone", cell, None) for name, cell in before.items() if name not in after]
    changes.sort(key=lambda change: KINDS.index(change.kind))
    common = sum(each.old is not None and each.new is not None for each in changes)
    return ReportDifference(old, new, changes, len(before.keys() & after.keys()) - common)


def _by_name(report: InteropReport) -> dict[str, Cell]:
    """Return the tried cells by name; of several with one name, the last."""
    return {each.name: each for each in report.cells if each.reason != INTERRUPTED}


def _kind(was: Cell, now: Cell) -> Kind | None:
    """Return the change of a cell; None if it is unchanged."""
    if was.verdict == now.verdict:
        if was.works == now.works:
            return None
        return "better" if now.works else "worse"
    if now.verdict == "missing":
        return "worse"
    if was.verdict == "missing":
        return "worse" if now.verdict == "fail" else "better"
    return "better" if _BAD_TO_GOOD.index(now.verdict) > _BAD_TO_GOOD.index(was.verdict) else "worse"


SHOWN: Final = 20
"""Changes shown per kind by default; those of ``worse`` are always shown."""
_COLUMNS: Final = columns_of("verdict, ~cell and reason")
_TITLES: Final = {"worse": "Worse", "better": "Better", "new": "New", "gone": "Gone"}


def blocks(difference: ReportDifference, *, everything: bool = False) -> list[Block]:
    """Return the changes in tables by kind, after their counts."""
    shown: list[Block] = [Paragraph(_summary(difference))]
    shown += [Paragraph(text) for text in _cautions(difference)]
    for kind in KINDS:
        changes = [each for each in difference.changes if each.kind == kind]
        if not changes:
            continue
        listed = changes if everything or kind == "worse" else changes[:SHOWN]
        shown += [Heading(_TITLES[kind], 3), Table(_COLUMNS, tuple(_row(each) for each in listed))]
        if len(listed) < len(changes):
            shown.append(Paragraph(f"… and {len(changes) - len(listed)} more (--all shows them)"))
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
    lines = [name] if change.new is None or (cell.verdict == "pass" and cell.works) else [name, cell.reason]
    return Row((verdicts, "\n".join(printable(each) for each in lines)))


def _verdict(cell: Cell) -> str:
    """Return the verdict, marked if "pass" means a documented failure."""
    return "pass (fails)" if cell.verdict == "pass" and not cell.works else cell.verdict


def change_records(difference: ReportDifference) -> Iterator[dict[str, Any]]:
    """Yield one JSON object per change, then one with the counts."""
    for each in difference.changes:
        about = {name: getattr(each.cell, name) for name in ("left", "right", "case", "impairment", "seed")}
        sides = {"old": _side(each.old), "new": _side(each.new)}
        yield {"record": "change", "change": each.kind, **about, **sides, "command": each.cell.command}
    reports = {"old_report": _report(difference.old), "new_report": _report(difference.new)}
    yield {"record": "summary", **difference.counts, "same": difference.same, **reports}


def _side(cell: Cell | None) -> dict[str, Any] | None:
    return None if cell is None else {"verdict": cell.verdict, "works": cell.works, "reason": cell.reason}


def _report(report: InteropReport) -> dict[str, Any]:
    return {"version": report.version, "started": report.started, "complete": report.complete}
