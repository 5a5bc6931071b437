"""The matrix: its cells, and the run that plays them, in sequence or in several processes."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

from mxwire import __version__
from mxwire.campaign import Campaign, FatalPiece, open_workers
from mxwire.campaign.campaign import AnswerSeries
from mxwire.campaign.checkpoint import AnswerCodec
from mxwire.errors import MxwireError
from mxwire.interop.cases import ALL_CASES, GROUPS, CaseDefinition, case_by_name
from mxwire.interop.cell_player import CellOrder, play_simulated
from mxwire.interop.impairments import TREATMENTS, treatment_by_name
from mxwire.interop.implementations import IMPLEMENTATIONS, implementation_by_name
from mxwire.interop.result import INTERRUPTED, Cell, Implementation, InteropReport, cell_from_line, cell_line

STANDARD: Final = ("loss", "duplicates", "reorder", "mixed")
"""Impairments played by default, for pairs of compatible hosts and the cases intended for them."""

Play = Callable[[CellOrder], Cell]
Progress = Callable[[Cell, int, int], None]
"""Callback for each played cell, with the number of played cells and of all."""


@dataclass(frozen=True, slots=True)
class CellSelection:
    """Names given by the user; empty means the standard ones."""

    implementations: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    """Names of cases or of groups."""
    impairments: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    """Cells as ``left/right/case/impairment``; they replace all other selections."""
    seed: int = 1


def selected_cases(names: Sequence[str]) -> list[CaseDefinition]:
    """Return cases by names of cases and groups, in the order of the report; by default all.

    Raises :class:`~mxwire.errors.MxwireError` for an unknown name.
    """
    if not names:
        return list(ALL_CASES.values())
    selected: set[str] = set()
    for name in names:
        group = name.strip().lower()
        if group in GROUPS:
            selected |= {part.case.name for part in ALL_CASES.values() if part.case.group == group}
        else:
            selected.add(case_by_name(name).case.name)
    return [part for name, part in ALL_CASES.items() if name in selected]


def plan(selection: CellSelection) -> list[CellOrder]:
    """Return the simulated cells of a selection, pair by pair.

    Raises :class:`~mxwire.errors.MxwireError` for unknown names.
    """
    if selection.cells:
        return [cell_by_name(each, selection.seed, implementation_by_name) for each in selection.cells]
    chosen = [implementation_by_name(each) for each in dict.fromkeys(selection.implementations)]
    hosts = chosen or list(IMPLEMENTATIONS.values())
    parts = selected_cases(selection.cases)
    orders = []
    for left, right in product(hosts, hosts):
        for impairment in _impairments(selection, left, right):
            orders += [
                CellOrder(left, right, part.case.name, impairment, selection.seed)
                for part in parts
                if impairment == "none" or selection.impairments or part.impaired
            ]
    return orders


def _impairments(selection: CellSelection, left: Implementation, right: Implementation) -> list[str]:
    if selection.impairments:
        return [treatment_by_name(each).name for each in dict.fromkeys(selection.impairments)]
    return ["none", *(STANDARD if left.dialect == right.dialect else ())]


def cell_by_name(
    name: str, seed: int, find: Callable[[str], Implementation], configuration: tuple[str, ...] = ()
) -> CellOrder:
    """Return a cell by its name; ``find`` returns implementations by name.

    Raises :class:`~mxwire.errors.MxwireError` for an invalid name.
    """
    parts = name.split("/")
    if len(parts) != 4:
        raise MxwireError(f"invalid cell {name!r}: use the form LEFT/RIGHT/CASE/IMPAIRMENT, for example {_EXAMPLE}")
    left, right, case, impairment = parts
    return CellOrder(
        find(left), find(right), case_by_name(case).case.name, treatment_by_name(impairment).name, seed, configuration
    )


_EXAMPLE: Final = "open-mx-1.5/native-mx/size-medium/loss"


def report_of(orders: Sequence[CellOrder], title: str) -> InteropReport:
    """Return a report without cells, with the cases, implementations and impairments that the cells refer to."""
    hosts = {each.name: each for order in orders for each in (order.left, order.right)}
    cases = {order.case for order in orders}
    impairments = {order.impairment for order in orders}
    return InteropReport(
        title,
        __version__,
        datetime.now(UTC).isoformat(timespec="seconds"),
        complete=False,
        implementations=list(hosts.values()),
        cases=[part.case for name, part in ALL_CASES.items() if name in cases],
        impairments=[each.impairment for name, each in TREATMENTS.items() if name in impairments],
    )


_CODEC: Final = AnswerCodec(cell_line, lambda line, _order: cell_from_line(line))


def run(
    orders: Sequence[CellOrder],
    report: InteropReport,
    *,
    jobs: int = 1,
    campaign: Campaign | None = None,
    captures: Path | None = None,
    play: Play | None = None,
    progress: Progress | None = None,
) -> bool:
    """Play all cells and add them to the report; return False after Ctrl-C, which the report then records.

    Without ``play`` cells are simulated, by the workers of ``campaign``, or else in ``jobs`` processes.
    """

    def take(cells: Iterator[Cell | FatalPiece]) -> None:
        for cell in cells:
            order = orders[len(report.cells)]
            report.cells.append(cell if isinstance(cell, Cell) else order.cell("fail", str(cell)))
            if progress is not None:
                progress(report.cells[-1], len(report.cells), len(orders))

    with ExitStack() as stack:
        if play is not None:
            cells: Iterator[Cell | FatalPiece] = map(play, orders)
        else:
            if campaign is None:
                campaign = Campaign(stack.enter_context(open_workers(jobs=max(1, min(jobs, len(orders))))))
            played = partial(play_simulated, captures=captures if captures is None else captures.absolute())
            cells = campaign.play(played, orders, codec=_CODEC)
        try:
            take(cells)
        except KeyboardInterrupt:
            if isinstance(cells, AnswerSeries):
                # Ctrl-C reaches the whole process group, and may do so twice.
                before = signal.signal(signal.SIGINT, signal.SIG_IGN)
                cells.stop()
                take(cells)
                signal.signal(signal.SIGINT, before)
            report.cells += [order.cell("missing", INTERRUPTED) for order in orders[len(report.cells) :]]
            return False
    report.complete = True
    return True
