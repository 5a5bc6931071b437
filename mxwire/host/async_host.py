"""AsyncHost: the asyncio face of a live host; names and meanings are those of the blocking one."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Unpack

from mxwire.host import names
from mxwire.host.async_endpoint import AsyncEndpoint
from mxwire.host.calls import DEFAULT_KEY
from mxwire.host.interfaces import Opened
from mxwire.host.opening import HostCalls, Options
from mxwire.host.seeking import PeerAppears
from mxwire.host.sharing import Sharing
from mxwire.host.turning import Turning
from mxwire.link import Link
from mxwire.protocol import Peer


class AsyncHost(HostCalls):
    """A host on one or more links, turned by the event loop that runs when it is made; its thread makes all calls.

    What it may be told is in :class:`~mxwire.host.opening.Options`; there is no spinning, and the background is the
    event loop.
    """

    def __init__(
        self, links: Link | Sequence[Link], *, sharing: Sharing | None = None, **options: Unpack[Options]
    ) -> None:
        super().__init__(links, sharing, options)
        self.turning = Turning(self.core)
        """Who turns it."""

    @classmethod
    def open(cls, interfaces: str | Sequence[str], **options: Unpack[Options]) -> AsyncHost:
        """A host on interfaces of this machine, given by name.

        Raises :class:`~mxwire.link.errors.LinkError` where there is no such interface, or no permission to use it.
        """
        with Opened(interfaces) as opened:
            host = cls(opened.links, sharing=opened.sharing, **options)
            opened.keep()
        return host

    def open_endpoint(
        self,
        number: int | None = None,
        key: int = DEFAULT_KEY,
        *,
        interface: int | str = 0,
        session: int | None = None,
    ) -> AsyncEndpoint:
        """Open an endpoint; without a number the lowest that is free. ``interface`` is a name, or counted from 0.

        Raises :class:`~mxwire.errors.MxwireError` where it is open already, here or in another process.
        """
        endpoint: AsyncEndpoint = self.hosting.open(AsyncEndpoint, number, key, interface, session)
        endpoint.host = self
        return endpoint

    async def wait_for_peer(self, which: str | bytes, timeout: float | None = None) -> Peer:
        """Wait until a host, given by name or address, has told its name.

        Raises :class:`~mxwire.host.errors.HostTimeoutError` with the hosts that were seen instead.
        """
        return await self.turning.wait(PeerAppears(self.hosting, names.who(which)), timeout)

    def close(self) -> None:
        """Close all endpoints and links, and end all waits of other tasks; calling it again does nothing."""
        self.hosting.shut()
        self.turning.close()
        self.hosting.give_back()

    async def __aenter__(self) -> AsyncHost:
        """The host itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()
