"""``mxwire bench mtu``: frame limit, depth of blocks, delay and coalescing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from mxwire.cli import bench_options as studies
from mxwire.cli.conflicts import conflicts, requires
from mxwire.cli.group import command_with
from mxwire.cli.option_class import group, option, options_class
from mxwire.cli.options import flag_option

if TYPE_CHECKING:
    from mxwire.bench.record import Recording
    from mxwire.bench.report import PageFigure

_TITLE: Final = "MTU, blocks, delay and coalescing"
_STEPS: Final = (1500, 2000, 3000, 4500, 6000, 9000, 16000, 32000, 65535)


def _mtus(_: click.Context, parameter: click.Parameter, value: str) -> tuple[int, ...]:
    """``1500-9000``: common MTUs of a range with its ends; or a list with commas."""
    mtus = _whole_numbers(value.replace("-", ","), parameter)
    if any(not _STEPS[0] <= each <= _STEPS[-1] for each in mtus):
        raise click.BadParameter(f"an MTU lies between {_STEPS[0]} and {_STEPS[-1]}", param=parameter)
    if "-" in value:
        if len(mtus) != 2 or mtus[0] > mtus[1]:
            raise click.BadParameter("a range is written like 1500-9000", param=parameter)
        mtus = (mtus[0], *(each for each in _STEPS if mtus[0] < each < mtus[1]), mtus[1])
    return tuple(sorted(set(mtus)))


def _depths(_: click.Context, parameter: click.Parameter, value: str) -> tuple[int, ...]:
    depths = _whole_numbers(value, parameter)
    if any(not 1 <= each <= 32 for each in depths):
        raise click.BadParameter("a block has 1 to 32 frames", param=parameter)
    return tuple(sorted(set(depths)))


def _whole_numbers(value: str, parameter: click.Parameter) -> tuple[int, ...]:
    try:
        return tuple(int(each) for each in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of whole numbers", param=parameter) from None


def _durations(_: click.Context, __: click.Parameter, value: str | None) -> tuple[float, ...] | None:
    if value is None:
        return None
    return tuple(studies.duration_type(each.strip()) * 1e6 for each in value.split(","))


@requires(
    "--copy-engine",
    "--coalescing",
    one_of=("--simulated",),
    error="{option} is a property of the model: add --simulated TABLE",
)
@conflicts("-i", "--simulated", error=studies.NOT_WITH_INTERFACE)
@options_class
class MtuOptions:
    """The options of mxwire bench mtu."""

    bench: studies.BenchOptions = group(studies.BenchOptions)
    mtus: tuple[int, ...] = option("MTUs.", "--mtu A-B|LIST", default="1500-9000", callback=_mtus)
    blocks: tuple[int, ...] = option("Frames per block.", "--blocks LIST", default="8,32", callback=_depths)
    delays: tuple[float, ...] | None = option("Delays, like 7us,70us.", "--delay LIST", callback=_durations)
    coalescing: tuple[float, ...] | None = option(
        "Delays of interrupts, like 20us,63us.", "--coalescing LIST", callback=_durations
    )
    simulated: str | None = studies.simulated_option
    copy_engine: bool = flag_option("With --simulated: a copy engine copies large messages.", "--copy-engine")
    machine: studies.OtherMachine = group(studies.OtherMachine)


@command_with(MtuOptions)
def mtu(options: MtuOptions) -> None:
    """Measure the rates of large messages by MTU, depth of blocks, delay and coalescing, with the pull's bound."""
    from mxwire.bench.mtu import MtuStudy, run_mtu
    from mxwire.bench.report import study_blocks

    axes: dict[str, Any] = {"mtus": options.mtus, "blocks": options.blocks}
    if options.delays is not None:
        axes["delays"] = tuple(sorted({0.0, *options.delays}))
    if options.coalescing is not None:
        axes["coalescing"] = tuple(sorted({0.0, *options.coalescing}))
    study = MtuStudy(
        surroundings=studies.rank_surroundings(options.machine, options.simulated),
        copy_engine=options.copy_engine,
        **axes,
    )

    studies.conduct(
        options.bench, _TITLE, partial(run_mtu, study), study_blocks, _figures, live=options.simulated is None
    )


def _figures(recording: Recording) -> Iterator[PageFigure]:
    from mxwire.bench.report import PageFigure, SeriesFigure

    captions = {
        "rate by delay": "Rates of large messages against the delay of a frame, and the bound of the pull's blocks.",
        "rate by frame limit": "Rates of large messages against the MTU.",
        "rate by coalescing": "Rates of large messages against the delay of interrupts.",
        "mixed pairs": "Half round trips of pairs of hosts.",
    }
    for name, caption in captions.items():
        series = recording.named(name)
        if series:
            yield PageFigure(SeriesFigure([series], name.capitalize()), caption)
