"""The world of one run: hosts and their applications, the network, incidents, time and ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, Final

import numpy as np

from mxwire.ethernet import ADDRESS_SIZE
from mxwire.frames import FrameBatch
from mxwire.protocol import EngineEndpoint, Event, EventKind, Node, Partner
from mxwire.protocol.library.partner import LibraryEndpoint
from mxwire.simulation.application import SimulatedApplication
from mxwire.simulation.digest import Digest
from mxwire.simulation.invariants import unchecked
from mxwire.simulation.ledger import Ledger
from mxwire.simulation.local_path import SimulatedPath
from mxwire.simulation.network import Incident, Network, Port
from mxwire.simulation.randomness import stream
from mxwire.simulation.receiver import Buffers
from mxwire.simulation.scenario import INCIDENTS, LOCAL_PATHS, Scenario
from mxwire.simulation.schedule import Schedule
from mxwire.simulation.virtual_host import VirtualHost, batch_of, batches_of
from mxwire.simulation.workload import PlannedMessage
from mxwire.simulation.workload import plan as plan_messages
from mxwire.units import MICROSECOND, MILLISECOND, SECOND
from mxwire.wire.enums import PacketType

_FILTERED: Final = tuple(
    each for each in PacketType if each in (PacketType.HOST_QUERY, PacketType.HOST_REPLY) or each >= PacketType.TRUC
)
_SHORTEST: Final = MILLISECOND
_PAUSED: Final = 1500 * MILLISECOND
"""Length of a planned pause: longer than the delays of all timers."""
_RESTARTS: Final = ("kill", "crash")
_WAKE_UP: Final = 20 * MICROSECOND
"""Maximum time until a process takes the records of another one."""
_BACKLOG: Final = 100 * MILLISECOND
"""Time after which the frames that a host has transmitted, and that still wait for the link, have left it."""

Tap = Callable[[FrameBatch], Any]
"""Called with frames as they are sent, or with those that one host sends and receives."""


class World:
    """All objects of one run of a scenario. ``tap`` receives all frames as they are sent; with ``at``, the frames that
    the host of that number sends and receives, as in a capture on it."""

    def __init__(self, scenario: Scenario, tap: Tap | None = None, at: int | None = None) -> None:
        self.scenario = scenario
        self.schedule = Schedule()
        self.digest = Digest()
        self.buffers = Buffers()
        self.addresses: dict[bytes, Port] = {
            bytes((0x02, 0, 0, 0, host, interface)): (host, interface)
            for host in range(scenario.hosts)
            for interface in range(scenario.interfaces)
        }
        self.disturbances: list[tuple[int, int, str]] = []
        """Incidents of hosts and network: start, end, kind."""
        count = scenario.hosts * scenario.processes
        messages = plan_messages(scenario, count)
        late = scenario.slowest * 2 + SECOND
        if scenario.pause or scenario.stall or scenario.interrupted:
            late += scenario.incident_longest
        self.ledger = Ledger(scenario.seed, messages, self.schedule, unchecked(scenario), late)
        self.network = Network(scenario, self.schedule, self.addresses, self._deliver)
        self.hosts = self._make_hosts()
        """All engines, in the order of the applications: one per host or, with local channels, one per application."""
        self._engines = [[each for each in self.hosts if each.number == number] for number in range(scenario.hosts)]
        self.applications: list[SimulatedApplication] = []
        self._make_applications(count)
        self.incidents = Incidents(self)
        self.restart_listeners: list[Callable[[bytes], None]] = []
        self._local = LOCAL_PATHS[scenario.local]
        self.taps: dict[int | None, Tap] = {} if tap is None else {at: tap}
        """By the number of the host on which they are; None for the tap that receives all frames."""

    def _make_hosts(self) -> list[SimulatedHost]:
        scenario = self.scenario
        addresses = [
            [address for address, port in self.addresses.items() if port[0] == number]
            for number in range(scenario.hosts)
        ]
        copies = LOCAL_PATHS[scenario.local]
        if not copies:
            return [SimulatedHost(self, number, addresses[number]) for number in range(scenario.hosts)]
        paths: list[list[SimulatedPath]] = [[] for _ in range(scenario.hosts)]
        return [
            SimulatedProcess(self, number, addresses[number], process, SimulatedPath(paths[number], copies=copies))
            for process in range(scenario.processes)
            for number in range(scenario.hosts)
        ]

    def engines_of(self, number: int) -> list[SimulatedHost]:
        """Return the engines of a host."""
        return self._engines[number]

    def _make_applications(self, count: int) -> None:
        rng = stream(self.scenario.seed, "applications")
        for number in range(count):
            host = self.hosts[number % len(self.hosts)]
            interface = rng.randrange(self.scenario.interfaces)
            used = {each.endpoint_number for each in self.applications if each.host.number == host.number}
            endpoint_number = rng.choice([each for each in (0, 1, 2, 5, 30) if each not in used])
            application = SimulatedApplication(self, host, number, interface, endpoint_number)
            host.applications.append(application)
            self.applications.append(application)
        for message in self.ledger.messages:
            self.applications[message.source].plan.append(message)
            self.applications[message.target].expected.append(message)

    def start(self) -> None:
        """Switch on the hosts and start the applications, each a little later than the one before."""
        rng = stream(self.scenario.seed, "start")
        for host in self.hosts:
            host.boot()
        for application in self.applications:
            self.schedule.at(rng.randrange(5 * MILLISECOND), self.start_application, application)
        for host in self.hosts:
            host.step()

    def start_application(self, application: SimulatedApplication) -> None:
        """Start an application, and run its host."""
        application.start()
        application.host.step()

    # Names and addresses.

    def name_of(self, address: bytes) -> str:
        """Return the host name of an interface."""
        host, interface = self.addresses[address]
        return f"host{host}:{interface}"

    def application_at(self, partner: Partner) -> SimulatedApplication | None:
        """Return the application that a partner represents, if any."""
        port = self.addresses.get(partner.peer.address)
        if port is None:
            return None
        for host in self.engines_of(port[0]):
            for application in host.applications:
                if application.interface == port[1] and application.endpoint_number == partner.number:
                    return application
        return None

    def disturbed(self, since: int) -> bool:
        """Return whether an incident was in progress at or after a time."""
        return any(end >= since for _, end, _ in self.disturbances)

    # Events of a run.

    def posted(self, message: PlannedMessage, session: int, remote: int | None) -> None:
        """Record a message that is posted to the engine, and trigger the incidents that are due then."""
        self.ledger.posted(message, session, remote)
        self.incidents.posted(self.ledger.counts["posted"])

    def sent(self, host: int, interface: int, frames: Sequence[bytes] | FrameBatch) -> None:
        """Put frames of a host on the wire."""
        self.digest.frames(self.schedule.now, host, interface, frames)
        if self._local:
            own = self.engines_of(host)[0].addresses
            if any(frame[:ADDRESS_SIZE] in own for frame in frames):
                self.ledger.breach("address", f"host {host} has transmitted a frame to itself", "R-LOC-02")
        for at in (None, host) if self.taps else ():
            if at in self.taps:
                self.taps[at](batch_of(frames, self.schedule.now))
        self.network.send((host, interface), frames)

    def _deliver(self, target: Port, what: list[FrameBatch | bytes]) -> None:
        running = [each for each in self.engines_of(target[0]) if each.node is not None]
        if not running:
            return
        now = self.schedule.now
        batches = batches_of(what, now)
        if target[0] in self.taps:
            for batch in batches:
                self.taps[target[0]](replace(batch_of(batch, now), timestamp_ns=np.full(len(batch), now)))
        for each in running:
            each.deliver(target[1], batches)

    def restarted(self, host: SimulatedHost) -> None:
        """Notify listeners that a host has been switched on again."""
        for listener in self.restart_listeners:
            for address in host.addresses:
                listener(address)


class SimulatedHost(VirtualHost):
    """A host that can be switched off and on."""

    def __init__(self, world: World, number: int, addresses: list[bytes]) -> None:
        super().__init__(world.schedule, partial(world.sent, number), self._dispatch)
        self.world = world
        self.number = number
        self.addresses = addresses
        self.profile = world.scenario.profile_of(number)
        self.applications: list[SimulatedApplication] = []
        self.boots = 0
        self.owners: dict[LibraryEndpoint, SimulatedApplication] = {}
        """Applications by their endpoints, to which events are directed."""

    def boot(self) -> None:
        """Switch on, with empty tables."""
        world, scenario = self.world, self.world.scenario
        rng = self._draws()
        self.boots += 1
        others = [address for address in world.addresses if address not in self.addresses]
        rng.shuffle(others)
        peers: dict[bytes, str | None] = {}
        if scenario.discovery != "announce":
            peers = {each: world.name_of(each) if scenario.discovery == "static" else None for each in others}
        self.start(
            Node(
                self.addresses,
                f"host{self.number}",
                dialect=scenario.dialect,
                profile=self.profile,
                rng=rng,
                peers=peers,
                announce=scenario.discovery == "announce",
                **self._shared(),
            )
        )

    def _draws(self) -> Random:
        return stream(self.world.scenario.seed, "node", self.number, self.boots)

    def _shared(self) -> dict[str, Any]:
        """Return the arguments of a node that shares its interfaces."""
        return {}

    def running_node(self) -> Node | None:
        """Return the node for an application that starts; None while the host is off."""
        return self.node

    def end_application(self, endpoint: EngineEndpoint) -> None:
        """End an application that is killed: the operating system closes its endpoint."""
        endpoint.close()

    @property
    def noticed(self) -> bool:
        """Return whether records of other processes wait."""
        return False

    def take_last_records(self) -> None:
        """Take the records that wait, after all endpoints were closed."""

    def switch_off(self) -> None:
        """Lose all state at once, as in a power failure."""
        for application in self.applications:
            application.die("its host was switched off", closing=False)
        self.stop()
        self.owners.clear()

    def step(self) -> bool:
        """Transmit frames and dispatch events until nothing more happens at this moment, which must come."""
        rests = super().step()
        if not rests:
            self.world.ledger.breach("liveness", f"host {self.number} does not come to rest")
        return rests

    def _dispatch(self, events: Sequence[Event]) -> None:
        for event in events:
            self._note(event)
        for event in events:
            if (application := self._owner(event)) is not None:
                application.hear(event)

    def _note(self, event: Event) -> None:
        """Add an event to the digest and the ledger before any application reacts to related events."""
        self.world.digest.event(self.world.schedule.now, self.number, event)
        application = self._owner(event)
        if application is not None and event.kind in (EventKind.PARTNER_RESTARTED, EventKind.PARTNER_LOST):
            assert event.partner is not None
            application.note(event.kind, event.partner)

    def _owner(self, event: Event) -> SimulatedApplication | None:
        """Return the application that an event is for."""
        endpoint = event.request.endpoint if event.request is not None else None
        if endpoint is None and event.partner is not None:
            endpoint = event.partner.endpoint
        return self.owners.get(endpoint) if endpoint is not None else None


class SimulatedProcess(SimulatedHost):
    """A process of a host, with an engine of its own and channels to the other processes of the host."""

    def __init__(self, world: World, number: int, addresses: list[bytes], process: int, path: SimulatedPath) -> None:
        super().__init__(world, number, addresses)
        self._process = process
        self._path = path
        self._due: int | None = None
        path.on_notice = self._notice
        self._latency = stream(world.scenario.seed, "channel", number, process)

    def boot(self) -> None:
        """Start the process."""
        if self.boots:
            self._path = self._path.successor()
        super().boot()
        self._path.node = self.node

    def _draws(self) -> Random:
        return stream(self.world.scenario.seed, "node", self.number, self.boots, self._process)

    def _shared(self) -> dict[str, Any]:
        return {"sharing": self._path, "path": self._path}

    def running_node(self) -> Node | None:
        """Return the node; the process is started if it was killed, and its host is on."""
        if self.node is None and self.number not in self.world.network.down:
            self.boot()
        return self.node

    def end_application(self, endpoint: EngineEndpoint) -> None:
        """End the process: nothing is closed, and its frames and records that wait are lost."""
        self.switch_off()

    def switch_off(self) -> None:
        """Lose all state at once."""
        super().switch_off()
        self._path.die()
        self._due = None

    @property
    def noticed(self) -> bool:
        """Return whether records of other processes wait."""
        return self._path.busy

    def take_last_records(self) -> None:
        """Take the records that wait, after all endpoints were closed."""
        while self.take_records():
            pass

    def take_records(self) -> bool:
        """Take the records of other processes; return whether there were any."""
        return self._path.receive(self.world.schedule.now)

    def _notice(self, later: bool) -> None:
        """Schedule the receipt of records: after the time that a process needs to wake up."""
        delay = MILLISECOND if later else self._latency.randrange(_WAKE_UP)
        time = self.world.schedule.now + delay
        if self.node is not None and (self._due is None or time < self._due):
            self._due = time
            self.world.schedule.at(time, self._receive, time)

    def _receive(self, time: int) -> None:
        if self._due == time:
            self._due = None
            self.step()


class Incidents:
    """All incidents of a run."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.pending = 0
        """Incidents that were triggered and are not over."""
        self._rng = stream(world.scenario.seed, "incidents")
        self._due: list[tuple[int, str, int]] = []
        last = max(1, world.scenario.messages * 9 // 10)
        for kind in INCIDENTS:
            if count := getattr(world.scenario, kind):
                draws = stream(world.scenario.seed, "incidents", kind)
                self._due += [(draws.randrange(last), kind, draws.getrandbits(32)) for _ in range(count)]
        self._due.sort(reverse=True)
        self.planned = [each for each in world.scenario.faults if each.victim is not None]
        """Planned faults of applications that have not happened yet."""

    def posted(self, count: int) -> None:
        """Trigger the incidents that are due after ``count`` posted messages."""
        while self._due and self._due[-1][0] < count:
            _, kind, draw = self._due.pop()
            self._set_off(kind, draw)

    def reached(self, step: int) -> None:
        """Trigger the planned faults that happen before a step."""
        for fault in [each for each in self.planned if each.place <= step]:
            self.planned.remove(fault)
            assert fault.victim is not None
            application = self.world.applications[fault.victim]
            if fault.kind == "die":
                self._kill(application)
            else:
                self._pause(application)

    def _kill(self, application: SimulatedApplication) -> None:
        now = self.world.schedule.now
        end = now + self.world.scenario.slowest + _BACKLOG
        self._begin(now, end, "kill")
        self._do(application.die, ("it was killed",))
        self._at(end, application.start)
        self.world.schedule.at(end, self._over)

    def _pause(self, application: SimulatedApplication) -> None:
        now = self.world.schedule.now
        self._begin(now, now + _PAUSED, "stall")
        self._do(application.stall, ())
        self._at(now + _PAUSED, application.resume)
        self.world.schedule.at(now + _PAUSED, self._over)

    def _begin(self, start: int, end: int, kind: str) -> None:
        self.pending += 1
        self.world.disturbances.append((start, end, kind))

    def cancel(self) -> None:
        """Discard the incidents that were not triggered yet."""
        self._due.clear()
        self.planned.clear()

    def _set_off(self, kind: str, draw: int) -> None:
        world = self.world
        rng = stream(world.scenario.seed, "incident", kind, draw)
        # Hosts do not fail before all frames in flight have arrived, so that a frame's fate is known when it is sent.
        start = world.schedule.now + world.scenario.slowest + rng.randrange(20 * MILLISECOND)
        lasting = max(_SHORTEST, rng.randrange(world.scenario.incident_longest + 1) >> rng.choice((0, 2, 5)))
        if kind in _RESTARTS:
            # Data packets do not identify the session of their sender, so all packets of one session must have arrived
            # before the next one opens (compare TCP's quiet time).
            lasting = max(lasting, world.scenario.slowest + _BACKLOG)
        end = start + lasting
        host = world.hosts[rng.randrange(len(world.hosts))]
        application = world.applications[rng.randrange(len(world.applications))]
        self._begin(start, end, kind)
        if kind in ("partition", "filter", "mtu"):
            self._in_transit(kind, start, end, draw)
        elif kind == "kill":
            self._at(start, application.die, "it was killed")
            self._at(end, application.start)
        elif kind == "crash":
            if host.number not in world.network.down:
                world.network.down[host.number] = (start, end)
                engines = world.engines_of(host.number)
                for each in engines:
                    world.schedule.at(start, each.switch_off)
                world.schedule.at(end, self._boot, engines)
        elif kind == "stall":
            self._at(start, application.stall)
            self._at(end, application.resume)
        else:
            engines = world.engines_of(host.number)
            self._at(start, self._each, engines, "stall")
            self._at(end, self._each, engines, "resume")
        world.schedule.at(end, self._over)

    def _at(self, time: int, action: object, *details: object) -> None:
        self.world.schedule.at(time, self._do, action, details)

    def _do(self, action: object, details: tuple[object, ...]) -> None:
        action(*details)  # type: ignore[operator]
        for host in self.world.hosts:
            host.step()

    def _over(self) -> None:
        self.pending -= 1

    @staticmethod
    def _each(engines: list[SimulatedHost], what: str) -> None:
        for host in engines:
            for application in host.applications:
                getattr(application, what)()

    def _boot(self, engines: list[SimulatedHost]) -> None:
        """Switch a host on again, and start its applications one by one."""
        del self.world.network.down[engines[0].number]
        for host in engines:
            host.boot()
        self.world.restarted(engines[0])
        for host in engines:
            for application in host.applications:
                delay = self._rng.randrange(100 * MILLISECOND)
                self.world.schedule.after(delay, self.world.start_application, application)
            host.step()

    def _in_transit(self, kind: str, start: int, end: int, draw: int) -> None:
        world = self.world
        rng = stream(world.scenario.seed, "incident", kind, draw, "where")
        incident = Incident(start, end)
        if kind == "partition":
            incident.source, incident.target = rng.sample(range(world.scenario.hosts), 2)
        elif kind == "filter":
            incident.packet_type = rng.choice(_FILTERED)
        else:
            incident.longest = rng.choice((100, 576, 1000, 1400, 1500, 4000))
        world.network.incidents.append(incident)
