"""One host of a stage that is ours, its endpoints, and the programs on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mxwire.interop.casting import Stalled, Unexpected, Where, stage_wants
from mxwire.protocol import ALL_BITS, Event, EventKind, Node, Partner, Profile, Request, Status
from mxwire.protocol import Endpoint as EngineEndpoint
from mxwire.wire.dialect import Dialect
from mxwire.wire.numbers import DEFAULT_KEY

if TYPE_CHECKING:
    from mxwire.interop.stage import Stage


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

    def open(self, number: int, key: int = DEFAULT_KEY) -> End:
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

    def took(
        self,
        taken: Taken,
        data: bytes | bytearray,
        status: Status = Status.SUCCESS,
        *,
        match_info: int | None = None,
    ) -> None:
        """Wait for a receive, and check it against ``data`` and, unless None, ``match_info``.

        Only the length is compared where the sender is a program that answers from memory of its own.
        """
        request = self.wait(taken, status)
        name, length = self.side.name, len(taken.data)
        stage_wants(length == len(data), f"{name}: {length} bytes were received instead of {len(data)}")
        if match_info is not None:
            found = request.match_info
            stage_wants(found == match_info, f"{name}: match info {found:#x} was received instead of {match_info:#x}")
        if self.stage.returns_content(request.partner):
            stage_wants(taken.data == data, f"{name}: {length} bytes were received with another content")

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

    end: End
    where: Where

    @abstractmethod
    def turn(self) -> None:
        """Do what there is to do; never waits."""
