"""The study ``mtu``: frame limit, depth of blocks, delay and coalescing, and pairs of different hosts.

A pull keeps a fixed number of blocks in flight, so its rate cannot exceed

    blocks in flight x block length / round trip

however fast the link is. With 4 blocks of 32 KiB and a delay of 70 µs, the limit is 893 MiB/s. The bound is computed
from the round trip of the link: twice the delay, and the round trip of the shortest message without it.

Series and their axes: ``rate by frame limit`` and ``half round trip by frame limit`` (``mtu``), ``rate by delay``
(``delay``, in µs; contestants are depths of blocks, and the bound of each), ``rate by coalescing`` (``coalescing``, in
µs; in the model), ``mixed pairs`` (``size``; half round trips in µs). Rates are in MiB/s, those of half round trips.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from mxwire.bench.cost.tables import MX_FIRMWARE
from mxwire.bench.imb.columns import ImbRow
from mxwire.bench.imb.patterns import benchmark_by_name
from mxwire.bench.imb.rank_testbed import NAMESPACES, RankOptions, RankRunner, RankSurroundings
from mxwire.bench.record import Recording
from mxwire.bench.study import Points, StudyOptions, Turns, kept
from mxwire.bench.testbed import TestbedError
from mxwire.protocol import profile_by_name
from mxwire.wire.dialect import PULL_REPLY_DATA_OFFSET, as_dialect

STUDY: Final = "mtu"
MTUS: Final = (1500, 3000, 4500, 9000)
BLOCKS: Final = (8, 32)
DELAYS_US: Final = (0.0, 7.0, 70.0)
COALESCING_US: Final = (0.0, 20.0, 63.0)
LARGE: Final = 4 << 20
"""Length of the messages whose rate is measured."""
_QUICK_LARGE: Final = 256 << 10
_MIB: Final = 1 << 20
_MIXED_SIZES: Final = (0, 64 << 10, 1 << 20, 4 << 20)
PACKETS_OF_MXOE: Final = f"omx:{PULL_REPLY_DATA_OFFSET + as_dialect('mxoe').reply_payload}"
"""Native format with the packets of mxoe."""
_MXOE_BLOCK: Final = 0xFFFF
"""Maximum length in bytes of the block that a PULL of mxoe can request, because the field has 16 bits."""
_PING_PONG: Final = "PingPong"
_ROUND_NS: Final = 60_000_000


@dataclass(frozen=True)
class MtuStudy:
    """The axes of a study. Delays and coalescing are in µs."""

    mtus: tuple[int, ...] = MTUS
    blocks: tuple[int, ...] = BLOCKS
    delays: tuple[float, ...] = DELAYS_US
    coalescing: tuple[float, ...] = COALESCING_US
    surroundings: RankSurroundings = NAMESPACES
    copy_engine: bool = False
    """Large messages are copied by the copy engine of the model."""


@dataclass
class _Run:
    """A study under way."""

    study: MtuStudy
    options: StudyOptions
    points: Points
    turns: Turns
    length: int
    base_us: float = 0.0
    """Round trip of the shortest message without a delay."""

    def pair(self, **changes: Any) -> RankOptions:
        """Two ranks."""
        return RankOptions(copy_engine=self.study.copy_engine, polling=not self.options.quick, **changes)

    @property
    def virtual(self) -> bool:
        """True for a study in virtual time."""
        return self.study.surroundings.costs is not None

    @property
    def over_tcp(self) -> bool:
        """True if TCP is measured: a table may have no costs of it."""
        costs = self.study.surroundings.costs
        return costs is None or costs.models_tcp


def run_mtu(study: MtuStudy, options: StudyOptions) -> Recording:
    """Run the study; ``started`` is called with its recording, which Ctrl-C or the end of a side leaves partial."""
    surroundings = study.surroundings
    with surroundings.open(RankOptions()) as probe:
        conditions = probe.conditions
    remarks = []
    if surroundings.costs is not None:
        options = replace(options, rounds=1)
    elif surroundings.interface is None:
        conditions = replace(conditions, mtu=max(study.mtus))
    else:
        possible = tuple(each for each in study.mtus if each <= conditions.mtu)
        if not possible:
            raise TestbedError(
                f"the MTU of {surroundings.interface} is {conditions.mtu}: no MTU of the study is possible"
            )
        if possible != study.mtus:
            remarks.append(f"MTUs above {conditions.mtu}, that of {surroundings.interface}: not applicable")
        study = replace(study, mtus=possible)
    recording = options.begin(STUDY, conditions)
    recording.remarks += remarks
    if surroundings.costs is not None:
        recording.facts["fitted"] = [asdict(each) for each in surroundings.costs.fitted_to]
        if not surroundings.costs.models_tcp:
            recording.remarks.append(
                f"tcp: not applicable: the cost table {surroundings.costs.name} has no costs of TCP"
            )
    points = Points(recording)
    run = _Run(study, options, points, Turns(recording, options.progress), _QUICK_LARGE if options.quick else LARGE)
    points.declare("MiB/s", "rate by frame limit", x="mtu")
    points.declare("µs", "half round trip by frame limit", x="mtu")
    points.declare("MiB/s", "rate by delay", x="delay", x_unit="µs")
    points.declare("MiB/s", "rate by coalescing", x="coalescing", x_unit="µs")
    points.declare("µs", "mixed pairs")
    with kept(recording, points):
        _by_frame_limit(run, recording)
        _by_delay(run, recording)
        if run.virtual:
            _by_coalescing(run)
        _mixed(run)
    return recording


def _half_trip(run: _Run, ranks: RankRunner, length: int) -> tuple[float, tuple[str, ...], dict[str, float]]:
    """Half a round trip in µs, its marks, and the frames per message."""
    benchmark = benchmark_by_name(_PING_PONG)
    probe = ImbRow.of(length, ranks.measure(benchmark, length, 1, 1).times).most
    count = 2 if run.virtual or run.options.quick else max(3, round(_ROUND_NS / (probe * 1000 + 1)))
    measured = ranks.measure(benchmark, length, 1, min(count, 1000))
    frames = {f"frames {name}": value / min(count, 1000) / 2 for name, value in measured.frames.items()}
    return sum(measured.times[0]) / len(measured.times[0]) / 2000, measured.marks, frames


def _by_frame_limit(run: _Run, recording: Recording) -> None:
    for mtu in run.study.mtus:
        carriers = {f"omx:{mtu}": run.pair(dialect=f"omx:{mtu}", mtu=mtu)}
        # TCP uses the MTU of the interface, which is that of a virtual cable or of a model.
        if run.over_tcp and (run.study.surroundings.interface is None or mtu == recording.conditions.mtu):
            carriers["tcp"] = run.pair(over="tcp", mtu=mtu)
        if not run.virtual and run.study.surroundings.interface is None:
            carriers["tcp, no segmentation offload"] = run.pair(over="tcp", mtu=mtu, offloads=False)
        if mtu >= as_dialect("mxoe").frame_limit:
            carriers["mxoe"] = run.pair(mtu=mtu)
        curves = {f"omx:{mtu}": "omx"}
        _play(
            run, carriers, "rate by frame limit", {"mtu": mtu}, latency="half round trip by frame limit", curves=curves
        )


def _by_delay(run: _Run, recording: Recording) -> None:
    # The second has the packets of mxoe, but blocks as long as the native format permits.
    dialects = ("mxoe", PACKETS_OF_MXOE, f"omx:{max(run.study.mtus)}")
    for delay in run.study.delays:
        carriers = {
            f"{dialect}, {blocks} frames per block": run.pair(
                dialect=dialect, frames_per_block=blocks, delay=delay / 1e6, mtu=max(*run.study.mtus, 9000)
            )
            for dialect in dialects
            for blocks in run.study.blocks
            if dialect != "mxoe" or blocks * as_dialect(dialect).reply_payload <= _MXOE_BLOCK
        }
        try:
            _play(run, carriers, "rate by delay", {"delay": delay})
        except TestbedError as error:
            recording.remarks.append(f"delay of {delay:g} µs: {error}")
            continue
        trip = _round_trip(run, delay)
        for name, options in carriers.items():
            assert options.frames_per_block is not None
            block = as_dialect(options.dialect).reply_payload * options.frames_per_block
            flight = profile_by_name(options.profiles[0]).blocks_in_flight
            bound = flight * block / _MIB / (trip / 1e6)
            run.points.add(
                "rate by delay",
                f"bound: {name}",
                bound,
                marks=("computed",),
                delay=delay,
                block=block,
                blocks_in_flight=flight,
                round_trip_us=trip,
            )


def _round_trip(run: _Run, delay: float) -> float:
    """Round trip of a frame in µs: that of the shortest message without a delay, and twice the delay."""
    if not run.base_us:
        with run.study.surroundings.open(run.pair()) as ranks:
            run.base_us = 2 * min(_half_trip(run, ranks, 0)[0] for _ in range(run.options.rounds))
    return run.base_us + 2 * delay


def _by_coalescing(run: _Run) -> None:
    for coalescing in run.study.coalescing:
        carriers = {
            "mxoe": run.pair(coalescing=coalescing / 1e6),
            "omx": run.pair(dialect=f"omx:{max(run.study.mtus)}", coalescing=coalescing / 1e6),
        }
        if run.over_tcp:
            carriers["tcp"] = run.pair(over="tcp", coalescing=coalescing / 1e6)
        _play(run, carriers, "rate by coalescing", {"coalescing": coalescing})


def _mixed(run: _Run) -> None:
    """Pairs of open-mx and native-mx: in the model with the costs of each, live by their behaviour alone."""
    pairs = {"open-mx": ("open-mx",) * 2, "native-mx": ("native-mx",) * 2, "mixed": ("native-mx", "open-mx")}
    sizes = _MIXED_SIZES[:2] if run.options.quick else _MIXED_SIZES
    costs = run.study.surroundings.costs
    for name, profiles in pairs.items():
        tables = None
        if costs is not None:
            left, right = (MX_FIRMWARE if each == "native-mx" else costs for each in profiles)
            tables = left, right
        with run.study.surroundings.open(run.pair(profiles=profiles), tables) as ranks:
            for length in sizes:
                for _ in range(run.options.rounds):
                    half, marks, counts = _half_trip(run, ranks, length)
                    run.points.add("mixed pairs", name, half, marks=marks, counts=counts, size=length)


def _play(
    run: _Run,
    carriers: dict[str, RankOptions],
    series: str,
    parameters: dict[str, Any],
    *,
    latency: str = "",
    curves: dict[str, str] | None = None,
) -> None:
    """Measure the rates of carriers in turn, and for the series ``latency`` half round trips of the shortest message.

    ``curves`` maps carriers to their curves, for carriers whose name differs between the points of one curve.
    """
    curves = curves or {}
    with ExitStack() as held:
        contestants: dict[str, Callable[[int], None]] = {}
        for name, options in carriers.items():
            ranks = held.enter_context(run.study.surroundings.open(options))

            def measure(_: int, name: str = name, ranks: RankRunner = ranks, options: RankOptions = options) -> None:
                more = {**parameters, "dialect": options.dialect if options.over == "mx" else "tcp"}
                half, marks, counts = _half_trip(run, ranks, run.length)
                rate = run.length / _MIB / (half / 1e6)
                shown = curves.get(name, name)
                run.points.add(series, shown, rate, marks=marks, counts=counts, length=run.length, **more)
                if latency:
                    half, marks, counts = _half_trip(run, ranks, 0)
                    run.points.add(latency, shown, half, marks=marks, counts=counts, length=0, **more)

            contestants[name] = measure
        run.turns.play(contestants, run.options.rounds, warm_up=0)
