"""A host of the simulation: its node, its applications, and its timer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mxwire.frames import FrameBatch
from mxwire.protocol import EngineEndpoint, Event, EventKind, Node
from mxwire.protocol.library.partner import LibraryEndpoint
from mxwire.simulation.randomness import stream
from mxwire.units import MILLISECOND

if TYPE_CHECKING:
    from mxwire.simulation.application import SimulatedApplication
    from mxwire.simulation.world import World

_ROUNDS_MAXIMUM = 1000
"""Rounds at one moment of virtual time; a host that is still busy after them never comes to rest."""


class SimulatedHost:
    """A host that can be switched off and on."""

    def __init__(self, world: World, number: int, addresses: list[bytes]) -> None:
        self.world = world
        self.number = number
        self.addresses = addresses
        self.profile = world.scenario.profile_of(number)
        self.node: Node | None = None
        """None while it is off."""
        self.applications: list[SimulatedApplication] = []
        self.boots = 0
        self._owners: dict[LibraryEndpoint, SimulatedApplication] = {}
        self._armed: int | None = None
        self._stepping = False

    def boot(self) -> None:
        """Switch on, with empty tables."""
        world, scenario = self.world, self.world.scenario
        rng = stream(scenario.seed, "node", self.number, self.boots)
        self.boots += 1
        others = [address for address in world.addresses if address not in self.addresses]
        rng.shuffle(others)
        peers: dict[bytes, str | None] = {}
        if scenario.discovery != "announce":
            peers = {each: world.name_of(each) if scenario.discovery == "static" else None for each in others}
        self.node = Node(
            self.addresses,
            f"host{self.number}",
            dialect=scenario.dialect,
            profile=self.profile,
            rng=rng,
            peers=peers,
            announce=scenario.discovery == "announce",
        )

    def switch_off(self) -> None:
        """Lose all state at once, as in a power failure."""
        for application in self.applications:
            application.die("its host was switched off", closing=False)
        self.node = None
        self._owners.clear()
        self._armed = None

    def own(self, endpoint: EngineEndpoint, application: SimulatedApplication) -> None:
        """Direct the events of an endpoint to an application."""
        self._owners[endpoint] = application

    def disown(self, endpoint: EngineEndpoint) -> None:
        """Discard the events of an endpoint from now on."""
        self._owners.pop(endpoint, None)

    def deliver(self, interface: int, batches: list[FrameBatch]) -> None:
        """Take frames from the network."""
        node = self.node
        if node is None:
            return
        now = self.world.schedule.now
        for batch in batches:
            node.receive(batch, now, interface)
        self.step()

    def step(self) -> None:
        """Transmit frames and dispatch events until nothing more happens at this moment."""
        node, now = self.node, self.world.schedule.now
        if node is None or self._stepping:
            return
        self._stepping = True
        try:
            for _ in range(_ROUNDS_MAXIMUM):
                busy = False
                for interface in range(len(node.interfaces)):
                    batch = node.transmit(now, interface)
                    if len(batch):
                        busy = True
                        self.world.sent(self.number, interface, batch)
                events = node.events()
                for event in events:
                    self._note(event)
                for event in events:
                    busy = True
                    self._dispatch(event)
                if not busy:
                    break
            else:
                self.world.ledger.breach("liveness", f"host {self.number} does not come to rest")
        finally:
            self._stepping = False
        self._arm()

    def _note(self, event: Event) -> None:
        """Add an event to the digest and the ledger, before any application draws conclusions from related events."""
        self.world.digest.event(self.world.schedule.now, self.number, event)
        application = self._owner(event)
        if application is not None and event.kind in (EventKind.PARTNER_RESTARTED, EventKind.PARTNER_LOST):
            assert event.partner is not None
            application.note(event.kind, event.partner)

    def _dispatch(self, event: Event) -> None:
        application = self._owner(event)
        if application is not None:
            application.hear(event)

    def _owner(self, event: Event) -> SimulatedApplication | None:
        """Return the application that an event is for."""
        endpoint = event.request.endpoint if event.request is not None else None
        if endpoint is None and event.partner is not None:
            endpoint = event.partner.endpoint
        return self._owners.get(endpoint) if endpoint is not None else None

    def _arm(self) -> None:
        """Schedule the next step for the deadline of the node."""
        assert self.node is not None
        deadline = self.node.deadline()
        if deadline is None:
            return
        now = self.world.schedule.now
        # An overdue action waits for room in the event ring of a stalled application: try again every millisecond.
        time = deadline if deadline > now else now + MILLISECOND
        if self._armed is None or time < self._armed:
            self._armed = time
            self.world.schedule.at(time, self._wake, time)

    def _wake(self, time: int) -> None:
        if self._armed == time:
            self._armed = None
            self.step()


def batches_of(what: list[FrameBatch | bytes], now: int) -> list[FrameBatch]:
    """Return batches in the given order; consecutive single frames become one batch."""
    found: list[FrameBatch] = []
    singles: list[bytes] = []
    for each in what:
        if isinstance(each, bytes):
            singles.append(each)
            continue
        if singles:
            found.append(FrameBatch.from_frames(singles, [now] * len(singles)))
            singles = []
        found.append(each)
    if singles:
        found.append(FrameBatch.from_frames(singles, [now] * len(singles)))
    return found
