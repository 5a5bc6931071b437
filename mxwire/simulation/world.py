"""The world of one run: hosts, applications, network, time and ledger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mxwire.frames import FrameBatch
from mxwire.protocol import Partner
from mxwire.simulation.application import SimulatedApplication
from mxwire.simulation.digest import Digest
from mxwire.simulation.host import SimulatedHost, batches_of
from mxwire.simulation.incidents import Incidents
from mxwire.simulation.ledger import Ledger
from mxwire.simulation.network import Network, Port
from mxwire.simulation.promises import fallen
from mxwire.simulation.randomness import stream
from mxwire.simulation.receiver import Buffers
from mxwire.simulation.scenario import Scenario
from mxwire.simulation.schedule import Schedule
from mxwire.simulation.workload import PlannedMessage
from mxwire.simulation.workload import plan as plan_messages
from mxwire.units import MILLISECOND, SECOND

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
        if scenario.pause or scenario.stall:
            late += scenario.incident_longest
        self.ledger = Ledger(scenario.seed, messages, self.schedule, fallen(scenario), late)
        self.network = Network(scenario, self.schedule, self.addresses, self._deliver)
        self.hosts = [self._host(number) for number in range(scenario.hosts)]
        self.applications: list[SimulatedApplication] = []
        self._make_applications(count)
        self.incidents = Incidents(self)
        self.restart_listeners: list[Callable[[bytes], None]] = []
        self._tap = tap
        self._at = at

    def _host(self, number: int) -> SimulatedHost:
        return SimulatedHost(self, number, [address for address, port in self.addresses.items() if port[0] == number])

    def _make_applications(self, count: int) -> None:
        rng = stream(self.scenario.seed, "applications")
        for number in range(count):
            host = self.hosts[number % self.scenario.hosts]
            interface = rng.randrange(self.scenario.interfaces)
            taken = {each.endpoint_number for each in host.applications}
            endpoint_number = rng.choice([each for each in (0, 1, 2, 5, 30) if each not in taken])
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
            self.schedule.at(rng.randrange(5 * MILLISECOND), self._start, application)
        for host in self.hosts:
            host.step()

    def _start(self, application: SimulatedApplication) -> None:
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
        for application in self.hosts[port[0]].applications:
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

    def sent(self, host: int, interface: int, batch: FrameBatch) -> None:
        """Put frames of a host on the wire."""
        self.digest.frames(self.schedule.now, host, interface, batch)
        if self._tap is not None and self._at in (None, host):
            self._tap(batch)
        self.network.send((host, interface), batch)

    def _deliver(self, target: Port, what: list[FrameBatch | bytes]) -> None:
        host = self.hosts[target[0]]
        if host.node is None:
            return
        batches = batches_of(what, self.schedule.now)
        if self._tap is not None and self._at == host.number:
            for batch in batches:
                self._tap(replace(batch, timestamp_ns=np.full(len(batch), self.schedule.now)))
        host.deliver(target[1], batches)

    def restarted(self, host: SimulatedHost) -> None:
        """Notify listeners that a host has been switched on again."""
        for listener in self.restart_listeners:
            for address in host.addresses:
                listener(address)
