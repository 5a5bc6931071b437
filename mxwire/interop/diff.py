"""Changes between two reports."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal, get_args

from mxwire.interop.result import INTERRUPTED, Cell, InteropReport
from mxwire.rules import Verdict

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
    def counts(self) -> dict[Kind, int]:
        """Number of changes by kind."""
        found = Counter(each.kind for each in self.changes)
        return {kind: found[kind] for kind in KINDS}

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
    kept = sum(each.old is not None and each.new is not None for each in changes)
    return ReportDifference(old, new, changes, len(before.keys() & after.keys()) - kept)


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
