"""The output of Intel MPI Benchmarks (IMB-MPI1, 2018 and later) and of the OSU micro-benchmarks 7, byte for byte.

Parsers of both skip lines that begin with ``#``; one of these names mxwire as the program. MB are 10^6 bytes in both.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from mxwire.bench.imb.patterns import ImbBenchmark
from mxwire.texts import file_text, table_rows

_IMB_WIDTH: Final = 13
_OSU_SIZE, _OSU_WIDTH, _OSU_LONE = 10, 20, 17
"""Widths of a length, of a value beside it, and of the value of a test without lengths."""
_BARRIER: Final = "osu_barrier"
_LATENCY: Final = ("Avg Latency(us)",)
_MEGA: Final = 1e6
_RATES: Final = ("Uniband", "Biband")
_ONE_TIME: Final = ("PingPong", "PingPing")


@dataclass(frozen=True, slots=True)
class ImbRow:
    """Times of one length in µs per step, as measured: the factor of the benchmark is applied in the output."""

    length: int
    repetitions: int
    least: float
    """Time of the fastest rank."""
    most: float
    mean: float

    @classmethod
    def of(cls, length: int, times: Sequence[Sequence[int]]) -> ImbRow:
        """Make a row from the times in ns of each repetition of each rank that takes part."""
        means = [sum(each) / len(each) / 1000 for each in times]
        return cls(length, len(times[0]), min(means), max(means), sum(means) / len(means))


def imb_banner(version: str, call: str, benchmarks: Sequence[str], least: int, most: int) -> Iterator[str]:
    """The lines before the first table. ``call`` is the command line, and lengths are from ``least`` to ``most``."""
    machine = platform.uname()
    yield from (
        file_text(__file__, "imb_banner.txt")
        .format(
            date=time.strftime("%a %b %d %H:%M:%S %Y"),
            machine=machine,
            version=version,
            call=call,
            least=least,
            most=most,
            benchmarks="\n".join(f"# {each}" for each in benchmarks),
        )
        .splitlines()
    )


def imb_head(benchmark: ImbBenchmark, ranks: int, remark: str = "") -> Iterator[str]:
    """The lines before the rows of a benchmark. ``remark`` is a comment, such as the algorithm."""
    headings = _headings(benchmark)
    used = benchmark.ranks or ranks
    rule = "#" + "-" * (_IMB_WIDTH * len(headings) - 1)
    yield ""
    yield rule
    yield f"# Benchmarking {benchmark.name} "
    yield f"# #processes = {used} "
    if used < ranks:
        yield f"# ( {ranks - used} additional processes waiting in MPI_Barrier)"
    if remark:
        yield f"# {remark}"
    yield rule
    yield "".join(f"{each:>{_IMB_WIDTH}}" for each in headings)


def imb_row(benchmark: ImbBenchmark, row: ImbRow) -> str:
    """The line of one length."""
    if benchmark.name in _RATES:
        assert benchmark.bandwidth_factor is not None
        messages = benchmark.bandwidth_factor / row.most * _MEGA
        return (
            f"{row.length:>{_IMB_WIDTH}}{row.repetitions:>{_IMB_WIDTH}}"
            f"{row.length * messages / _MEGA:>{_IMB_WIDTH}.2f}{messages:>{_IMB_WIDTH}.0f}"
        )
    factor = benchmark.time_factor
    times = [row.most] if benchmark.name in _ONE_TIME else [row.least, row.most, row.mean]
    numbers = [each * factor for each in times]
    if benchmark.bandwidth_factor is not None:
        numbers.append(row.length * benchmark.bandwidth_factor / (row.most * factor))
    counts = [row.length, row.repetitions] if benchmark.sized else [row.repetitions]
    return "".join(f"{each:>{_IMB_WIDTH}}" for each in counts) + "".join(f"{each:>{_IMB_WIDTH}.2f}" for each in numbers)


def imb_end() -> Iterator[str]:
    """The lines after the last table."""
    yield ""
    yield ""
    yield "# All processes entering MPI_Finalize"
    yield ""


def _headings(benchmark: ImbBenchmark) -> list[str]:
    if benchmark.name in _RATES:
        return ["#bytes", "#repetitions", "Mbytes/sec", "Msg/sec"]
    times = ["t[usec]"] if benchmark.name in _ONE_TIME else ["t_min[usec]", "t_max[usec]", "t_avg[usec]"]
    counts = ["#bytes", "#repetitions"] if benchmark.sized else ["#repetitions"]
    return [*counts, *times, *(["Mbytes/sec"] if benchmark.bandwidth_factor is not None else [])]


@dataclass(frozen=True, slots=True)
class OsuTest:
    """The title and the columns of a test of OSU."""

    title: str
    columns: tuple[str, ...]
    leading_line: bool


OSU_TESTS: Final = {
    name: OsuTest(title, tuple(columns.split(", ")), empty_line == "yes")
    for _, (name, title, columns, empty_line) in table_rows(__file__, "osu_tests.md")
}
"""Tests of OSU by the names of their programs."""


def osu_head(name: str, version: str, remark: str = "", window: int = 64) -> Iterator[str]:
    """The lines before the rows of a test."""
    test = OSU_TESTS[name]
    if test.leading_line:
        yield ""
    yield f"# OSU MPI {test.title} Test v7.4"
    if not test.leading_line:
        yield f"# [ pairs: 1 ] [ window size: {window} ]"
    if name != _BARRIER:
        yield "# Datatype: MPI_CHAR."
    yield f"# mxwire {version}" + (f": {remark}" if remark else "")
    if name == _BARRIER:
        yield f"# {test.columns[0]}"
    else:
        yield f"{'# Size':<{_OSU_SIZE}}" + "".join(f"{each:>{_OSU_WIDTH}}" for each in test.columns)


def osu_row(name: str, length: int, *values: float) -> str:
    """The line of one length: its latency in µs, its bandwidth in MB/s, or its bandwidth and messages per second."""
    if name == _BARRIER:
        return f"{values[0]:>{_OSU_LONE}.2f}"
    return f"{length:<{_OSU_SIZE}}" + "".join(f"{each:>{_OSU_WIDTH}.2f}" for each in values)


def osu_values(name: str, benchmark: ImbBenchmark, row: ImbRow) -> tuple[float, ...]:
    """The values of a row in the columns of a test of OSU."""
    if OSU_TESTS[name].columns != _LATENCY:
        assert benchmark.bandwidth_factor is not None
        rate = row.length * benchmark.bandwidth_factor / row.most
        return (rate, benchmark.bandwidth_factor / row.most * _MEGA) if name == "osu_mbw_mr" else (rate,)
    return (row.mean * benchmark.time_factor,)


def netpipe_row(number: int, length: int, repetitions: int, microseconds: float) -> str:
    """The line of NetPIPE for one length; bandwidth is in Mb/s."""
    megabits = length * 8 / microseconds if microseconds else 0.0
    return (
        f"{number:3d}: {length:7d} bytes {repetitions:6d} times --> {megabits:8.2f} Mbps in {microseconds:10.2f} usec"
    )
