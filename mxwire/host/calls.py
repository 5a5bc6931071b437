"""What both faces of an endpoint have in common: the calls that do not wait, and what their waits are for."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

from mxwire.host.errors import HostError, HostTimeoutError
from mxwire.host.message import Message, Waiting
from mxwire.host.pending import Pending
from mxwire.host.request import Receiving, Request, Sending, bytes_of, place_of
from mxwire.protocol import ALL_BITS, LocalProtocolError, Partner, Status
from mxwire.protocol import Endpoint as EngineEndpoint
from mxwire.protocol import Request as EngineRequest
from mxwire.protocol.library.matching import Handler, Unexpected

if TYPE_CHECKING:
    from mxwire.host.opening import Hosting

CONNECT_TIMEOUT: Final = 10.0
"""Seconds that a connect takes at most, unless it is told otherwise."""
LINGER: Final = 2.0
"""Seconds that an endpoint waits at its end for the acks of what was sent."""

_log = logging.getLogger(__name__)


class EndpointCalls:
    """An open endpoint of a host; the calls here take effect at once, and never wait."""

    def __init__(self, hosting: Hosting, engine: EngineEndpoint, claimed: int) -> None:
        self._hosting = hosting
        self._core = hosting.core
        self._claimed = claimed
        self.engine = engine
        """The engine's endpoint, for what is not offered here."""
        self.undelivered = 0
        """Sends that had been reported complete, and were lost after all."""

    @property
    def number(self) -> int:
        """Its number."""
        return self.engine.number

    @property
    def key(self) -> int:
        """What a connect must present."""
        return self.engine.key

    @property
    def closed(self) -> bool:
        """Whether it was closed, or its host has ended."""
        return not self.engine.open or self._core.ended is not None

    def __repr__(self) -> str:
        """For people who debug."""
        return repr(self.engine)

    def isend(self, partner: Partner, data: Any, match_info: SupportsIndex = 0) -> Request[Status]:
        """Send a message: any buffer, or a sequence of up to 256.

        Memory of more than 32 KiB must stay as it is until the request has ended.
        """
        return Sending(self._post_send(partner, data, match_info, synchronous=False))

    def issend(self, partner: Partner, data: Any, match_info: SupportsIndex = 0) -> Request[Status]:
        """The same, but it only ends when the receiver has matched the message."""
        return Sending(self._post_send(partner, data, match_info, synchronous=True))

    def ireceive(
        self,
        match_info: SupportsIndex | None = None,
        mask: SupportsIndex = ALL_BITS,
        *,
        buffer: Any = None,
        maximum: int | None = None,
    ) -> Request[Message]:
        """Post a receive for the first message whose match info, masked, is ``match_info``; None: for any message.

        It goes into ``buffer``, any writable buffer or a sequence of up to 256, or into a new one of ``maximum`` bytes.
        """
        return Receiving(*self._post_receive(buffer, match_info, mask, maximum))

    def test(self, request: Request[Any]) -> bool:
        """Whether a request has ended, after a look at what has arrived; its ``result()`` then says how."""
        if not request.done and self._core.ended is None:
            self._poke()
        return request.done

    def cancel(self, request: Request[Any]) -> bool:
        """Cancel a receive that is not matched, or a connect that is not answered; False where it is too late.

        Raises :class:`~mxwire.protocol.errors.LocalProtocolError` for a send.
        """
        with self._core.section:
            cancelled = self.engine.cancel(request.inner)
            if cancelled:
                request.cancelled()
                self._core.flush()
            return cancelled

    def iprobe(self, match_info: SupportsIndex | None = None, mask: SupportsIndex = ALL_BITS) -> Waiting | None:
        """The message that a receive would take now, or None; it stays where it is."""
        value, mask = matching(match_info, mask)
        self._poke()
        with self._core.section:
            return probed(self.engine, value, mask)

    def disconnect(self, partner: Partner) -> None:
        """Forget a partner and everything unfinished with it; it is not told (R-CLS-03)."""
        with self._core.section:
            self._core.must_be_open()
            self.engine.disconnect(partner)
            self._core.flush()

    def handle_unexpected(self, handler: Handler | None) -> None:
        """Set the function that sees each unexpected message first, and may consume it (R-MAT-06).

        It is called in whichever thread looks for frames, and may send but not wait. Where it raises, that is logged,
        and the message kept.
        """
        with self._core.section:
            self.engine.handle_unexpected(None if handler is None else _harmless(handler))

    # For the faces.

    def _poke(self) -> None:
        self._hosting.poke()

    def _post_send(self, partner: Partner, data: Any, match_info: SupportsIndex, *, synchronous: bool) -> EngineRequest:
        core = self._core
        with core.section:
            core.must_be_open()
            request = self.engine.send(partner, data, match_info, synchronous=synchronous)
            core.flush()
        return request

    def _post_receive(
        self, buffer: Any, match_info: SupportsIndex | None, mask: SupportsIndex, maximum: int | None
    ) -> tuple[EngineRequest, memoryview]:
        if buffer is None:
            if maximum is None:
                raise LocalProtocolError(
                    Status.BAD_REQUEST, "a receive needs a buffer, or maximum=: the longest message it takes"
                )
            buffer = bytearray(maximum)
        return self._posted(buffer, match_info, mask), bytes_of(buffer)

    def _posted(self, buffer: Any, match_info: SupportsIndex | None, mask: SupportsIndex) -> EngineRequest:
        core, engine = self._core, self.engine
        with core.section:
            core.must_be_open()
            value, mask = matching(match_info, mask)
            request = engine.receive(buffer, value, mask)
            if not request.waiting:
                core.flush()
        return request

    def _receive(
        self, buffer: Any, match_info: SupportsIndex | None, mask: SupportsIndex, maximum: int | None
    ) -> Abandoning:
        """Post a receive for one wait; without ``buffer`` and ``maximum`` for a message of any length."""
        if buffer is None and maximum is None:
            request = Receiving(self._posted(None, match_info, mask), None)
        else:
            request = Receiving(*self._post_receive(buffer, match_info, mask, maximum))
        return Abandoning(self, request)

    def _close(self) -> None:
        with self._core.section:
            if not self.engine.open:
                return
            self.engine.close()
            if self._core.ended is None:
                self._core.flush()
            self._hosting.closed(self)


def _harmless(handler: Handler) -> Handler:
    def offered(message: Unexpected) -> bool:
        try:
            return handler(message)
        except Exception:
            _log.exception("an unexpected handler has failed")
            return False

    return offered


def some(requests: Sequence[Request[Any]]) -> Sequence[Request[Any]]:
    """Requests of which one may end; raises for none."""
    if not requests:
        raise HostError(Status.BAD_REQUEST, "there is no request to wait for")
    return requests


def matching(match_info: SupportsIndex | None, mask: SupportsIndex) -> tuple[SupportsIndex, SupportsIndex]:
    """Value and mask of a receive: no match info takes any message."""
    return (0, 0) if match_info is None else (match_info, mask)


def probed(engine: EngineEndpoint, value: SupportsIndex, mask: SupportsIndex) -> Waiting | None:
    """What a receive would take."""
    found = engine.probe(value, mask)
    return None if found is None else Waiting(found.match_info, found.partner, found.length)


class Probing(Pending[Waiting]):
    """Waits for a message that nobody has asked for."""

    __slots__ = ("_engine", "_found", "_mask", "_value")

    def __init__(self, calls: EndpointCalls, match_info: SupportsIndex | None, mask: SupportsIndex) -> None:
        self._engine = calls.engine
        self._value, self._mask = matching(match_info, mask)
        self._found: Waiting | None = None

    def ready(self) -> bool:
        """Whether there is one."""
        if self._found is None and self._engine.open:
            self._found = probed(self._engine, self._value, self._mask)
        return self._found is not None or not self._engine.open

    def result(self) -> Waiting:
        """The message."""
        if self._found is None:
            raise closed_while("a probe", self._engine)
        return self._found

    def late(self, seconds: float) -> HostError:
        """Nothing has come."""
        return HostTimeoutError(f"no message {_matching_text(self._value, self._mask)} within {seconds:g} s")


class Abandoning(Pending[Message]):
    """Waits for a receive that nobody else knows of: it is taken back when the wait is given up."""

    __slots__ = ("_calls", "_request")

    def __init__(self, calls: EndpointCalls, request: Receiving) -> None:
        self._calls = calls
        self._request = request

    def ready(self) -> bool:
        """Whether it has ended."""
        return self._request.done

    def result(self) -> Message:
        """The message."""
        return self._request.result()

    def late(self, seconds: float) -> HostError:
        """No message has come, or not all of it; a receive that was matched continues, and may be waited for."""
        inner: Any = self._request.inner
        if inner.waiting:
            return HostTimeoutError(f"no message {_matching_text(inner.value, inner.mask)} within {seconds:g} s")
        return self._request.late(seconds)

    def abandon(self) -> None:
        """Take it back, if it is not too late."""
        if self._calls.engine.open and not self._request.done:
            self._calls.engine.cancel(self._request.inner)
            self._request.cancelled()


class Delivered(Pending[None]):
    """Waits until partners have acked everything that was sent to them."""

    __slots__ = ("_calls", "_lost")

    def __init__(self, calls: EndpointCalls) -> None:
        self._calls = calls
        self._lost = calls.undelivered

    def ready(self) -> bool:
        """Whether they have."""
        engine = self._calls.engine
        return not engine.open or not (
            engine.local_sends or any(each.deliveries or each.waiting for each in engine.partners.values())
        )

    def result(self) -> None:
        """Raises :class:`~mxwire.host.errors.HostError` where something was lost meanwhile."""
        lost = self._calls.undelivered - self._lost
        if lost:
            raise HostError(
                Status.REMOTE_ENDPOINT_UNREACHABLE, f"{lost} messages were not delivered: their receiver has gone"
            )

    def late(self, seconds: float) -> HostError:
        """Who has not acked what."""
        engine = self._calls.engine
        missing = [
            f"{len(each.deliveries) + len(each.waiting)} by {place_of(each)}"
            for each in engine.partners.values()
            if each.deliveries or each.waiting
        ]
        return HostTimeoutError(f"not acknowledged within {seconds:g} s: {', '.join(missing)}")


def closed_while(what: str, engine: EngineEndpoint) -> HostError:
    """What to say when an endpoint was closed under a wait."""
    return HostError(Status.CANCELLED, f"{what} ended because endpoint {engine.number} was closed")


def _matching_text(value: SupportsIndex, mask: SupportsIndex) -> str:
    if not index(mask):
        return "came"
    under = "" if index(mask) == ALL_BITS else f" under mask {index(mask):#x}"
    return f"with match info {index(value):#x}{under} came"
