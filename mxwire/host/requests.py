"""Requests, the messages that they return, and other conditions for which a caller can wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from mxwire.host.errors import HostClosedError, HostError, HostTimeoutError, HostWakeupError
from mxwire.protocol import Partner, RequestKind, Status
from mxwire.protocol import Request as EngineRequest
from mxwire.protocol.library.receive import Receive
from mxwire.protocol.status import SUCCEEDED

Result = TypeVar("Result")

_NO_MEMORY: Final = bytearray()
_SUCCESS: Final = Status.SUCCESS


class Message:
    """A message that has been received."""

    __slots__ = ("_data", "length", "match_info", "partner", "status")

    def __init__(
        self,
        data: bytearray | memoryview,
        match_info: int,
        partner: Partner | None,
        length: int,
        status: Status,
    ) -> None:
        self._data = data
        self.match_info = match_info
        """Its 64 bits of match information."""
        self.partner = partner
        """The endpoint that sent it: ``endpoint.send(message.partner, …)`` replies. None for a cancelled receive."""
        self.length = length
        """Length of the whole message in bytes."""
        self.status = status
        """SUCCESS, MESSAGE_TRUNCATED if it did not fit, or CANCELLED."""

    @property
    def data(self) -> memoryview:
        """The bytes received; of a truncated message those that fitted."""
        if isinstance(self._data, bytearray):
            # Create the view on first use, because creating it takes as long as matching the message.
            self._data = memoryview(self._data)
        return self._data

    @property
    def truncated(self) -> bool:
        """True if the end of the message is missing."""
        return self.status == Status.MESSAGE_TRUNCATED

    def __len__(self) -> int:
        """Number of bytes received."""
        return len(self._data)

    def __bytes__(self) -> bytes:
        """Copy of the data."""
        return bytes(self._data)

    def __repr__(self) -> str:
        """Representation for debugging."""
        return f"<Message match={self.match_info:#x} length={self.length} {self.status.text} from {self.partner!r}>"


@dataclass(frozen=True, slots=True)
class WaitingMessage:
    """A message that waits for a receive, as returned by ``probe``."""

    match_info: int
    """Its 64 bits of match information."""
    partner: Partner
    """The endpoint that sent it."""
    length: int
    """Length of the whole message in bytes."""


class Pending(Generic[Result]):
    """A condition to wait for, and its result. All methods are called within the host's section."""

    __slots__ = ()

    def ready(self) -> bool:
        """Return whether the wait is over. May call the engine; frames that this queues are transmitted."""
        raise NotImplementedError

    def result(self) -> Result:
        """Result of a wait that is over; raises :class:`~mxwire.host.errors.HostError` if it has failed."""
        raise NotImplementedError

    def late(self, seconds: float) -> HostError:
        """Error to raise if the condition is not met after ``seconds``."""
        return HostTimeoutError(f"{self} has not ended within {seconds:g} s")

    def abandon(self) -> None:
        """End the wait without a result: after a timeout, an interrupt or an error. Ended waits ignore it."""


class Waiter:
    """A caller blocked on a :class:`Pending`; ``endpoint`` is the one whose ``wake_up`` ends the wait."""

    __slots__ = ("done", "endpoint", "error", "pending")

    def __init__(self, pending: Pending[Any], endpoint: Any = None) -> None:
        self.pending = pending
        self.endpoint = endpoint
        self.done = False
        """True if a check has found that the wait is over."""
        self.error: Exception | None = None
        """Error that a check has raised, to be raised in the waiting caller."""

    def check(self) -> bool:
        """Return whether the wait is over; keep any error of the check for the waiting caller."""
        try:
            self.done = self.pending.ready()
        except Exception as error:
            self.error = error
            self.done = True
        return self.done

    def interrupt(self) -> None:
        """End the wait without a result, unless it is over."""
        if not self.done:
            request = self.pending.late(0).request
            self.error = HostWakeupError("the wait was ended by wake_up", request)
            self.done = True
            # Abandon the wait at once, because a receive could take a message before the caller runs, and no caller
            # would get it.
            self.pending.abandon()
            self.wake()

    def wake(self) -> None:
        """Wake the caller: the wait is over, the host has ended, or the caller must run the loop."""
        raise NotImplementedError


class AnyOf(Pending[Pending[Any]]):
    """Waits for the first of several conditions, in their order, that is ready. Raises HostError if there are none."""

    __slots__ = ("_members",)

    def __init__(self, members: Sequence[Pending[Any]]) -> None:
        if not members:
            raise HostError(Status.BAD_REQUEST, "there is no request to wait for")
        self._members = members

    def ready(self) -> bool:
        """Return whether at least one is ready."""
        return any(each.ready() for each in self._members)

    def result(self) -> Pending[Any]:
        """The first that is ready."""
        return next(each for each in self._members if each.ready())

    def late(self, seconds: float) -> HostError:
        """Error with the number of requests."""
        return HostTimeoutError(f"none of {len(self._members)} requests has ended within {seconds:g} s")


class AllOf(Pending[list[Any]]):
    """Waits for all of several conditions."""

    __slots__ = ("_members", "_place")

    def __init__(self, members: Sequence[Pending[Any]]) -> None:
        self._members = list(members)
        self._place = 0
        """Index of the first condition that was not ready at the last check, so that a check per message need not
        repeat all before it."""

    def ready(self) -> bool:
        """Return whether all are ready."""
        members, place = self._members, self._place
        while place < len(members) and members[place].ready():
            place += 1
        self._place = place
        return place == len(members)

    def result(self) -> list[Any]:
        """Results in order; raises the error of the first that has failed."""
        return [each.result() for each in self._members]

    def late(self, seconds: float) -> HostError:
        """Error with the number of requests that have not ended."""
        missing = sum(not each.ready() for each in self._members)
        return HostTimeoutError(f"{missing} of {len(self._members)} requests have not ended within {seconds:g} s")


class HostRequest(Pending[Result]):
    """A request in progress; see ``wait``, ``test`` and ``cancel`` of the endpoint."""

    __slots__ = ("_cancelled", "context", "inner")

    def __init__(self, inner: EngineRequest, context: Any = None) -> None:
        self.inner = inner
        """The engine's request."""
        self.context = context
        """Any object of the application."""
        self._cancelled = False

    @property
    def status(self) -> Status | None:
        """Final status; None while in progress."""
        return self.inner.status

    @property
    def done(self) -> bool:
        """True if it has ended."""
        return self.inner.status is not None

    @property
    def length(self) -> int:
        """Length of the whole message in bytes."""
        return self.inner.length

    @property
    def transferred(self) -> int:
        """Bytes transferred, fewer than ``length`` if the message was truncated."""
        return self.inner.transferred

    @property
    def match_info(self) -> int:
        """Match information of the message."""
        return self.inner.match_info

    @property
    def partner(self) -> Partner | None:
        """The remote endpoint; of a receive, the sender of the message that it took."""
        return self.inner.partner

    def __repr__(self) -> str:
        """Representation for debugging."""
        return repr(self.inner)

    def __str__(self) -> str:
        """``send (match info 0x5)``, for error messages."""
        return f"{self.inner.kind} (match info {self.inner.match_info:#x})"

    def ready(self) -> bool:
        """Return whether it has ended."""
        return self.inner.status is not None

    def result(self) -> Result:
        """A :class:`Message` for a receive, a status for a send, a partner for a connect.

        Raises :class:`~mxwire.host.errors.HostError` unless it has ended with SUCCESS or MESSAGE_TRUNCATED, or was
        cancelled by ``cancel``.
        """
        status = self.inner.status
        if status is not _SUCCESS and status not in SUCCEEDED and not (status is Status.CANCELLED and self._cancelled):
            raise self.failure(status)
        return self._outcome()

    def late(self, seconds: float) -> HostError:
        """Error with the request, which continues and may be waited for again."""
        return HostTimeoutError(f"the {self} has not ended within {seconds:g} s", self)

    def cancelled(self) -> None:
        """Note that ``cancel`` has ended the request."""
        self._cancelled = True

    def _outcome(self) -> Result:
        raise NotImplementedError

    def failure(self, status: Status | None) -> HostError:
        """Error for a request that has ended with ``status``."""
        if status is None:
            return HostError(Status.BAD_REQUEST, f"the {self} has not ended yet: wait for it", self)
        if status is Status.CANCELLED:
            return HostClosedError(status, f"the {self} ended because its endpoint was closed", self)
        partner = self.inner.partner
        place = f" {place_of(partner)}" if partner is not None else ""
        return HostError(status, f"{self.inner.kind}{place} failed: {status.text}", self)


class HostSend(HostRequest[Status]):
    """A send; its result is its status."""

    __slots__ = ()

    def _outcome(self) -> Status:
        assert self.inner.status is not None
        return self.inner.status


class HostReceive(HostRequest[Message]):
    """A receive; its result is the message, in ``view`` or, if that is None, in memory allocated by the engine."""

    __slots__ = ("_posted", "_view")

    def __init__(self, posted: Receive, view: memoryview | None, context: Any = None) -> None:
        super().__init__(posted, context)
        self._posted = posted
        self._view = view

    def _outcome(self) -> Message:
        posted = self._posted
        assert posted.status is not None
        if posted.starved:
            raise HostError(
                Status.NO_RESOURCES, f"there is no memory for a message of {posted.length} bytes: it was dropped", self
            )
        # A receive that was cancelled before its match has no memory.
        memory: bytearray | memoryview | None = posted.buffer if self._view is None else self._view
        if memory is None:
            memory = _NO_MEMORY
        if len(memory) != posted.transferred:
            memory = memoryview(memory)[: posted.transferred]
        return Message(memory, posted.match_info, posted.partner, posted.length, posted.status)


class HostConnect(HostRequest[Partner]):
    """A connect; its result is the partner."""

    __slots__ = ()

    def _outcome(self) -> Partner:
        assert self.inner.partner is not None
        return self.inner.partner


def request_of(inner: EngineRequest) -> HostRequest[Any]:
    """The request that the application has posted, or a new object for the same request of the engine."""
    known = inner.context
    if isinstance(known, HostRequest):
        return known
    if isinstance(inner, Receive):
        return HostReceive(inner, None)
    return HostConnect(inner) if inner.kind is RequestKind.CONNECT else HostSend(inner)


def place_of(partner: Partner) -> str:
    """``alpha:0 endpoint 3``."""
    name = partner.peer.name or partner.peer.address.hex(":")
    return f"{name} endpoint {partner.number}"
