"""``mxwire bench overlap``: whether messages move while an application computes."""

from __future__ import annotations

from functools import partial
from typing import Final

import click

from mxwire.cli.bench_imb import split_names
from mxwire.cli.bench_options import BenchOptions, bench_options, conduct, sizes_type
from mxwire.cli.group import Command
from mxwire.cli.live_options import end_like_interrupt
from mxwire.errors import MxwireError

_TITLE: Final = "Overlap of messages and work"


def _some_names(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    """The names of a list with commas; none without the option."""
    return () if value is None else split_names(context, parameter, value)


@click.command(cls=Command)
@bench_options
@click.option("--simulated", metavar="TABLE", help="Virtual time, with the costs of this table.")
@click.option(
    "--experiment",
    "experiments",
    callback=_some_names,
    metavar="LIST",
    help="Experiments, separated by commas.  [default: all in virtual time, post-work-wait live]",
)
@click.option(
    "--progress",
    "ways",
    callback=_some_names,
    metavar="LIST",
    help="Ways of progress, separated by commas.  [default: all; live library, thread, match, kernel]",
)
@click.option("--dialect", metavar="mxoe|omx:M", default="omx:9000", show_default=True, help="Dialect of the hosts.")
@click.option(
    "--sizes",
    type=sizes_type,
    metavar="BYTES",
    help="Lengths of the messages.  [default: 1 KiB to 4 MiB, by powers of 4; live 32 KiB to 1 MiB]",
)
@click.option("--same-core", is_flag=True, help="Card and agent share the core of the application, and interrupt it.")
def overlap(
    bench: BenchOptions,
    simulated: str | None,
    experiments: tuple[str, ...],
    ways: tuple[str, ...],
    dialect: str,
    sizes: tuple[int, ...] | None,
    same_core: bool,
) -> None:
    """Measure whether messages move while an application computes, by the way in which they progress."""
    end_like_interrupt()
    from mxwire.bench.cost.progress import PROGRESS
    from mxwire.bench.cost.tables import table_by_name
    from mxwire.bench.overlap import EXPERIMENTS, SIZES, OverlapStudy, run_overlap
    from mxwire.bench.overlap_report import overlap_blocks, overlap_figures
    from mxwire.wire.dialect import as_dialect

    if simulated is None:
        _measure_live(bench, ways, experiments, dialect, sizes, same_core)
        return
    costs = table_by_name(simulated)
    study = OverlapStudy(
        costs, as_dialect(dialect), ways or PROGRESS, experiments or EXPERIMENTS, sizes or SIZES, same_core
    )

    conduct(bench, _TITLE, partial(run_overlap, study), overlap_blocks, overlap_figures, live=False)


def _measure_live(
    bench: BenchOptions,
    ways: tuple[str, ...],
    experiments: tuple[str, ...],
    dialect: str,
    sizes: tuple[int, ...] | None,
    same_core: bool,
) -> None:
    """Measure on a virtual cable, which needs root."""
    from mxwire.bench.overlap_live import LIVE_PROGRESS, LIVE_SIZES, LiveOverlapStudy, run_live_overlap
    from mxwire.bench.overlap_report import overlap_blocks, overlap_figures
    from mxwire.bench.record import Recording
    from mxwire.bench.stage import StageOptions, open_stage
    from mxwire.bench.study import StudyOptions
    from mxwire.wire.dialect import as_dialect

    others = [each for each in experiments if each != "post-work-wait"]
    if others:
        raise MxwireError(f"{others[0]} is measured in virtual time only: add --simulated TABLE, like clovertown-2010")
    study = LiveOverlapStudy(str(as_dialect(dialect)), ways or LIVE_PROGRESS, sizes or LIVE_SIZES, same_core)

    def measure(options: StudyOptions) -> Recording:
        with open_stage(StageOptions()) as stage:
            return run_live_overlap(stage, study, options)

    conduct(bench, _TITLE, measure, overlap_blocks, overlap_figures)
