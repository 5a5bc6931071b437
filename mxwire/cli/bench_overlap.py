"""``mxwire bench overlap``: whether messages move while an application computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from mxwire.cli.bench_imb import split_names
from mxwire.cli.bench_options import BenchOptions, bench_options, conduct, sizes_type
from mxwire.cli.group import Command
from mxwire.cli.live_options import end_like_interrupt

if TYPE_CHECKING:
    from mxwire.bench.record import Recording
    from mxwire.bench.study import StudyOptions

_TITLE: Final = "Overlap of messages and work"


@click.command(cls=Command)
@bench_options
@click.option("--simulated", metavar="TABLE", help="Virtual time, with the costs of this table.")
@click.option(
    "--experiment",
    "experiments",
    callback=split_names,
    metavar="LIST",
    help="Experiments, separated by commas.  [default: all]",
)
@click.option(
    "--progress",
    "ways",
    callback=split_names,
    metavar="LIST",
    help="Ways of progress, separated by commas.  [default: all]",
)
@click.option("--dialect", metavar="mxoe|omx:M", default="omx:9000", show_default=True, help="Dialect of the hosts.")
@click.option(
    "--sizes",
    type=sizes_type,
    metavar="BYTES",
    help="Lengths of the messages.  [default: 1 KiB to 4 MiB, by powers of 4; live 32 KiB, one byte more, and 1 MiB]",
)
@click.option(
    "--side",
    "sides",
    callback=split_names,
    metavar="LIST",
    help="Sides that work in post-work-wait: sender, receiver.  [default: each by itself]",
)
@click.option("--same-core", is_flag=True, help="Card and agent share the core of the application, and interrupt it.")
def overlap(
    bench: BenchOptions,
    simulated: str | None,
    experiments: tuple[str, ...],
    ways: tuple[str, ...],
    dialect: str,
    sizes: tuple[int, ...] | None,
    sides: tuple[str, ...],
    same_core: bool,
) -> None:
    """Measure whether messages move while an application computes, by the way in which they progress."""
    end_like_interrupt()
    from mxwire.bench.cost.progress import PROGRESS
    from mxwire.bench.cost.tables import table_by_name
    from mxwire.bench.overlap import EXPERIMENTS, SIDES, SIZES, ModelledOverlap, OverlapStudy, run_overlap
    from mxwire.bench.overlap_report import overlap_blocks, overlap_figures
    from mxwire.wire.dialect import as_dialect

    spoken, live = as_dialect(dialect), simulated is None
    if live:
        from mxwire.bench.overlap_live import LIVE_SIZES
    study = OverlapStudy(
        ways or PROGRESS,
        experiments or EXPERIMENTS,
        sizes or (LIVE_SIZES if live else SIZES),
        sides or SIDES,
    )

    def measure(options: StudyOptions) -> Recording:
        if simulated is not None:
            return run_overlap(study, ModelledOverlap(table_by_name(simulated), spoken, same=same_core), options)
        from mxwire.bench.imb.rank_stage import LiveRanks, RankOptions
        from mxwire.bench.overlap_live import LiveOverlap
        from mxwire.lab.machine import compiled_folder

        with LiveRanks(RankOptions(dialect=spoken.name, polling=False), package=compiled_folder()) as ranks:
            return run_overlap(study, LiveOverlap(ranks, same=same_core, quick=options.quick), options)

    conduct(bench, _TITLE, measure, overlap_blocks, overlap_figures, live=live)
