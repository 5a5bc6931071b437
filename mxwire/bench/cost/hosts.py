"""Hosts of mxwire with modelled processors: the engine, stopped between its steps for the time that they cost.

Theory of operation
===================

A frame that arrives causes a task of the bottom half, on the core to which interrupts are bound. When the task ends,
the card of the engine receives the frame; replies and further requests of the card leave after tasks of the same core.
All endpoints are suspended, so that this step does none of the library's work. If events wait in the ring of an
endpoint, a task of the library is appended to the core of its process; when it ends, the endpoint makes one pass, its
frames leave after tasks of the driver on the same core, and the rank continues if what it waits for is done. Calls of
the application are tasks as well: a send reaches the engine when its task ends.

The timers of the engine are polled once per tick, as those of a real host are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from mxwire.bench.cost.processor import ModelCore, core_plan
from mxwire.bench.cost.ranks import ModelFabric, ModelRank, host_of
from mxwire.bench.cost.tables import Costs
from mxwire.bench.cost.wires import WirePort
from mxwire.bench.imb.communicator import Buffer, flat
from mxwire.ethernet import DESTINATION
from mxwire.protocol import EngineEndpoint, Node, Partner, Profile
from mxwire.protocol.corridor import DataArrival, LocalMessage
from mxwire.protocol.profile import OPEN_MX_1_5
from mxwire.simulation.schedule import Schedule
from mxwire.wire.dialect import MEDIUM_DATA_OFFSET, MXOE, PULL_REPLY_DATA_OFFSET, Dialect
from mxwire.wire.enums import PacketType
from mxwire.wire.layout import TYPE_OFFSET
from mxwire.wire.numbers import DEFAULT_KEY, RENDEZVOUS_THRESHOLD, SMALL_MAXIMUM

PAGE: Final = 4096
_LARGE: Final = {int(PacketType.RNDV), int(PacketType.PULL)}
_PULL_REPLY: Final = int(PacketType.PULL_REPLY)
_MEDIUM: Final = int(PacketType.MEDIUM)
_RANK_SHIFT: Final = 32
"""Match information: the source rank above the tag."""


@dataclass(frozen=True, slots=True)
class ModelHostOptions:
    """A host of the model. Times are in ns."""

    costs: Costs
    dialect: Dialect = MXOE
    profile: Profile = OPEN_MX_1_5
    coalescing: float = 0.0
    """Delay of interrupts."""
    offload: bool = False
    """True if the copy engine copies large messages."""
    received_in_place: bool = False
    """True if the bottom half does not copy large messages: the prediction of the paper's figure 10."""
    progress: str = "card"
    """The way of progress: see :mod:`mxwire.bench.cost.progress`."""
    same: bool = False
    """True if whatever runs outside of calls shares the core of the application, and interrupts it."""


class _EndpointOperation:
    """A request of the engine that is posted when the call's task ends."""

    __slots__ = ("request",)

    def __init__(self) -> None:
        self.request: Any = None

    @property
    def posted(self) -> bool:
        return self.request is not None

    @property
    def done(self) -> bool:
        return self.posted and self.request.done


class EndpointRank(ModelRank):
    """A rank with an endpoint of a modelled host."""

    def __init__(self, rank: int, size: int, host: ModelHost, core: ModelCore, endpoint: EngineEndpoint) -> None:
        super().__init__(rank, size, host.schedule, core, host.options.costs)
        self.host = host
        self.endpoint = endpoint
        self.partners: dict[int, Partner] = {}
        self.planned = False
        """True if a task of the library has been appended."""

    def isend(self, target: int, data: Buffer, tag: int = 0) -> _EndpointOperation:
        """Post a send."""
        operation = _EndpointOperation()
        medium = SMALL_MAXIMUM < data.nbytes <= RENDEZVOUS_THRESHOLD
        cost = self.costs.call + (self.costs.medium if medium else 0.0)
        end = self.core.run(self.schedule.now, cost, "library")
        self.schedule.at(end, self._send, operation, self.partners[target], flat(data), tag)
        return operation

    def irecv(self, source: int, data: Buffer, tag: int = 0) -> _EndpointOperation:
        """Post a receive."""
        operation = _EndpointOperation()
        end = self.core.run(self.schedule.now, self.costs.call, "library")
        self.schedule.at(end, self._receive, operation, flat(data), source << _RANK_SHIFT | tag)
        return operation

    def look(self) -> None:
        """Make a pass of the library at the end of a call."""
        self.schedule.at(self.core.run(self.schedule.now, self.costs.call, "library"), self.work)

    def _send(self, operation: _EndpointOperation, partner: Partner, data: memoryview, tag: int) -> None:
        operation.request = self.endpoint.send(partner, data, self.rank << _RANK_SHIFT | tag)
        self.work()

    def _receive(self, operation: _EndpointOperation, data: memoryview, match: int) -> None:
        operation.request = self.endpoint.receive(data, match)
        self.work()

    def work(self, core: ModelCore | None = None) -> None:
        """Make a pass of the library now, on the core of the rank or on ``core``."""
        self.planned = False
        endpoint, core = self.endpoint, core or self.core
        core.run(self.schedule.now, self._cost(), "library")
        endpoint.suspended = False
        self.host.transmit(core, "driver")
        endpoint.suspended = True
        self.host.look()

    def plan(self) -> None:
        """Append a task of the library, if events wait."""
        if not self.planned and self.endpoint.card.ring:
            self.planned = True
            # The copy engine works in order: when it is done, the data of these events are there.
            self.schedule.at(max(self.core.free_at, self.host.copied_at), self.work)

    def work_late(self) -> None:
        """Make the pass for which a timer has expired."""
        self.work()

    def _cost(self) -> float:
        """Time for the events that wait in the ring, and for copying their data."""
        costs, ring = self.costs, self.endpoint.card.ring
        cost = costs.event * (len(ring.received) + len(ring.ended))
        for event in ring.received:
            if isinstance(event, DataArrival):
                cost += event.size * costs.copy_warm
            elif type(event) is LocalMessage:
                copies = 2 if event.source.buffered else 1
                cost += costs.system_call + event.source.length * costs.local_copy * copies
        return cost


class ModelHost:
    """A node with the cores of its host and a port of the link."""

    def __init__(
        self,
        schedule: Schedule,
        number: int,
        options: ModelHostOptions,
        processes: int,
        addresses: dict[bytes, str],
        delay: float,
    ) -> None:
        self.schedule = schedule
        self.options = options
        self.address = list(addresses)[number]
        self.bottom, self.cores = core_plan(options.costs.cores, processes)
        self.port = WirePort(schedule, options.costs, options.coalescing, self._interrupt)
        self.ports: dict[bytes, WirePort] = {}
        self.ranks: list[EndpointRank] = []
        self.copied_at = 0
        """Time at which the copy engine is done."""
        self.frames = 0
        """Frames that were sent."""
        self._delay = delay
        self.node = Node(
            self.address,
            f"host{number}",
            dialect=options.dialect,
            profile=options.profile,
            rng=Random(number),
            peers={each: name for each, name in addresses.items() if each != self.address},
            report_completed=False,
        )

    def transmit(self, core: ModelCore, kind: str) -> None:
        """Send the frames of the node, after tasks of ``core``."""
        costs, now = self.options.costs, self.schedule.now
        frames = self.node.transmit_few(now)
        if not len(frames):
            return
        core.run(now, costs.system_call if kind == "driver" else 0, kind)
        for frame in frames:
            length, packet_type = len(frame), frame[TYPE_OFFSET]
            cost = costs.frame_send
            if packet_type == _MEDIUM:
                cost += (length - MEDIUM_DATA_OFFSET) * costs.copy_warm
            elif packet_type in _LARGE and kind == "driver":
                cost += costs.pin * self.options.dialect.block_length / PAGE
            leave = core.run(now, cost, kind)
            self.frames += 1
            target = self.ports[frame[DESTINATION]]
            self.port.send(target, frame, length, 1, leave, self._delay)

    def _interrupt(self, frames: list[bytes]) -> None:
        options, now = self.options, self.schedule.now
        costs = options.costs
        for frame in frames:
            cost, packet_type = costs.frame_receive, frame[TYPE_OFFSET]
            if packet_type == _PULL_REPLY:
                length = len(frame) - PULL_REPLY_DATA_OFFSET
                if options.offload:
                    # The engine copies physically contiguous memory: it needs a chunk per page.
                    submitted = self.bottom.run(now, cost + costs.submit * -(-length // PAGE), "bottom half")
                    self.copied_at = max(self.copied_at, submitted) + round(length * costs.engine)
                    # Charged already, by the task that submits.
                    cost = 0
                elif not options.received_in_place:
                    cost += length * costs.delivery_copy
            elif packet_type == _MEDIUM:
                cost += (len(frame) - MEDIUM_DATA_OFFSET) * costs.delivery_copy
            self.schedule.at(self.bottom.run(now, cost, "bottom half"), self._receive, frame)

    def _receive(self, frame: bytes) -> None:
        self.node.receive_few([frame], self.schedule.now)
        self.transmit(self.bottom, "bottom half")
        self.look()

    def look(self) -> None:
        """Plan the work that has become possible for the ranks of this host."""
        for each in self.ranks:
            each.plan()
            each.check()

    def tick(self) -> None:
        """Run the timers of the card and of the libraries."""
        now = self.schedule.now
        for each in self.ranks:
            each.endpoint.suspended = False
            overdue = each.endpoint.overdue(now)
            each.endpoint.suspended = True
            if overdue and not each.planned:
                each.work_late()
        self.transmit(self.bottom, "bottom half")
        self.schedule.after(self.options.profile.tick, self.tick)


class EndpointFabric(ModelFabric):
    """Ranks on two or more modelled hosts of mxwire, assigned to the hosts in turn, or in ``blocks``.

    ``delay`` is added to the transit of each frame, in ns.
    """

    def __init__(
        self,
        options: Sequence[ModelHostOptions],
        ranks: int,
        *,
        delay: float = 0.0,
        blocks: bool = False,
        host_class: type[ModelHost] = ModelHost,
        rank_class: type[EndpointRank] = EndpointRank,
    ) -> None:
        super().__init__()
        addresses = {bytes((2, 0, 0, 0, 1, number)): f"host{number}:0" for number in range(len(options))}
        processes = -(-ranks // len(options))
        self.hosts = [
            host_class(self.schedule, number, each, processes, addresses, delay) for number, each in enumerate(options)
        ]
        for host in self.hosts:
            host.ports = {each.address: each.port for each in self.hosts}
        for rank in range(ranks):
            host = self.hosts[host_of(rank, ranks, len(self.hosts), blocks)]
            number = len(host.ranks)
            endpoint = host.node.open_endpoint(number, DEFAULT_KEY)
            opened = rank_class(rank, ranks, host, host.cores[number], endpoint)
            host.ranks.append(opened)
            self.ranks.append(opened)
        self._connect()
        for host in self.hosts:
            self.schedule.after(host.options.profile.tick, host.tick)

    def _connect(self) -> None:
        """Connect all endpoints with each other, in no time."""
        ranks = [each for each in self.ranks if isinstance(each, EndpointRank)]
        pending = {}
        for each in ranks:
            for other in ranks:
                if other is not each:
                    call = each.endpoint.connect(other.host.address, other.endpoint.number, DEFAULT_KEY)
                    pending[each.rank, other.rank] = call
        nodes = {each.address: each.node for each in self.hosts}
        while any(not each.done for each in pending.values()):
            for node in nodes.values():
                for frame in node.transmit_few(0):
                    nodes[frame[DESTINATION]].receive_few([frame], 0)
        for (source, target), call in pending.items():
            assert call.partner is not None
            ranks[source].partners[target] = call.partner
        for each in ranks:
            each.endpoint.suspended = True
