"""Requests of an application, and what they give."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from mxwire.host.errors import HostClosedError, HostError, HostTimeoutError
from mxwire.host.message import Message
from mxwire.host.pending import Pending
from mxwire.protocol import Partner, Status
from mxwire.protocol import Request as EngineRequest

Result = TypeVar("Result")

_FINE: Final = (Status.SUCCESS, Status.MESSAGE_TRUNCATED)


class Request(Pending[Result]):
    """Something that was asked for and goes on by itself; see ``wait``, ``test`` and ``cancel`` of the endpoint."""

    __slots__ = ("_cancelled", "inner")

    def __init__(self, inner: EngineRequest) -> None:
        self.inner = inner
        """The engine's request."""
        self._cancelled = False

    @property
    def status(self) -> Status | None:
        """How it ended; None while it has not."""
        return self.inner.status

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self.inner.status is not None

    @property
    def length(self) -> int:
        """Length of the whole message in bytes."""
        return self.inner.length

    @property
    def transferred(self) -> int:
        """Bytes that were really transferred."""
        return self.inner.transferred

    @property
    def match_info(self) -> int:
        """Match information of the message."""
        return self.inner.match_info

    @property
    def partner(self) -> Partner | None:
        """The other side; of a receive, who sent the message that it took."""
        return self.inner.partner

    def __repr__(self) -> str:
        """For people who debug."""
        return repr(self.inner)

    def __str__(self) -> str:
        """For messages."""
        return f"{self.inner.kind} (match info {self.inner.match_info:#x})"

    # As something pending.

    def ready(self) -> bool:
        """Whether it has ended."""
        return self.inner.status is not None

    def result(self) -> Result:
        """What it gives: a :class:`Message` of a receive, a status of a send, a partner of a connect.

        Raises :class:`~mxwire.host.errors.HostError` unless it has ended with SUCCESS or MESSAGE_TRUNCATED, or was
        cancelled by its user.
        """
        status = self.inner.status
        if status not in _FINE and not (status is Status.CANCELLED and self._cancelled):
            raise self._failure(status)
        return self._outcome()

    def late(self, seconds: float) -> HostError:
        """It goes on, and may be waited for again."""
        return HostTimeoutError(f"the {self} has not ended within {seconds:g} s", self)

    def cancelled(self) -> None:
        """Its user has cancelled it."""
        self._cancelled = True

    def _outcome(self) -> Result:
        raise NotImplementedError

    def _failure(self, status: Status | None) -> HostError:
        if status is None:
            return HostError(Status.BAD_REQUEST, f"the {self} has not ended yet: wait for it", self)
        if status is Status.CANCELLED:
            return HostClosedError(status, f"the {self} ended because its endpoint was closed", self)
        partner = self.inner.partner
        who = f" {place_of(partner)}" if partner is not None else ""
        return HostError(status, f"{self.inner.kind}{who} failed: {status.text}", self)


class Sending(Request[Status]):
    """A send; its result is its status."""

    __slots__ = ()

    def _outcome(self) -> Status:
        assert self.inner.status is not None
        return self.inner.status


class Receiving(Request[Message]):
    """A receive; its result is the message."""

    __slots__ = ("_view",)

    def __init__(self, inner: EngineRequest, view: memoryview | None) -> None:
        super().__init__(inner)
        self._view = view

    def _outcome(self) -> Message:
        inner = self.inner
        assert inner.status is not None
        view = self._view
        if view is None:
            # The engine has allocated it at the match; a receive that was cancelled before has none.
            view = memoryview(getattr(inner, "buffer", None) or b"")
        return Message(view[: inner.transferred], inner.match_info, inner.partner, inner.length, inner.status)


class Connecting(Request[Partner]):
    """A connect; its result is the partner."""

    __slots__ = ()

    def _outcome(self) -> Partner:
        assert self.inner.partner is not None
        return self.inner.partner


def place_of(partner: Partner) -> str:
    """``alpha:0 endpoint 3``."""
    name = partner.peer.name or partner.peer.address.hex(":")
    return f"{name} endpoint {partner.number}"


def bytes_of(buffer: Any) -> memoryview:
    """One buffer as bytes; of a sequence of buffers, nothing, since they are not one stretch."""
    try:
        view = memoryview(buffer)
    except TypeError:
        return memoryview(b"")
    return view if view.format == "B" and view.ndim == 1 else _flat(view)


def _flat(view: memoryview) -> memoryview:
    return view.cast("B") if view.contiguous and view.nbytes else memoryview(b"")
