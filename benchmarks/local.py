"""Measure messages between two processes of one host: mxwire's local path, Unix socket pairs, and C.

    python benchmarks/local.py [OPTIONS]

The pairs are those of ``mxwire bench intranode``: two processes, one CPU each, which send messages back and forth; the
time of a message is half a round trip. mxwire polls, and its interface has no wire; one socket pair sleeps until data
arrives, the other one is polled, as mxwire is. In C are the two mechanisms of mxwire's path: a shared buffer up to
4,096 bytes, and above that process_vm_readv, unless that is forbidden.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

from contest import Benchmark, Run, Sample, run_benchmark

from mxwire.bench.intranode.pair_starter import IN_C, PairStarter, refusals
from mxwire.protocol.corridor import SHARED_THRESHOLD

SIZES = (0, 1, 8, 32, 128, 129, 512, 1024, 4096, 4097, *(1 << exponent for exponent in range(13, 23)))
QUICK = (0, 129, 65_536)
BUDGET = 20_000_000
"""Bytes per measurement, with ``OVERHEAD`` added to each message."""
OVERHEAD = 20_000
SERIES = "half round trip within a host"
MECHANISMS = {"mxwire": "mx-local", "socket pair": "unix-stream", "polled socket pair": "unix-stream-polled"}


def turns_of(size: int, quick: bool) -> int:
    """Return the number of round trips of a measurement."""
    return 2 if quick else max(4, BUDGET // (size + OVERHEAD))


def mechanism_of(mechanism: str, _: int) -> str:
    """Return the mechanism of a contestant that has one for all sizes."""
    return mechanism


def trips(pairs: PairStarter, chosen: Callable[[int], str], quick: bool) -> Iterator[Sample]:
    """Measure one round of a contestant."""
    for size in QUICK if quick else SIZES:
        mechanism = chosen(size)
        # Only messages can be empty.
        length = size if mechanism == MECHANISMS["mxwire"] else max(1, size)
        near, _ = pairs.pair(mechanism).play("trips", length, turns_of(size, quick), 0, length)
        yield Sample(SERIES, "µs", near["ns"] / 1e3, size)


def measure(benchmark: Benchmark) -> None:
    with ExitStack() as held:
        pairs = PairStarter(held)
        long = "shared-buffer" if refusals(pairs, ("cma-get",)) else "cma-get"

        def limit(size: int) -> str:
            return ("shared-buffer" if size <= SHARED_THRESHOLD else long) + IN_C

        runs: dict[str, Run | str] = {
            name: partial(trips, pairs, partial(mechanism_of, mechanism), benchmark.quick)
            for name, mechanism in MECHANISMS.items()
        }
        runs["C"] = pairs.refusal or partial(trips, pairs, limit, benchmark.quick)
        benchmark.play("local", runs)


if __name__ == "__main__":
    run_benchmark(__file__, __doc__, measure)
