"""The study ``model``: the paper on Open-MX in virtual time, on the hosts of its cost table.

Series: ``half round trip`` and ``half round trip, 1G`` (µs, by ``size``) of ``open-mx`` (omx:9000), with ``engine``
(copies by I/OAT) or ``in place`` (no copy on receipt), ``omx:1500`` and its ``engine``, ``mx``, ``mixed`` and ``tcp``;
``half round trip by coalescing`` (µs, by ``coalescing`` in µs); ``collective`` (µs, by ``size``; 16 ranks on 2 hosts,
``NAME, open-mx`` and ``NAME, tcp``); ``processor share`` (of the receiver's time, by ``size``; ``bottom half``,
``driver``, ``library`` and ``idle``, each with ``engine`` too) and ``stream time`` (µs per message).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Final

import numpy as np

from mxwire.bench.cost.stage import MODELLED, VirtualStage
from mxwire.bench.cost.tables import CLOVERTOWN, CLOVERTOWN_1G, COALESCING_10G, MX_FIRMWARE, Costs
from mxwire.bench.imb.communicator import Communicator, Program
from mxwire.bench.imb.patterns import BENCHMARKS, ImbBenchmark, benchmark_by_name
from mxwire.bench.imb.rank_stage import ModelRanks, RankOptions
from mxwire.bench.record import Recording
from mxwire.bench.study import Points, kept
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD

STUDY: Final = "model"
TRIP: Final = "half round trip"
SLOW: Final = "half round trip, 1G"
COALESCED: Final = "half round trip by coalescing"
COLLECTIVE: Final = "collective"
SHARE: Final = "processor share"
STREAM: Final = "stream time"
SIZES: Final = (0, 128, 4096, 16384, RENDEZVOUS_THRESHOLD, RENDEZVOUS_THRESHOLD + 1, 65536, 262144, 4 << 20)
SLOW_SIZES: Final = (0, 16384, 65536, 262144, 4 << 20)
COLLECTIVE_SIZES: Final = (16, 4096, 65536, 1 << 20)
"""The paper's fourth length is 4 MiB, which takes too long in a model with all its bytes."""
SHARE_SIZES: Final = (RENDEZVOUS_THRESHOLD + 1, 262144, 1 << 20, 4 << 20)
COALESCING_US: Final = (0.0, 20.0, COALESCING_10G / 1000)
RANKS: Final = 16
TABLE_1: Final = ("Sendrecv", "Exchange", "Allreduce", "Reduce", "Allgather", "Gather", "Scatter", "Alltoall", "Bcast")
_STREAMED: Final = 6
_TAG: Final = 9
_QUICK: Final = 2
"""Lengths of each series of a quick study."""

_JUMBO: Final = "omx:9000"
_CARRIERS: Final[dict[str, tuple[RankOptions, Costs | tuple[Costs, Costs]]]] = {
    "open-mx": (RankOptions(dialect=_JUMBO), CLOVERTOWN),
    "open-mx, engine": (RankOptions(dialect=_JUMBO, copy_engine=True), CLOVERTOWN),
    "open-mx, in place": (RankOptions(dialect=_JUMBO, in_place=True), CLOVERTOWN),
    "omx:1500": (RankOptions(dialect="omx:1500"), CLOVERTOWN),
    "omx:1500, engine": (RankOptions(dialect="omx:1500", copy_engine=True), CLOVERTOWN),
    "mxoe, engine": (RankOptions(copy_engine=True), CLOVERTOWN),
    "mx": (RankOptions(profiles=("native-mx",)), MX_FIRMWARE),
    "mixed": (RankOptions(profiles=("native-mx", "open-mx"), copy_engine=True), (MX_FIRMWARE, CLOVERTOWN)),
    "tcp": (RankOptions("tcp"), CLOVERTOWN),
    "tcp, MTU 1500": (RankOptions("tcp", mtu=1500), CLOVERTOWN),
}


def run_model(
    quick: bool = False,
    progress: Callable[[str], object] = lambda _: None,
    recording_made: Callable[[Recording], object] = lambda _: None,
) -> Recording:
    """Compute all of it; ``recording_made`` is called with the recording, which Ctrl-C leaves partial."""
    recording = Recording(STUDY, replace(VirtualStage(CLOVERTOWN).conditions, quick=quick))
    recording.facts["fitted"] = [asdict(each) for each in CLOVERTOWN_1G.fitted_to]
    recording_made(recording)
    points = Points(recording)
    points.declare(TRIP, "µs")
    points.declare(SLOW, "µs")
    points.declare(COALESCED, "µs", "coalescing", "µs")
    points.declare(COLLECTIVE, "µs")
    points.declare(SHARE, "of the time")
    points.declare(STREAM, "µs")
    with kept(recording, points):
        _trips(points, quick, progress)
        _collectives(points, quick, progress)
        _shares(points, quick, progress)
    return recording


def _trips(points: Points, quick: bool, progress: Callable[[str], object]) -> None:
    for name, (options, costs) in _CARRIERS.items():
        progress(f"{TRIP}, {name}")
        ranks = ModelRanks(options, costs)
        for length in SIZES[:_QUICK] if quick else SIZES:
            _add_trip(points, TRIP, name, ranks, length)
    for name, options in (("open-mx", RankOptions(dialect=_JUMBO)), ("tcp", RankOptions("tcp"))):
        ranks = ModelRanks(options, CLOVERTOWN_1G)
        for length in SLOW_SIZES[:_QUICK] if quick else SLOW_SIZES:
            _add_trip(points, SLOW, name, ranks, length)
        for coalescing in COALESCING_US:
            delayed = ModelRanks(
                RankOptions(options.over, dialect=options.dialect, coalescing=coalescing / 1e6), CLOVERTOWN
            )
            half = _half_trip(delayed, 0)
            points.add(COALESCED, name, half, marks=(MODELLED,), coalescing=coalescing)

    if not quick:
        ranks = ModelRanks(RankOptions(dialect="omx:1500", mtu=1500), CLOVERTOWN_1G)
        _add_trip(points, SLOW, "omx:1500", ranks, SLOW_SIZES[-1])


def _add_trip(points: Points, series: str, name: str, ranks: ModelRanks, length: int) -> None:
    points.add(series, name, _half_trip(ranks, length), marks=(MODELLED,), size=length)


def _half_trip(ranks: ModelRanks, length: int) -> float:
    times = ranks.measure(benchmark_by_name("PingPong"), length, 1, 2).times[0]
    return sum(times) / len(times) / 2000


def _collectives(points: Points, quick: bool, progress: Callable[[str], object]) -> None:
    sizes = COLLECTIVE_SIZES[:1] if quick else COLLECTIVE_SIZES
    for carrier, options in (
        ("open-mx", RankOptions(ranks=RANKS, dialect=_JUMBO, copy_engine=True, blocks=True)),
        ("tcp", RankOptions("tcp", ranks=RANKS, blocks=True)),
    ):
        ranks = ModelRanks(options, CLOVERTOWN)
        for name in (*TABLE_1, "Barrier"):
            benchmark = BENCHMARKS[name.lower()]
            for length in sizes if benchmark.sized else (0,):
                progress(f"{COLLECTIVE}, {name} over {carrier}, {length:,} bytes")
                _add_collective(points, benchmark, carrier, ranks, length, benchmark.algorithm(length))
        if not quick:
            for algorithm in ("binomial", "scatter+ring"):
                benchmark = BENCHMARKS["bcast"]
                label = f"{carrier}, {algorithm}"
                _add_collective(points, benchmark, label, ranks, COLLECTIVE_SIZES[-1], algorithm)


def _add_collective(
    points: Points, benchmark: ImbBenchmark, carrier: str, ranks: ModelRanks, length: int, algorithm: str
) -> None:
    found = ranks.measure(benchmark, length, 1, 1, algorithm)
    value = max(each[0] for each in found.times) / 1000
    name = f"{benchmark.name}, {carrier}"
    points.add(COLLECTIVE, name, value, marks=(MODELLED,), size=length, algorithm=algorithm)


def _stream(length: int) -> Callable[[Communicator], Program[int]]:
    """A one-way stream of messages, each posted when the one before has ended; the result is the time in ns."""

    def program(comm: Communicator) -> Program[int]:
        data = np.zeros(length, np.uint8)
        begin = comm.now()
        for _ in range(_STREAMED):
            yield [comm.irecv(0, data, _TAG) if comm.rank else comm.isend(1, data, _TAG)]
        return comm.now() - begin

    return program


def _shares(points: Points, quick: bool, progress: Callable[[str], object]) -> None:
    for suffix, engine in (("", False), (", engine", True)):
        for length in SHARE_SIZES[:1] if quick else SHARE_SIZES:
            progress(f"{SHARE}{suffix}, {length:,} bytes")
            ranks = ModelRanks(RankOptions(dialect=_JUMBO, copy_engine=engine), CLOVERTOWN)
            times = ranks.ranks.run(_stream(length))[1]
            used: dict[str, int] = {}
            # Cores of the receiver: the paper counts the time of one core, on which all its work is bound.
            for core in ranks.cores[1][:2]:
                for kind, value in core.busy.items():
                    used[kind] = used.get(kind, 0) + value
            for kind in ("bottom half", "driver", "library"):
                share = used.get(kind, 0) / times
                points.add(SHARE, f"{kind}{suffix}", share, marks=(MODELLED,), size=length)
            idle = 1 - sum(used.values()) / times
            points.add(SHARE, f"idle{suffix}", idle, marks=(MODELLED,), size=length)
            points.add(STREAM, f"open-mx{suffix}", times / _STREAMED / 1000, marks=(MODELLED,), size=length)
