"""``mxwire bench overlap``: whether messages move while an application computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mxwire.cli.bench_options import BenchOptions, conduct, names_option, simulated_option, sizes_type
from mxwire.cli.group import command_with
from mxwire.cli.option_class import group, option, options_class
from mxwire.cli.options import flag_option

if TYPE_CHECKING:
    from mxwire.bench.record import Recording
    from mxwire.bench.study import StudyOptions

_TITLE: Final = "Overlap of messages and work"


@options_class
class OverlapOptions:
    """The options of mxwire bench overlap."""

    bench: BenchOptions = group(BenchOptions)
    simulated: str | None = simulated_option
    experiments: tuple[str, ...] = names_option("Experiments, separated by commas.  [default: all]", "--experiment")
    ways: tuple[str, ...] = names_option("Ways of progress, separated by commas.  [default: all]", "--progress")
    dialect: str = option("Dialect of the hosts.", "--dialect mxoe|omx:M", default="omx:9000")
    sizes: tuple[int, ...] | None = option(
        "Lengths of the messages.  [default: 1 KiB to 4 MiB, by powers of 4; live 32 KiB, one byte more, and 1 MiB]",
        "--sizes BYTES",
        type=sizes_type,
    )
    sides: tuple[str, ...] = names_option(
        "Sides that work in post-work-wait: sender, receiver.  [default: each by itself]", "--side"
    )
    same_core: bool = flag_option("Card and agent share the core of the application, and interrupt it.", "--same-core")


@command_with(OverlapOptions)
def overlap(given: OverlapOptions) -> None:
    """Measure whether messages move while an application computes, by the way in which they progress."""
    from mxwire.bench.cost.progress import PROGRESS
    from mxwire.bench.cost.tables import table_by_name
    from mxwire.bench.overlap import EXPERIMENTS, SIDES, SIZES, ModelledOverlap, OverlapStudy, run_overlap
    from mxwire.bench.overlap_report import overlap_blocks, overlap_figures
    from mxwire.wire.dialect import as_dialect

    spoken, live = as_dialect(given.dialect), given.simulated is None
    if live:
        from mxwire.bench.overlap_live import LIVE_SIZES
    study = OverlapStudy(
        given.ways or PROGRESS,
        given.experiments or EXPERIMENTS,
        given.sizes or (LIVE_SIZES if live else SIZES),
        given.sides or SIDES,
    )

    def measure(options: StudyOptions) -> Recording:
        if given.simulated is not None:
            return run_overlap(
                study, ModelledOverlap(table_by_name(given.simulated), spoken, same=given.same_core), options
            )
        from mxwire.bench.imb.rank_testbed import LiveRanks, RankOptions
        from mxwire.bench.overlap_live import LiveOverlap
        from mxwire.lab.machine import compiled_folder

        with LiveRanks(RankOptions(dialect=spoken.name, polling=False), package=compiled_folder()) as ranks:
            return run_overlap(study, LiveOverlap(ranks, same=given.same_core, quick=options.quick), options)

    conduct(given.bench, _TITLE, measure, overlap_blocks, overlap_figures, live=live)
