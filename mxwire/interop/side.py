"""One side of a stage: a host of mxwire with its endpoints and programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mxwire.interop.roles import EndpointAddress, UnexpectedResult, WaitTimeout, stage_wants
from mxwire.protocol import ALL_BITS, EngineEndpoint, Event, EventKind, Node, Partner, Profile, Request, Status
from mxwire.wire.dialect import Dialect
from mxwire.wire.numbers import DEFAULT_KEY
from mxwire.words import count_of

if TYPE_CHECKING:
    from mxwire.interop.stage import Stage


class StageSide(ABC):
    """One host of mxwire on a stage."""

    def __init__(self, stage: Stage, name: str, profile: Profile, dialect: Dialect) -> None:
        self.stage = stage
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
    def reboot(self) -> None:
        """Restart without memory: all endpoints are gone."""

    def open(self, number: int, key: int = DEFAULT_KEY) -> CaseEndpoint:
        """Open an endpoint."""
        end = CaseEndpoint(self, self.node.open_endpoint(number, key))
        self.ends.append(end)
        self.note(f"opens endpoint {number}")
        return end

    def note(self, text: str) -> None:
        """Record an action or observation of this host's application."""
        self.stage.note(f"{self.name}: {text}")

    def heard(self, event: Event) -> None:
        """Handle an event of the engine about peers and partners."""
        if event.kind is EventKind.PEER_NAMED and event.peer is not None:
            self.note(f"{event.peer.name} has announced its name")
        elif event.kind in (EventKind.PARTNER_LOST, EventKind.PARTNER_RESTARTED, EventKind.UNDELIVERED):
            self.note(event.kind.value)
        self.stage.told.append((self, event))


class CaseEndpoint:
    """An open endpoint, as used by cases. Only :meth:`connect`, :meth:`wait` and :meth:`ended` wait."""

    def __init__(self, side: StageSide, engine: EngineEndpoint) -> None:
        self.side = side
        self.stage = side.stage
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
        taken = PostedReceiveBuffer(self.engine.receive(memory, match_info, mask), memory)
        self.side.push()
        return taken

    def wait(
        self, request: Request | PostedReceiveBuffer, status: Status | None = Status.SUCCESS, what: str = ""
    ) -> Request:
        """Wait until a request completes, and check its status; None accepts any.

        Raises :class:`UnexpectedResult` for another status, and :class:`WaitTimeout` if it does not complete.
        """
        inner = request.request if isinstance(request, PostedReceiveBuffer) else request
        what = what or f"{inner.kind.value} of {_size(request)}"
        if not self.stage.until(lambda: inner.done):
            self.side.note(f"{what} did not complete")
            raise WaitTimeout(f"{self.side.name}: {what} did not complete within {self.stage.patience:g} s")
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
        stage_wants(length == len(data), f"{name}: received {count_of(length, 'byte')} instead of {len(data)}")
        if match_info is not None:
            found = request.match_info
            stage_wants(found == match_info, f"{name}: received match info {found:#x} instead of {match_info:#x}")
        if self.stage.returns_content(request.partner):
            stage_wants(taken.data == data, f"{name}: received {count_of(length, 'byte')}, but not the ones sent")

    def pause(self, paused: bool = True) -> None:
        """Suspend the application, so that only the card works (R-GEN-01); with ``paused`` False, resume it."""
        self.engine.progressing = not paused
        self.side.note("is suspended" if paused else "resumes")
        if not paused:
            self.engine.progress(self.stage.clock())
            self.side.push()

    def close(self) -> None:
        """Close the endpoint, as the end of its process would."""
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
