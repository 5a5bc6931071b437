"""A host of the simulation: its node, its applications, and when it has to be looked after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mxwire.frames import FrameBatch
from mxwire.protocol import Endpoint, Event, EventKind, Node
from mxwire.simulation.randomness import stream
from mxwire.units import MILLISECOND

if TYPE_CHECKING:
    from mxwire.simulation.application import Application
    from mxwire.simulation.world import World

_ROUNDS_MAXIMUM = 1000
"""A host that goes on sending and telling at one moment is broken."""


class Host:
    """A host that may be switched off and on."""

    def __init__(self, world: World, number: int, addresses: list[bytes]) -> None:
        self.world = world
        self.number = number
        self.addresses = addresses
        self.profile = world.scenario.profile_of(number)
        self.node: Node | None = None
        """None while it is off."""
        self.applications: list[Application] = []
        self.boots = 0
        self._owners: dict[Endpoint, Application] = {}
        self._armed: int | None = None
        self._stepping = False

    def boot(self) -> None:
        """Switch on, with nothing remembered."""
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
        """Lose everything at once."""
        for application in self.applications:
            application.die("its host was switched off", closing=False)
        self.node = None
        self._owners.clear()
        self._armed = None

    def own(self, endpoint: Endpoint, application: Application) -> None:
        """Remember who is told of an endpoint's events."""
        self._owners[endpoint] = application

    def disown(self, endpoint: Endpoint) -> None:
        """Nobody is told of an endpoint's events any more."""
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
        """Let the node send and the applications hear until nothing happens any more at this moment."""
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
                    self._tell(event)
                if not busy:
                    break
            else:
                self.world.ledger.breach("liveness", f"host {self.number} does not come to rest")
        finally:
            self._stepping = False
        self._arm()

    def _note(self, event: Event) -> None:
        """Note what concerns promises, before anybody draws conclusions from what goes with it."""
        self.world.digest.event(self.world.schedule.now, self.number, event)
        application = self._owner(event)
        if application is not None and event.kind in (EventKind.PARTNER_RESTARTED, EventKind.PARTNER_LOST):
            assert event.partner is not None
            application.note(event.kind, event.partner)

    def _tell(self, event: Event) -> None:
        application = self._owner(event)
        if application is not None:
            application.hear(event)

    def _owner(self, event: Event) -> Application | None:
        """The application that an event is for."""
        endpoint = event.request.endpoint if event.request is not None else None
        if endpoint is None and event.partner is not None:
            endpoint = event.partner.endpoint
        return self._owners.get(endpoint) if endpoint is not None else None

    def _arm(self) -> None:
        """Have the host woken when its node wants it."""
        assert self.node is not None
        deadline = self.node.deadline()
        if deadline is None:
            return
        now = self.world.schedule.now
        # What is due and cannot be done now waits for room in the ring of an application that sleeps.
        time = deadline if deadline > now else now + MILLISECOND
        if self._armed is None or time < self._armed:
            self._armed = time
            self.world.schedule.at(time, self._wake, time)

    def _wake(self, time: int) -> None:
        if self._armed == time:
            self._armed = None
            self.step()


def batches_of(what: list[FrameBatch | bytes], now: int) -> list[FrameBatch]:
    """Single frames that follow each other are one batch."""
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
