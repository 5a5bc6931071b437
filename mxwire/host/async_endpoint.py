"""Endpoints for asyncio: the calls of ``Endpoint``, as coroutines where they wait."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar

from mxwire.host.base_endpoint import CONNECT_TIMEOUT, LINGER, BaseEndpoint, RequestTaker
from mxwire.host.errors import HostError
from mxwire.host.requests import AllOf, AnyOf, HostRequest, Message, WaitingMessage
from mxwire.host.waits import PendingAcks, PendingConnect, PendingNext, PendingProbe, criteria
from mxwire.protocol import ALL_BITS, Partner, Peer
from mxwire.wire.numbers import DEFAULT_KEY

if TYPE_CHECKING:
    from mxwire.host.async_host import AsyncHost

Result = TypeVar("Result")


class AsyncEndpoint(BaseEndpoint):
    """An open endpoint. All calls are made from the thread of the event loop; ``timeout`` is in seconds, None waits
    without limit. Cancelling a task that waits cancels the receive or connect that it waits for; a message that has
    arrived by then stays for the next receive, unless it was truncated. Errors are those of
    :class:`~mxwire.host.Endpoint`.
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
        return await self.host.driver.wait(PendingConnect(self, peer, endpoint, key), timeout, self)

    async def send(
        self, partner: Partner, data: Any, match_info: SupportsIndex = 0, *, timeout: float | None = None
    ) -> None:
        """Send a message, and wait until the memory of ``data`` may be reused: above 32 KiB, until the receiver has
        pulled it.

        See :meth:`Endpoint.send <mxwire.host.Endpoint.send>`.
        """
        await self.wait(self._post_send(partner, data, match_info, listed=False), timeout)

    async def ssend(
        self, partner: Partner, data: Any, match_info: SupportsIndex = 0, *, timeout: float | None = None
    ) -> None:
        """Send a message, and wait until the receiver has matched and received it, whatever its length."""
        await self.wait(self._post_send(partner, data, match_info, synchronous=True, listed=False), timeout)

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

        See :meth:`Endpoint.receive <mxwire.host.Endpoint.receive>`.
        """
        receive = self._post_receive(buffer, match_info, mask, maximum, single=True)
        return await self.host.driver.wait(receive, timeout, self)

    async def probe(
        self, match_info: SupportsIndex | None = None, mask: SupportsIndex = ALL_BITS, *, timeout: float | None = None
    ) -> WaitingMessage:
        """Wait for a message that a receive with these arguments would take, and return its envelope; the message stays
        queued."""
        return await self.host.driver.wait(PendingProbe(self, match_info, mask), timeout, self)

    async def wait(self, request: HostRequest[Result], timeout: float | None = None) -> Result:
        """Wait until a request has ended; return the message of a receive, or the status of a send."""
        with RequestTaker(self, (request,)):
            if request.done and self._core.ended is None:
                return request.result()
            return await self.host.driver.wait(request, timeout, self)

    async def wait_any(self, requests: Sequence[HostRequest[Any]], timeout: float | None = None) -> HostRequest[Any]:
        """Wait until one of several requests has ended, and return the first such request; see its ``result()``."""
        self._must_own(requests)
        found = await self.host.driver.wait(AnyOf(requests), timeout, self)
        assert isinstance(found, HostRequest)
        self._take(found)
        return found

    async def wait_all(self, requests: Sequence[HostRequest[Any]], timeout: float | None = None) -> list[Any]:
        """Wait until all requests have ended, and return their results; raise the error of the first that failed."""
        with RequestTaker(self, requests):
            return await self.host.driver.wait(AllOf(requests), timeout, self)

    async def peek(self, timeout: float | None = None) -> HostRequest[Any]:
        """Wait until a request has ended, and return the first such request; it stays in the queue of :meth:`ipeek`."""
        return await self.host.driver.wait(PendingNext(self, 0, 0, take=False), timeout, self)

    async def wait_next(
        self,
        match_info: SupportsIndex | None = None,
        mask: SupportsIndex = ALL_BITS,
        timeout: float | None = None,
    ) -> HostRequest[Any]:
        """Wait until a request with matching match info has ended, and take the first such request, as
        :meth:`test_next`."""
        return await self.host.driver.wait(PendingNext(self, *criteria(match_info, mask), take=True), timeout, self)

    async def flush(self, timeout: float | None = None) -> None:
        """Wait until all messages sent so far have been acknowledged.

        Raises :class:`~mxwire.host.errors.HostError` if one was lost because its receiver has gone.
        """
        await self.host.driver.wait(PendingAcks(self), timeout, self)

    async def close(self, linger: float = 0.0) -> None:
        """Close the endpoint, after at most ``linger`` seconds of waiting for acks; closing it again does nothing.

        Requests that have not ended are cancelled. Partners are not notified: the protocol has no packet for that.
        """
        if linger and not self.closed:
            # Undelivered messages are not reported here; flush does that.
            with suppress(HostError):
                await self.flush(linger)
        self._close()

    async def __aenter__(self) -> AsyncEndpoint:
        """Return self."""
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the endpoint; without an exception, first wait for all acks, at most ``LINGER`` seconds."""
        await self.close(LINGER if kind is None else 0.0)
