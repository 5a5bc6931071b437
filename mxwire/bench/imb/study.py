"""The study ``imb``: benchmarks of IMB over mxwire and TCP, live or in virtual time.

Series have the name of their benchmark, and contestants that of the carrier (``mxoe``, ``omx:9000``, ``tcp``). A sample
is the time that IMB prints as t_max in µs; ``t_min`` and ``t_avg`` are details. Parameters: ``size``, ``ranks``,
``repetitions``, ``algorithm``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from mxwire.bench.imb.columns import ImbRow
from mxwire.bench.imb.patterns import ImbBenchmark, repetitions_of
from mxwire.bench.imb.rank_testbed import NAMESPACES, RankOptions, RankProcesses, RankRunner, RankSurroundings
from mxwire.bench.record import Measurement, Recording
from mxwire.bench.study import Points, StudyOptions, Turns, kept
from mxwire.words import count_of

STUDY: Final = "imb"
_PROBES: Final = 3
_ROUND_NS: Final = 30_000_000
"""Duration of the repetitions of a length in one round."""
_MODEL_REPETITIONS: Final = 2
"""Repetitions in virtual time, where all are equal but for the state of the hosts."""


@dataclass(frozen=True)
class ImbStudy:
    """The measurements of a study."""

    benchmarks: tuple[ImbBenchmark, ...]
    carriers: tuple[RankOptions, ...]
    largest: int = 4 << 20
    sizes: tuple[int, ...] | None = None
    """Lengths in bytes; None: those of IMB up to ``largest``."""
    algorithm: str | None = None
    """Algorithm of the collectives; None: the usual one of each length."""
    surroundings: RankSurroundings = NAMESPACES

    def lengths(self, benchmark: ImbBenchmark) -> tuple[int, ...]:
        """The lengths of a benchmark."""
        if self.sizes is None or not benchmark.sized:
            return benchmark.sizes(self.largest)
        return tuple(each for each in self.sizes if each == 0 or each >= benchmark.smallest)


def run_imb(study: ImbStudy, options: StudyOptions) -> Recording:
    """Run the study; Ctrl-C or the end of a rank leaves its recording partial."""
    with ExitStack() as opened:
        testbeds = {}
        for each in study.carriers:
            ranks = study.surroundings.open(replace(each, polling=not options.quick))
            testbeds[each.name] = opened.enter_context(ranks)
        first = next(iter(testbeds.values()))
        if first.virtual:
            options = replace(options, rounds=1)
        recording = options.begin(STUDY, first.conditions)
        if isinstance(first, RankProcesses):
            how = "poll" if first.spinning else "block: quick, or more of them than processors"
            recording.remarks.append(f"live: {study.carriers[0].ranks} ranks, which {how}")
        points = Points(recording)
        with kept(recording, points):
            for benchmark in study.benchmarks:
                points.declare("µs", benchmark.name)
                for length in study.lengths(benchmark):
                    label = f"{benchmark.name}, {count_of(length, 'byte', grouped=True)}"
                    contestants = {
                        name: _contestant(testbed, benchmark, length, study, options, points, name)
                        for name, testbed in testbeds.items()
                    }
                    turns = Turns(recording, partial(_report, options, label))
                    turns.play(contestants, options.rounds, warm_up=0)
    return recording


def _report(options: StudyOptions, label: str, text: str) -> None:
    options.progress(f"{label}, {text}")


def _contestant(
    testbed: RankRunner,
    benchmark: ImbBenchmark,
    length: int,
    study: ImbStudy,
    options: StudyOptions,
    points: Points,
    name: str,
) -> Callable[[int], None]:
    algorithm = benchmark.algorithm(length, study.algorithm if benchmark.operation else None)
    ranks = study.carriers[0].ranks
    plan: list[int] = []

    def run(_: int) -> None:
        if not plan:
            if study.surroundings.costs is not None:
                plan.append(1 if options.quick else _MODEL_REPETITIONS)
            else:
                probe = ImbRow.of(length, testbed.measure(benchmark, length, 1, _PROBES, algorithm).times)
                fitting = options.operations(probe.most * 1000, _ROUND_NS) if not options.quick else _PROBES
                enough = max(_PROBES, round(_ROUND_NS / max(probe.most * 1000, 1)))
                plan.append(min(repetitions_of(length), fitting, enough))
        measured = testbed.measure(benchmark, length, 1, plan[0], algorithm)
        row = ImbRow.of(length, measured.times)
        factor = benchmark.time_factor
        details = {"t_min": row.least * factor, "t_avg": row.mean * factor}
        parameters: dict[str, Any] = {"size": length, "ranks": ranks, "repetitions": plan[0]}
        if algorithm:
            parameters["algorithm"] = algorithm
        counts = {f"frames {key}": value / plan[0] for key, value in measured.frames.items()}
        points.add(
            benchmark.name, name, row.most * factor, details=details, marks=measured.marks, counts=counts, **parameters
        )

    return run


def imb_row_of(benchmark: ImbBenchmark, point: Measurement) -> ImbRow:
    """The row of a point in the columns of IMB: medians over the rounds."""
    factor = benchmark.time_factor
    repetitions = int(point.parameters["repetitions"]) * len(point.samples)
    least, mean = point.details["t_min"] / factor, point.details["t_avg"] / factor
    return ImbRow(int(point.parameters["size"]), repetitions, least, point.median / factor, mean)


def bandwidth(benchmark: ImbBenchmark, point: Measurement) -> float | None:
    """The bandwidth of a point in MB/s; None if the benchmark has none."""
    if benchmark.bandwidth_factor is None:
        return None
    return float(point.parameters["size"] * benchmark.bandwidth_factor / point.median)


def carriers_of(
    names: Sequence[str], ranks: int, dialect: str, blocks: bool, mtu: int | None
) -> tuple[RankOptions, ...]:
    """The carriers of a command line; they use the same MTU."""
    make = partial(RankOptions, ranks=ranks, dialect=dialect, blocks=blocks, mtu=mtu)
    return tuple(make(over=each) for each in names)
