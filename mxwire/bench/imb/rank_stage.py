"""Stages of ranks with one API: live in two namespaces, or on modelled hosts in virtual time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from mxwire.bench.cost.hosts import EndpointFabric, ModelHostOptions
from mxwire.bench.cost.processor import ModelCore
from mxwire.bench.cost.ranks import ModelFabric
from mxwire.bench.cost.streams import StreamFabric
from mxwire.bench.cost.tables import Costs
from mxwire.bench.imb.carriers import RankSetup
from mxwire.bench.imb.patterns import ImbBenchmark, measured
from mxwire.bench.machine import live_refusal, machine_conditions
from mxwire.bench.processors import available
from mxwire.bench.record import Conditions, load_average, now_text
from mxwire.bench.roles.common import IP_ADDRESSES
from mxwire.bench.stage import NamespaceStage, ProcessSide, StageError, StageOptions, StudySide
from mxwire.bench.study import round_marks
from mxwire.errors import MxwireError
from mxwire.ethernet import HEADER_SIZE
from mxwire.protocol import profile_by_name
from mxwire.wire.dialect import as_dialect

RANKS_MAXIMUM: Final = 8
CARRIERS: Final = ("mx", "tcp")
_NS: Final = 1e9


@dataclass(frozen=True, slots=True)
class RankOptions:
    """Ranks and their surroundings, live or modelled."""

    over: str = "mx"
    """``mx`` or ``tcp``."""
    ranks: int = 2
    dialect: str = "mxoe"
    frames_per_block: int | None = None
    """Frames that a PULL requests; None: as the dialect defines."""
    blocks_in_flight: int | None = None
    profiles: tuple[str, ...] = ("open-mx",)
    """Profiles of the hosts, in turn."""
    mtu: int | None = None
    """None: as the dialect needs, at least 9,000."""
    delay: float = 0.0
    """Seconds added to each frame in each direction."""
    coalescing: float = 0.0
    """Delay of interrupts in seconds, in the model."""
    copy_engine: bool = False
    """Copies of large messages by a copy engine, in the model."""
    in_place: bool = False
    """Large messages are not copied on receipt, in the model."""
    offloads: bool | None = None
    """Segmentation offloads on or off; None: as they are."""
    polling: bool = True
    """Poll for frames, if there is a processor for each live rank; otherwise block."""
    blocks: bool = False
    """Neighbouring ranks on one host; otherwise ranks are assigned to the hosts in turn."""

    def __post_init__(self) -> None:
        """Refuse impossible options."""
        if self.over not in CARRIERS:
            raise MxwireError(f"no carrier {self.over!r}: use {' or '.join(CARRIERS)}")
        if self.ranks < 2:
            raise MxwireError(f"{self.ranks} ranks: at least 2 are needed")
        frame = as_dialect(self.dialect).frame_limit - HEADER_SIZE
        if self.over == "mx" and self.mtu is not None and frame > self.mtu:
            raise MxwireError(f"{self.dialect} needs an MTU of {frame}, not {self.mtu}")

    @property
    def link_mtu(self) -> int:
        """MTU of the link."""
        return self.mtu or max(9000, as_dialect(self.dialect).frame_limit - HEADER_SIZE)

    @property
    def name(self) -> str:
        """The carrier in words."""
        return self.dialect if self.over == "mx" else "tcp"


@dataclass(frozen=True, slots=True)
class RankTimes:
    """Times of one run of a benchmark: those of each rank that takes part, in ns per repetition."""

    times: list[list[int]]
    frames: dict[str, int]
    """Frames of all ranks by name, where they are known."""
    marks: tuple[str, ...] = ()


class RankRunner(ABC):
    """Ranks that can run benchmarks."""

    @abstractmethod
    def measure(self, benchmark: ImbBenchmark, length: int, warmup: int, count: int, algorithm: str = "") -> RankTimes:
        """Run a benchmark in all ranks. Raises :class:`~mxwire.errors.MxwireError` if a rank fails."""


class ModelRanks(RankRunner):
    """Ranks in virtual time; ``costs`` is the table of all hosts, or one table per host."""

    def __init__(self, options: RankOptions, costs: Costs | tuple[Costs, Costs]) -> None:
        tables = costs if isinstance(costs, tuple) else (costs, costs)
        delay, coalescing = options.delay * _NS, options.coalescing * _NS
        self.fabric: ModelFabric
        if options.over == "tcp":
            self.fabric = StreamFabric(
                tables[0],
                options.ranks,
                mtu=options.link_mtu,
                coalescing=coalescing,
                delay=delay,
                blocks=options.blocks,
            )
            return
        dialect = as_dialect(options.dialect)
        if options.frames_per_block is not None:
            dialect = replace(dialect, frames_per_block=options.frames_per_block)
        hosts = []
        for place, table in enumerate(tables):
            profile = profile_by_name(options.profiles[place % len(options.profiles)])
            if options.blocks_in_flight is not None:
                profile = replace(profile, blocks_in_flight=options.blocks_in_flight)
            hosts.append(ModelHostOptions(table, dialect, profile, coalescing, options.copy_engine, options.in_place))
        self.fabric = EndpointFabric(hosts, options.ranks, delay=delay, blocks=options.blocks)

    def measure(self, benchmark: ImbBenchmark, length: int, warmup: int, count: int, algorithm: str = "") -> RankTimes:
        """Run a benchmark."""
        found = self.fabric.run(
            lambda comm: measured(comm, lambda rank: benchmark.make(rank, length, algorithm), warmup, count)
        )
        return RankTimes(found[: benchmark.ranks or len(found)], {}, ("modelled",))

    @property
    def cores(self) -> list[list[ModelCore]]:
        """The cores of each host."""
        return self.fabric.cores


class LiveRanks(NamespaceStage, RankRunner):
    """Ranks as processes in two namespaces. They poll if there is a processor for each, otherwise they block.

    Raises :class:`~mxwire.bench.stage.StageError` if they cannot be started.
    """

    def __init__(self, options: RankOptions, steered: bool = True, package: Path | None = None) -> None:
        reason = live_refusal()
        if reason is not None:
            raise StageError(reason)
        self._ranks: list[StudySide] = []
        self.spinning = options.polling and options.ranks <= len(available())
        self.rank_options = options
        # Kernels without netem cannot delay frames, but a host with a link of its own can.
        self._own_delay = options.delay if options.over == "mx" and options.ranks == 2 else 0.0
        delay = 0.0 if self._own_delay else options.delay
        super().__init__(StageOptions(options.link_mtu, steered, delay, options.offloads, package))

    def _start(self, addresses: list[str]) -> tuple[StudySide, StudySide]:
        options = self.rank_options
        if not 2 <= options.ranks <= RANKS_MAXIMUM:
            raise StageError(f"{options.ranks} ranks: live ranks are 2 to {RANKS_MAXIMUM}")
        places, used = [], [0, 0]
        sides = [_side(rank, options) for rank in range(options.ranks)]
        for side in sides:
            places.append((bytes.fromhex(addresses[side]).hex(":"), IP_ADDRESSES[side], used[side]))
            used[side] += 1
        for rank, side in enumerate(sides):
            namespace, interface = self.ends[side]
            setup = RankSetup(
                rank,
                tuple(places),
                interface,
                namespace,
                options.over,
                options.dialect,
                options.frames_per_block,
                options.profiles[side % len(options.profiles)],
                options.blocks_in_flight,
                self.spinning,
                self._own_delay,
                processor=self.placement[side],
            )
            process = ProcessSide(setup, self.options.package, "mxwire.bench.imb.rank", f"rank {rank}'s")
            self._held.callback(process.close)
            self._ranks.append(process)
            self.compiled = bool(process.about["compiled"])
        self._play("connect", {})
        return self._ranks[0], self._ranks[1]

    def _play(self, role: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        for each in self._ranks:
            each.start(role, parameters)
        return [each.result() for each in self._ranks]

    def measure(self, benchmark: ImbBenchmark, length: int, warmup: int, count: int, algorithm: str = "") -> RankTimes:
        """Run a benchmark."""
        asked = {"benchmark": benchmark.name, "length": length, "warmup": warmup, "count": count}
        found = self._play("measure", asked | {"algorithm": algorithm})
        took_part = found[: benchmark.ranks or len(found)]
        frames: dict[str, int] = {}
        for each in found:
            for name, value in each["frames"].items():
                frames[name] = frames.get(name, 0) + value
        marks = {mark for each in took_part for mark in round_marks(each, spinning=self.spinning)}
        if frames.get("dropped"):
            marks.add("lost")
        return RankTimes([each["times"] for each in took_part], frames, tuple(sorted(marks)))


def _side(rank: int, options: RankOptions) -> int:
    return rank * 2 // options.ranks if options.blocks else rank % 2


@contextmanager
def open_ranks(
    options: RankOptions, costs: Costs | tuple[Costs, Costs] | None, package: Path | None = None
) -> Iterator[ModelRanks | LiveRanks]:
    """Yield ranks in virtual time if there is a table of ``costs``, otherwise live ranks."""
    if costs is not None:
        yield ModelRanks(options, costs)
        return
    with LiveRanks(options, package=package) as live:
        yield live


def model_conditions(costs: Costs, quick: bool) -> Conditions:
    """The conditions of a recording in virtual time."""
    about = machine_conditions()
    return Conditions(**about, time=now_text(), stage=f"virtual time, {costs.name}", load=load_average(), quick=quick)
