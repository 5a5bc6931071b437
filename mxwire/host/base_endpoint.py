"""The calls of an endpoint that never wait, for endpoints that block and for those of asyncio."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

from mxwire.host.errors import HostError, HostTimeoutError
from mxwire.host.readiness import Readiness
from mxwire.host.requests import (
    HostConnect,
    HostReceive,
    HostRequest,
    HostSend,
    Message,
    WaitingMessage,
    request_of,
)
from mxwire.host.waits import PendingReceive, criteria, probe
from mxwire.protocol import ALL_BITS, EngineEndpoint, LocalProtocolError, Partner, Peer, Status
from mxwire.protocol import Request as EngineRequest
from mxwire.protocol.library.endpoint import LENGTH_MAXIMUM, Handler
from mxwire.protocol.library.inbound import Unexpected
from mxwire.protocol.library.receive import Receive
from mxwire.wire.numbers import DEFAULT_KEY

if TYPE_CHECKING:
    from mxwire.host.base_host import BaseHost

CONNECT_TIMEOUT: Final = 10.0
"""Default timeout of a connect in seconds."""
LINGER: Final = 2.0
"""Seconds that an endpoint waits for acks at the end of its ``with`` block."""

ErrorHandler = Callable[[HostError], Status | None]
"""An application's error handler: called with an error, whose status it may replace."""

_SUCCESS: Final = Status.SUCCESS
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
        self._queued = engine.completions is not None
        self._readiness: Readiness | None = None
        self._error_handler: ErrorHandler | None = None

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

    @property
    def own_partner(self) -> Partner:
        """The endpoint itself as a partner, to which it is always connected."""
        with self._core.section:
            return self.engine.own_partner()

    def allocate(self, length: int) -> memoryview:
        """Memory of ``length`` bytes for messages, zeroed, which exists at least until the host is closed.

        An agent accesses it without a call of the kernel, which is a little faster than other memory, and needs no
        permission. Other hosts treat it like any memory. Raises :class:`~mxwire.errors.MxwireError` if there is none.
        """
        core = self._core
        with core.section:
            core.must_be_open()
            attachment = self._owner.attachment
            return memoryview(bytearray(length)) if attachment is None else attachment.allocate(length)

    def isend(
        self,
        partner: Partner,
        data: Any,
        match_info: SupportsIndex = 0,
        *,
        context: Any = None,
        forget: bool = False,
    ) -> HostRequest[Status]:
        """Post a send of any buffer, or of a sequence of up to 256.

        Memory of more than 32 KiB must not change until the request has ended. ``context`` becomes that of the request;
        ``forget`` has the effect of calling :meth:`forget` at once.
        """
        return self._post_send(partner, data, match_info, context, listed=not forget)

    def issend(
        self,
        partner: Partner,
        data: Any,
        match_info: SupportsIndex = 0,
        *,
        context: Any = None,
        forget: bool = False,
    ) -> HostRequest[Status]:
        """Post a synchronous send, which ends only when the receiver has matched the message."""
        return self._post_send(partner, data, match_info, context, synchronous=True, listed=not forget)

    def ireceive(
        self,
        match_info: SupportsIndex | None = None,
        mask: SupportsIndex = ALL_BITS,
        *,
        buffer: Any = None,
        maximum: int | None = None,
        context: Any = None,
        forget: bool = False,
    ) -> HostRequest[Message]:
        """Post a receive for the first message whose match info, masked, is ``match_info``; None: for any message.

        The message goes into ``buffer``, any writable buffer or a sequence of up to 256, or into new memory of its
        length, at most ``maximum`` bytes.
        """
        if buffer is None and maximum is None:
            raise LocalProtocolError(
                Status.BAD_REQUEST, "a receive needs a buffer, or maximum=: the longest message it takes"
            )
        return self._post_receive(buffer, match_info, mask, maximum, context, listed=not forget)

    def iconnect(
        self,
        peer: Peer | str | bytes,
        endpoint: SupportsIndex = 0,
        key: SupportsIndex = DEFAULT_KEY,
        match_info: SupportsIndex = 0,
        *,
        context: Any = None,
        forget: bool = False,
    ) -> HostRequest[Partner]:
        """Post a connect to an endpoint of a host, given by the name of a known host or by Ethernet address.

        ``match_info`` selects the request in :meth:`test_next`. Raises
        :class:`~mxwire.protocol.status.LocalProtocolError` for an unknown name: see :meth:`Host.wait_for_peer
        <mxwire.host.Host.wait_for_peer>`.
        """
        core = self._core
        with core.section:
            core.must_be_open()
            found = self._owner.find_peer(peer)
            if found is None:
                raise LocalProtocolError(Status.PEER_NOT_FOUND, f"no host {peer!r} is known yet: wait for it")
            posted = HostConnect(self.engine.connect(found, endpoint, key, match_info=match_info), context)
            if self._queued:
                self._enlist(posted, not forget)
            core.transmit()
        return posted

    def test(self, request: HostRequest[Any]) -> bool:
        """Poll once, and return whether a request has ended; its ``result()`` then returns or raises the outcome."""
        if not request.done and self._core.ended is None:
            self._poll()
        if not request.done:
            return False
        if self.engine.reports_failures:
            # The error handler may be about to replace the status, within the section.
            with self._core.section:
                pass
        if self._queued:
            self._take(request)
        return True

    def ipeek(self) -> HostRequest[Any] | None:
        """Poll once, and return the request that has ended first, or None; the request stays in the queue.

        This and the following calls need an endpoint that was opened with ``completions=True``, and raise
        :class:`~mxwire.protocol.status.LocalProtocolError` otherwise. All requests enter its queue when they end,
        except those of calls that block, and leave the queue when their result is taken: by :meth:`test` or a wait for
        them, by :meth:`test_next`, or by :meth:`forget`.
        """
        self._poll()
        return self._next(0, 0, take=False)

    def test_next(
        self, match_info: SupportsIndex | None = None, mask: SupportsIndex = ALL_BITS
    ) -> HostRequest[Any] | None:
        """Poll once, and take the request with matching match info that has ended first; None if there is none.

        Requests of every kind are considered: sends and connects by the match info given to them, receives by that of
        the message. The ``status`` of the request may be an error.
        """
        value, mask = criteria(match_info, mask)
        self._poll()
        return self._next(value, mask, take=True)

    def forget(self, request: HostRequest[Any]) -> None:
        """Ignore the end of a request: the request continues, but does not enter the queue of :meth:`test_next`, or is
        removed from it."""
        with self._core.section:
            self.engine.forget(request.inner)
            request.inner.context = None

    def is_buffered(self, request: HostRequest[Any]) -> bool:
        """Return whether the data of a send was copied, so that its memory may be reused before the send has ended.

        Raises :class:`~mxwire.protocol.status.LocalProtocolError` for a request that is not a send.
        """
        return self.engine.is_buffered(request.inner)

    @property
    def completion_count(self) -> memoryview:
        """The number of requests that have entered the queue of this endpoint, as 64 bits at a fixed address.

        Code that runs without the interpreter may poll it.
        """
        if self.engine.completions is None:
            self.engine.completed()
        assert self.engine.completions is not None
        return memoryview(self.engine.completions.count)

    def set_timeout(self, seconds: float | None, request: HostRequest[Any] | None = None) -> None:
        """Set the time for which packets are retransmitted before their partner is abandoned.

        The time is rounded up to a number of retransmissions, of which there are two per second: 0 means none, None the
        profile's number. It applies to all later requests of the endpoint, or to one ``request``, and to the transfers
        of large messages. All unfinished requests with an abandoned partner end as unreachable. Raises
        :class:`~mxwire.protocol.status.LocalProtocolError` for a time that is negative or not a number.
        """
        with self._core.section:
            self.engine.set_timeout(seconds, None if request is None else request.inner)

    def fileno(self) -> int:
        """Descriptor for ``select``, ``poll``, and event loops, open until the endpoint is closed.

        It is readable while the queue of completed requests or that of unexpected messages has an entry, and after the
        end of the host; on a host without ``background`` also when it has a frame or a timer to process. It may be
        readable without any: call :meth:`test_next` or :meth:`iprobe` until it returns None. An endpoint without
        ``completions=True`` has no queue of completed requests.
        """
        with self._core.section:
            self._core.must_be_open()
            if self._readiness is None:
                self._readiness = Readiness(self._core, self.engine, self._owner.driven)
            return self._readiness.fileno()

    def wake_up(self) -> None:
        """End all calls that wait on this endpoint with :class:`~mxwire.host.errors.HostWakeupError`.

        The requests that they wait for continue, except those of a blocking connect or receive. Later calls wait as
        usual.
        """
        with self._core.section:
            for waiter in self._core.waiters:
                if waiter.endpoint is self:
                    waiter.interrupt()

    def suspend(self) -> None:
        """Stop the progress of the endpoint until :meth:`resume`, including in the background.

        Messages are neither matched, acked nor retransmitted; pulls and answers to pulls continue. If another thread
        runs the unexpected handler, wait for its end. Suspending again does nothing.
        """
        with self._core.section:
            self._core.must_be_open()
            self._core.section.await_handlers(self.engine)
            self.engine.suspended = True

    def resume(self) -> None:
        """Allow progress after :meth:`suspend`, and make progress."""
        with self._core.section:
            self._core.must_be_open()
            self.engine.suspended = False
            self._core.transmit(timely=True)

    def cancel(self, request: HostRequest[Any]) -> bool:
        """Cancel a receive that is not matched, or a connect that is not answered; return False otherwise.

        A cancelled request does not enter the queue of :meth:`test_next`.
        Raises :class:`~mxwire.protocol.status.LocalProtocolError` for a send.
        """
        with self._core.section:
            cancelled = self.engine.cancel(request.inner)
            if cancelled:
                request.inner.context = None
                request.cancelled()
                self._core.transmit()
            return cancelled

    def iprobe(self, match_info: SupportsIndex | None = None, mask: SupportsIndex = ALL_BITS) -> WaitingMessage | None:
        """Poll once, and return the message that a receive would take now, or None; the message stays queued."""
        value, mask = criteria(match_info, mask)
        self._poll()
        with self._core.section:
            return probe(self.engine, value, mask)

    def disconnect(self, partner: Partner) -> None:
        """Forget a partner and all unfinished requests with it; the partner is not notified (R-CLS-03)."""
        with self._core.section:
            self._core.must_be_open()
            self.engine.disconnect(partner)
            self._core.transmit()

    def handle_unexpected(self, handler: Handler | None) -> None:
        """Set the function that is called first with each unexpected message, and may consume it (R-MAT-06).

        A message is unexpected if no posted receive takes it; a blocking receive counts as posted. If the function
        returns False, matching is tried again, since the function may have posted the receive; without a match, the
        message is kept.

        The function is called on the thread that runs the loop, while the endpoint makes no progress; the other
        endpoints of the host continue, and other threads may call the host. The function may make all calls that do not
        wait, except those that close an endpoint or the host, which raise
        :class:`~mxwire.protocol.status.LocalProtocolError`. If it raises, the error is logged and the message kept.
        """
        with self._core.section:
            self.engine.handle_unexpected(None if handler is None else self._guarded(handler))

    def handle_errors(self, handler: ErrorHandler | None) -> None:
        """Set the function that is called with the error of each failed request; None selects the error handler of the
        host.

        Truncated messages count as failed, cancelled requests do not. The function is called on the thread that runs
        the loop, before the result of the request can be taken; it must not wait. A status that it returns replaces
        that of the request. If it raises, the error is logged.
        """
        with self._core.section:
            self._error_handler = handler
            self._update_error_reports()

    def _update_error_reports(self) -> None:
        """Report errors if there is a handler for them."""
        self.engine.reports_failures = (self._error_handler or self._owner.error_handler) is not None

    def _failed(self, inner: EngineRequest) -> None:
        """Call the error handler for a request that has ended with an error."""
        handler = self._error_handler or self._owner.error_handler
        if handler is None:
            return
        request = request_of(inner)
        try:
            replacement = handler(request.failure(inner.status))
        except Exception:
            _log.exception("an error handler has failed")
            return
        if replacement is not None:
            inner.status = replacement

    def _poll(self) -> None:
        self._owner.poll()
        if self._readiness is not None:
            with self._core.section:
                if self._core.ended is None:
                    self._core.update_readiness()

    # For the blocking and the asyncio endpoint.

    def _enlist(self, request: HostRequest[Any], listed: bool) -> None:
        """Let a new request enter the queue of completed requests when it ends, if ``listed``; otherwise keep it
        out."""
        if listed:
            request.inner.context = request
        else:
            self.engine.forget(request.inner)

    def _take(self, *requests: HostRequest[Any]) -> None:
        """Remove requests from the queue, since their results have been taken."""
        if self._queued:
            for each in requests:
                self.forget(each)

    def _must_own(self, requests: Sequence[HostRequest[Any]]) -> None:
        """Raise unless all requests can be taken from the queue of this endpoint."""
        if self._queued and any(each.inner.endpoint is not self.engine for each in requests):
            raise LocalProtocolError(
                Status.BAD_REQUEST,
                "a request of another endpoint: an endpoint that keeps completed requests waits for its own only",
            )

    def _restore(self, request: HostRequest[Any]) -> None:
        """Put a request that was taken into the queue again."""
        assert self.engine.completions is not None
        self._enlist(request, True)
        self.engine.completions.add(request.inner)

    def _next(self, value: SupportsIndex, mask: SupportsIndex, *, take: bool) -> HostRequest[Any] | None:
        with self._core.section:
            found = self.engine.completed(value, mask)
            if found is None:
                return None
            request = request_of(found)
            if take:
                self._take(request)
            return request

    def _guarded(self, handler: Handler) -> Handler:
        """A handler whose errors are logged."""

        def guarded(message: Unexpected) -> bool:
            try:
                return bool(handler(message))
            except Exception:
                _log.exception("an unexpected handler has failed")
                return False

        return guarded

    def _post_send(
        self,
        partner: Partner,
        data: Any,
        match_info: SupportsIndex,
        context: Any = None,
        *,
        synchronous: bool = False,
        listed: bool = True,
    ) -> HostSend:
        core = self._core
        with core.section:
            core.must_be_open()
            posted = HostSend(self.engine.send(partner, data, match_info, synchronous=synchronous), context)
            if self._queued:
                self._enlist(posted, listed)
            core.transmit()
        return posted

    def _post_receive(
        self,
        buffer: Any,
        match_info: SupportsIndex | None,
        mask: SupportsIndex,
        maximum: int | None,
        context: Any = None,
        *,
        single: bool = False,
        listed: bool = True,
    ) -> HostReceive:
        """Post a receive; without ``buffer`` its memory is allocated when a message is matched.

        A ``single`` receive is for one wait only, and not in the queue of completed requests.
        """
        value, mask = (0, 0) if match_info is None else (match_info, mask)
        if maximum is None or buffer is not None:
            maximum = LENGTH_MAXIMUM
        core = self._core
        request: Receive | None = None
        try:
            with core.section:
                core.must_be_open()
                inner = self.engine.receive(buffer, value, mask, maximum)
                request = inner
                # The memory of a receive is writable, so its only segment is a view.
                view: Any = None if buffer is None else inner.memory.only
                posted = PendingReceive(inner, view, context) if single else HostReceive(inner, view, context)
                if self._queued:
                    self._enlist(posted, listed and not single)
                if not inner.waiting:
                    core.transmit()
        except BaseException:
            # A deferred interrupt is raised at the end of the section. The caller then never sees the request, so it
            # must not take a message.
            if request is not None:
                with core.section:
                    self.engine.cancel(request)
            raise
        return posted

    def _close(self) -> None:
        with self._core.section:
            if self.engine.open and self._core.section.in_handler:
                raise LocalProtocolError(
                    Status.NOT_SUPPORTED_IN_HANDLER, "an unexpected handler may not close an endpoint or a host"
                )
            self._core.section.await_handlers(self.engine)
            if not self.engine.open:
                return
            if self._readiness is not None:
                self._readiness.close()
                self._readiness = None
            self.engine.close()
            if self._core.ended is None:
                self._core.transmit()
            self._owner.forget_endpoint(self)


class RequestTaker:
    """Takes requests from the queue at the end of a wait for them, unless the wait has timed out or was interrupted."""

    __slots__ = ("_endpoint", "_requests")

    def __init__(self, endpoint: BaseEndpoint, requests: Sequence[HostRequest[Any]]) -> None:
        self._endpoint = endpoint
        self._requests = requests

    def __enter__(self) -> None:
        """Refuse requests of other endpoints, which could not be taken at the end."""
        self._endpoint._must_own(self._requests)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the requests."""
        if error is None or (isinstance(error, HostError) and not isinstance(error, HostTimeoutError)):
            self._endpoint._take(*self._requests)
