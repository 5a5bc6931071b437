"""``mxwire bench imb``: the benchmarks of IMB and OSU over mxwire and TCP."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from mxwire.cli import bench_options as studies
from mxwire.cli.conflicts import conflicts
from mxwire.cli.group import command_with
from mxwire.cli.option_class import argument, group, option, options_class
from mxwire.cli.options import flag_option, integer_option
from mxwire.errors import MxwireError

if TYPE_CHECKING:
    from mxwire.bench.imb.study import ImbStudy
    from mxwire.bench.record import Recording
    from mxwire.bench.report import PageFigure

_TITLE: Final = "Benchmarks of IMB"


@conflicts("-i", "--simulated", "--mtu", error=studies.NOT_WITH_INTERFACE)
@options_class
class ImbOptions:
    """The options of mxwire bench imb."""

    benchmarks: tuple[str, ...] = argument(nargs=-1, metavar="[BENCHMARK]...")
    bench: studies.BenchOptions = group(studies.BenchOptions)
    over: tuple[str, ...] = studies.names_option(
        "Carriers, separated by commas: mx, tcp.  [default: mx]", "--over", default="mx"
    )
    ranks: int = integer_option("Ranks: 2 to 8 live, up to 16 simulated.", "--ranks", least=2, most=16, default=2)
    simulated: str | None = studies.simulated_option
    dialect: str = option("Dialect of the hosts.", "--dialect mxoe|omx:M", default="mxoe")
    mtu: int | None = integer_option(
        "MTU of the link.  [default: at least 9000]", "--mtu BYTES", least=1500, most=65535
    )
    largest: int = integer_option("Longest message.", "--largest BYTES", most=1 << 26, default=4 << 20)
    algorithm: str | None = option("Algorithm of the collectives.  [default: by length]", "--algorithm NAME")
    machine: studies.OtherMachine = group(studies.OtherMachine)
    neighbours: bool = flag_option("Neighbouring ranks on one host.  [default: on both in turn]", "--neighbours")
    columns: str | None = option(
        "Columns of IMB or OSU, which then times collectives its own way, or a table with confidence intervals.  "
        "[default: imb, or osu for its tests]",
        "--format [imb|osu|table]",
    )


@command_with(ImbOptions)
def imb(options: ImbOptions) -> None:
    """Run message patterns and collectives over mxwire and TCP, in the columns of IMB or OSU."""
    from mxwire.bench.imb.patterns import BENCHMARKS, OSU, as_osu, benchmark_by_name
    from mxwire.bench.imb.rank_testbed import RANKS_MAXIMUM
    from mxwire.bench.imb.study import ImbStudy, carriers_of, run_imb
    from mxwire.bench.report import study_blocks

    chosen = tuple(dict.fromkeys(benchmark_by_name(each) for each in options.benchmarks)) or tuple(BENCHMARKS.values())
    columns = options.columns
    if columns is None:
        columns = "osu" if all(each.name in OSU for each in chosen) else "imb"
    if columns == "osu":
        chosen = tuple(dict.fromkeys(as_osu(each) if each.name not in OSU else each for each in chosen))
    if options.algorithm is not None:
        collectives = [each for each in chosen if each.operation is not None]
        if not collectives:
            raise MxwireError(
                f"--algorithm {options.algorithm}: {chosen[0].name} is not a collective, and has no algorithms"
            )
        for each in collectives:
            each.algorithm(0, options.algorithm)
    if options.simulated is None and options.ranks > RANKS_MAXIMUM:
        raise MxwireError(f"{options.ranks} ranks: live ranks are 2 to {RANKS_MAXIMUM}; --simulated has up to 16")
    study = ImbStudy(
        chosen,
        carriers_of(options.over, options.ranks, options.dialect, options.neighbours, options.mtu),
        options.largest if not options.bench.quick else min(options.largest, 1 << 16),
        algorithm=options.algorithm,
        surroundings=studies.rank_surroundings(options.machine, options.simulated),
    )

    text = None if columns == "table" else partial(_text, study, columns)
    studies.conduct(
        options.bench,
        _TITLE,
        partial(run_imb, study),
        study_blocks,
        _figures,
        text=text,
        live=options.simulated is None,
    )


def _text(study: ImbStudy, columns: str, recording: Recording) -> str:
    lines = list(imb_lines(study, recording) if columns == "imb" else osu_lines(study, recording))
    return "\n".join(lines) + "\n"


def imb_lines(study: ImbStudy, recording: Recording) -> Iterator[str]:
    """The recording in the columns of IMB; one table per benchmark and carrier."""
    from mxwire import __version__
    from mxwire.bench.imb.columns import imb_banner, imb_end, imb_head, imb_row
    from mxwire.bench.imb.patterns import benchmark_by_name
    from mxwire.bench.imb.study import imb_row_of

    names = [each.name for each in study.benchmarks]
    yield from imb_banner(__version__, " ".join(["mxwire", *sys.argv[1:]]), names, 0, study.largest)
    for series in recording.series:
        benchmark = benchmark_by_name(series.name)
        for carrier in series.contestants():
            curve = series.curve(carrier)
            remark = f"over {carrier}, {recording.conditions.testbed}"
            algorithms = dict.fromkeys(str(each.parameters["algorithm"]) for each in curve if benchmark.operation)
            if algorithms:
                remark += f", {', '.join(algorithms)}"
            yield from imb_head(benchmark, study.carriers[0].ranks, remark)
            for point in curve:
                yield imb_row(benchmark, imb_row_of(benchmark, point))
    yield from imb_end()


def osu_lines(study: ImbStudy, recording: Recording) -> Iterator[str]:
    """The recording in the columns of OSU, for the benchmarks that OSU has too."""
    from mxwire import __version__
    from mxwire.bench.imb.columns import OSU_TESTS, osu_head, osu_row, osu_values
    from mxwire.bench.imb.patterns import benchmark_by_name
    from mxwire.bench.imb.study import imb_row_of

    for series in recording.series:
        name = series.name
        if name not in OSU_TESTS:
            yield f"# {name}: OSU has no such test"
            continue
        benchmark = benchmark_by_name(series.name)
        for carrier in series.contestants():
            yield from osu_head(name, __version__, f"over {carrier}, {recording.conditions.testbed}")
            for point in series.curve(carrier):
                row = imb_row_of(benchmark, point)
                if row.length or not benchmark.sized:
                    yield osu_row(name, row.length, *osu_values(name, benchmark, row))


def _figures(recording: Recording) -> Iterator[PageFigure]:
    from mxwire.bench.report import PageFigure, SeriesFigure
    from mxwire.wire.dialect import MXOE

    sized = [each for each in recording.series if "barrier" not in each.name.lower()]
    if sized:
        yield PageFigure(SeriesFigure(sized, _TITLE, MXOE), "Time per step against the length of a message.")
