"""Where a case is played: two hosts and what lies between them, simulated or live, with one face.

A case is a plain function that calls endpoints and waits. While it waits, the stage turns both hosts: in virtual time
the simulated ones, in real time the live ones. So each case is written once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Final

from mxwire.interop.casting import Role, Where
from mxwire.interop.side import Application, End, Side
from mxwire.protocol import Event, Partner, Status
from mxwire.simulation.inventory import idle
from mxwire.units import SECOND
from mxwire.wire.codec import TYPE_OFFSET

PATIENCE: Final = 60.0
"""Seconds of the hosts' own time that a case waits for what should work."""
_EVENTS_KEPT: Final = 200
_HELLO: Final = b"is there"


@dataclass(slots=True)
class Recorded:
    """A frame that was sent."""

    time_ns: int
    frame: bytes
    arrival_ns: int | None = None
    """When it reaches its destination, :data:`~mxwire.rules.LOST` if never, None where that is not known."""
    copies: int = 1


@dataclass(slots=True)
class Told:
    """What the applications did and saw."""

    lines: list[str] = field(default_factory=list)
    left_out: int = 0

    def add(self, line: str) -> None:
        """Keep a line, unless there are too many."""
        if len(self.lines) < _EVENTS_KEPT:
            self.lines.append(line)
        else:
            self.left_out += 1


class Stage(ABC):
    """Two hosts and a link. ``patience`` is how many seconds, of their own time, a case waits for anything."""

    live: ClassVar[bool] = False

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        self.frames: list[Recorded] = []
        """All frames, as they were sent."""
        self.events = Told()
        self.told: list[tuple[Side, Event]] = []
        """What the engines told of peers and partners."""
        self.applications: list[Application] = []
        self.roles: dict[Role, Where] = {}
        """Which programs run on the right host, and where."""

    left: Side
    """Who begins."""

    @property
    def right_is_ours(self) -> bool:
        """Whether a case may open endpoints on the right host; if not, all that it has there are programs."""
        return True

    @property
    @abstractmethod
    def right(self) -> Side:
        """The other host; raises :class:`Unsuitable` where it is not ours."""

    @abstractmethod
    def clock(self) -> int:
        """The time of the hosts in ns."""

    @abstractmethod
    def turn(self, limit: int) -> bool:
        """Let the next thing happen, at ``limit`` at the latest; False where nothing will until then."""

    def has(self, role: Role) -> bool:
        """Whether there is, or can be, a program on the right host that plays a role."""
        return True

    @property
    def right_address(self) -> bytes:
        """The Ethernet address of the right host."""
        return self.right.address

    @abstractmethod
    def cut(self, packet_type: int, *places: int, source: bytes | None = None) -> None:
        """Lose these frames of a type, counted from 0 from now on; with ``source`` only of the host with that Ethernet
        address."""

    def cut_each_way(self, packet_type: int, *places: int) -> None:
        """Lose frames where a host of ours sends to another; where an echo answers, also of what comes back."""
        for source in (None,) if self.right_is_ours else (self.left.address, self.right_address):
            self.cut(packet_type, *places, source=source)

    def was_sent(self, packet_type: int, since: int) -> bool:
        """Whether a frame of a type was among those after the first ``since``."""
        return any(each.frame[TYPE_OFFSET] == packet_type for each in self.frames[since:])

    def look_at(self, time: int) -> None:  # noqa: B027 - a live stage looks at its applications often enough
        """Have the applications turned at ``time`` on the clock, even if nothing else happens then."""

    @abstractmethod
    def close(self) -> None:
        """Give everything back."""

    @property
    def started(self) -> int:
        """When it began, on its clock."""
        return self._started

    _started = 0

    def note(self, text: str) -> None:
        """Keep what an application did or saw, with the time."""
        self.events.add(f"{(self.clock() - self._started) / 1e6:.3f} ms {text}")

    def until(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        """Turn the hosts until a condition holds, at most for so many seconds (the patience, unless given); whether
        it holds."""
        limit = self.clock() + round((self.patience if seconds is None else seconds) * SECOND)
        while not condition():
            if not self.turn(limit):
                return condition()
            for each in self.applications:
                each.turn()
        return True

    def let_pass(self, seconds: float) -> None:
        """Turn the hosts for so long."""
        self.until(lambda: False, seconds)

    def far(self, role: Role) -> Where:
        """An application on the right host in a role that the case needs; ours is started, an external one is there."""
        found = self.roles.get(role)
        if found is None:
            from mxwire.interop.applications import start

            application = start(self.right, role)
            self.applications.append(application)
            found = self.roles[role] = application.where
        return found

    def returns_content(self, partner: Partner | None) -> bool:
        """Whether the content of a message from ``partner`` is known: it is not that of what was sent to it where
        ``partner`` is a program that answers from memory of its own."""
        return partner is None or not any(
            each.answer == "length" and each.endpoint == partner.number and self.right_address == partner.peer.address
            for each in self.roles.values()
        )

    def anywhere(self) -> Where:
        """An open endpoint on the right host, whatever program has it."""
        return self.far("perf" if self.has("perf") and not self.has("echo") else "echo")

    def restart(self, role: Role) -> Where:
        """End the program on the right host that plays a role, and start it again."""
        where = self.roles.pop(role)
        for each in [each for each in self.applications if each.where == where]:
            self.applications.remove(each)
            each.end.close()
        return self.far(role)

    def join(self, left: int = 1, right: int = 2) -> Joined:
        """An endpoint on each host, and each connected to the other.

        Where the right host is not ours, its echo stands for the second endpoint: what is sent to it comes to the
        first one.
        """
        if not self.right_is_ours:
            return self._join_echo(left)
        one, two = self.left.open(left), self.right.open(right)
        there, back = one.ask(two.where), two.ask(one.where)
        one.wait(there, Status.SUCCESS, f"connect to endpoint {right}")
        two.wait(back, Status.SUCCESS, f"connect to endpoint {left}")
        assert there.partner is not None and back.partner is not None
        return Joined(one, two, there.partner, back.partner)

    def _join_echo(self, left: int) -> Joined:
        where = self.far("echo")
        end = self.left.open(left)
        partner = end.connect(where)
        # The echo connects back before its first answer.
        taken = end.receive(len(_HELLO))
        end.send(partner, _HELLO)
        end.took(taken, _HELLO)
        self.settle()
        return Joined(end, end, partner, partner)

    def settle(self, seconds: float = 5.0) -> None:
        """Wait until all that was sent is acknowledged; says nothing where it is not."""
        self.until(lambda: all(idle(each.node) for each in self.sides), seconds)

    @property
    @abstractmethod
    def sides(self) -> tuple[Side, ...]:
        """The hosts that are ours."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Two endpoints, and what each is to the other."""

    one: End
    two: End
    to_two: Partner
    to_one: Partner

    def ways(self) -> tuple[tuple[End, Partner, End], ...]:
        """Sender, receiver as a partner, and receiver, in both directions; there is one where an echo answers."""
        if self.one is self.two:
            return ((self.one, self.to_two, self.one),)
        return (self.one, self.to_two, self.two), (self.two, self.to_one, self.one)
