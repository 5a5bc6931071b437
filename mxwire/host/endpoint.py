"""Endpoints: the calls of an application, blocking (``Endpoint``) and for asyncio (``AsyncEndpoint``).

Calls that never wait are shared by both (``BaseEndpoint``). A call that waits hands a ``Pending`` to the driver of its
host, which runs the host until it is ready.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from operator import index
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, SupportsIndex, TypeVar

from mxwire.host.discovery import PendingConnect
from mxwire.host.errors import HostError, HostTimeoutError
from mxwire.host.requests import (
    AllOf,
    AnyOf,
    HostReceive,
    HostRequest,
    HostSend,
    Message,
    Pending,
    WaitingMessage,
    bytes_of,
    place_of,
)
from mxwire.protocol import ALL_BITS, EngineEndpoint, LocalProtocolError, Partner, Peer, Status
from mxwire.protocol import Request as EngineRequest
from mxwire.protocol.library.endpoint import Handler
from mxwire.protocol.library.inbound import Unexpected
from mxwire.wire.numbers import DEFAULT_KEY

if TYPE_CHECKING:
    from mxwire.host.host import AsyncHost, BaseHost, Host


Result = TypeVar("Result")

CONNECT_TIMEOUT: Final = 10.0
"""Default timeout of a connect in seconds."""
LINGER: Final = 2.0
"""Seconds that an endpoint waits for acks at the end of its ``with`` block."""

_log = logging.getLogger(__name__)


class BaseEndpoint:
    """An open endpoint of a host; the calls defined here take effect at once, and never wait."""

    def __init__(self, owner: BaseHost, engine: EngineEndpoint) -> None:
        self._owner = owner
        self._core = owner.core
        self.engine = engine
        """The engine's endpoint, for calls that are not offered here."""
        self.undelivered = 0
        """Sends that were reported complete, and were lost afterwards."""

    @property
    def number(self) -> int:
        """Number of the endpoint."""
        return self.engine.number

    @property
    def key(self) -> int:
        """Key that a connect must present."""
        return self.engine.key

    @property
    def closed(self) -> bool:
        """True if it was closed, or its host has ended."""
        return not self.engine.open or self._core.ended is not None

    def __repr__(self) -> str:
        """Representation for debugging."""
        return repr(self.engine)

    def isend(self, partner: Partner, data: Any, match_info: SupportsIndex = 0) -> HostRequest[Status]:
        """Post a send of any buffer, or of a sequence of up to 256.

        Memory of more than 32 KiB must not change until the request has ended.
        """
        return self._post_send(partner, data, match_info)

    def issend(self, partner: Partner, data: Any, match_info: SupportsIndex = 0) -> HostRequest[Status]:
        """Post a synchronous send, which ends only when the receiver has matched the message."""
        return self._post_send(partner, data, match_info, synchronous=True)

    def ireceive(
        self,
        match_info: SupportsIndex | None = None,
        mask: SupportsIndex = ALL_BITS,
        *,
        buffer: Any = None,
        maximum: int | None = None,
    ) -> HostRequest[Message]:
        """Post a receive for the first message whose match info, masked, is ``match_info``; None: for any message.

        The message goes into ``buffer``, any writable buffer or a sequence of up to 256, or into a new buffer of
        ``maximum`` bytes.
        """
        if buffer is None and maximum is None:
            raise LocalProtocolError(
                Status.BAD_REQUEST, "a receive needs a buffer, or maximum=: the longest message it takes"
            )
        return self._post_receive(buffer, match_info, mask, maximum)

    def test(self, request: HostRequest[Any]) -> bool:
        """Poll once, and return whether a request has ended; its ``result()`` then returns or raises the outcome."""
        if not request.done and self._core.ended is None:
            self._owner.poll()
        return request.done

    def cancel(self, request: HostRequest[Any]) -> bool:
        """Cancel a receive that is not matched, or a connect that is not answered; return False if it is too late.

        Raises :class:`~mxwire.protocol.status.LocalProtocolError` for a send.
        """
        with self._core.section:
            cancelled = self.engine.cancel(request.inner)
            if cancelled:
                request.cancelled()
                self._core.transmit()
            return cancelled

    def iprobe(self, match_info: SupportsIndex | None = None, mask: SupportsIndex = ALL_BITS) -> WaitingMessage | None:
        """Poll once, and return the message that a receive would take now, or None; the message stays queued."""
        value, mask = _criteria(match_info, mask)
        self._owner.poll()
        with self._core.section:
            return _probe(self.engine, value, mask)

    def disconnect(self, partner: Partner) -> None:
        """Forget a partner and all unfinished requests with it; the partner is not notified (R-CLS-03)."""
        with self._core.section:
            self._core.must_be_open()
            self.engine.disconnect(partner)
            self._core.transmit()

    def handle_unexpected(self, handler: Handler | None) -> None:
        """Set the function that sees each unexpected message first, and may consume it (R-MAT-06).

        A message is unexpected if no posted receive takes it; a blocking receive counts as posted. The function is
        called on the thread that runs the loop, and may send but not wait. If it raises, the error is logged and the
        message kept.
        """
        with self._core.section:
            self.engine.handle_unexpected(None if handler is None else _guarded(handler))

    # For the blocking and the asyncio endpoint.

    def _post_send(
        self, partner: Partner, data: Any, match_info: SupportsIndex, *, synchronous: bool = False
    ) -> HostSend:
        core = self._core
        with core.section:
            core.must_be_open()
            request = self.engine.send(partner, data, match_info, synchronous=synchronous)
            core.transmit()
        return HostSend(request)

    def _post_receive(
        self,
        buffer: Any,
        match_info: SupportsIndex | None,
        mask: SupportsIndex,
        maximum: int | None,
        kind: type[HostReceive] = HostReceive,
    ) -> HostReceive:
        """Post a receive; without ``buffer`` and ``maximum`` memory is allocated when a message is matched."""
        if buffer is None and maximum is not None:
            buffer = bytearray(maximum)
        core = self._core
        request: EngineRequest | None = None
        try:
            with core.section:
                core.must_be_open()
                posted = self.engine.receive(buffer, *_criteria(match_info, mask))
                request = posted
                if not posted.waiting:
                    core.transmit()
        except BaseException:
            # An interrupt comes at the end of the section. The caller never sees the request, which must not take a
            # message then.
            if request is not None:
                with core.section:
                    self.engine.cancel(request)
            raise
        return kind(posted, None if buffer is None else bytes_of(buffer))

    def _close(self) -> None:
        with self._core.section:
            if not self.engine.open:
                return
            self.engine.close()
            if self._core.ended is None:
                self._core.transmit()
            self._owner.forget_endpoint(self)


def _guarded(handler: Handler) -> Handler:
    def guarded(message: Unexpected) -> bool:
        try:
            return handler(message)
        except Exception:
            _log.exception("an unexpected handler has failed")
            return False

    return guarded


def _criteria(match_info: SupportsIndex | None, mask: SupportsIndex) -> tuple[SupportsIndex, SupportsIndex]:
    """Value and mask of a receive; match info None takes any message."""
    return (0, 0) if match_info is None else (match_info, mask)


def _probe(engine: EngineEndpoint, value: SupportsIndex, mask: SupportsIndex) -> WaitingMessage | None:
    found = engine.probe(value, mask)
    return None if found is None else WaitingMessage(found.match_info, found.partner, found.length)


class PendingProbe(Pending[WaitingMessage]):
    """Waits for a message that no posted receive has taken."""

    __slots__ = ("_engine", "_found", "_mask", "_value")

    def __init__(self, endpoint: BaseEndpoint, match_info: SupportsIndex | None, mask: SupportsIndex) -> None:
        self._engine = endpoint.engine
        self._value, self._mask = _criteria(match_info, mask)
        self._found: WaitingMessage | None = None

    def ready(self) -> bool:
        """Return whether there is one, or the endpoint was closed."""
        if self._found is None and self._engine.open:
            self._found = _probe(self._engine, self._value, self._mask)
        return self._found is not None or not self._engine.open

    def result(self) -> WaitingMessage:
        """The message."""
        if self._found is None:
            raise HostError(Status.CANCELLED, f"a probe ended because endpoint {self._engine.number} was closed")
        return self._found

    def late(self, seconds: float) -> HostError:
        """Error with the criteria."""
        return HostTimeoutError(f"no message {_criteria_text(self._value, self._mask)} within {seconds:g} s")


class PendingReceive(HostReceive):
    """A receive that only one wait knows of, and that is cancelled when the wait is abandoned."""

    __slots__ = ()

    def late(self, seconds: float) -> HostError:
        """Error with the criteria, or, once a message is being transferred, with the request, which continues."""
        inner: Any = self.inner
        if inner.waiting:
            return HostTimeoutError(f"no message {_criteria_text(inner.value, inner.mask)} within {seconds:g} s")
        return HostTimeoutError(f"the {self} has not ended within {seconds:g} s", HostReceive(inner, self._view))

    def abandon(self) -> None:
        """Cancel the receive if it is not matched."""
        inner: Any = self.inner
        if inner.endpoint.open and not self.done:
            inner.cancel()
            self.cancelled()


class PendingAcks(Pending[None]):
    """Waits until partners have acknowledged all messages sent so far."""

    __slots__ = ("_endpoint", "_lost")

    def __init__(self, endpoint: BaseEndpoint) -> None:
        self._endpoint = endpoint
        self._lost = endpoint.undelivered

    def ready(self) -> bool:
        """Return whether no message is unacknowledged."""
        engine = self._endpoint.engine
        return not engine.open or not (
            engine.local_sends or any(each.deliveries or each.waiting for each in engine.partners.values())
        )

    def result(self) -> None:
        """Raise :class:`~mxwire.host.errors.HostError` if messages were lost since the wait began."""
        lost = self._endpoint.undelivered - self._lost
        if lost:
            raise HostError(
                Status.REMOTE_ENDPOINT_UNREACHABLE, f"{lost} messages were not delivered: their receiver has gone"
            )

    def late(self, seconds: float) -> HostError:
        """Error with the number of unacknowledged messages per partner."""
        missing = [
            f"{len(each.deliveries) + len(each.waiting)} by {place_of(each)}"
            for each in self._endpoint.engine.partners.values()
            if each.deliveries or each.waiting
        ]
        return HostTimeoutError(f"not acknowledged within {seconds:g} s: {', '.join(missing)}")


def _criteria_text(value: SupportsIndex, mask: SupportsIndex) -> str:
    if not index(mask):
        return "came"
    under = "" if index(mask) == ALL_BITS else f" under mask {index(mask):#x}"
    return f"with match info {index(value):#x}{under} came"


class Endpoint(BaseEndpoint):
    """An open endpoint. All calls may be made from any thread; ``timeout`` is in seconds, None waits without limit.

    Calls raise :class:`~mxwire.protocol.status.LocalProtocolError` for invalid arguments (which is a
    :class:`TypeError` too for those of a wrong type), :class:`~mxwire.host.errors.HostTimeoutError` after the timeout,
    :class:`~mxwire.host.errors.HostClosedError` when the endpoint or its host is closed, and other
    :class:`~mxwire.host.errors.HostError` if the other host has failed or refused.
    """

    host: Host

    def connect(
        self,
        peer: Peer | str | bytes,
        endpoint: SupportsIndex = 0,
        key: SupportsIndex = DEFAULT_KEY,
        *,
        timeout: float | None = CONNECT_TIMEOUT,
    ) -> Partner:
        """Connect to an endpoint of a host, given by name or address; wait for a name that is not known yet."""
        return self.host.driver.wait(PendingConnect(self, peer, endpoint, key), timeout)

    def send(self, partner: Partner, data: Any, match_info: SupportsIndex = 0, *, timeout: float | None = None) -> None:
        """Send a message, and block until the memory of ``data`` may be reused.

        ``data`` is a bytes-like object, or a sequence of up to 256 of them. Up to 32 KiB it is copied, and the call
        returns at once. Longer messages are pulled by the receiver, so the call blocks until the receiver has posted a
        matching receive and has pulled all of it: two hosts that both send first wait for each other, which
        :meth:`isend` avoids. To know that a message was delivered, call :meth:`flush`.
        """
        self.wait(self._post_send(partner, data, match_info), timeout)

    def ssend(
        self, partner: Partner, data: Any, match_info: SupportsIndex = 0, *, timeout: float | None = None
    ) -> None:
        """Send a message, and block until the receiver has matched and received it, whatever its length."""
        self.wait(self._post_send(partner, data, match_info, synchronous=True), timeout)

    def receive(
        self,
        match_info: SupportsIndex | None = None,
        mask: SupportsIndex = ALL_BITS,
        *,
        buffer: Any = None,
        maximum: int | None = None,
        timeout: float | None = None,
    ) -> Message:
        """Wait for a message and return it; without ``buffer`` and ``maximum`` it may have any length.

        The message's ``match_info``, masked with ``mask``, must equal ``match_info``; None takes any message. Its
        ``partner`` is the sender, to reply to. Nothing is lost at a timeout, unless the message was being transferred:
        then the ``request`` of the error may be waited for again.
        """
        return self.host.driver.wait(self._post_receive(buffer, match_info, mask, maximum, PendingReceive), timeout)

    def probe(
        self, match_info: SupportsIndex | None = None, mask: SupportsIndex = ALL_BITS, *, timeout: float | None = None
    ) -> WaitingMessage:
        """Wait until there is a message that such a receive would take, and return its envelope; it stays queued."""
        return self.host.driver.wait(PendingProbe(self, match_info, mask), timeout)

    def wait(self, request: HostRequest[Result], timeout: float | None = None) -> Result:
        """Wait until a request has ended; return the message of a receive, or the status of a send."""
        if request.status is Status.SUCCESS and self._core.ended is None:
            # Without the section: a successful request changes no more. A cancelled one is marked after its end.
            return request.result()
        return self.host.driver.wait(request, timeout)

    def wait_any(self, requests: Sequence[HostRequest[Any]], timeout: float | None = None) -> HostRequest[Any]:
        """Wait until one of several requests has ended, and return the first that has; see its ``result()``."""
        found = self.host.driver.wait(AnyOf(requests), timeout)
        assert isinstance(found, HostRequest)
        return found

    def wait_all(self, requests: Sequence[HostRequest[Any]], timeout: float | None = None) -> list[Any]:
        """Wait until all requests have ended, and return their results; raise the error of the first that failed."""
        return self.host.driver.wait(AllOf(requests), timeout)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all messages sent so far have been acknowledged.

        Raises :class:`~mxwire.host.errors.HostError` if one was lost because its receiver has gone.
        """
        self.host.driver.wait(PendingAcks(self), timeout)

    def close(self, linger: float = 0.0) -> None:
        """Close the endpoint, after at most ``linger`` seconds of waiting for acks; closing it again does nothing.

        Requests that have not ended are cancelled. Partners are not notified: the protocol has no packet for that.
        """
        if linger and not self.closed:
            # A caller that wants to know about undelivered messages calls flush.
            with suppress(HostError):
                self.flush(linger)
        self._close()

    def __enter__(self) -> Endpoint:
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the endpoint; without an error only after all acks have arrived, or ``LINGER`` is over."""
        self.close(LINGER if kind is None else 0.0)


class AsyncEndpoint(BaseEndpoint):
    """An open endpoint. All calls are made from the thread of the event loop; ``timeout`` is in seconds, None waits
    without limit. Cancelling a task that waits cancels the receive or connect that it waits for.

    Calls raise :class:`~mxwire.protocol.status.LocalProtocolError` for invalid arguments (which is a
    :class:`TypeError` too for those of a wrong type), :class:`~mxwire.host.errors.HostTimeoutError` after the timeout,
    :class:`~mxwire.host.errors.HostClosedError` when the endpoint or its host is closed, and other
    :class:`~mxwire.host.errors.HostError` if the other host has failed or refused.
    """

    host: AsyncHost

    async def connect(
        self,
        peer: Peer | str | bytes,
        endpoint: SupportsIndex = 0,
        key: SupportsIndex = DEFAULT_KEY,
        *,
        timeout: float | None = CONNECT_TIMEOUT,
    ) -> Partner:
        """Connect to an endpoint of a host, given by name or address; wait for a name that is not known yet."""
        return await self.host.driver.wait(PendingConnect(self, peer, endpoint, key), timeout)

    async def send(
        self, partner: Partner, data: Any, match_info: SupportsIndex = 0, *, timeout: float | None = None
    ) -> None:
        """Send a message, and wait until the memory of ``data`` may be reused.

        ``data`` is a bytes-like object, or a sequence of up to 256 of them. Up to 32 KiB it is copied, and the call
        returns at once. Longer messages are pulled by the receiver, so the call waits until the receiver has posted a
        matching receive and has pulled all of it: two hosts that both send first wait for each other, which
        :meth:`isend` avoids. To know that a message was delivered, call :meth:`flush`.
        """
        await self.wait(self._post_send(partner, data, match_info), timeout)

    async def ssend(
        self, partner: Partner, data: Any, match_info: SupportsIndex = 0, *, timeout: float | None = None
    ) -> None:
        """Send a message, and wait until the receiver has matched and received it, whatever its length."""
        await self.wait(self._post_send(partner, data, match_info, synchronous=True), timeout)

    async def receive(
        self,
        match_info: SupportsIndex | None = None,
        mask: SupportsIndex = ALL_BITS,
        *,
        buffer: Any = None,
        maximum: int | None = None,
        timeout: float | None = None,
    ) -> Message:
        """Wait for a message and return it; without ``buffer`` and ``maximum`` it may have any length.

        The message's ``match_info``, masked with ``mask``, must equal ``match_info``; None takes any message. Its
        ``partner`` is the sender, to reply to. Nothing is lost at a timeout, unless the message was being transferred:
        then the ``request`` of the error may be waited for again.
        """
        return await self.host.driver.wait(
            self._post_receive(buffer, match_info, mask, maximum, PendingReceive), timeout
        )

    async def probe(
        self, match_info: SupportsIndex | None = None, mask: SupportsIndex = ALL_BITS, *, timeout: float | None = None
    ) -> WaitingMessage:
        """Wait until there is a message that such a receive would take, and return its envelope; it stays queued."""
        return await self.host.driver.wait(PendingProbe(self, match_info, mask), timeout)

    async def wait(self, request: HostRequest[Result], timeout: float | None = None) -> Result:
        """Wait until a request has ended; return the message of a receive, or the status of a send."""
        if request.done and self._core.ended is None:
            return request.result()
        return await self.host.driver.wait(request, timeout)

    async def wait_any(self, requests: Sequence[HostRequest[Any]], timeout: float | None = None) -> HostRequest[Any]:
        """Wait until one of several requests has ended, and return the first that has; see its ``result()``."""
        found = await self.host.driver.wait(AnyOf(requests), timeout)
        assert isinstance(found, HostRequest)
        return found

    async def wait_all(self, requests: Sequence[HostRequest[Any]], timeout: float | None = None) -> list[Any]:
        """Wait until all requests have ended, and return their results; raise the error of the first that failed."""
        return await self.host.driver.wait(AllOf(requests), timeout)

    async def flush(self, timeout: float | None = None) -> None:
        """Wait until all messages sent so far have been acknowledged.

        Raises :class:`~mxwire.host.errors.HostError` if one was lost because its receiver has gone.
        """
        await self.host.driver.wait(PendingAcks(self), timeout)

    async def close(self, linger: float = 0.0) -> None:
        """Close the endpoint, after at most ``linger`` seconds of waiting for acks; closing it again does nothing.

        Requests that have not ended are cancelled. Partners are not notified: the protocol has no packet for that.
        """
        if linger and not self.closed:
            # A caller that wants to know about undelivered messages calls flush.
            with suppress(HostError):
                await self.flush(linger)
        self._close()

    async def __aenter__(self) -> AsyncEndpoint:
        """Return self."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the endpoint; without an error only after all acks have arrived, or ``LINGER`` is over."""
        await self.close(LINGER if kind is None else 0.0)
