"""Incidents of hosts, applications and network: drawn from the seed, triggered by the number of posted messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mxwire.simulation.network import Incident
from mxwire.simulation.randomness import stream
from mxwire.simulation.scenario import INCIDENTS
from mxwire.units import MILLISECOND
from mxwire.wire.enums import PacketType

if TYPE_CHECKING:
    from mxwire.simulation.application import SimulatedApplication
    from mxwire.simulation.host import SimulatedHost
    from mxwire.simulation.world import World

_FILTERED: Final = tuple(
    each for each in PacketType if each in (PacketType.HOST_QUERY, PacketType.HOST_REPLY) or each >= PacketType.TRUC
)
_SHORTEST: Final = MILLISECOND
_RESTARTS: Final = ("kill", "crash")
_BACKLOG: Final = 100 * MILLISECOND
"""Time after which the frames that a host has transmitted, and that still wait for the link, have left it."""


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
            draws = stream(world.scenario.seed, "incidents", kind)
            for _ in range(getattr(world.scenario, kind)):
                self._due.append((draws.randrange(last), kind, draws.getrandbits(32)))
        self._due.sort(reverse=True)

    def posted(self, count: int) -> None:
        """Trigger the incidents that are due after ``count`` posted messages."""
        while self._due and self._due[-1][0] < count:
            _, kind, draw = self._due.pop()
            self._set_off(kind, draw)

    def cancel(self) -> None:
        """Discard the incidents that were not triggered yet."""
        self._due.clear()

    def _set_off(self, kind: str, draw: int) -> None:
        world = self.world
        rng = stream(world.scenario.seed, "incident", kind, draw)
        # Hosts do not fail before all frames in flight have arrived, so that a frame's fate is known when it is sent.
        start = world.schedule.now + world.scenario.slowest + rng.randrange(20 * MILLISECOND)
        lasting = max(_SHORTEST, rng.randrange(world.scenario.incident_longest + 1) >> rng.choice((0, 2, 5)))
        if kind in _RESTARTS:
            # Data packets do not distinguish two openings of their sender: packets of the former opening must have
            # arrived when the next one begins, like TCP's quiet time.
            lasting = max(lasting, world.scenario.slowest + _BACKLOG)
        end = start + lasting
        host = world.hosts[rng.randrange(len(world.hosts))]
        application = world.applications[rng.randrange(len(world.applications))]
        self.pending += 1
        world.disturbances.append((start, end, kind))
        if kind in ("partition", "filter", "mtu"):
            self._on_the_way(kind, start, end, draw)
        elif kind == "kill":
            self._at(start, application.die, "it was killed")
            self._at(end, application.start)
        elif kind == "crash":
            if host.number not in world.network.down:
                world.network.down[host.number] = (start, end)
                world.schedule.at(start, host.switch_off)
                world.schedule.at(end, self._boot, host)
        elif kind == "stall":
            self._at(start, application.stall)
            self._at(end, application.resume)
        else:
            self._at(start, self._each, host, "stall")
            self._at(end, self._each, host, "resume")
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
    def _each(host: SimulatedHost, what: str) -> None:
        for application in host.applications:
            getattr(application, what)()

    def _boot(self, host: SimulatedHost) -> None:
        """Switch a host on again, and start its applications one by one."""
        del self.world.network.down[host.number]
        host.boot()
        self.world.restarted(host)
        for application in host.applications:
            self.world.schedule.after(self._rng.randrange(100 * MILLISECOND), self._start, application)
        host.step()

    def _start(self, application: SimulatedApplication) -> None:
        application.start()
        application.host.step()

    def _on_the_way(self, kind: str, start: int, end: int, draw: int) -> None:
        world = self.world
        rng = stream(world.scenario.seed, "incident", kind, draw, "where")
        incident = Incident(start, end)
        if kind == "partition":
            incident.source, incident.target = rng.sample(range(len(world.hosts)), 2)
        elif kind == "filter":
            incident.packet_type = rng.choice(_FILTERED)
        else:
            incident.longest = rng.choice((100, 576, 1000, 1400, 1500, 4000))
        world.network.incidents.append(incident)
