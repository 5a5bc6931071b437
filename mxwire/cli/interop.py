"""``mxwire interop``: the matrix of implementations, and the comparison of two of its reports."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from mxwire.cli import options as shared
from mxwire.cli.completion import cells, folders
from mxwire.cli.conflicts import conflicts
from mxwire.cli.group import Command, CommandGroup
from mxwire.cli.live_options import end_like_interrupt
from mxwire.cli.notes import counted, note, print_records, print_result, wrote
from mxwire.cli.option_class import argument, group, option, options_class, takes
from mxwire.cli.option_groups import WorkerOptions
from mxwire.cli.progress import bar
from mxwire.errors import MxwireError, write_file
from mxwire.report.document import Block, Heading, show, tabulate
from mxwire.report.terminal import is_coloured, styled_console, terminal_width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from click.shell_completion import CompletionItem

    from mxwire.interop.matrix import CellSelection
    from mxwire.interop.result import Cell, InteropReport

_INTERRUPTED: Final = 130
_CELLS_OF_A_JOB: Final = 100
"""Cells that are played while a process starts."""
_BYTES_PER_CELL: Final = 76_000
"""Size of a site per cell, with its capture: the average of two simulated implementations in all cases."""
_COLUMNS: Final = "left right case impairment seed:UInt64 verdict reason duration_ns:Int64 frames:UInt64 digest command"
"""The columns of ``--to``: one row per cell."""
_TITLE: Final = "Interoperability, simulated"


class _Group(CommandGroup):
    """Runs the matrix, unless the first word is a subcommand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ("-h", "--help")):
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [each for each in super().list_commands(ctx) if each != "run"]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The options of the matrix, for the help; the subcommand parses them."""
        own = super().get_params(ctx)
        known = {name for each in own for name in each.opts}
        options = [each for each in self.commands["run"].params if isinstance(each, click.Option)]
        return [each for each in options if known.isdisjoint(each.opts)] + own

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[OPTIONS]", "[CONFIG.toml]"]


def _complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files and the subcommand, which the group itself cannot complete, because it inserts ``run``."""
    from click.shell_completion import CompletionItem

    named = [
        CompletionItem(name) for name in command.list_commands(_context) if incomplete and name.startswith(incomplete)
    ]
    return [*named, CompletionItem(incomplete, type="file")]


class _Unnamed(click.Context):
    """The context of the matrix, which has the name of the group in messages."""

    @property
    def command_path(self) -> str:
        assert self.parent is not None
        return self.parent.command_path


class _MatrixCommand(Command):
    context_class = _Unnamed


@click.group(cls=_Group)
def command(**_: Any) -> None:
    """Play all implementations against each other: which cases work between them, which fail, and why.

    Without a file, all are simulated: releases of Open-MX in both formats, with and without their defects, and native
    MX. A file describes live hosts: interfaces of this machine, and external hosts with the commands to run there.
    """


def _only(kind: str, text: str) -> shared.Decorator:
    return shared.name_option(text, kind, f"--{kind}", multiple=True)


def _folder(text: str, *names: str) -> shared.Decorator:
    return option(text, *names, metavar="DIR", shell_complete=folders)


@conflicts("--html", "--report", error="--html includes the report and its captures: omit --report")
@options_class
class InteropOptions:
    """The options of the matrix."""

    config: str | None = argument(metavar="[CONFIG.toml]", required=False, shell_complete=_complete)
    implementations: tuple[str, ...] = _only("implementation", "Only this implementation; may be repeated.")
    cases: tuple[str, ...] = _only("case", "Only this case or group of cases; may be repeated.")
    impairments: tuple[str, ...] = _only("impairment", "Only this impairment, in all cases; may be repeated.")
    cells: tuple[str, ...] = option(
        "Only this cell; may be repeated.", "--cell L/R/CASE/IMP", multiple=True, shell_complete=cells
    )
    entries: tuple[str, ...] = option(
        "Play against COMMAND, which acts as a host on a new interface; may be repeated.",
        "--with NAME=COMMAND",
        multiple=True,
    )
    seed: int = shared.integer_option("Random seed.", "--seed", default=1)
    workers: WorkerOptions = group(WorkerOptions)
    target: Path | None = shared.table_option
    html: str | None = _folder("Write a site to DIR: matrix, one page per cell, captures.", "--html")
    folder: str | None = _folder("Write report and captures to DIR, without pages.", "--report")
    force: bool = shared.flag_option("Replace a report in DIR.", "--force")
    listing: bool = shared.flag_option("List implementations, cases and impairments, and exit.", "--list")
    as_json: bool = shared.json_option("JSON Lines: one object per line.")
    junit: Path | None = shared.junit_option("one suite per pair and impairment")

    @property
    def selection(self) -> CellSelection:
        """The selected cells."""
        from mxwire.interop.matrix import CellSelection

        return CellSelection(self.implementations, self.cases, self.impairments, self.cells, self.seed)

    @property
    def report_folder(self) -> Path | None:
        """The folder of the report."""
        chosen = self.html or self.folder
        return None if chosen is None else Path(chosen)


@command.command("run", cls=_MatrixCommand, hidden=True)
@takes(InteropOptions)
def run(options: InteropOptions) -> None:
    """Play the matrix."""
    if options.listing:
        _show_list(options.as_json)
        return
    sys.exit(_play(options))


@command.command(name="diff")
@click.argument("old", metavar="OLD", type=shared.FILE)
@click.argument("new", metavar="NEW", type=shared.FILE)
@option("List all changes; by default, 20 of each kind except worse.", "--all", "everything", is_flag=True)
@shared.json_option("JSON Lines: changes, then their numbers.")
def diff(old: str, new: str, everything: bool, as_json: bool) -> None:
    """Compare two reports of mxwire interop: cells that are worse, better, new or gone."""
    from mxwire.interop.diff import blocks, change_records, compare
    from mxwire.interop.result import InteropReport

    difference = compare(InteropReport.read(old), InteropReport.read(new))
    print_result(as_json, change_records(difference), lambda: blocks(difference, everything=everything))
    if difference.is_worse:
        sys.exit(1)


# Playing


def _play(options: InteropOptions) -> int:
    """Play the selected cells, and print the report; return the exit code."""
    from mxwire.extras import import_extra
    from mxwire.interop import matrix

    if options.html:
        import_extra("bokeh", "report", "--html")
    end_like_interrupt()
    if options.config is not None or options.entries:
        return _play_live(options)
    orders = matrix.plan(options.selection)
    report = matrix.report_of(orders, _TITLE)
    captures = _prepare(options, len(orders))
    with _progress(len(orders)) as progress, options.workers.campaign(len(orders), _CELLS_OF_A_JOB) as campaign:
        whole = matrix.run(orders, report, campaign=campaign, captures=captures, progress=progress)
    return _finish(report, options, whole=whole)


def _play_live(options: InteropOptions) -> int:
    """Play live hosts, as described by a file and ``--with``, and print the report; return the exit code."""
    from mxwire.interop import live_matrix, matrix
    from mxwire.interop.configuration import configuration_with, read_configuration

    configuration = None if options.config is None else read_configuration(options.config)
    if options.entries or configuration is None:
        lefts = [*options.implementations, *(each.split("/")[0] for each in options.cells)]
        configuration = configuration_with(options.entries, lefts, configuration)
    if options.workers not in (WorkerOptions(), WorkerOptions(jobs=1)):
        raise MxwireError(
            "cells of live hosts run one after another on this machine: omit --on, --jobs and --checkpoint"
        )
    orders = live_matrix.plan(configuration, options.selection)
    report = matrix.report_of(orders, configuration.title)
    captures = _prepare(options, len(orders))
    broken: MxwireError | None = None
    whole = True
    try:
        with live_matrix.opened(configuration, captures) as player, _progress(len(orders)) as progress:
            whole = matrix.run(orders, report, play=player.play, progress=progress)
    except MxwireError as error:
        if all(each.verdict == "missing" for each in report.cells):
            raise
        broken = error
        report.cells += [each.cell("missing", f"not played: {error}") for each in orders[len(report.cells) :]]
    code = _finish(report, options, whole=whole)
    if broken is not None:
        raise broken
    return code


# Report


def _prepare(options: InteropOptions, cells: int) -> Path | None:
    """Create the folder of the report of a number of cells; return that of the captures.

    The size of a site is announced before anything is played. Raises :class:`~mxwire.errors.MxwireError` if the folder
    exists and may not be replaced, or is not a report.
    """
    from mxwire.interop.cell_player import captures_in
    from mxwire.interop.result import REPORT_FILE

    target = options.report_folder
    if target is None:
        return None
    if shared.has_old_report(target, options.force, REPORT_FILE, "report of mxwire interop"):
        try:
            for each in target.iterdir():
                shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
        except OSError as error:
            raise MxwireError(f"{target}: cannot be replaced: {error.strerror or error}") from None
    if options.html:
        size = max(1, round(cells * _BYTES_PER_CELL / 1e6))
        note(f"{counted(cells, 'cell')}: the site in {target} will take about {size} MB")
    captures = captures_in(target)
    # Marks the folder as a report, which --force may replace, even if this run does not finish.
    (target / REPORT_FILE).touch()
    return captures


def _finish(report: InteropReport, options: InteropOptions, *, whole: bool) -> int:
    """Write and print the report; return the exit code."""
    from mxwire.interop.result import REPORT_FILE

    target = options.report_folder
    if target is not None:
        report.write(target)
        if options.html:
            from mxwire.interop.site import write_site

            write_site(report, target, jobs=options.workers.jobs or os.cpu_count() or 1)
    if options.target is not None:
        _write_table(report, options.target)
    _print_report(report, options)
    if target is not None:
        page = target / "index.html" if options.html else target / REPORT_FILE
        note(f"wrote {page}")
    if not whole:
        played = sum(each.verdict != "missing" for each in report.cells)
        click.echo(f"mxwire: interrupted after {played} of {len(report.cells)} cells; the report is partial", err=True)
        return _INTERRUPTED
    return 0 if report.as_expected else 1


def _write_table(report: InteropReport, target: Path) -> None:
    """Write the cells as a table, one row per cell."""
    from mxwire.analysis.table_file import RecordTable

    with RecordTable(target, _COLUMNS) as table:
        for cell in report.cells:
            table.add(asdict(cell))
    wrote(len(report.cells), "cell", target)


def _print_report(report: InteropReport, options: InteropOptions) -> None:
    """Print the report in the chosen format."""
    from mxwire.interop import report_text

    if options.junit is not None:
        write_file(options.junit, report_text.junit(report))
    if options.as_json:
        for line in report.to_json_lines():
            click.echo(line)
    elif is_coloured() and len(report.cells) > report_text.FEW:
        _show_coloured(report)
        show(report_text.blocks(report, drawn=False))
    else:
        show(report_text.blocks(report))


def _show_coloured(report: InteropReport) -> None:
    from rich.text import Text

    from mxwire.interop import report_text

    console = styled_console(terminal_width())
    console.print(Text(report.title, style="bold cyan"))
    console.print()
    for line in report_text.lines(report):
        console.print(Text.assemble(*((text, report_text.STYLES[style]) for text, style in line)), no_wrap=True)
    console.print()


@contextmanager
def _progress(total: int) -> Iterator[Callable[[Cell, int, int], None] | None]:
    """A function that shows each played cell in a progress bar; None without a terminal."""
    with bar("cells", total) as shown:
        if shown.shown:
            yield lambda cell, done, _: shown.update(done, now=f"{cell.left} / {cell.right}")
        else:
            yield None


def _show_list(as_json: bool) -> None:
    """List implementations, cases and impairments."""
    from mxwire.interop.cases import ALL_CASES
    from mxwire.interop.impairments import TREATMENTS
    from mxwire.interop.implementations import IMPLEMENTATIONS

    implementations = list(IMPLEMENTATIONS.values())
    cases = [each.case for each in ALL_CASES.values()]
    impairments = [each.impairment for each in TREATMENTS.values()]
    if as_json:
        for record, items in (("implementation", implementations), ("case", cases), ("impairment", impairments)):
            print_records({"record": record, **asdict(each)} for each in items)
        return
    blocks: list[Block] = [Heading("Implementations")]
    rows = [(each.name, each.dialect, each.description) for each in implementations]
    blocks += [tabulate("`name, dialect, ~description", rows), Heading("Cases")]
    rows = [(each.name, each.group, each.description) for each in cases]
    blocks += [tabulate("`name, group, ~description", rows), Heading("Impairments")]
    show([*blocks, tabulate("`name, ~effect", ((each.name, each.description) for each in impairments))])
