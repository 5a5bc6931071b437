"""Writing of the site into the folder of a report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from mxwire.campaign import Campaign, FatalPiece, open_workers
from mxwire.errors import MxwireError, OutputError
from mxwire.interop.result import InteropReport
from mxwire.interop.site.cell_page import CellPages
from mxwire.interop.site.views import Matrix, page
from mxwire.report.site.pages import Layouts, write_assets, write_text

INDEX: Final = "index.html"
FAILURES_SHOWN: Final = 200
_FOLDERS: Final = ("assets", "cells", "frames", "cases")
CELLS_OF_A_JOB: Final = 50
"""Minimum number of cells per process."""


def write_site(report: InteropReport, folder: str | Path, *, jobs: int = 1) -> Path:
    """Write the pages of a report beside its captures; return the first page.

    ``folder`` is that of the report: its captures are read and linked in place. Pages of an earlier site in it are
    replaced. Up to ``jobs`` processes write pages. Raises :class:`~mxwire.errors.MxwireError` if a file cannot be
    written.
    """
    folder = Path(folder)
    matrix = Matrix(report)
    try:
        _make_folders(folder)
        layouts = _write_cells(matrix, folder, jobs)
        for name, file in matrix.case_files.items():
            write_text(folder / "cases" / file, _case(matrix, name))
        write_assets(folder / "assets", layouts)
        # Written last, so that an index never links to missing pages.
        write_text(folder / INDEX, _index(matrix))
    except OSError as error:
        raise OutputError.of(error.filename or folder, error) from None
    return folder / INDEX


def _write_cells(matrix: Matrix, folder: Path, jobs: int) -> Layouts:
    """Write the pages of all cells, in several processes if there are enough; return the layouts of their frames."""
    places = [place for place, view in enumerate(matrix.views) if view.has_page]
    jobs = min(jobs, len(places) // CELLS_OF_A_JOB)
    if jobs < 2:
        return _write_some(places, matrix, folder)
    parts = [places[first::jobs] for first in range(jobs)]
    layouts: Layouts = {}
    with open_workers(jobs=jobs) as workers:
        for found in Campaign(workers).play(partial(_write_some, matrix=matrix, folder=folder), parts):
            if isinstance(found, FatalPiece):
                raise MxwireError(f"{folder}: the pages cannot be written: {found}")
            layouts |= found
    return layouts


def _write_some(places: Sequence[int], matrix: Matrix, folder: Path) -> Layouts:
    cells = CellPages(matrix, folder)
    for place in places:
        for name, text in cells.of(matrix.views[place]).items():
            write_text(folder / name, text)
    return cells.fields.layouts


def _make_folders(folder: Path) -> None:
    """Create the folders of the site, without pages of an earlier site."""
    (folder / INDEX).unlink(missing_ok=True)
    for name in _FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
        for old in (folder / name).glob("*.html"):
            old.unlink()


def _case(matrix: Matrix, name: str) -> str:
    impairments, rows = matrix.case_rows(name)
    return page("case.html", matrix.report, "../", case=matrix.cases[name], impairments=impairments, rows=rows)


def _index(matrix: Matrix) -> str:
    failures = [each for each in matrix.views if each.cell.verdict == "fail"]
    return page(
        "matrix.html",
        matrix.report,
        "",
        seeds=_seeds(matrix.report),
        counts=matrix.states(),
        verdicts=matrix.report.counts,
        failures=failures[:FAILURES_SHOWN],
        more_failures=max(len(failures) - FAILURES_SHOWN, 0),
        lefts=matrix.lefts,
        rights=matrix.rights,
        pairs=list(matrix.pairs()),
        columns=matrix.columns,
        groups=matrix.groups(),
        impairments=list(matrix.impairments.values()),
        cases=[(case, matrix.case_files[name]) for name, case in matrix.cases.items()],
    )


def _seeds(report: InteropReport) -> str:
    seeds = {each.seed for each in report.cells}
    if len(seeds) == 1:
        return f"seed {seeds.pop()}"
    return f"{len(seeds)} seeds, see the pages of the cells" if seeds else "no seeds"
