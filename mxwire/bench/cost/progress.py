"""Hosts in virtual time on which a message progresses by other means than the calls of its application.

Theory of operation
-------------------
The card's side of a host handles frames, and its library matches messages. Where and when both run decides whether a
message moves while an application computes (Maccabe and others, about 2002):

======== ======================================================================================
library  both in calls only: frames wait until the application has finished its work
thread   as library, and a thread looks again :data:`NAP` after the application began to work
signal   a frame raises a signal, whose handler interrupts the application and runs both
card     the card's side elsewhere, the library in calls: Open-MX, whose receiver must see a RNDV
match    both elsewhere: an agent, or Portals
push     data move elsewhere, but the library of the receiver must see the RTS, and that of the sender the CTS
         (MPICH/GM)
======== ======================================================================================

*Elsewhere* is a core of its own, or with ``same`` the core of the application, which is interrupted then and ends its
work later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from mxwire.bench.cost.hosts import EndpointFabric, EndpointRank, ModelHost, ModelHostOptions
from mxwire.bench.cost.processor import SYSTEM_KINDS, ModelCore
from mxwire.bench.cost.wires import WirePort
from mxwire.bench.imb.communicator import Buffer
from mxwire.bench.imb.push import Pushes
from mxwire.protocol import EngineEndpoint
from mxwire.units import MILLISECOND
from mxwire.wire.layout import TYPE_OFFSET

Progress = Literal["library", "thread", "signal", "card", "match", "push", "kernel"]
PROGRESS: Final[tuple[Progress, ...]] = ("library", "thread", "signal", "card", "match", "push", "kernel")
NAP: Final = 10 * MILLISECOND
"""Time after which the thread of a host looks again while its application makes no call."""
_IN_PROCESS: Final = ("library", "thread", "signal")
_ELSEWHERE: Final = ("match", "push")
_INTERRUPT: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(("thread", "signal", *_ELSEWHERE), SYSTEM_KINDS),
    "card": frozenset(("bottom half",)),
    "library": frozenset(),
}
"""The kinds of tasks that interrupt the application, if they run on its core."""


@dataclass(frozen=True, slots=True)
class SentFrame:
    """A frame that left a host."""

    time: int
    rank: int
    kind: int
    """Packet type."""
    length: int


class _ObservedPort(WirePort):
    """A port that stores the frames which it sends."""

    sent: list[SentFrame]
    number: int

    def send(self, target: WirePort, what: Any, length: int, frames: int, leave: int, delay: float) -> None:
        self.sent.append(SentFrame(leave, self.number, what[TYPE_OFFSET], length))
        super().send(target, what, length, frames, leave, delay)


class ProgressHost(ModelHost):
    """A host with one process, and the core on which its card's side runs."""

    def __init__(
        self, schedule: Any, number: int, options: ModelHostOptions, processes: int, addresses: Any, delay: float
    ) -> None:
        super().__init__(schedule, number, options, processes, addresses, delay)
        inside = options.progress in _IN_PROCESS
        self.cores = [ModelCore(_INTERRUPT[options.progress] if inside or options.same else frozenset())]
        self.bottom = self.cores[0] if inside or options.same else ModelCore()
        self.port = port = _ObservedPort(schedule, options.costs, options.coalescing, self._interrupt)
        port.sent, port.number = [], number

    @property
    def sent(self) -> list[SentFrame]:
        """The frames that it has sent."""
        return self.port.sent if isinstance(self.port, _ObservedPort) else []

    def _interrupt(self, frames: list[bytes]) -> None:
        core, now = self.bottom, self.schedule.now
        if core.working(now) and self.options.progress == "thread" and now < core.working_since() + NAP:
            self.schedule.at(min(core.free_at, core.working_since() + NAP), self._interrupt, frames)
            return
        if core.working(now) and self.options.progress == "signal":
            core.run(now, self.options.costs.signal, "driver")
        super()._interrupt(frames)


class ProgressRank(EndpointRank):
    """A rank whose library runs on the core that the progress of its host selects."""

    def plan(self) -> None:
        """Plan a pass of the library, if events wait."""
        if not self.planned and self.endpoint.card.ring:
            self._plan_on(self.host.bottom if self._elsewhere else self.core)

    def work_late(self) -> None:
        """Plan the pass for which a timer has expired."""
        self._plan_on(self.host.bottom if self._elsewhere else self.core)

    @property
    def _elsewhere(self) -> bool:
        return self.host.options.progress in _ELSEWHERE

    def _plan_on(self, core: ModelCore) -> None:
        self.planned = True
        begin = core.begin(self.schedule.now, "library")
        self.schedule.at(max(begin, self.host.copied_at), self._work_on, core)

    def _work_on(self, core: ModelCore) -> None:
        if core.begin(self.schedule.now, "library") > self.schedule.now:
            # Another task of this core was appended first.
            self._plan_on(core)
        else:
            self.work(core)


class PushRank(ProgressRank):
    """A rank that pushes large messages, whose RTS and CTS need its library in a call."""

    def __init__(self, rank: int, size: int, host: ModelHost, core: ModelCore, endpoint: EngineEndpoint) -> None:
        super().__init__(rank, size, host, core, endpoint)
        self._pushes = Pushes(super().isend, super().irecv)

    def isend(self, target: int, data: Buffer, tag: int = 0) -> Any:
        """Post a send; of a large message only the RTS leaves now."""
        return self._pushes.isend(target, data, tag)

    def irecv(self, source: int, data: Buffer, tag: int = 0) -> Any:
        """Post a receive; that of a large message waits for its RTS."""
        return self._pushes.irecv(source, data, tag)

    def check(self) -> None:
        """Take the next steps of large messages while the program waits in a call, and resume it if it may."""
        if self.waiting and not self.core.working(self.schedule.now):
            self._pushes.advance()
        super().check()

    def look(self) -> None:
        """Take the next steps of large messages at the end of a call."""
        super().look()
        self.schedule.at(self.core.free_at, self._pushes.advance)


def progress_fabric(options: ModelHostOptions) -> EndpointFabric:
    """Two ranks on equal hosts of mxwire, whose options name the way of progress."""
    rank = PushRank if options.progress == "push" else ProgressRank
    return EndpointFabric([options] * 2, 2, host_class=ProgressHost, rank_class=rank)
