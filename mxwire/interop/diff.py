"""What has changed from one report to another."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal, get_args

from mxwire.interop.result import INTERRUPTED, Cell, Report
from mxwire.rules import Verdict

Kind = Literal["worse", "better", "new", "gone"]
"""``worse`` and ``better``: the verdict of a cell is another, or it works in one report and is right to fail in the
other; ``new`` and ``gone``: only one report has the cell."""
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

_BAD_TO_GOOD: Final[tuple[Verdict, ...]] = ("fail", "non-strict", "info", "pass")


@dataclass(frozen=True, slots=True)
class Change:
    """A cell that is not in both reports with the same verdict."""

    kind: Kind
    old: Cell | None
    new: Cell | None

    @property
    def cell(self) -> Cell:
        """The cell, as the newer report has it if it does."""
        cell = self.new or self.old
        assert cell is not None
        return cell


@dataclass(frozen=True, slots=True)
class Difference:
    """All that has changed."""

    old: Report
    new: Report
    changes: list[Change]
    """By kind as in :data:`KINDS`, and within that in the order of the reports."""
    same: int
    """Cells with the same verdict in both."""

    @property
    def counts(self) -> dict[Kind, int]:
        """How many changes there are of each kind."""
        found = Counter(each.kind for each in self.changes)
        return {kind: found[kind] for kind in KINDS}

    @property
    def is_worse(self) -> bool:
        """Whether any cell has become worse."""
        return any(each.kind == "worse" for each in self.changes)


def compare(old: Report, new: Report) -> Difference:
    """Compare two reports, cell by cell.

    What could be run and no longer can is worse, whatever it was; and so is what could not be run and now fails. What
    an interrupted run has not come to is not in its report.
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
    return Difference(old, new, changes, len(before.keys() & after.keys()) - kept)


def _by_name(report: Report) -> dict[str, Cell]:
    """The cells by name, if they were tried; of several with one name, the last."""
    return {each.name: each for each in report.cells if each.reason != INTERRUPTED}


def _kind(was: Cell, now: Cell) -> Kind | None:
    """What has become of a cell; None where it is as it was."""
    if was.verdict == now.verdict:
        if was.works == now.works:
            return None
        return "better" if now.works else "worse"
    if now.verdict == "missing":
        return "worse"
    if was.verdict == "missing":
        return "worse" if now.verdict == "fail" else "better"
    return "better" if _BAD_TO_GOOD.index(now.verdict) > _BAD_TO_GOOD.index(was.verdict) else "worse"
