"""``mxwire bench overlap``: whether messages move while an application computes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import click

from mxwire.cli.bench_imb import split_names
from mxwire.cli.bench_options import BenchOptions, bench_options, conduct, sizes_type
from mxwire.cli.group import Command
from mxwire.cli.live_options import end_like_interrupt
from mxwire.errors import MxwireError

if TYPE_CHECKING:
    pass

_TITLE: Final = "Overlap of messages and work"


@click.command(cls=Command)
@bench_options
@click.option("--simulated", metavar="TABLE", help="Virtual time, with the costs of this table.")
@click.option(
    "--experiment",
    "experiments",
    default="double-buffering,post-work-wait,polling",
    callback=split_names,
    metavar="LIST",
    help="Experiments, separated by commas.  [default: all]",
)
@click.option(
    "--progress",
    "ways",
    default="library,thread,signal,card,match,push,kernel",
    callback=split_names,
    metavar="LIST",
    help="Ways of progress, separated by commas.  [default: all]",
)
@click.option("--dialect", metavar="mxoe|omx:M", default="omx:9000", show_default=True, help="Dialect of the hosts.")
@click.option(
    "--sizes",
    type=sizes_type,
    metavar="BYTES",
    help="Lengths of the messages.  [default: 1 KiB to 4 MiB, by powers of 4]",
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
    from mxwire.bench.cost.tables import table_by_name
    from mxwire.bench.overlap import SIZES, OverlapStudy, run_overlap
    from mxwire.bench.overlap_report import overlap_blocks, overlap_figures
    from mxwire.wire.dialect import as_dialect

    if simulated is None:
        raise MxwireError("overlap is measured in virtual time only: add --simulated TABLE, like clovertown-2010")
    costs = table_by_name(simulated)
    study = OverlapStudy(costs, as_dialect(dialect), ways, experiments, sizes or SIZES, same_core)

    conduct(bench, _TITLE, partial(run_overlap, study), overlap_blocks, overlap_figures, live=False)
