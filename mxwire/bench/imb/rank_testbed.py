"""Testbeds of ranks with one API: in two namespaces, on two machines, or on modelled hosts in virtual time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from mxwire.bench.cost.hosts import ModelHostOptions
from mxwire.bench.cost.processor import ModelCore
from mxwire.bench.cost.tables import Costs
from mxwire.bench.cost.testbed import VirtualTestbed
from mxwire.bench.imb.carriers import RankSetup, tuned_host
from mxwire.bench.imb.patterns import ImbBenchmark
from mxwire.bench.imb.rank import MODULE
from mxwire.bench.remote import RANK, RemoteTestbed
from mxwire.bench.roles.common import IP_ADDRESSES
from mxwire.bench.study import round_marks
from mxwire.bench.testbed import NamespaceTestbed, ProcessSide, StudySide, TestbedError, TestbedOptions
from mxwire.errors import MxwireError
from mxwire.ethernet import HEADER_SIZE
from mxwire.lab.machine import available_processors, compiled_folder, placement
from mxwire.lab.namespaces import namespaces_refusal
from mxwire.wire.dialect import as_dialect

RANKS_MAXIMUM: Final = 8
CARRIERS: Final = ("mx", "tcp")


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
    """Segmentation offloads on or off; None to leave them unchanged."""
    polling: bool = True
    """Poll for frames if each live rank has a processor; otherwise block."""
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


class ModelRanks(VirtualTestbed, RankRunner):
    """Ranks in virtual time; ``costs`` is the table of all hosts, or one table per host."""

    def __init__(self, options: RankOptions, costs: Costs | tuple[Costs, Costs]) -> None:
        super().__init__(costs, mtu=options.link_mtu, delay=options.delay, coalescing=options.coalescing)
        hosts = None if options.over == "tcp" else [self._host(options, place) for place in range(len(self.tables))]
        self.ranks = self.fabric(hosts, options.ranks, blocks=options.blocks)

    def _host(self, options: RankOptions, place: int) -> ModelHostOptions:
        dialect, profile = tuned_host(
            options.dialect,
            options.profiles[place % len(options.profiles)],
            options.frames_per_block,
            options.blocks_in_flight,
        )
        return self.host_options(
            place, dialect, profile=profile, offload=options.copy_engine, received_in_place=options.in_place
        )

    def measure(self, benchmark: ImbBenchmark, length: int, warmup: int, count: int, algorithm: str = "") -> RankTimes:
        """Run a benchmark."""
        found = self.ranks.run(lambda comm: benchmark.program(comm, length, algorithm, warmup, count))
        return RankTimes(found[: benchmark.ranks or len(found)], {}, self.marks)

    @property
    def cores(self) -> list[list[ModelCore]]:
        """The cores of each host."""
        return self.ranks.cores


class RankProcesses(RankRunner):
    """Ranks as processes. They poll if there is a processor for each, otherwise they block."""

    def __init__(self, options: RankOptions) -> None:
        if options.ranks > RANKS_MAXIMUM:
            raise TestbedError(f"{options.ranks} ranks: live ranks are 2 to {RANKS_MAXIMUM}")
        self.rank_options = options
        self._ranks: list[StudySide] = []
        self.spinning = False

    @abstractmethod
    def _begin(self) -> None:
        """Start and connect the ranks."""

    def end(self) -> None:
        """End the ranks; the next measurement starts them again."""
        for each in self._ranks:
            each.close()
        self._ranks.clear()

    def _play(self, role: str, *parameters: dict[str, Any]) -> list[dict[str, Any]]:
        """Play a role in all ranks, with the parameters of all or of each."""
        for place, each in enumerate(self._ranks):
            each.start(role, parameters[place % len(parameters)])
        try:
            return [each.result() for each in self._ranks]
        except MxwireError as error:
            cause = self._cause_of(error)
            # Answers and messages of the others may still be under way: they belong to no later measurement.
            self.end()
            raise cause from None

    def _cause_of(self, error: MxwireError) -> MxwireError:
        """The error of a rank that has failed while the one with ``error`` waited for it without success, or that."""
        for each in self._ranks:
            if isinstance(each, ProcessSide) and each.busy and not each.pending:
                try:
                    each.result()
                except MxwireError as other:
                    return other
        return error

    def measure(self, benchmark: ImbBenchmark, length: int, warmup: int, count: int, algorithm: str = "") -> RankTimes:
        """Run a benchmark."""
        if not self._ranks:
            self._begin()
        parameters = {"benchmark": benchmark.name, "length": length, "warmup": warmup, "count": count}
        answers = self._play("measure", parameters | {"algorithm": algorithm})
        took_part = answers[: benchmark.ranks or len(answers)]
        frames: dict[str, int] = {}
        for each in answers:
            for name, value in each["frames"].items():
                frames[name] = frames.get(name, 0) + value
        marks = {mark for each in took_part for mark in round_marks(each, spinning=self.spinning)}
        if frames.get("dropped"):
            marks.add("lost")
        return RankTimes([each["times"] for each in took_part], frames, tuple(sorted(marks)))


class LiveRanks(NamespaceTestbed, RankProcesses):
    """Ranks in two namespaces.

    Raises :class:`~mxwire.bench.testbed.TestbedError` if they cannot be started.
    """

    def __init__(self, options: RankOptions, steered: bool = True, package: Path | None = None) -> None:
        reason = namespaces_refusal()
        if reason is not None:
            raise TestbedError(reason)
        RankProcesses.__init__(self, options)
        self.spinning = options.polling and options.ranks <= len(available_processors())
        # Kernels without netem cannot delay frames, but a host that does not share its link can.
        self._own_delay = options.delay if options.over == "mx" and options.ranks == 2 else 0.0
        delay = 0.0 if self._own_delay else options.delay
        NamespaceTestbed.__init__(self, TestbedOptions(options.link_mtu, steered, delay, options.offloads, package))

    def _start(self, addresses: list[str]) -> tuple[StudySide, StudySide]:
        self.addresses = addresses
        self._begin()
        return self._ranks[0], self._ranks[1]

    def _begin(self) -> None:
        options = self.rank_options
        for setup in _setups(options, self.addresses, IP_ADDRESSES, self.spinning, self._own_delay):
            side = _side(setup.rank, options)
            port, processor = self.ports[side], self.placement[side]
            setup = replace(setup, interface=port.interface, namespace=port.namespace.name, processor=processor)
            process = ProcessSide(setup, self.options.package, MODULE, f"rank {setup.rank}'s")
            self._held.callback(process.close)
            self._ranks.append(process)
            self.compiled = bool(process.about["compiled"])
        self._play("connect", {})

    def open(self, *changes: dict[str, Any]) -> list[dict[str, Any]]:
        """Have all ranks open their communicators from scratch, with other values of their setups, and connect them.

        Returns the processors of each rank and of its helpers.
        """
        if not self._ranks:
            self._begin()
        answers = self._play("open", *changes)
        self._play("connect", {})
        return answers

    def play(self, program: str, slept: bool, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        """Play a program of ``bench overlap`` in all ranks, and return their answers, with the processors used."""
        return self._play("play", {"program": program, "slept": slept} | parameters)


class RemoteRanks(RemoteTestbed, RankProcesses):
    """Ranks on this machine and on another one, which runs ``mxwire bench serve``.

    Hosts of mxwire with different dialects cannot share an interface, so the ranks of a dialect start at their first
    measurement and end when those of another dialect begin.
    """

    _at_work: RemoteRanks | None = None

    def __init__(self, options: RankOptions, interface: str, address: bytes | None, package: Path | None) -> None:
        RankProcesses.__init__(self, options)
        if options.over == "mx" and options.delay and options.ranks != 2:
            raise TestbedError("between two machines, frames can be delayed for 2 ranks only")
        if options.over == "tcp" and (options.delay or options.offloads is not None):
            raise TestbedError("between two machines neither the delay of TCP nor its offloads can be changed")
        RemoteTestbed.__init__(self, interface, address, package)

    def _start(self) -> None:
        options = self.rank_options
        reason = self.can_use(options.dialect if options.over == "mx" else "tcp")
        if reason is not None:
            raise TestbedError(f"{options.name}: {reason}")
        sides = [_side(rank, options) for rank in range(options.ranks)]
        here, there = len(available_processors()), int(self.about["processors"])
        self.spinning = options.polling and sides.count(0) <= here and sides.count(1) <= there
        self.compiled = self._package is not None and self._package == compiled_folder()

    def _begin(self) -> None:
        if RemoteRanks._at_work is not None and self.rank_options.over == "mx":
            RemoteRanks._at_work.end()
        options = self.rank_options
        # Hosts of mxwire need no IP addresses; these are the names of the sides.
        addresses = (self.own["ip"], self.about["ip"]) if options.over == "tcp" else IP_ADDRESSES
        ethernet = [self.own["address"], self._machine.address.hex()]
        for setup in _setups(options, ethernet, addresses, self.spinning, options.delay):
            if _side(setup.rank, options):
                self._ranks.append(self._remote(RANK, asdict(setup)))
                continue
            processor = placement(options.ranks)[setup.places[setup.rank][2]]
            setup = replace(setup, interface=self._interface, processor=processor)
            local = ProcessSide(setup, self._package, MODULE, f"rank {setup.rank}'s")
            self._held.callback(local.close)
            self._ranks.append(local)
        if options.over == "mx":
            RemoteRanks._at_work = self
        self._play("connect", {})

    def end(self) -> None:
        """End the ranks, so that those of another dialect may begin."""
        RankProcesses.end(self)
        if RemoteRanks._at_work is self:
            RemoteRanks._at_work = None

    def close(self) -> None:
        """End the ranks, and the conversation with the other machine."""
        self.end()
        super().close()


def _setups(
    options: RankOptions, ethernet: Sequence[str], addresses: Sequence[str], spin: bool, delay: float
) -> Iterator[RankSetup]:
    """The setups of all ranks, without interfaces; ``ethernet`` and ``addresses`` are those of both sides."""
    places, used = [], [0, 0]
    for rank in range(options.ranks):
        side = _side(rank, options)
        places.append((bytes.fromhex(ethernet[side]).hex(":"), addresses[side], used[side]))
        used[side] += 1
    for rank in range(options.ranks):
        profile = options.profiles[_side(rank, options) % len(options.profiles)]
        given = {each: getattr(options, each) for each in ("over", "dialect", "frames_per_block", "blocks_in_flight")}
        yield RankSetup(rank, tuple(places), "", profile=profile, spin=spin, delay=delay, **given)


def _side(rank: int, options: RankOptions) -> int:
    return rank * 2 // options.ranks if options.blocks else rank % 2


@dataclass(frozen=True, slots=True)
class RankSurroundings:
    """The surroundings of ranks: virtual time with ``costs``, another machine over ``interface``, or namespaces."""

    costs: Costs | None = None
    """Table of a study in virtual time."""
    package: Path | None = None
    """Folder with the mxwire that live ranks run; None: the one that runs here."""
    interface: str | None = None
    """Interface to the other machine."""
    address: bytes | None = None
    """Ethernet address of the other machine; None selects the machine that answers."""

    @contextmanager
    def open(
        self, options: RankOptions, tables: tuple[Costs, Costs] | None = None
    ) -> Iterator[ModelRanks | LiveRanks | RemoteRanks]:
        """Yield ranks; ``tables`` are the tables of both hosts of a model, if they differ."""
        if self.costs is not None:
            yield ModelRanks(options, tables or self.costs)
        elif self.interface is not None:
            with RemoteRanks(options, self.interface, self.address, self.package) as remote:
                yield remote
        else:
            with LiveRanks(options, package=self.package) as live:
                yield live


NAMESPACES: Final = RankSurroundings()
"""Two namespaces of this machine, with the mxwire that runs here."""
