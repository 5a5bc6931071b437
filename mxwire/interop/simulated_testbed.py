"""The simulated testbed: two nodes, a seeded network and virtual time. The same seed always gives the same frames."""

from __future__ import annotations

from collections.abc import Sequence

from mxwire.frames import FrameBatch
from mxwire.interop.impairments import Cut, Treatment
from mxwire.interop.roles import HostSetup, Introduction
from mxwire.interop.testbed import PATIENCE, RecordedFrame, Testbed, TestbedSide
from mxwire.protocol import Event, Node
from mxwire.rules import LOST
from mxwire.simulation.network import LOST as NEVER
from mxwire.simulation.network import Incident, Network, Port
from mxwire.simulation.randomness import stream
from mxwire.simulation.scenario import Scenario
from mxwire.simulation.schedule import FOREVER, Schedule
from mxwire.simulation.virtual_host import VirtualHost, batches_of


class _CutIncident(Incident):
    """Drops the frames that a case has chosen."""

    def __init__(self, cut: Cut) -> None:
        super().__init__(0, FOREVER)
        self._cut = cut

    def hits(self, now: int, source: int, target: int, frame: bytes) -> bool:
        """Return whether the frame is one of them."""
        return self._cut.takes(frame)


class SimulatedSide(TestbedSide):
    """A node in virtual time."""

    def __init__(self, testbed: SimulatedTestbed, number: int, casting: HostSetup, introduction: Introduction) -> None:
        super().__init__(testbed, casting.name, casting.profile, casting.dialect)
        self._testbed = testbed
        self._number = number
        self._introduction = introduction
        self._boots = 0
        self.host = VirtualHost(
            testbed.schedule, lambda _, frames: testbed.network.send((number, 0), frames), self._hear
        )
        self.boot()

    @property
    def node(self) -> Node:
        """The engine."""
        assert self.host.node is not None
        return self.host.node

    @property
    def address(self) -> bytes:
        """The Ethernet address."""
        return address_of(self._number)

    def boot(self) -> None:
        """Start a node."""
        known = None
        if self._introduction != "announcements":
            other = 1 - self._number
            name = self._testbed.castings[other].name
            known = {address_of(other): f"{name}:0" if self._introduction == "names" else None}
        rng = stream(self._testbed.seed, "node", self._number, self._boots)
        self._boots += 1
        self.host.start(
            Node(
                self.address,
                self.name,
                dialect=self.dialect,
                profile=self.profile,
                rng=rng,
                peers=known,
                announce=self._introduction == "announcements",
            )
        )

    def push(self) -> None:
        """Transmit until the node has nothing more to send at this time."""
        self.host.step()

    def _hear(self, events: Sequence[Event]) -> None:
        for event in events:
            self.heard(event)


class SimulatedTestbed(Testbed):
    """Two simulated hosts, the first of which is called left, and ``others`` that are not part of cases."""

    def __init__(
        self,
        left: HostSetup,
        right: HostSetup,
        treatment: Treatment,
        seed: int,
        *,
        introduction: Introduction = "names",
        patience: float = PATIENCE,
        others: tuple[HostSetup, ...] = (),
    ) -> None:
        super().__init__(patience)
        self.seed = seed
        self.castings = (left, right, *others)
        self.schedule = Schedule()
        scenario = Scenario(
            seed=seed,
            loss=treatment.loss,
            duplicate=treatment.duplicate,
            reorder=treatment.reorder,
            delay=treatment.delay_ns + treatment.added_ns,
        )
        ports: dict[bytes, Port] = {address_of(number): (number, 0) for number in range(len(self.castings))}
        self.slowest = scenario.slowest
        """Maximum delay of a frame in ns."""
        self.network = Network(scenario, self.schedule, ports, self._deliver)
        self.network.faults_until = FOREVER
        self.network.observers.append(self._record)
        self._hosts: tuple[SimulatedSide, ...] = tuple(
            SimulatedSide(self, number, casting, introduction) for number, casting in enumerate(self.castings)
        )
        for each in self._hosts:
            each.push()

    def clock(self) -> int:
        """The virtual time in ns."""
        return self.schedule.now

    def turn(self, limit: int) -> bool:
        """Process the next event, or advance the time."""
        schedule = self.schedule
        if schedule.step(limit):
            return True
        schedule.now = max(schedule.now, limit)
        return False

    def cut(self, packet_type: int, *places: int, source: bytes | None = None) -> None:
        """Drop these frames of a type, counted from 0 from now on."""
        chosen = Cut(packet_type, frozenset(places), source)
        self.network.incidents.append(_CutIncident(chosen))

    def schedule_turn(self, time: int) -> None:
        """Have the applications driven at ``time``."""
        self.schedule.at(time, _nothing)

    def close(self) -> None:
        """Do nothing: there are no resources to release."""

    def _deliver(self, target: Port, what: list[FrameBatch | bytes]) -> None:
        self._hosts[target[0]].host.deliver(0, batches_of(what, self.schedule.now))

    def _record(self, frame: bytes, arrival: int, arrivals: int) -> None:
        self.frames.append(RecordedFrame(self.schedule.now, frame, LOST if arrival == NEVER else arrival, arrivals))


def _nothing() -> None:
    """Let virtual time reach the scheduled moment."""


def address_of(number: int) -> bytes:
    """Return the Ethernet address of a simulated host."""
    return bytes((0x02, 0, 0, 0, 0, number + 1))
