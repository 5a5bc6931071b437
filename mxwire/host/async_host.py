"""Hosts for asyncio: a ``BaseHost`` that the event loop runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from types import TracebackType

from mxwire.host.async_endpoint import AsyncEndpoint
from mxwire.host.attachment import Attachment
from mxwire.host.driver import AsyncioDriver
from mxwire.host.host import DEFAULT_PROFILE, BaseHost, open_links
from mxwire.host.peer_names import Peers, peer_key
from mxwire.host.sharing import MachineSharing
from mxwire.host.waits import PendingPeer
from mxwire.link import Link, LinkKind
from mxwire.protocol import Event, Peer, Profile
from mxwire.wire.dialect import MXOE, Dialect
from mxwire.wire.numbers import DEFAULT_KEY


class AsyncHost(BaseHost):
    """A live host for asyncio, on one or more links, run by the event loop that is running when the host is created.

    All calls are made from that loop's thread. Arguments, errors and meanings are those of :class:`Host`; there is no
    ``spin``, and the event loop takes the place of the background thread.
    """

    def __init__(
        self,
        links: Link | Sequence[Link],
        *,
        name: str | None = None,
        dialect: Dialect | str = MXOE,
        profile: Profile | str = DEFAULT_PROFILE,
        peers: Peers | None = None,
        announce: bool = True,
        on_event: Callable[[Event], object] | None = None,
        rng: Random | None = None,
        small_mtu: bool = False,
        sharing: MachineSharing | None = None,
        attachment: Attachment | None = None,
    ) -> None:
        super().__init__(links, name, dialect, profile, peers, announce, on_event, rng, small_mtu, sharing, attachment)
        self.driver = AsyncioDriver(self.core)
        """Runs the host on the event loop."""
        self._report_state(self.driver)

    @classmethod
    def open(
        cls,
        interfaces: str | Sequence[str],
        *,
        name: str | None = None,
        dialect: Dialect | str = MXOE,
        profile: Profile | str = DEFAULT_PROFILE,
        peers: Peers | None = None,
        announce: bool = True,
        on_event: Callable[[Event], object] | None = None,
        rng: Random | None = None,
        small_mtu: bool = False,
        link: LinkKind | str = LinkKind.PACKET,
        agent: bool | str = False,
    ) -> AsyncHost:
        """Open a host on ``interfaces`` of this machine, by name; the other arguments are those of :class:`AsyncHost`.

        ``link`` and ``agent`` are those of :meth:`Host.open`.

        Raises :class:`~mxwire.link.errors.LinkError` for an interface that does not exist, or that this process may
        not use.
        """
        with open_links(interfaces, link, agent=agent) as (links, sharing, attachment):
            return cls(
                links,
                name=name,
                dialect=dialect,
                profile=profile,
                peers=peers,
                announce=announce,
                on_event=on_event,
                rng=rng,
                small_mtu=small_mtu,
                sharing=sharing,
                attachment=attachment,
            )

    def open_endpoint(
        self,
        number: int | None = None,
        key: int = DEFAULT_KEY,
        *,
        interface: int | str = 0,
        session: int | None = None,
        context_bits: int = 0,
        context_shift: int = 0,
        completions: bool = False,
        acked_sends: bool = False,
    ) -> AsyncEndpoint:
        """Open an endpoint: see :meth:`Host.open_endpoint <mxwire.host.Host.open_endpoint>`."""
        endpoint: AsyncEndpoint = self._open_endpoint(
            AsyncEndpoint,
            number,
            key,
            interface,
            session=session,
            context_bits=context_bits,
            context_shift=context_shift,
            completions=completions,
            acked_sends=acked_sends,
        )
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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the host."""
        self.close()
