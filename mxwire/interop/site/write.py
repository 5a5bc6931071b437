"""Writing the site into the folder of a report."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Final

from mxwire.errors import MxwireError
from mxwire.interop.result import Report
from mxwire.interop.site.cell_page import CellPages
from mxwire.interop.site.pages import page
from mxwire.interop.site.views import Matrix

INDEX: Final = "index.html"
FAILURES_SHOWN: Final = 200
_FOLDERS: Final = ("assets", "cells", "frames", "cases")
_ASSETS: Final = ("site.css", "site.js")


def write_site(report: Report, folder: str | Path) -> Path:
    """Write the pages of a report beside its captures; returns the page to begin with.

    ``folder`` is that of the report: its captures are read and linked where they lie. Pages of an earlier site in it
    are replaced. Raises :class:`~mxwire.errors.MxwireError` where something cannot be written.
    """
    folder = Path(folder)
    matrix = Matrix(report)
    try:
        _make_folders(folder)
        cells = CellPages(matrix, folder)
        for view in matrix.views:
            for name, text in cells.of(view).items():
                _write(folder / name, text)
        for name, file in matrix.case_files.items():
            _write(folder / "cases" / file, _case(matrix, name))
        _write_assets(folder / "assets", cells)
        # Last: where there is an index, there is all that it leads to.
        _write(folder / INDEX, _index(matrix))
    except OSError as error:
        raise MxwireError(f"{error.filename or folder}: cannot be written: {error.strerror or error}") from None
    return folder / INDEX


def _make_folders(folder: Path) -> None:
    """The folders of the site, without pages that an earlier site may have left there."""
    (folder / INDEX).unlink(missing_ok=True)
    for name in _FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
        for old in (folder / name).glob("*.html"):
            old.unlink()


def _write(path: Path, text: str) -> None:
    # Whatever the report has taken from the wire or from a command must not keep it from being written.
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def _write_assets(folder: Path, cells: CellPages) -> None:
    static = files("mxwire.interop.site") / "static"
    for name in _ASSETS:
        _write(folder / name, (static / name).read_text(encoding="utf-8"))
    layouts = json.dumps(cells.fields.as_objects(), separators=(",", ":"))
    _write(folder / "layouts.js", f"const mxwireLayouts = {layouts};\n")


def _case(matrix: Matrix, name: str) -> str:
    impairments, rows = matrix.case_rows(name)
    return page("case.html", matrix.report, "../", case=matrix.cases[name], impairments=impairments, rows=rows)


def _index(matrix: Matrix) -> str:
    failures = [each for each in matrix.views if each.cell.verdict == "fail"]
    return page(
        "index.html",
        matrix.report,
        "",
        seeds=_seeds(matrix.report),
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


def _seeds(report: Report) -> str:
    seeds = {each.seed for each in report.cells}
    if len(seeds) == 1:
        return f"seed {seeds.pop()}"
    return f"{len(seeds)} seeds, each on the page of its cell" if seeds else "no seeds"
