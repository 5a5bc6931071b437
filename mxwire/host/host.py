"""Hosts with a driver for callers that block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from mxwire.host.base_host import BaseHost, enter_origin, open_links
from mxwire.host.driver import BlockingDriver
from mxwire.host.endpoint import Endpoint
from mxwire.host.options import BlockingHostOptions, HostOptions
from mxwire.host.peer_names import peer_key
from mxwire.host.waits import PendingPeer
from mxwire.link import Link, LinkKind
from mxwire.protocol import Peer
from mxwire.protocol.library.endpoint import EndpointOptions
from mxwire.wire.numbers import DEFAULT_KEY


class Host(BaseHost):
    """A live host with a blocking interface, on one or more links.

    For interfaces of the kernel there is :meth:`open`; ``links`` are for other links, which the host closes when it is
    closed. A caller that waits polls the links itself, so no thread switch is needed; with ``background`` a thread does
    so while no caller waits. All options are those of :class:`~mxwire.host.HostOptions` and
    :class:`~mxwire.host.BlockingHostOptions`.

    Raises :class:`~mxwire.errors.MxwireError` for a name, dialect, profile or peers that are not valid and for a link
    whose MTU is too small for the dialect, and :class:`TypeError` for arguments of other types.
    """

    def __init__(
        self,
        links: Link | Sequence[Link],
        *,
        spin: bool | float = False,
        background: bool = True,
        **options: Unpack[HostOptions],
    ) -> None:
        super().__init__(links, **options)
        self.driver = BlockingDriver(self.core, spin=spin, background=background)
        """Runs the host for callers that block."""
        self._report_state(self.driver)

    @classmethod
    def open(
        cls,
        interfaces: str | Sequence[str],
        *,
        link: LinkKind | str = LinkKind.PACKET,
        agent: bool | str = False,
        **options: Unpack[BlockingHostOptions],
    ) -> Host:
        """Open a host on ``interfaces`` of this machine, by name; the options are those of :class:`Host`.

        ``link`` is "packet" (AF_PACKET), "xdp" (AF_XDP, which takes all frames of MXoE from other programs) or
        "xdp-send" (AF_XDP to send large messages, AF_PACKET for all else).

        With ``agent`` the endpoints are those of the agent of these interfaces (``mxwire agent``), and the application
        needs no permission for the interface. With True or "match" messages progress while the application computes;
        with "card" only the card's side is in the agent, and the library runs in the calls of the application, as
        beside a real card. Name, dialect and profile are those of the agent, and must be equal to it if they are given;
        ``peers`` are added to its table, and ``link``, ``rng`` and ``small_mtu`` have no effect.

        Raises :class:`~mxwire.link.errors.LinkError` for an interface that does not exist, or that this process may
        not use, and for one without an agent, besides the errors of :class:`Host`.
        """
        with open_links(interfaces, link, options.get("spin", False), agent) as (links, sharing, attachment):
            enter_origin(options, sharing, attachment)
            make: Any = cls
            opened: Host = make(links, **options)
            return opened

    def open_endpoint(
        self,
        number: int | None = None,
        key: int = DEFAULT_KEY,
        *,
        interface: int | str = 0,
        **options: Unpack[EndpointOptions],
    ) -> Endpoint:
        """Open an endpoint; without a number the lowest free one. ``interface`` is a name, or an index from 0.

        With ``completions=True`` requests that have ended enter a queue, see :meth:`Endpoint.ipeek
        <mxwire.host.Endpoint.ipeek>`; all options are those of :class:`~mxwire.host.EndpointOptions`.

        Raises :class:`~mxwire.errors.MxwireError` if the endpoint is open already, in this process or another.
        """
        endpoint: Endpoint = self._open_endpoint(Endpoint, number, key, interface, **options)
        endpoint.host = self
        return endpoint

    def wait_for_peer(self, which: str | bytes, timeout: float | None = None) -> Peer:
        """Wait until the name of a host, given by name or address, is known.

        Raises :class:`~mxwire.host.errors.HostTimeoutError` with the hosts seen instead.
        """
        return self.driver.wait(PendingPeer(self, peer_key(which)), timeout)

    def poll(self) -> None:
        """Poll the links once without blocking, unless a waiting thread does so."""
        self.driver.poll()

    @property
    def driven(self) -> bool:
        """True if a background thread runs the host while no caller waits."""
        return self.driver.background

    def close(self) -> None:
        """Close all endpoints and links, and end all waits, even in other threads; closing it again does nothing."""
        self._end()
        self.driver.close()
        self._close_links()

    def __enter__(self) -> Host:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the host."""
        self.close()
