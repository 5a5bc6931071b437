"""The matrix: which cells there are, and how they are played, one after the other or in several processes."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

from mxwire import __version__
from mxwire.errors import MxwireError
from mxwire.interop.cases import GROUPS, PARTS, Part, part_by_name
from mxwire.interop.impairments import TREATMENTS, treatment_by_name
from mxwire.interop.implementations import IMPLEMENTATIONS, implementation_by_name
from mxwire.interop.playing import Order, play_simulated
from mxwire.interop.result import INTERRUPTED, Cell, Implementation, Report

STANDARD: Final = ("loss", "duplicates", "reorder", "mixed")
"""Impairments that are played without being asked for: where two hosts speak alike, in the cases that are meant for
it."""
_CHUNK: Final = 12

Play = Callable[[Order], Cell]
Progress = Callable[[Cell, int, int], None]
"""Told of each cell that was played, how many these are, and of how many."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which cells are wanted, by the names that a user gives; empty means the standard ones."""

    implementations: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    """Names of cases or of groups."""
    impairments: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    """``left/right/case/impairment`` each; then nothing else counts."""
    seed: int = 1


def chosen_parts(names: Sequence[str]) -> list[Part]:
    """Cases by names of cases and groups, in the order in which they are shown; without names all.

    Raises :class:`~mxwire.errors.MxwireError` for a name that is none.
    """
    if not names:
        return list(PARTS.values())
    wanted: set[str] = set()
    for name in names:
        group = name.strip().lower()
        if group in GROUPS:
            wanted |= {part.case.name for part in PARTS.values() if part.case.group == group}
        else:
            wanted.add(part_by_name(name).case.name)
    return [part for name, part in PARTS.items() if name in wanted]


def plan(selection: Selection) -> list[Order]:
    """The simulated cells of a selection, pair by pair.

    Raises :class:`~mxwire.errors.MxwireError` for names that are none.
    """
    if selection.cells:
        return [cell_by_name(each, selection.seed, implementation_by_name) for each in selection.cells]
    chosen = [implementation_by_name(each) for each in dict.fromkeys(selection.implementations)]
    hosts = chosen or list(IMPLEMENTATIONS.values())
    parts = chosen_parts(selection.cases)
    orders = []
    for left, right in product(hosts, hosts):
        for impairment in _impairments(selection, left, right):
            orders += [
                Order(left, right, part.case.name, impairment, selection.seed)
                for part in parts
                if impairment == "none" or selection.impairments or part.impaired
            ]
    return orders


def _impairments(selection: Selection, left: Implementation, right: Implementation) -> list[str]:
    if selection.impairments:
        return [treatment_by_name(each).name for each in dict.fromkeys(selection.impairments)]
    return ["none", *(STANDARD if left.dialect == right.dialect else ())]


def cell_by_name(
    name: str, seed: int, find: Callable[[str], Implementation], configuration: str | None = None
) -> Order:
    """The cell that a user names; ``find`` gives the implementations.

    Raises :class:`~mxwire.errors.MxwireError` for what is none.
    """
    parts = name.split("/")
    if len(parts) != 4:
        raise MxwireError(f"no cell {name!r}: write LEFT/RIGHT/CASE/IMPAIRMENT, for example {_EXAMPLE}")
    left, right, case, impairment = parts
    return Order(
        find(left),
        find(right),
        part_by_name(case).case.name,
        treatment_by_name(impairment).name,
        seed,
        configuration,
    )


_EXAMPLE: Final = "open-mx-1.5/native-mx/size-medium/loss"


def report_of(orders: Sequence[Order], title: str) -> Report:
    """A report without cells, with all that they will name."""
    hosts = {each.name: each for order in orders for each in (order.left, order.right)}
    cases = {order.case for order in orders}
    impairments = {order.impairment for order in orders}
    return Report(
        title,
        __version__,
        datetime.now(UTC).isoformat(timespec="seconds"),
        complete=False,
        implementations=list(hosts.values()),
        cases=[part.case for name, part in PARTS.items() if name in cases],
        impairments=[each.impairment for name, each in TREATMENTS.items() if name in impairments],
    )


def run(
    orders: Sequence[Order],
    report: Report,
    *,
    jobs: int = 1,
    captures: Path | None = None,
    play: Play | None = None,
    progress: Progress | None = None,
) -> bool:
    """Play all cells into the report; False where Ctrl-C came first, and the report then says so.

    Without ``play`` they are simulated, in as many processes as ``jobs`` says.
    """

    def take(cell: Cell) -> None:
        report.cells.append(cell)
        if progress is not None:
            progress(cell, len(report.cells), len(orders))

    try:
        if play is not None or min(jobs, len(orders)) <= 1:
            for each in map(play or partial(play_simulated, captures=captures), orders):
                take(each)
        else:
            _play_in_processes(orders, partial(play_simulated, captures=captures), jobs, take, report.cells)
    except KeyboardInterrupt:
        report.cells += [order.cell("missing", INTERRUPTED) for order in orders[len(report.cells) :]]
        return False
    report.complete = True
    return True


def _play_in_processes(
    orders: Sequence[Order], play: Play, jobs: int, take: Callable[[Cell], None], taken: list[Cell]
) -> None:
    """Play in several processes, and take the cells in their order; whatever happens, no process is left.

    Ctrl-C ends it: what has been begun by then is taken too.
    """
    with ProcessPoolExecutor(jobs, initializer=_leave_ctrl_c_alone) as pool:
        parts = [pool.submit(_several, play, orders[at : at + _CHUNK]) for at in range(0, len(orders), _CHUNK)]
        try:
            for part in parts:
                for cell in part.result():
                    take(cell)
        except BaseException as error:
            # What sends Ctrl-C to a whole group may send it twice.
            before = signal.signal(signal.SIGINT, signal.SIG_IGN) if isinstance(error, KeyboardInterrupt) else None
            for part in reversed(parts):
                part.cancel()
            if before is not None:
                _take_what_was_begun(parts, taken)
                signal.signal(signal.SIGINT, before)
            raise


def _several(play: Play, orders: Sequence[Order]) -> list[Cell]:
    return [play(order) for order in orders]


def _take_what_was_begun(parts: Sequence[Future[list[Cell]]], taken: list[Cell]) -> None:
    for number, part in enumerate(parts):
        if part.cancelled():
            return
        taken += part.result()[max(0, len(taken) - number * _CHUNK) :]


def _leave_ctrl_c_alone() -> None:
    """In a process that plays: the one that has started it sees to the end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
