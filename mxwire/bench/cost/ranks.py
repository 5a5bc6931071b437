"""Programs of ranks in virtual time, on hosts of mxwire or on TCP."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from mxwire.bench.cost.processor import APPLICATION, ModelCore
from mxwire.bench.cost.tables import Costs
from mxwire.bench.imb.communicator import Buffer, Communicator, Operation, Program, RankFunction, Result
from mxwire.errors import MxwireError
from mxwire.simulation.schedule import Schedule
from mxwire.units import SECOND

_LONGEST: Final = 3600 * SECOND
"""Virtual time within which every program must end: a longer one is taken to run indefinitely."""


class PostedOperation(Operation, Protocol):
    """An operation of which it is known whether the call that posted it has returned."""

    @property
    def posted(self) -> bool:
        """True if the call has returned."""


class ModelRank(Communicator):
    """A rank in virtual time, with the core on which it runs."""

    def __init__(self, rank: int, size: int, schedule: Schedule, core: ModelCore, costs: Costs) -> None:
        super().__init__(rank, size)
        self.schedule = schedule
        self.core = core
        self.costs = costs
        self._program: Program[Any] | None = None
        self._waits: Sequence[Operation] = ()
        self._resumed = False
        self._ended: Callable[[int, Any], None] = _ignore

    @abstractmethod
    def isend(self, target: int, data: Buffer, tag: int = 0) -> PostedOperation:
        """Post a send to another rank."""

    def now(self) -> int:
        """The virtual time at which the calls of the rank so far have returned."""
        return max(self.schedule.now, self.core.free_at)

    def compute(self, length: int) -> None:
        """Charge the core for a reduction."""
        self.core.run(self.schedule.now, length * self.costs.combine, APPLICATION)

    def copy(self, target: Buffer, source: Buffer) -> None:
        """Copy an array, and charge the core for it."""
        super().copy(target, source)
        self.core.run(self.schedule.now, source.nbytes * self.costs.local_copy, APPLICATION)

    def work_for(self, duration: int) -> None:
        """Occupy the core for ``duration`` ns with work of the application, which others may interrupt."""
        self.core.run(self.schedule.now, duration, APPLICATION)

    def look(self) -> None:
        """Charge the core for a call."""
        self.core.run(self.schedule.now, self.costs.call, "library")

    def start(self, program: Program[Any], ended: Callable[[int, Any], None]) -> None:
        """Begin to run a program; ``ended`` is called with the rank and the result."""
        self._program, self._waits, self._ended = program, (), ended
        self.check()

    @property
    def waiting(self) -> bool:
        """True while the program waits for operations, in a call."""
        return self._program is not None and not self._resumed and bool(self._waits)

    def check(self) -> None:
        """Resume the program, when the core is free, if all that it waits for is done."""
        if self._program is not None and not self._resumed and all(each.done for each in self._waits):
            self._resumed = True
            self.schedule.at(self.core.free_at, self._resume)

    def _resume(self) -> None:
        self._resumed = False
        program = self._program
        assert program is not None
        if self.core.free_at > self.schedule.now:
            # Another task of this core was appended first.
            self.check()
            return
        try:
            self._waits = program.send(None)
        except StopIteration as end:
            self._program = None
            self._ended(self.rank, end.value)
        else:
            self.check()


class ModelFabric:
    """Ranks on modelled hosts, which run one program after another."""

    hosts: Sequence[Any]

    def __init__(self) -> None:
        self.schedule = Schedule()
        self.ranks: list[ModelRank] = []

    def run(self, function: RankFunction[Result]) -> list[Result]:
        """Run a program in all ranks, and return their results in order.

        Raises :class:`~mxwire.errors.MxwireError` if they wait for each other without end.
        """
        results: dict[int, Result] = {}
        for each in self.ranks:
            each.start(function(each), results.__setitem__)
        limit = self.schedule.now + _LONGEST
        while len(results) < len(self.ranks):
            if not self.schedule.step(limit):
                stuck = ", ".join(str(each.rank) for each in self.ranks if each.rank not in results)
                raise MxwireError(f"the program does not end: ranks {stuck} wait")
        return [results[rank] for rank in range(len(self.ranks))]

    @property
    def cores(self) -> list[list[ModelCore]]:
        """The cores of each host, that of the bottom half first."""
        return [[each.bottom, *each.cores] for each in self.hosts]


def host_of(rank: int, ranks: int, hosts: int, blocks: bool) -> int:
    """The host of a rank: in turn, so that neighbours are on different hosts, or in ``blocks`` of neighbours."""
    return rank * hosts // ranks if blocks else rank % hosts


@dataclass(slots=True, eq=False)
class ModelOperation:
    """An operation whose end the carrier notes."""

    done: bool = False

    @property
    def posted(self) -> bool:
        """True if the call has returned: a send of TCP does when its data are in the socket's buffer."""
        return self.done


def _ignore(_: int, __: Any) -> None:
    return
