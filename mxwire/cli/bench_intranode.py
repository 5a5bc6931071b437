"""``mxwire bench intranode``: how processes of one machine hand each other data."""

from __future__ import annotations

from functools import partial
from typing import Final

import click

from mxwire.cli.bench_imb import split_names
from mxwire.cli.bench_options import BenchOptions, bench_options, conduct, sizes_type
from mxwire.cli.group import Command
from mxwire.cli.live_options import end_like_interrupt

_TITLE: Final = "Moving data within a machine"


@click.command(cls=Command)
@bench_options
@click.option(
    "--mechanisms",
    callback=split_names,
    metavar="LIST",
    help="Mechanisms, separated by commas.  [default: all]",
)
@click.option(
    "--experiment",
    "experiments",
    callback=split_names,
    metavar="LIST",
    help="Experiments, separated by commas.  [default: all]",
)
@click.option(
    "--buffers",
    "memories",
    default="warm,cold",
    callback=split_names,
    show_default=True,
    metavar="LIST",
    help="Where messages lie: warm, paper (moved on by a cache line), cold.",
)
@click.option("--sizes", type=sizes_type, metavar="BYTES", help="Lengths of the messages.  [default: 1 B to 16 MiB]")
@click.option("--suitability", is_flag=True, help="Print only the table of properties, and the fastest by size.")
def intranode(
    bench: BenchOptions,
    mechanisms: tuple[str, ...],
    experiments: tuple[str, ...],
    memories: tuple[str, ...],
    sizes: tuple[int, ...] | None,
    suitability: bool,
) -> None:
    """Measure mechanisms that move data between two processes of this machine, in Python and in C."""
    end_like_interrupt()
    from mxwire.bench.intranode.catalogue import MECHANISMS
    from mxwire.bench.intranode.report import intranode_blocks, intranode_figures, suitability_blocks
    from mxwire.bench.intranode.study import EXPERIMENTS, SIZES, IntranodeStudy, run_intranode

    study = IntranodeStudy(mechanisms or MECHANISMS, sizes or SIZES, memories, experiments or EXPERIMENTS)
    blocks = suitability_blocks if suitability else intranode_blocks
    conduct(bench, _TITLE, partial(run_intranode, study), blocks, intranode_figures)
