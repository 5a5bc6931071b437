"""What ``mxwire interop`` does: options become orders, orders are played, the report is told."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import click

from mxwire.cli.live import end_like_interrupt
from mxwire.cli.progress import bar
from mxwire.errors import MxwireError
from mxwire.extras import import_extra
from mxwire.interop import matrix
from mxwire.interop.matrix import Selection
from mxwire.interop.playing import captures_in
from mxwire.interop.result import REPORT_FILE, Cell, Report
from mxwire.report.document import show
from mxwire.report.terminal import is_coloured, styled_console, terminal_width

INTERRUPTED: Final = 130
_TITLE: Final = "Interoperability, simulated"


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options."""

    implementations: tuple[str, ...]
    cases: tuple[str, ...]
    impairments: tuple[str, ...]
    cells: tuple[str, ...]
    seed: int
    jobs: int | None
    html: str | None
    folder: str | None
    force: bool
    as_json: bool
    as_junit: bool

    @property
    def selection(self) -> Selection:
        """Which cells are wanted."""
        return Selection(self.implementations, self.cases, self.impairments, self.cells, self.seed)

    @property
    def target(self) -> Path | None:
        """The folder of the report."""
        chosen = self.html or self.folder
        return None if chosen is None else Path(chosen)


def play(config: str | None, wishes: Wishes) -> int:
    """Play what is wanted, and tell it; returns the exit code."""
    if wishes.as_json and wishes.as_junit:
        raise MxwireError("--json and --junit are two forms of the same: choose one")
    if wishes.html and wishes.folder:
        raise MxwireError("--html writes the report and its captures too: leave --report out")
    if wishes.html:
        import_extra("jinja2", "site", "--html")
    end_like_interrupt()
    if config is not None:
        from mxwire.cli import interoperating_live

        return interoperating_live.play(config, wishes)
    orders = matrix.plan(wishes.selection)
    report = matrix.report_of(orders, _TITLE)
    captures = prepare(wishes)
    jobs = wishes.jobs or os.cpu_count() or 1
    with progress(len(orders)) as told:
        whole = matrix.run(orders, report, jobs=jobs, captures=captures, progress=told)
    return finish(report, wishes, whole=whole)


def prepare(wishes: Wishes) -> Path | None:
    """Make the folder of the report; returns that of the captures.

    Raises :class:`~mxwire.errors.MxwireError` where it exists and is not to be replaced, or is no report.
    """
    target = wishes.target
    if target is None:
        return None
    if target.exists() and not target.is_dir():
        raise MxwireError(f"{target}: is a file; name a folder that is to be made")
    if target.is_dir() and any(target.iterdir()):
        if not wishes.force:
            raise MxwireError(f"{target}: exists already; --force replaces it, or name another folder")
        if not (target / REPORT_FILE).is_file():
            raise MxwireError(f"{target}: holds no report of mxwire interop, so --force does not touch it")
        try:
            for each in target.iterdir():
                shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
        except OSError as error:
            raise MxwireError(f"{target}: cannot be replaced: {error.strerror or error}") from None
    captures = captures_in(target)
    # The mark of a report, should this one not come to its end.
    (target / REPORT_FILE).touch()
    return captures


def finish(report: Report, wishes: Wishes, *, whole: bool) -> int:
    """Write and tell the report; returns the exit code."""
    target = wishes.target
    if target is not None:
        report.write(target)
        if wishes.html:
            from mxwire.interop.site import write_site

            write_site(report, target, jobs=wishes.jobs or os.cpu_count() or 1)
    tell(report, wishes)
    if target is not None:
        page = target / "index.html" if wishes.html else target / REPORT_FILE
        click.echo(f"written: {page}", err=True)
    if not whole:
        played = sum(each.verdict != "missing" for each in report.cells)
        click.echo(f"mxwire: interrupted after {played} of {len(report.cells)} cells; the report is partial", err=True)
        return INTERRUPTED
    return 0 if report.as_expected else 1


def tell(report: Report, wishes: Wishes) -> None:
    """Print the report as it is wanted."""
    from mxwire.interop import telling

    if wishes.as_json:
        for line in report.to_json_lines():
            click.echo(line)
    elif wishes.as_junit:
        click.echo(telling.junit(report))
    elif is_coloured() and len(report.cells) > telling.FEW:
        _show_coloured(report)
        show(telling.blocks(report, drawn=False))
    else:
        show(telling.blocks(report))


def _show_coloured(report: Report) -> None:
    from rich.text import Text

    from mxwire.interop import telling

    console = styled_console(terminal_width())
    console.print(Text(report.title, style="bold cyan"))
    console.print()
    for line in telling.lines(report):
        console.print(Text.assemble(*((text, telling.STYLES[style]) for text, style in line)), no_wrap=True)
    console.print()


@contextmanager
def progress(total: int) -> Iterator[Callable[[Cell, int, int], None] | None]:
    """Takes each cell that was played, to be shown by a bar on a terminal; None anywhere else."""
    with bar("cells", total) as shown:
        if shown.shown:
            yield lambda cell, done, _: shown.update(done, now=f"{cell.left} / {cell.right}")
        else:
            yield None


def show_list(as_json: bool) -> None:
    """What can be chosen from."""
    from mxwire.interop.cases import PARTS
    from mxwire.interop.impairments import TREATMENTS
    from mxwire.interop.implementations import IMPLEMENTATIONS
    from mxwire.report.document import Block, Column, Heading, Row, Table
    from mxwire.report.json_line import json_line

    if as_json:
        for record, items in (
            ("implementation", IMPLEMENTATIONS.values()),
            ("case", [each.case for each in PARTS.values()]),
            ("impairment", [each.impairment for each in TREATMENTS.values()]),
        ):
            for each in items:
                click.echo(json_line({"record": record, **asdict(each)}))
        return
    blocks: list[Block] = [
        Heading("Implementations"),
        Table(
            (Column("name", code=True), Column("dialect"), Column("what it is", wraps=True)),
            tuple(Row((each.name, each.dialect, each.description)) for each in IMPLEMENTATIONS.values()),
        ),
        Heading("Cases"),
        Table(
            (Column("name", code=True), Column("group"), Column("what happens", wraps=True)),
            tuple(Row((each.case.name, each.case.group, each.case.description)) for each in PARTS.values()),
        ),
        Heading("Impairments"),
        Table(
            (Column("name", code=True), Column("what the link does", wraps=True)),
            tuple(Row((each.name, each.impairment.description)) for each in TREATMENTS.values()),
        ),
    ]
    show(blocks)
