"""``mxwire bench intranode``: how processes of one machine hand each other data."""

from __future__ import annotations

from functools import partial
from typing import Final

from mxwire.cli.bench_options import BenchOptions, conduct, names_option, sizes_type
from mxwire.cli.group import command_with
from mxwire.cli.option_class import group, option, options_class
from mxwire.cli.options import flag_option

_TITLE: Final = "Moving data within a machine"


@options_class
class IntranodeOptions:
    """The options of mxwire bench intranode."""

    bench: BenchOptions = group(BenchOptions)
    mechanisms: tuple[str, ...] = names_option("Mechanisms, separated by commas.  [default: all]", "--mechanisms")
    experiments: tuple[str, ...] = names_option("Experiments, separated by commas.  [default: all]", "--experiment")
    memories: tuple[str, ...] = names_option(
        "Where messages lie: warm, paper (moved on by a cache line), cold.",
        "--buffers",
        default="warm,cold",
    )
    sizes: tuple[int, ...] | None = option(
        "Lengths of the messages.  [default: 1 B to 16 MiB]", "--sizes BYTES", type=sizes_type
    )
    suitability: bool = flag_option("Print only the table of properties, and the fastest by size.", "--suitability")


@command_with(IntranodeOptions)
def intranode(options: IntranodeOptions) -> None:
    """Measure mechanisms that move data between two processes of this machine, in Python and in C."""
    from mxwire.bench.intranode.catalogue import MECHANISMS
    from mxwire.bench.intranode.report import intranode_blocks, intranode_figures, suitability_blocks
    from mxwire.bench.intranode.study import EXPERIMENTS, SIZES, IntranodeStudy, run_intranode

    study = IntranodeStudy(
        options.mechanisms or MECHANISMS, options.sizes or SIZES, options.memories, options.experiments or EXPERIMENTS
    )
    blocks = suitability_blocks if options.suitability else intranode_blocks
    conduct(options.bench, _TITLE, partial(run_intranode, study), blocks, intranode_figures)
