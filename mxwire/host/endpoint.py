"""Endpoint: an endpoint with blocking calls."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar

from mxwire.host.base_endpoint import (
    CONNECT_TIMEOUT,
    LINGER,
    BaseEndpoint,
    PendingAcks,
    PendingProbe,
    PendingReceive,
    require_nonempty,
)
from mxwire.host.discovery import PendingConnect
from mxwire.host.errors import HostError
from mxwire.host.requests import AllOf, AnyOf, HostRequest, Message, WaitingMessage
from mxwire.protocol import ALL_BITS, Partner, Peer
from mxwire.wire.numbers import DEFAULT_KEY

if TYPE_CHECKING:
    from mxwire.host.host import Host

Result = TypeVar("Result")


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
        self.host.driver.wait(self._send(partner, data, match_info), timeout)

    def ssend(
        self, partner: Partner, data: Any, match_info: SupportsIndex = 0, *, timeout: float | None = None
    ) -> None:
        """Send a message, and block until the receiver has matched and received it, whatever its length."""
        self.host.driver.wait(self._send(partner, data, match_info, synchronous=True), timeout)

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
        return self.host.driver.wait(
            PendingReceive(self, self._post_receive(buffer, match_info, mask, maximum)), timeout
        )

    def probe(
        self, match_info: SupportsIndex | None = None, mask: SupportsIndex = ALL_BITS, *, timeout: float | None = None
    ) -> WaitingMessage:
        """Wait until there is a message that such a receive would take, and return its envelope; it stays queued."""
        return self.host.driver.wait(PendingProbe(self, match_info, mask), timeout)

    def wait(self, request: HostRequest[Result], timeout: float | None = None) -> Result:
        """Wait until a request has ended; return the message of a receive, or the status of a send."""
        return self.host.driver.wait(request, timeout)

    def wait_any(self, requests: Sequence[HostRequest[Any]], timeout: float | None = None) -> HostRequest[Any]:
        """Wait until one of several requests has ended, and return the first that has; see its ``result()``."""
        found = self.host.driver.wait(AnyOf(require_nonempty(requests)), timeout)
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
