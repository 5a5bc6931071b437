"""Where a case is played: two hosts and what lies between them, simulated or live, with one face.

A case is a plain function that calls endpoints and waits. While it waits, the stage turns both hosts: in virtual time
the simulated ones, in real time the live ones. So each case is written once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal

from mxwire.errors import MxwireError
from mxwire.protocol import ALL_BITS, Event, EventKind, Node, Partner, Profile, Request, Status
from mxwire.protocol import Endpoint as EngineEndpoint
from mxwire.simulation.inventory import idle
from mxwire.wire.dialect import Dialect

KEY: Final = 0x12345678
SECOND: Final = 1_000_000_000
PATIENCE: Final = 60.0
"""Seconds of the hosts' own time that a case waits for what should work."""
_EVENTS_KEPT: Final = 200

Introduction = Literal["names", "addresses", "announcements"]
"""How two hosts know each other at first: by name, by address without a name, or not at all."""
Role = Literal["nothing", "echo", "sink", "perf"]
"""What a case needs of the other side: a host alone; an application that answers, that takes, that is omx_perf."""


class Unexpected(Exception):
    """Something has not gone as the case has it; the text says what, in one line."""


class Stalled(Unexpected):
    """What was waited for has not come."""


class Unsuitable(MxwireError):
    """The case cannot be played between these hosts; the text says why."""


@dataclass(frozen=True, slots=True)
class Casting:
    """What one host of a stage is."""

    name: str
    """What it calls itself."""
    dialect: Dialect
    profile: Profile


@dataclass(frozen=True, slots=True)
class Where:
    """An endpoint as others call it."""

    host: str | bytes
    endpoint: int
    key: int = KEY


class Side(ABC):
    """One host of a stage that is ours."""

    def __init__(self, stage: Stage, name: str, profile: Profile, dialect: Dialect) -> None:
        self.stage = stage
        self.name = name
        """What the host calls itself, without the number of its interface."""
        self.profile = profile
        self.dialect = dialect
        self.ends: list[End] = []
        self.applications: list[Application] = []

    @property
    @abstractmethod
    def node(self) -> Node:
        """The engine."""

    @property
    @abstractmethod
    def address(self) -> bytes:
        """The Ethernet address."""

    @abstractmethod
    def push(self) -> None:
        """Let leave what a call has made ready."""

    @abstractmethod
    def reboot(self) -> None:
        """Start anew, with nothing remembered: all endpoints are gone."""

    def open(self, number: int, key: int = KEY) -> End:
        """Open an endpoint."""
        end = End(self, self.node.open_endpoint(number, key))
        self.ends.append(end)
        self.note(f"opens endpoint {number}")
        return end

    def note(self, text: str) -> None:
        """Something that the application of this host does or sees."""
        self.stage.note(f"{self.name}: {text}")

    def heard(self, event: Event) -> None:
        """The engine tells what has happened to peers and partners."""
        if event.kind is EventKind.PEER_NAMED and event.peer is not None:
            self.note(f"{event.peer.name} has told its name")
        elif event.kind in (EventKind.PARTNER_LOST, EventKind.PARTNER_RESTARTED, EventKind.UNDELIVERED):
            self.note(event.kind.value)
        self.stage.told.append((self, event))


class End:
    """An open endpoint, as a case uses it. Nothing here waits but :meth:`connect`, :meth:`wait` and :meth:`ended`."""

    def __init__(self, side: Side, engine: EngineEndpoint) -> None:
        self.side = side
        self.stage = side.stage
        self.engine = engine
        self.number = engine.number

    @property
    def where(self) -> Where:
        """How others call it."""
        return Where(f"{self.side.name}:0", self.number, self.engine.key)

    def ask(self, where: Where, *, key: int | None = None, resends: int | None = None) -> Request:
        """Begin to connect."""
        key = where.key if key is None else key
        request = self.engine.connect(where.host, where.endpoint, key, resend_maximum=resends)
        self.side.push()
        return request

    def connect(self, where: Where) -> Partner:
        """Connect, and want it to succeed."""
        request = self.ask(where)
        self.wait(request, Status.SUCCESS, f"connect to endpoint {where.endpoint}")
        assert request.partner is not None
        return request.partner

    def send(self, partner: Partner, data: Any, match_info: int = 0, **options: Any) -> Request:
        """Begin to send; ``synchronous`` and ``resend_maximum`` are those of the engine."""
        request = self.engine.send(partner, data, match_info, **options)
        self.side.push()
        return request

    def receive(self, length: int, match_info: int = 0, mask: int = ALL_BITS) -> Taken:
        """Post a receive for up to ``length`` bytes."""
        memory = bytearray(length)
        taken = Taken(self.engine.receive(memory, match_info, mask), memory)
        self.side.push()
        return taken

    def wait(self, request: Request | Taken, status: Status | None = Status.SUCCESS, what: str = "") -> Request:
        """Wait until it has ended, and want it to have a status; None: any.

        Raises :class:`Unexpected` where it ends otherwise, :class:`Stalled` where it does not end.
        """
        inner = request.request if isinstance(request, Taken) else request
        what = what or f"{inner.kind.value} of {_size(request)}"
        if not self.stage.until(lambda: inner.done):
            self.side.note(f"{what} has not ended")
            raise Stalled(f"{self.side.name}: {what} has not ended within {self.stage.patience:g} s")
        assert inner.status is not None
        self.side.note(f"{what}: {inner.status.text}")
        if status is not None and inner.status is not status:
            raise Unexpected(f"{self.side.name}: {what} ended as {inner.status.text}, not as {status.text}")
        return inner

    def took(self, taken: Taken, data: bytes | bytearray, status: Status = Status.SUCCESS) -> None:
        """Wait for a receive, and want these bytes of it."""
        self.wait(taken, status)
        stage_wants(
            taken.data == data,
            f"{self.side.name}: {len(data)} bytes were to be received, and these {len(taken.data)} are others",
        )

    def pause(self, paused: bool = True) -> None:
        """Have the application do something else: only the card works (R-GEN-01); or come back."""
        self.engine.progressing = not paused
        self.side.note("does something else" if paused else "comes back")
        if not paused:
            self.engine.progress(self.stage.clock())
            self.side.push()

    def close(self) -> None:
        """Close it, as the end of its process would."""
        self.engine.close()
        self.side.push()
        self.side.note(f"closes endpoint {self.number}")


@dataclass(slots=True)
class Taken:
    """A receive and its memory."""

    request: Request
    memory: bytearray

    @property
    def data(self) -> bytes:
        """What was received."""
        return bytes(self.memory[: self.request.transferred])


def _size(request: Request | Taken) -> str:
    return f"up to {len(request.memory)} bytes" if isinstance(request, Taken) else f"{request.length} bytes"


class Application(ABC):
    """A program on one of our hosts that goes on by itself while the case waits."""

    where: Where

    @abstractmethod
    def turn(self) -> None:
        """Do what there is to do; never waits."""


def stage_wants(condition: bool, text: str) -> None:
    """Raises :class:`Unexpected` with a text unless a condition holds."""
    if not condition:
        raise Unexpected(text)


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

    left: Side
    """Who begins."""

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

    @abstractmethod
    def cut(self, packet_type: int, *places: int, source: Side | None = None) -> None:
        """Lose these frames of a type, counted from 0 from now on."""

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

    def join(self, left: int = 1, right: int = 2) -> Joined:
        """An endpoint on each host, and each connected to the other."""
        one, two = self.left.open(left), self.right.open(right)
        there, back = one.ask(two.where), two.ask(one.where)
        one.wait(there, Status.SUCCESS, f"connect to endpoint {right}")
        two.wait(back, Status.SUCCESS, f"connect to endpoint {left}")
        assert there.partner is not None and back.partner is not None
        return Joined(one, two, there.partner, back.partner)

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
        """Sender, receiver as a partner, and receiver, in both directions."""
        return (self.one, self.to_two, self.two), (self.two, self.to_one, self.one)
