"""Endpoints whose calls block.

A call that waits hands a ``Pending`` (``waits.py``) to the driver of its host, which runs the host until it is ready.
The calls that never wait are in ``base_endpoint.py``, the endpoint for asyncio in ``async_endpoint.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, SupportsIndex, TypeVar

from mxwire.host.base_endpoint import CONNECT_TIMEOUT, LINGER, BaseEndpoint, RequestTaker
from mxwire.host.errors import HostError
from mxwire.host.requests import AllOf, AnyOf, HostRequest, Message, WaitingMessage
from mxwire.host.waits import PendingAcks, PendingConnect, PendingNext, PendingProbe, criteria
from mxwire.protocol import ALL_BITS, Partner, Peer, Status
from mxwire.wire.numbers import DEFAULT_KEY

if TYPE_CHECKING:
    from mxwire.host.host import Host


Result = TypeVar("Result")
_SUCCESS: Final = Status.SUCCESS


class Endpoint(BaseEndpoint):
    """An open endpoint. All calls may be made from any thread; ``timeout`` is in seconds, None waits without limit.

    Calls raise :class:`~mxwire.protocol.status.LocalProtocolError` for invalid arguments (which is a :class:`TypeError`
    too for those of a wrong type), :class:`~mxwire.host.errors.HostTimeoutError` after the timeout,
    :class:`~mxwire.host.errors.HostClosedError` when the endpoint or its host is closed, and other subclasses of
    :class:`~mxwire.host.errors.HostError` if the remote host has failed or refused.
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
        return self.host.driver.wait(PendingConnect(self, peer, endpoint, key), timeout, self)

    def send(self, partner: Partner, data: Any, match_info: SupportsIndex = 0, *, timeout: float | None = None) -> None:
        """Send a message, and block until the memory of ``data`` may be reused.

        ``data`` is a bytes-like object, or a sequence of up to 256 of them. Up to 32 KiB it is copied, and the call
        returns at once. Longer messages are pulled by the receiver, so the call blocks until the receiver has posted a
        matching receive and has pulled all of it: two hosts that both send first wait for each other, which
        :meth:`isend` avoids. To know that a message was delivered, call :meth:`flush`.
        """
        self.wait(self._post_send(partner, data, match_info, listed=False), timeout)

    def ssend(
        self, partner: Partner, data: Any, match_info: SupportsIndex = 0, *, timeout: float | None = None
    ) -> None:
        """Send a message, and block until the receiver has matched and received it, whatever its length."""
        self.wait(self._post_send(partner, data, match_info, synchronous=True, listed=False), timeout)

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
        ``partner`` is the sender, to reply to. A timeout loses no message; if a message was already being transferred,
        wait again for the ``request`` of the error.
        """
        receive = self._post_receive(buffer, match_info, mask, maximum, single=True)
        return self.host.driver.wait(receive, timeout, self)

    def probe(
        self, match_info: SupportsIndex | None = None, mask: SupportsIndex = ALL_BITS, *, timeout: float | None = None
    ) -> WaitingMessage:
        """Wait for a message that a receive with these arguments would take, and return its envelope; the message stays
        queued."""
        return self.host.driver.wait(PendingProbe(self, match_info, mask), timeout, self)

    def wait(self, request: HostRequest[Result], timeout: float | None = None) -> Result:
        """Wait until a request has ended; return the message of a receive, or the status of a send."""
        if request.status is _SUCCESS and self._core.ended is None:
            # The section is not needed, because a successful request does not change any more. A cancelled request is
            # marked after its end.
            if self._queued:
                self._take(request)
            return request.result()
        if not self._queued:
            return self.host.driver.wait(request, timeout, self)
        with RequestTaker(self, (request,)):
            return self.host.driver.wait(request, timeout, self)

    def wait_any(self, requests: Sequence[HostRequest[Any]], timeout: float | None = None) -> HostRequest[Any]:
        """Wait until one of several requests has ended, and return the first such request; see its ``result()``."""
        self._must_own(requests)
        found = self.host.driver.wait(AnyOf(requests), timeout, self)
        assert isinstance(found, HostRequest)
        self._take(found)
        return found

    def wait_all(self, requests: Sequence[HostRequest[Any]], timeout: float | None = None) -> list[Any]:
        """Wait until all requests have ended, and return their results; raise the error of the first that failed."""
        with RequestTaker(self, requests):
            return self.host.driver.wait(AllOf(requests), timeout, self)

    def peek(self, timeout: float | None = None) -> HostRequest[Any]:
        """Wait until a request has ended, and return the first such request; it stays in the queue of :meth:`ipeek`."""
        return self.host.driver.wait(PendingNext(self, 0, 0, take=False), timeout, self)

    def wait_next(
        self,
        match_info: SupportsIndex | None = None,
        mask: SupportsIndex = ALL_BITS,
        timeout: float | None = None,
    ) -> HostRequest[Any]:
        """Wait until a request with matching match info has ended, and take the first such request, as
        :meth:`test_next`."""
        return self.host.driver.wait(PendingNext(self, *criteria(match_info, mask), take=True), timeout, self)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all messages sent so far have been acknowledged.

        Raises :class:`~mxwire.host.errors.HostError` if one was lost because its receiver has gone.
        """
        self.host.driver.wait(PendingAcks(self), timeout, self)

    def close(self, linger: float = 0.0) -> None:
        """Close the endpoint, after at most ``linger`` seconds of waiting for acks; closing it again does nothing.

        Requests that have not ended are cancelled. Partners are not notified: the protocol has no packet for that.
        """
        if linger and not self.closed:
            # Undelivered messages are not reported here; flush does that.
            with suppress(HostError):
                self.flush(linger)
        self._close()

    def __enter__(self) -> Endpoint:
        """Return self."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the endpoint; without an exception, first wait for all acks, at most ``LINGER`` seconds."""
        self.close(LINGER if kind is None else 0.0)
