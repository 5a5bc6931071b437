"""Measure the time of the simulated matrix, and of its cells.

    python benchmarks/interop.py [OPTIONS]

The whole matrix is played as ``mxwire interop`` plays it, in two processes, in wall time. Then all cells are played one
after another in this process, each with its own time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from time import perf_counter

from contest import Benchmark, Sample, run_benchmark

from mxwire.interop.cell_player import CellOrder, play_simulated
from mxwire.interop.matrix import CellSelection, plan, report_of, run
from mxwire.order_statistics import percentile

JOBS = 2
QUICK = CellSelection(implementations=("open-mx-1.5", "native-mx"), cases=("sizes", "connecting"))


def matrix(orders: Sequence[CellOrder]) -> Iterator[Sample]:
    """Play all cells in processes."""
    begin = perf_counter()
    run(orders, report_of(orders, "benchmark"), jobs=JOBS)
    yield Sample(f"matrix of {len(orders):,} cells", "s", perf_counter() - begin)


def cells(orders: Sequence[CellOrder]) -> Iterator[Sample]:
    """Play each cell by itself."""
    times = []
    for order in orders:
        begin = perf_counter()
        play_simulated(order)
        times.append((perf_counter() - begin) * 1e3)
    times.sort()
    yield Sample("cell, mean", "ms", sum(times) / len(times))
    yield Sample("cell, 99th percentile", "ms", percentile(times, 99))
    yield Sample("cell, slowest", "ms", times[-1])


def measure(benchmark: Benchmark) -> None:
    orders = plan(QUICK if benchmark.quick else CellSelection())
    benchmark.play("matrix", {f"{JOBS} processes": partial(matrix, orders), "1 process": partial(cells, orders)})


if __name__ == "__main__":
    run_benchmark(__file__, __doc__, measure, rounds=3, minutes=2)
