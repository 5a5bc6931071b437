"""Testbeds: two hosts and the link between them, simulated or live, with one interface.

A case is a plain function that calls endpoints and waits. While it waits, the testbed drives both hosts: simulated ones
in virtual time, live ones in real time. Each case is therefore written once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from mxwire.interop.roles import EndpointAddress, Role, UnexpectedResult, UnplayableCase, WaitTimeout, require
from mxwire.protocol import ALL_BITS, EngineEndpoint, Event, EventKind, Node, Partner, Profile, Request, Status
from mxwire.simulation.inventory import idle
from mxwire.units import SECOND
from mxwire.wire.dialect import Dialect
from mxwire.wire.layout import TYPE_OFFSET
from mxwire.wire.numbers import DEFAULT_KEY
from mxwire.words import count_of

PATIENCE: Final = 60.0
"""Seconds of the hosts' own time that a case waits for an event that should occur."""
_EVENTS_KEPT: Final = 200
_HELLO: Final = b"is there"


@dataclass(slots=True)
class RecordedFrame:
    """A transmitted frame."""

    time_ns: int
    frame: bytes
    arrival_ns: int | None = None
    """Time of arrival, :data:`~mxwire.rules.LOST` if never, None if not known."""
    arrivals: int = 1


@dataclass(slots=True)
class EventLog:
    """Actions and observations of the applications."""

    lines: list[str] = field(default_factory=list)
    left_out: int = 0

    def add(self, line: str) -> None:
        """Add a line, unless there are too many."""
        if len(self.lines) < _EVENTS_KEPT:
            self.lines.append(line)
        else:
            self.left_out += 1


class Testbed(ABC):
    """Two hosts and a link. ``patience`` is the time in seconds, by their clock, that a case waits for an event."""

    live: ClassVar[bool] = False

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        self.started = 0
        """Time of the start, on the testbed's clock."""
        self.frames: list[RecordedFrame] = []
        """All frames, as transmitted."""
        self.events = EventLog()
        self.reboots: list[tuple[int, bytes]] = []
        """Restarts of hosts: number of frames before each, and address."""
        self.reports: list[tuple[TestbedSide, Event]] = []
        """Events of the engines about peers and partners."""
        self.applications: list[SideProgram] = []
        self.roles: dict[Role, EndpointAddress] = {}
        """Programs running on the right host, with their addresses."""

    _hosts: Sequence[TestbedSide]

    @property
    def sides(self) -> tuple[TestbedSide, ...]:
        """The hosts of mxwire."""
        return tuple(self._hosts)

    @property
    def left(self) -> TestbedSide:
        """The initiator."""
        return self._hosts[0]

    @property
    def right(self) -> TestbedSide:
        """The responder; raises :class:`UnplayableCase` if it is external."""
        if len(self._hosts) < 2:
            raise UnplayableCase("the case must control both hosts, and the one on the right is external")
        return self._hosts[1]

    @property
    def right_is_controlled(self) -> bool:
        """True if a case may open endpoints on the right host; otherwise it can only use programs there."""
        return True

    @abstractmethod
    def clock(self) -> int:
        """The time of the hosts in ns."""

    @abstractmethod
    def turn(self, limit: int) -> bool:
        """Process the next event until ``limit``; return False if there is none."""

    def has(self, role: Role) -> bool:
        """Return whether a program with a role is available on the right host."""
        return True

    @property
    def right_address(self) -> bytes:
        """The Ethernet address of the right host."""
        return self.right.address

    @abstractmethod
    def cut(self, packet_type: int, *places: int, source: bytes | None = None) -> None:
        """Drop these frames of a type, counted from 0 from now on.

        With ``source``, drop only frames of the host with that Ethernet address.
        """

    def cut_each_way(self, packet_type: int, *places: int) -> None:
        """Drop frames from each host of mxwire to the other; if an echo answers, also frames of its answers."""
        # An echo answers each frame with one of the same type, so that places must be counted for each host.
        for source in (None,) if self.right_is_controlled else (self.left.address, self.right_address):
            self.cut(packet_type, *places, source=source)

    def was_sent(self, packet_type: int, since: int) -> bool:
        """Return whether a frame of a type was sent after the first ``since`` frames."""
        return any(each.frame[TYPE_OFFSET] == packet_type for each in self.frames[since:])

    def schedule_turn(self, time: int) -> None:  # noqa: B027 - a live testbed looks at its applications often enough
        """Have the applications driven at ``time`` on the clock, even if there is no other event then."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources."""

    def note(self, text: str) -> None:
        """Record an action or observation of an application, with the time."""
        self.events.add(f"{(self.clock() - self.started) / 1e6:.3f} ms {text}")

    def until(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        """Drive the hosts until a condition holds, at most for ``seconds`` (by default the patience); return whether it
        holds."""
        limit = self.clock() + round((self.patience if seconds is None else seconds) * SECOND)
        while not condition():
            # Checked once more: the last event before the limit may have fulfilled it.
            if not self.turn(limit):
                return condition()
            for each in self.applications:
                each.turn()
        return True

    def sleep(self, seconds: float) -> None:
        """Drive the hosts for some seconds."""
        self.until(lambda: False, seconds)

    def program(self, role: Role) -> EndpointAddress:
        """Return the address of a program on the right host with a role; start it on hosts of mxwire."""
        found = self.roles.get(role)
        if found is None:
            from mxwire.interop.programs import start

            application = start(self.right, role)
            self.applications.append(application)
            found = self.roles[role] = application.where
        return found

    def returns_content(self, partner: Partner | None) -> bool:
        """Return whether the content of messages from ``partner`` is known.

        It is not if ``partner`` is a program that answers from a buffer of its own.
        """
        return partner is None or not any(
            each.answer == "length" and each.endpoint == partner.number and self.right_address == partner.peer.address
            for each in self.roles.values()
        )

    def any_program(self) -> EndpointAddress:
        """Return the address of an open endpoint on the right host, whichever program opened it."""
        # Any open endpoint will do; hosts with Open-MX often have omx_perf only.
        return self.program("perf" if self.has("perf") and not self.has("echo") else "echo")

    def restart(self, role: Role) -> EndpointAddress:
        """Restart the program with a role on the right host."""
        where = self.roles.pop(role)
        for each in [each for each in self.applications if each.where == where]:
            self.applications.remove(each)
            each.end.close()
        return self.program(role)

    def join(self, left: int = 1, right: int = 2) -> JoinedEndpoints:
        """Return an endpoint on each host, each connected to the other.

        If the right host is external, its echo stands for the second endpoint: messages to it return to the first one.
        """
        if not self.right_is_controlled:
            return self._join_echo(left)
        one, two = self.left.open(left), self.right.open(right)
        there, back = one.ask(two.where), two.ask(one.where)
        one.wait(there, Status.SUCCESS, f"connect to endpoint {right}")
        two.wait(back, Status.SUCCESS, f"connect to endpoint {left}")
        assert there.partner is not None and back.partner is not None
        return JoinedEndpoints(one, two, there.partner, back.partner)

    def _join_echo(self, left: int) -> JoinedEndpoints:
        where = self.program("echo")
        end = self.left.open(left)
        partner = end.connect(where)
        # The echo connects back before its first answer.
        posted = end.receive(len(_HELLO))
        end.send(partner, _HELLO)
        end.took(posted, _HELLO)
        self.settle()
        return JoinedEndpoints(end, end, partner, partner)

    def settle(self, seconds: float = 5.0) -> None:
        """Wait until all messages are acknowledged; a timeout is not an error."""
        self.until(lambda: all(idle(each.node) for each in self.sides), seconds)


@dataclass(frozen=True, slots=True)
class JoinedEndpoints:
    """Two endpoints, and the partner that each has in the other."""

    one: CaseEndpoint
    two: CaseEndpoint
    to_two: Partner
    to_one: Partner

    def ways(self) -> tuple[tuple[CaseEndpoint, Partner, CaseEndpoint], ...]:
        """Sender, receiver as a partner, and receiver, in both directions; only one direction if an echo answers."""
        # With an echo, the message to it returns: a second direction would be the same again.
        if self.one is self.two:
            return ((self.one, self.to_two, self.one),)
        return (self.one, self.to_two, self.two), (self.two, self.to_one, self.one)

    def exchange(self, content: bytes, room: int = 16) -> None:
        """Send a message in each direction, into a buffer of ``room`` bytes."""
        for sender, partner, receiver in self.ways():
            posted = receiver.receive(room)
            sender.send(partner, content)
            receiver.took(posted, content)


class TestbedSide(ABC):
    """One host of mxwire on a testbed."""

    def __init__(self, testbed: Testbed, name: str, profile: Profile, dialect: Dialect) -> None:
        self.testbed = testbed
        self.name = name
        """Host name, without the number of the interface."""
        self.profile = profile
        self.dialect = dialect
        self.ends: list[CaseEndpoint] = []
        self.applications: list[SideProgram] = []

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
        """Transmit the frames queued by a call."""

    @abstractmethod
    def boot(self) -> None:
        """Start the engine without state of earlier starts."""

    def reboot(self) -> None:
        """Restart without state: all endpoints are gone."""
        testbed = self.testbed
        self.note("restarts")
        self.ends.clear()
        # Programs do not outlive their host.
        testbed.applications = [each for each in testbed.applications if each not in self.applications]
        self.boot()
        # Before the first frames of the new start, which the judge takes as those of another boot.
        testbed.reboots.append((len(testbed.frames), self.address))
        self.push()

    def open(self, number: int, key: int = DEFAULT_KEY) -> CaseEndpoint:
        """Open an endpoint."""
        end = CaseEndpoint(self, self.node.open_endpoint(number, key))
        self.ends.append(end)
        self.note(f"opens endpoint {number}")
        return end

    def note(self, text: str) -> None:
        """Record an action or observation of this host's application."""
        self.testbed.note(f"{self.name}: {text}")

    def heard(self, event: Event) -> None:
        """Handle an event of the engine about peers and partners."""
        if event.kind is EventKind.PEER_NAMED and event.peer is not None:
            self.note(f"{event.peer.name} has announced its name")
        elif event.kind in (EventKind.PARTNER_LOST, EventKind.PARTNER_RESTARTED, EventKind.UNDELIVERED):
            self.note(event.kind.value)
        self.testbed.reports.append((self, event))


class CaseEndpoint:
    """An open endpoint, as used by cases. Only :meth:`connect`, :meth:`wait` and :meth:`ended` wait."""

    def __init__(self, side: TestbedSide, engine: EngineEndpoint) -> None:
        self.side = side
        self.testbed = side.testbed
        self.engine = engine
        self.number = engine.number

    @property
    def where(self) -> EndpointAddress:
        """Its address."""
        return EndpointAddress(f"{self.side.name}:0", self.number, self.engine.key)

    def ask(self, where: EndpointAddress, *, key: int | None = None, resends: int | None = None) -> Request:
        """Begin to connect."""
        key = where.key if key is None else key
        request = self.engine.connect(where.host, where.endpoint, key, resend_maximum=resends)
        self.side.push()
        return request

    def connect(self, where: EndpointAddress) -> Partner:
        """Connect; raise :class:`UnexpectedResult` unless it succeeds."""
        request = self.ask(where)
        self.wait(request, Status.SUCCESS, f"connect to endpoint {where.endpoint}")
        assert request.partner is not None
        return request.partner

    def send(self, partner: Partner, data: Any, match_info: int = 0, **options: Any) -> Request:
        """Begin to send; ``synchronous`` and ``resend_maximum`` are options of the engine."""
        request = self.engine.send(partner, data, match_info, **options)
        self.side.push()
        return request

    def receive(self, length: int, match_info: int = 0, mask: int = ALL_BITS) -> PostedReceiveBuffer:
        """Post a receive for up to ``length`` bytes."""
        memory = bytearray(length)
        posted = PostedReceiveBuffer(self.engine.receive(memory, match_info, mask), memory)
        self.side.push()
        return posted

    def wait(
        self, request: Request | PostedReceiveBuffer, status: Status | None = Status.SUCCESS, what: str = ""
    ) -> Request:
        """Wait until a request completes, and check its status; None accepts any.

        Raises :class:`UnexpectedResult` for another status, and :class:`WaitTimeout` if it does not complete.
        """
        inner = request.request if isinstance(request, PostedReceiveBuffer) else request
        what = what or f"{inner.kind.value} of {_size(request)}"
        if not self.testbed.until(lambda: inner.done):
            self.side.note(f"{what} did not complete")
            raise WaitTimeout(f"{self.side.name}: {what} did not complete within {self.testbed.patience:g} s")
        assert inner.status is not None
        self.side.note(f"{what}: {inner.status.text}")
        if status is not None and inner.status is not status:
            raise UnexpectedResult(f"{self.side.name}: {what} ended as {inner.status.text}, not as {status.text}")
        return inner

    def took(
        self,
        taken: PostedReceiveBuffer,
        data: bytes | bytearray,
        status: Status = Status.SUCCESS,
        *,
        match_info: int | None = None,
    ) -> None:
        """Wait for a receive, and check it against ``data`` and, unless None, ``match_info``.

        Only the length is compared if the sender is a program that answers from a buffer of its own.
        """
        request = self.wait(taken, status)
        name, length = self.side.name, len(taken.data)
        require(length == len(data), f"{name}: received {count_of(length, 'byte')} instead of {len(data)}")
        if match_info is not None:
            found = request.match_info
            require(found == match_info, f"{name}: received match info {found:#x} instead of {match_info:#x}")
        if self.testbed.returns_content(request.partner):
            require(taken.data == data, f"{name}: received {count_of(length, 'byte')}, but not the ones sent")

    def pause(self, paused: bool = True) -> None:
        """Suspend the application, so that only the card works (R-GEN-01); with ``paused`` False, resume it."""
        self.engine.progressing = not paused
        self.side.note("is suspended" if paused else "resumes")
        if not paused:
            self.engine.progress(self.testbed.clock())
            self.side.push()

    def close(self) -> None:
        """Close the endpoint, as happens when its process ends."""
        self.engine.close()
        self.side.push()
        self.side.note(f"closes endpoint {self.number}")


@dataclass(slots=True)
class PostedReceiveBuffer:
    """A receive and its memory."""

    request: Request
    memory: bytearray

    @property
    def data(self) -> bytes:
        """The received bytes."""
        return bytes(self.memory[: self.request.transferred])


def _size(request: Request | PostedReceiveBuffer) -> str:
    return (
        f"up to {len(request.memory)} bytes" if isinstance(request, PostedReceiveBuffer) else f"{request.length} bytes"
    )


class SideProgram(ABC):
    """A program on a host of mxwire that runs while the case waits."""

    end: CaseEndpoint
    where: EndpointAddress

    @abstractmethod
    def turn(self) -> None:
        """Do the available work without waiting."""
