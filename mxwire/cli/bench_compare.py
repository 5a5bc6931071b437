"""``mxwire bench compare``: two recordings of a study, compared point by point."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click

from mxwire.cli.group import Command
from mxwire.cli.notes import print_result
from mxwire.cli.option_class import option
from mxwire.cli.options import json_option

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(cls=Command)
@click.argument("left", metavar="A", type=_FILE)
@click.argument("right", metavar="B", type=_FILE)
@option(
    "Widen the intervals by this share of the median.  [default: 0]",
    "--tolerance PERCENT",
    type=click.FloatRange(0, 1000),
    default=0.0,
)
@json_option("JSON Lines: one object per point.")
def compare(left: Path, right: Path, tolerance: float, as_json: bool) -> None:
    """Compare two recordings of a study point by point, within their confidence intervals."""
    from mxwire.bench.comparison import compare_recordings, comparison_blocks, differing_conditions
    from mxwire.bench.record import read_recordings

    one, other = read_recordings(left), read_recordings(right)
    comparisons = list(compare_recordings(one, other, tolerance / 100))
    records = (each.record() for each in comparisons)
    print_result(as_json, records, lambda: comparison_blocks(comparisons, differing_conditions(one, other)))
    if any(each.outcome == "differ" for each in comparisons):
        sys.exit(1)
