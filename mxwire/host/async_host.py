"""Hosts for asyncio: a ``BaseHost`` that the event loop runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from mxwire.host.async_endpoint import AsyncEndpoint
from mxwire.host.base_host import BaseHost, enter_origin, open_links
from mxwire.host.driver import AsyncioDriver
from mxwire.host.options import HostOptions
from mxwire.host.peer_names import peer_key
from mxwire.host.waits import PendingPeer
from mxwire.link import Link, LinkKind
from mxwire.protocol import Peer
from mxwire.protocol.library.endpoint import EndpointOptions
from mxwire.wire.numbers import DEFAULT_KEY


class AsyncHost(BaseHost):
    """A live host for asyncio, on one or more links, run by the event loop that is running when the host is created.

    All calls are made from that loop's thread. Options are those of :class:`~mxwire.host.HostOptions`, errors and
    meanings those of :class:`Host`; the event loop takes the place of the background thread.
    """

    def __init__(self, links: Link | Sequence[Link], **options: Unpack[HostOptions]) -> None:
        super().__init__(links, **options)
        self.driver = AsyncioDriver(self.core)
        """Runs the host on the event loop."""
        self._report_state(self.driver)

    @classmethod
    def open(
        cls,
        interfaces: str | Sequence[str],
        *,
        link: LinkKind | str = LinkKind.PACKET,
        agent: bool | str = False,
        **options: Unpack[HostOptions],
    ) -> AsyncHost:
        """Open a host on ``interfaces`` of this machine, by name; the options are those of :class:`AsyncHost`.

        ``link`` and ``agent`` are those of :meth:`Host.open`.

        Raises :class:`~mxwire.link.errors.LinkError` for an interface that does not exist, or that this process may
        not use.
        """
        with open_links(interfaces, link, agent=agent) as (links, sharing, attachment):
            enter_origin(options, sharing, attachment)
            return cls(links, **options)

    def open_endpoint(
        self,
        number: int | None = None,
        key: int = DEFAULT_KEY,
        *,
        interface: int | str = 0,
        **options: Unpack[EndpointOptions],
    ) -> AsyncEndpoint:
        """Open an endpoint: see :meth:`Host.open_endpoint <mxwire.host.Host.open_endpoint>`."""
        endpoint: AsyncEndpoint = self._open_endpoint(AsyncEndpoint, number, key, interface, **options)
        endpoint.host = self
        return endpoint

    async def wait_for_peer(self, which: str | bytes, timeout: float | None = None) -> Peer:
        """Wait until the name of a host, given by name or address, is known.

        Raises :class:`~mxwire.host.errors.HostTimeoutError` with the hosts seen instead.
        """
        return await self.driver.wait(PendingPeer(self, peer_key(which)), timeout)

    def close(self) -> None:
        """Close all endpoints and links, and end all waits of other tasks; closing it again does nothing."""
        self._end()
        self.driver.close()
        self._close_links()

    async def __aenter__(self) -> AsyncHost:
        """Return self."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the host."""
        self.close()
