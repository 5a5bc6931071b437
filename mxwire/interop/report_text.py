"""Results of the matrix as text for terminals and as JUnit XML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree

from mxwire.interop.result import VERDICTS, Cell, InteropReport
from mxwire.report.document import (
    Block,
    Heading,
    Listing,
    Paragraph,
    Table,
    Verbatim,
    output_width,
    tabulate,
)
from mxwire.report.junit import junit_case, junit_document, junit_suite

SHOWN: Final = 12
"""Maximum number of cells listed per verdict."""
FEW: Final = 3
"""Maximum number of cells shown with all details."""
STYLES: Final = {"all": "green", "some": "yellow", "bad": "bold red", "none": "dim", "heading": "bold", "name": "cyan"}
"""Styles of the squares, in addition to their text."""
Square = tuple[str, str]
"""Text and style of a square of the matrix."""


def square(cells: list[Cell]) -> Square:
    """Return the number of working cases and of run ones, like ``107/108``, with ``!`` if any verdict is fail."""
    run = sum(each.verdict != "missing" for each in cells)
    if not run:
        return "-", "none"
    works = sum(each.works for each in cells)
    if any(each.verdict == "fail" for each in cells):
        return f"!{works}/{run}", "bad"
    return f"{works}/{run}", "all" if works == run else "some"


def squares(report: InteropReport) -> tuple[list[str], list[str], list[list[Square]]]:
    """Return names of rows, headings of columns, and the squares."""
    by_pair: dict[tuple[str, str], list[Cell]] = {}
    for cell in report.cells:
        by_pair.setdefault((cell.left, cell.right), []).append(cell)
    lefts = [each.name for each in report.implementations if any(left == each.name for left, _ in by_pair)]
    rights = [each.name for each in report.implementations if any(right == each.name for _, right in by_pair)]
    places = {each.name: str(place) for place, each in enumerate(report.implementations, 1)}
    rows = [[square(by_pair.get((left, right), [])) for right in rights] for left in lefts]
    return [f"{places[each]:>2} {each}" for each in lefts], [places[each] for each in rights], rows


Line = list[Square]
"""A line of the matrix in segments, each with its style."""


def lines(report: InteropReport) -> Iterator[Line]:
    """Yield the matrix in the width of the output; further columns follow below, with the row names repeated."""
    names, headings, rows = squares(report)
    widest = max(map(len, names), default=0)
    width = 1 + max((len(text) for row in rows for text, _ in row), default=1)
    at_once = max(1, (output_width() - widest) // width)
    for first in range(0, len(headings), at_once):
        if first:
            yield []
        part = slice(first, first + at_once)
        yield [(" " * widest, "heading"), *((each.rjust(width), "heading") for each in headings[part])]
        for name, row in zip(names, rows, strict=True):
            yield [(name.ljust(widest), "name"), *((text.rjust(width), style) for text, style in row[part])]
    yield from ([(each, "name")] for each in answering(report))


def drawing(report: InteropReport) -> str:
    """Return the matrix as text."""
    return "\n".join("".join(text for text, _ in line) for line in lines(report))


def answering(report: InteropReport) -> list[str]:
    """Return the names of columns that have no row of their own."""
    begin = {each.left for each in report.cells}
    columns = [
        f"{place:>2} {each.name}"
        for place, each in enumerate(report.implementations, 1)
        if each.name not in begin and any(cell.right == each.name for cell in report.cells)
    ]
    return ["", *columns] if columns else []


LEGEND: Final = (
    "Rows initiate, columns respond. 107/108: of 108 cases 107 work, and the others fail as documented for such a "
    "pair; !: not all results are as expected; -: not run."
)


def blocks(report: InteropReport, *, drawn: bool = True) -> list[Block]:
    """Return matrix, groups, unexpected cells and summary; without ``drawn`` the matrix itself is left out."""
    if len(report.cells) <= FEW:
        return [*(block for cell in report.cells for block in cell_blocks(cell)), Paragraph(summary(report))]
    shown: list[Block] = [Heading(report.title), Verbatim(drawing(report))] if drawn else []
    shown += [Paragraph(LEGEND), _groups(report)]
    for verdict, title in (("fail", "Not as expected"), ("non-strict", "Not strictly as recommended")):
        cells = [each for each in report.cells if each.verdict == verdict]
        if cells:
            shown += [Heading(f"{title}: {len(cells)}", 3), Listing(tuple(_cell_lines(cells)))]
    notes = Counter(each.reason for each in report.cells if each.verdict == "info")
    if notes:
        first = next(each for each in report.cells if each.verdict == "info")
        shown += [Heading(f"With notes: {notes.total()}", 3), Paragraph(f"the first is {first.name}: {first.reason}")]
    return [*shown, Paragraph(summary(report))]


def cell_blocks(cell: Cell) -> Iterator[Block]:
    """Yield all details of one cell."""
    yield Heading(cell.name, 3)
    rows = [("verdict", cell.verdict), ("reason", cell.reason), ("expected", cell.expected)]
    rows += [("diagnosis", line) for line in cell.diagnosis]
    rows += [("finding", str(violation)) for violation in cell.findings[:SHOWN]]
    if cell.verdict != "missing":
        rows.append(("frames", f"{cell.frames} in {cell.duration_ns / 1e6:.3f} ms"))
    if cell.capture is not None:
        rows.append(("capture", cell.capture))
    rows += [("rules", ", ".join(cell.rules)), ("reproduce", cell.command)]
    yield tabulate("property, ~value", (each for each in rows if each[1]))
    if cell.events:
        yield Heading("Events of the applications", 3)
        yield Listing(cell.events)


def summary(report: InteropReport) -> str:
    """Return the number of cells in total and by verdict."""
    counts = ", ".join(f"{number} {verdict}" for verdict, number in report.counts.items() if number)
    text = f"{len(report.cells)} cell{'' if len(report.cells) == 1 else 's'}: {counts or 'none'}."
    if not report.complete:
        text += " The run was interrupted, so the result is partial."
    return text


def _cell_lines(cells: list[Cell]) -> Iterator[str]:
    for each in cells[:SHOWN]:
        why = f" ({each.diagnosis[0]})" if each.diagnosis else ""
        yield f"{each.name}: {each.reason}{why}; reproduce: {each.command}"
    if len(cells) > SHOWN:
        yield f"… and {len(cells) - SHOWN} more (--json and --html list them all)"


def _groups(report: InteropReport) -> Table:
    group_of = {each.name: each.group for each in report.cases}
    groups: dict[str, Counter[str]] = {}
    for cell in report.cells:
        counts = groups.setdefault(group_of[cell.case], Counter())
        counts[cell.verdict] += 1
        counts["works"] += cell.works
    rows = (
        (group, sum(counts[each] for each in VERDICTS), *(counts[each] for each in ("works", *VERDICTS)))
        for group, counts in groups.items()
    )
    return tabulate(", #".join(("group", "cells", "work", *VERDICTS)), rows)


def junit(report: InteropReport) -> str:
    """Return all cells as JUnit XML: one suite per pair and impairment, one case per cell."""
    titles = {each.name: each.title for each in report.cases}
    by_pair: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in report.cells:
        by_pair.setdefault((cell.left, cell.right, cell.impairment), []).append(cell)
    suites = []
    for (left, right, impairment), cells in by_pair.items():
        counts = Counter(each.verdict for each in cells)
        name = f"{left} to {right}, {impairment}"
        suite = junit_suite(name, tests=len(cells), failures=counts["fail"], skipped=counts["missing"])
        for cell in cells:
            _junit_case(suite, cell, titles[cell.case])
        suites.append(suite)
    return junit_document(f"mxwire interop: {report.title}", suites)


def _junit_case(suite: ElementTree.Element, cell: Cell, title: str) -> None:
    case = junit_case(suite, f"{cell.case}: {title}", time=f"{cell.duration_ns / 1e9:.6f}")
    details = "\n".join((*map(str, cell.findings), *cell.diagnosis, cell.command))
    if cell.verdict == "fail":
        ElementTree.SubElement(case, "failure", message=cell.reason).text = details
    elif cell.verdict == "missing":
        ElementTree.SubElement(case, "skipped", message=cell.reason)
    elif cell.verdict != "pass" or not cell.reason.startswith("works"):
        ElementTree.SubElement(case, "system-out").text = f"{cell.verdict}: {cell.reason}\n{details}"
