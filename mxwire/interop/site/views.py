"""Views of a report for the pages: cells with their files, the matrix as rows and columns, and the templates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from mxwire.interop.result import INTERRUPTED, Case, Cell, Impairment, InteropReport
from mxwire.report.site.pages import FileNames, environment
from mxwire.rules import Verdict

SYMBOLS: Final[dict[Verdict, str]] = {
    "pass": "\N{CHECK MARK}",
    "info": "i",
    "non-strict": "\N{ALMOST EQUAL TO}",
    "fail": "\N{MULTIPLICATION X}",
    "missing": "\N{EN DASH}",
}
"""Symbols of verdicts, since colours alone would exclude some readers."""
State = Literal["works", "documented", "wrong", "missing"]
STATES: Final[dict[State, tuple[str, str, str]]] = {
    "works": ("\N{CHECK MARK}", "works", "the case works, perhaps with notes"),
    "documented": ("\N{CIRCLED DIVISION SLASH}", "fails as documented", "these implementations cannot do it"),
    "wrong": ("\N{MULTIPLICATION X}", "wrong", "not as expected, or a rule was broken"),
    "missing": ("\N{EN DASH}", "missing", "not run; see the reason"),
}
"""Symbol, name and meaning of the states of cells."""
_GOOD_TO_BAD: Final[tuple[State, ...]] = ("missing", "works", "documented", "wrong")
CLASSES: Final[dict[str, tuple[str, ...]]] = {
    "connect": ("connect",),
    "tiny": ("size-empty", "size-tiny"),
    "small": ("size-small",),
    "medium": ("size-fragment", "size-medium"),
    "large": ("size-large", "size-blocks"),
}
"""Classes of messages, and the cases that show whether they work."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class CellView:
    """A cell with its case, implementations and impairment."""

    cell: Cell
    case: Case
    impairment: Impairment
    file: str
    """Name of its page in the folder ``cells``, if it has one."""
    case_file: str

    @property
    def has_page(self) -> bool:
        """True if it has a page: cells that an interrupted run did not reach have none."""
        return self.cell.reason != INTERRUPTED

    @property
    def state(self) -> State:
        """State of the cell, which distinguishes an expected failure from a success, although both have the same
        verdict.
        """
        return state_of(self.cell)

    @property
    def symbol(self) -> str:
        """The symbol of its state, or of the notes on a case that works."""
        noted = self.state == "works" and self.cell.verdict != "pass"
        return SYMBOLS[self.cell.verdict] if noted else STATES[self.state][0]

    @property
    def word(self) -> str:
        """The state in one word."""
        return "fails" if self.state == "documented" else self.state

    @property
    def looks(self) -> str:
        """The CSS classes by which it is coloured and filtered."""
        return f"{self.cell.verdict} {self.state}"


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A case under an impairment, with its cells in the order of the columns."""

    case: Case
    case_file: str
    impairment: Impairment
    cells: list[CellView | None]
    text: str
    """Text that the search examines, in addition to the cells."""


@dataclass(frozen=True, slots=True)
class PairSummary:
    """All cells of a pair."""

    right: str
    works: int
    run: int
    worst: State
    text: str
    classes: dict[str, str]
    """State of each class of messages without an impairment: ``works``, ``partly``, ``fails`` or ``unknown``."""


class Matrix:
    """A report as a matrix."""

    def __init__(self, report: InteropReport) -> None:
        self.report = report
        self.cases = {each.name: each for each in report.cases}
        for cell in report.cells:
            self.cases.setdefault(cell.case, Case(cell.case, cell.case, "other", "", ()))
        self.impairments = {each.name: each for each in report.impairments}
        for cell in report.cells:
            self.impairments.setdefault(cell.impairment, Impairment(cell.impairment, cell.impairment, ""))
        names = FileNames()
        self.case_files = {name: names.of(name) for name in self.cases}
        names = FileNames()
        self.views = [self._view(cell, names) for cell in report.cells]

    def _view(self, cell: Cell, names: FileNames) -> CellView:
        file = names.of(cell.name.replace("/", "--"))
        return CellView(
            cell, self.cases[cell.case], self.impairments[cell.impairment], file, self.case_files[cell.case]
        )

    @cached_property
    def columns(self) -> list[Pair]:
        """The pairs that have cells, in the order of the implementations."""
        order = {each.name: place for place, each in enumerate(self.report.implementations)}
        columns = dict.fromkeys((each.cell.left, each.cell.right) for each in self.views)
        return sorted(columns, key=lambda pair: [order.get(each, len(order)) for each in pair])

    @property
    def lefts(self) -> list[str]:
        """Implementations on the left of any cell."""
        return list(dict.fromkeys(left for left, _ in self.columns))

    @property
    def rights(self) -> list[str]:
        """Implementations on the right of any cell, in the order of the report."""
        order = [each.name for each in self.report.implementations]
        rights = {right for _, right in self.columns}
        return [each for each in order if each in rights] + sorted(rights.difference(order))

    def groups(self) -> dict[str, list[MatrixRow]]:
        """The rows of the matrix by groups of cases, in the order of the cases."""
        cells = {(each.cell.case, each.cell.impairment, (each.cell.left, each.cell.right)): each for each in self.views}
        used = {(case, impairment) for case, impairment, _ in cells}
        groups: dict[str, list[MatrixRow]] = defaultdict(list)
        for case in self.cases.values():
            for impairment in self.impairments.values():
                if (case.name, impairment.name) not in used:
                    continue
                row = [cells.get((case.name, impairment.name, pair)) for pair in self.columns]
                text = " ".join([case.name, case.title, case.group, impairment.name, impairment.title, *case.rules])
                groups[case.group].append(MatrixRow(case, self.case_files[case.name], impairment, row, text))
        return groups

    def states(self) -> dict[State, int]:
        """Return the number of cells by state."""
        states: dict[State, int] = dict.fromkeys(STATES, 0)
        for each in self.views:
            states[each.state] += 1
        return states

    def pairs(self) -> Iterator[tuple[str, list[PairSummary | None]]]:
        """Yield a row for each implementation on the left: the summary with each one on the right."""
        of_pair: dict[Pair, list[Cell]] = defaultdict(list)
        for each in self.views:
            of_pair[each.cell.left, each.cell.right].append(each.cell)
        for left in self.lefts:
            yield left, [_summary(right, of_pair.get((left, right), [])) for right in self.rights]

    def case_rows(self, case: str) -> tuple[list[Impairment], list[tuple[str, str, list[CellView | None]]]]:
        """Return the impairments under which a case was run, and for each pair its cells under them."""
        views = {
            (each.cell.left, each.cell.right, each.cell.impairment): each
            for each in self.views
            if each.cell.case == case
        }
        used = {impairment for _, _, impairment in views}
        impairments = [each for each in self.impairments.values() if each.name in used]
        pairs = [pair for pair in self.columns if any((*pair, each.name) in views for each in impairments)]
        return impairments, [(*pair, [views.get((*pair, each.name)) for each in impairments]) for pair in pairs]

    @cached_property
    def _siblings(self) -> dict[tuple[str, str, str], list[CellView]]:
        siblings = defaultdict(list)
        for each in self.views:
            siblings[each.cell.left, each.cell.right, each.cell.case].append(each)
        return siblings

    def siblings(self, view: CellView) -> list[CellView]:
        """Return the cells of the same pair and case under other impairments."""
        same = self._siblings[view.cell.left, view.cell.right, view.cell.case]
        return [each for each in same if each is not view]


def state_of(cell: Cell) -> State:
    """Return the state of a cell."""
    if cell.verdict in ("fail", "missing"):
        return "wrong" if cell.verdict == "fail" else "missing"
    return "works" if cell.works else "documented"


def _summary(right: str, cells: list[Cell]) -> PairSummary | None:
    states = [state_of(each) for each in cells]
    if not states:
        return None
    counts = {each: states.count(each) for each in _GOOD_TO_BAD if each in states}
    run = len(states) - counts.get("missing", 0)
    worst = max(states, key=_GOOD_TO_BAD.index)
    text = ", ".join(f"{count} {STATES[each][1]}" for each, count in counts.items())
    return PairSummary(right, sum(each.works for each in cells), run, worst, text, _classes(cells))


def _classes(cells: list[Cell]) -> dict[str, str]:
    """Return the state of each class of messages, by the cases without an impairment."""
    found = {}
    for name, cases in CLASSES.items():
        mine = [
            each.works
            for each in cells
            if each.case in cases and each.impairment == "none" and each.verdict != "missing"
        ]
        found[name] = "unknown" if not mine else "works" if all(mine) else "partly" if any(mine) else "fails"
    return found


def page(template: str, report: InteropReport, root: str, **values: Any) -> str:
    """Render a template; ``root`` is the path from its folder to that of the report."""
    templates = environment("mxwire.report.site", "mxwire.interop.site")
    return templates.get_template(template).render(report=report, root=root, symbols=SYMBOLS, states=STATES, **values)
