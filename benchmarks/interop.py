"""Measure the time of the simulated matrix, and of each cell.

    python benchmarks/interop.py [--jobs N] [--quick] [--json]

The whole matrix is played as ``mxwire interop`` plays it, in N processes, in wall time. Then all
cells are played one after the other in this process, each with its own time: mean, 99th percentile, and the slowest.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from mxwire.interop.cell_player import CellOrder, play_simulated
from mxwire.interop.matrix import CellSelection, plan, report_of, run

MATRIX_SECONDS = 180.0
"""Limit for the whole matrix in CI, on two cores, in seconds."""
CELL_SECONDS = 1.0
QUICK = CellSelection(implementations=("open-mx-1.5", "native-mx"), cases=("sizes", "connecting"))


@dataclass(frozen=True)
class Measured:
    """Times in seconds."""

    cells: int
    jobs: int
    matrix: float
    cell_mean: float
    cell_p99: float
    cell_slowest: float
    slowest: str
    """The name of the slowest cell."""

    @property
    def reached(self) -> bool:
        """Return whether both goals are reached."""
        return self.matrix < MATRIX_SECONDS and self.cell_slowest < CELL_SECONDS


def measure(orders: Sequence[CellOrder], jobs: int) -> Measured:
    """Play all cells in processes, then each by itself."""
    begin = time.perf_counter()
    run(orders, report_of(orders, "benchmark"), jobs=jobs)
    matrix = time.perf_counter() - begin
    times = []
    for order in orders:
        begin = time.perf_counter()
        play_simulated(order)
        times.append((time.perf_counter() - begin, order.name))
    times.sort()
    return Measured(
        cells=len(orders),
        jobs=jobs,
        matrix=matrix,
        cell_mean=sum(each for each, _ in times) / len(times),
        cell_p99=times[len(times) * 99 // 100][0],
        cell_slowest=times[-1][0],
        slowest=times[-1][1],
    )


def main() -> int:
    """Measure and print; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description="Measure the time of the simulated matrix, and of each cell.")
    parser.add_argument("--jobs", type=int, default=2, help="processes for the whole matrix")
    parser.add_argument("--quick", action="store_true", help="a part of it only")
    parser.add_argument("--json", action="store_true", help="one object")
    arguments = parser.parse_args()
    found = measure(plan(QUICK if arguments.quick else CellSelection()), arguments.jobs)
    if arguments.json:
        print(json.dumps(asdict(found) | {"reached": found.reached}))
    else:
        print(f"{found.cells:,} cells in {found.jobs} processes: {found.matrix:.1f} s (goal: {MATRIX_SECONDS:g} s)")
        print(f"a cell: {found.cell_mean * 1e3:.1f} ms on average, 99% within {found.cell_p99 * 1e3:.1f} ms")
        print(f"the slowest: {found.cell_slowest * 1e3:.0f} ms, {found.slowest} (goal: {CELL_SECONDS:g} s)")
    return 0 if found.reached else 1


if __name__ == "__main__":
    sys.exit(main())
