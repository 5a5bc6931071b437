"""The study ``model``: the paper on Open-MX in virtual time, on the hosts of its cost table.

Series: ``half round trip`` and ``half round trip, 1G`` (µs, by ``size``) of ``open-mx`` (omx:9000), with ``engine``
(copies by I/OAT) or ``in place`` (no copy on receipt), ``omx:1500`` and its ``engine``, ``mx``, ``mixed`` and ``tcp``;
``half round trip by coalescing`` (µs, by ``coalescing`` in µs); ``collective`` (µs, by ``size``; 16 ranks on 2 hosts,
``NAME, open-mx`` and ``NAME, tcp``); ``processor share`` (of the receiver's time, by ``size``; ``bottom half``,
``driver``, ``library`` and ``idle``, each with ``engine`` too) and ``stream time`` (µs per message).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from mxwire.bench.cost.calibration import fabric_half_trip, half_round_trip, refit, varied_costs
from mxwire.bench.cost.tables import CLOVERTOWN, CLOVERTOWN_1G, COALESCING_10G, MX_FIRMWARE, Costs
from mxwire.bench.cost.testbed import MODELLED, VirtualTestbed
from mxwire.bench.imb.communicator import Communicator, Program
from mxwire.bench.imb.patterns import BENCHMARKS, ImbBenchmark
from mxwire.bench.imb.rank_testbed import ModelRanks, RankOptions, RankSurroundings
from mxwire.bench.mtu import MtuStudy, run_mtu
from mxwire.bench.record import Recording
from mxwire.bench.study import Points, StudyOptions, kept, vary
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD

STUDY: Final = "model"
TRIP: Final = "half round trip"
SLOW: Final = "half round trip, 1G"
COALESCED: Final = "half round trip by coalescing"
COLLECTIVE: Final = "collective"
SHARE: Final = "processor share"
STREAM: Final = "stream time"
SIZES: Final = (0, 128, 4096, 16384, RENDEZVOUS_THRESHOLD, RENDEZVOUS_THRESHOLD + 1, 65536, 262144, 1 << 20, 4 << 20)
SLOW_SIZES: Final = (0, 16384, 65536, 262144, 4 << 20)
COLLECTIVE_SIZES: Final = (16, 4096, 65536, 4 << 20)
SHARE_SIZES: Final = (RENDEZVOUS_THRESHOLD + 1, 262144, 1 << 20, 4 << 20)
COALESCING_US: Final = (0.0, 20.0, COALESCING_10G / 1000)
RANKS: Final = 16
TABLE_1: Final = ("Sendrecv", "Exchange", "Allreduce", "Reduce", "Allgather", "Gather", "Scatter", "Alltoall", "Bcast")
_STREAMED: Final = 6
_TAG: Final = 9
_QUICK: Final = 2
"""Lengths of each series of a quick study."""

_JUMBO: Final = "omx:9000"
_TCP: Final = ("tcp_send", "tcp_receive", "tcp_copy")


class ModelTables(NamedTuple):
    """Tables of costs of the paper's hosts: with a fast and with a slow link, and with native MX."""

    own: Costs
    slow: Costs
    firmware: Costs


_PAPER: Final = ModelTables(CLOVERTOWN, CLOVERTOWN_1G, MX_FIRMWARE)


def _carriers(tables: ModelTables) -> dict[str, tuple[RankOptions, Costs | tuple[Costs, Costs]]]:
    own, firmware = tables.own, tables.firmware
    return {
        "open-mx": (RankOptions(dialect=_JUMBO), own),
        "open-mx, engine": (RankOptions(dialect=_JUMBO, copy_engine=True), own),
        "open-mx, in place": (RankOptions(dialect=_JUMBO, in_place=True), own),
        "omx:1500": (RankOptions(dialect="omx:1500"), own),
        "omx:1500, engine": (RankOptions(dialect="omx:1500", copy_engine=True), own),
        "mxoe, engine": (RankOptions(copy_engine=True), own),
        "mx": (RankOptions(profiles=("native-mx",)), firmware),
        "mixed": (RankOptions(profiles=("native-mx", "open-mx"), copy_engine=True), (firmware, own)),
        "tcp": (RankOptions("tcp"), own),
        "tcp, MTU 1500": (RankOptions("tcp", mtu=1500), own),
    }


def _varied_tables() -> Iterator[tuple[str, ModelTables]]:
    """Tables of the paper's hosts in which a guess has changed, fitted again; no host of the study has signals."""
    for name, own in varied_costs(CLOVERTOWN, partial(refit, numbers=CLOVERTOWN), without=("signal",)):
        fitted = {each: getattr(own, each) for each in ("frame_receive", "copy_cold", *_TCP, name.partition(" ")[0])}
        moved = own.adapter_send - CLOVERTOWN.adapter_send
        slow = replace(CLOVERTOWN_1G, **fitted)
        slow = replace(slow, adapter_send=slow.adapter_send + moved, adapter_receive=slow.adapter_receive + moved)
        guessed = {each: value for each, value in fitted.items() if each not in ("frame_receive", "copy_cold", *_TCP)}
        firmware = replace(MX_FIRMWARE, **guessed)
        wanted, found = (half_round_trip(each, 0) for each in (MX_FIRMWARE, firmware))
        late = max(firmware.adapter_send + (wanted - found) * 1000, 0.0)
        yield name, ModelTables(own, slow, replace(firmware, adapter_send=late))


def run_model(options: StudyOptions) -> Recording:
    """Compute all series, and those that depend on a guess with other values of it."""
    recording = options.begin(STUDY, VirtualTestbed(CLOVERTOWN).conditions)
    recording.facts["fitted"] = [asdict(each) for each in CLOVERTOWN_1G.fitted_to]
    points = Points(recording)

    def compute(tables: ModelTables, others: StudyOptions) -> list[Recording]:
        found = Points(Recording(STUDY, recording.conditions))
        _compute(found, tables, others)
        return [found.fill()]

    with kept(recording, points):
        _compute(points, _PAPER, options, sizes=COLLECTIVE_SIZES)
        vary(recording, options, _varied_tables(), compute)
    return recording


def run_model_mtu(options: StudyOptions) -> Recording:
    """Run the study ``mtu`` on the paper's hosts, and its delays on hosts for which a guess has changed."""
    study = MtuStudy(mtus=(1500, 9000), surroundings=RankSurroundings(CLOVERTOWN), copy_engine=True)
    recording = run_mtu(study, options)
    less = replace(study, mtus=(9000,), coalescing=())

    def compute(tables: ModelTables, others: StudyOptions) -> list[Recording]:
        return [run_mtu(replace(less, surroundings=RankSurroundings(tables.own)), others)]

    vary(recording, options, _varied_tables(), compute)
    return recording


def _compute(
    points: Points, tables: ModelTables, options: StudyOptions, sizes: Sequence[int] = COLLECTIVE_SIZES[:-1]
) -> None:
    """Compute all series; by default without the longest collectives, which take most of the time."""
    points.declare("µs", TRIP, SLOW)
    points.declare("µs", COALESCED, x="coalescing", x_unit="µs")
    points.declare("µs", COLLECTIVE)
    points.declare("of the time", SHARE)
    points.declare("µs", STREAM)
    _trips(points, tables, options)
    _collectives(points, tables.own, options, sizes)
    _shares(points, tables.own, options)


def _trips(points: Points, tables: ModelTables, options: StudyOptions) -> None:
    for name, (pair, costs) in _carriers(tables).items():
        options.progress(f"{TRIP}, {name}")
        ranks = ModelRanks(pair, costs)
        for length in SIZES[:_QUICK] if options.quick else SIZES:
            _add_trip(points, TRIP, name, ranks, length)
    for name, pair in (("open-mx", RankOptions(dialect=_JUMBO)), ("tcp", RankOptions("tcp"))):
        ranks = ModelRanks(pair, tables.slow)
        for length in SLOW_SIZES[:_QUICK] if options.quick else SLOW_SIZES:
            _add_trip(points, SLOW, name, ranks, length)
        for coalescing in COALESCING_US:
            delayed = ModelRanks(replace(pair, coalescing=coalescing / 1e6), tables.own)
            points.add(COALESCED, name, fabric_half_trip(delayed.ranks, 0), marks=(MODELLED,), coalescing=coalescing)

    if not options.quick:
        ranks = ModelRanks(RankOptions(dialect="omx:1500", mtu=1500), tables.slow)
        _add_trip(points, SLOW, "omx:1500", ranks, SLOW_SIZES[-1])


def _add_trip(points: Points, series: str, name: str, ranks: ModelRanks, length: int) -> None:
    points.add(series, name, fabric_half_trip(ranks.ranks, length), marks=(MODELLED,), size=length)


def _collectives(points: Points, costs: Costs, options: StudyOptions, sizes: Sequence[int]) -> None:
    sizes = sizes[:1] if options.quick else sizes
    for carrier, group in (
        ("open-mx", RankOptions(ranks=RANKS, dialect=_JUMBO, copy_engine=True, blocks=True)),
        ("tcp", RankOptions("tcp", ranks=RANKS, blocks=True)),
    ):
        ranks = ModelRanks(group, costs)
        for name in (*TABLE_1, "Barrier"):
            benchmark = BENCHMARKS[name.lower()]
            for length in sizes if benchmark.sized else (0,):
                options.progress(f"{COLLECTIVE}, {name} over {carrier}, {length:,} bytes")
                _add_collective(points, benchmark, carrier, ranks, length, benchmark.algorithm(length))
        if COLLECTIVE_SIZES[-1] in sizes:
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


def _shares(points: Points, costs: Costs, options: StudyOptions) -> None:
    for suffix, engine in (("", False), (", engine", True)):
        for length in SHARE_SIZES[:1] if options.quick else SHARE_SIZES:
            options.progress(f"{SHARE}{suffix}, {length:,} bytes")
            ranks = ModelRanks(RankOptions(dialect=_JUMBO, copy_engine=engine), costs)
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
