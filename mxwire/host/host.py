"""Host: a live host with a blocking interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from types import TracebackType

from mxwire.host import names
from mxwire.host.base_host import DEFAULT_PROFILE, BaseHost, OpenedInterfaces
from mxwire.host.discovery import PendingPeer
from mxwire.host.driver import BlockingDriver
from mxwire.host.endpoint import Endpoint
from mxwire.host.names import Peers
from mxwire.host.sharing import HostSharing
from mxwire.link import Link
from mxwire.protocol import Event, Peer, Profile
from mxwire.wire.dialect import MXOE, Dialect
from mxwire.wire.numbers import DEFAULT_KEY


class Host(BaseHost):
    """A live host with a blocking interface, on one or more links.

    For interfaces of the kernel there is :meth:`open`; ``links`` are for other links, which the host closes when it is
    closed. A caller that waits polls the links itself, so no thread switch is needed; with ``background`` a thread does
    so while no caller waits. ``spin`` makes waits poll without sleeping: for that many seconds after the last frame, or
    always with True.

    ``name`` is the host name, with or without ``:0``; by default that of the machine. ``dialect`` is ``MXOE``,
    ``omx(M)`` or a name such as ``"omx:9000"``; all hosts on a network must use the same. ``profile`` is the
    implementation whose behaviour to follow, as such or by name. ``peers`` are static peers: names by address, or a
    file with one address and name per line. With ``announce=False`` the host does not announce itself, and is reached
    only by hosts that know its address. ``on_event`` is called for each peer found and partner lost, on the thread that
    polls the links; it must not block. ``rng`` is the source of randomness. ``small_mtu=True`` accepts a link whose MTU
    is too small for the longest frames of the dialect.

    Raises :class:`~mxwire.errors.MxwireError` for a name, dialect, profile or peers that are not valid and for a link
    whose MTU is too small for the dialect, and :class:`TypeError` for arguments of other types.
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
        spin: bool | float = False,
        background: bool = True,
        sharing: HostSharing | None = None,
    ) -> None:
        super().__init__(
            links,
            sharing=sharing,
            name=name,
            dialect=dialect,
            profile=profile,
            peers=peers,
            announce=announce,
            on_event=on_event,
            rng=rng,
            small_mtu=small_mtu,
        )
        self.driver = BlockingDriver(self.core, spin=spin, background=background)
        """Runs the host for callers that block."""

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
        spin: bool | float = False,
        background: bool = True,
    ) -> Host:
        """Open a host on ``interfaces`` of this machine, by name; the other arguments are those of :class:`Host`.

        Raises :class:`~mxwire.link.errors.LinkError` for an interface that does not exist, or that this process may
        not use, besides the errors of :class:`Host`.
        """
        with OpenedInterfaces(interfaces, spin=spin) as opened:
            host = cls(
                opened.links,
                name=name,
                dialect=dialect,
                profile=profile,
                peers=peers,
                announce=announce,
                on_event=on_event,
                rng=rng,
                small_mtu=small_mtu,
                spin=spin,
                background=background,
                sharing=opened.sharing,
            )
            opened.keep()
        return host

    def open_endpoint(
        self,
        number: int | None = None,
        key: int = DEFAULT_KEY,
        *,
        interface: int | str = 0,
        session: int | None = None,
    ) -> Endpoint:
        """Open an endpoint; without a number the lowest free one. ``interface`` is a name, or an index from 0.

        Raises :class:`~mxwire.errors.MxwireError` if it is open already, here or in another process.
        """
        endpoint: Endpoint = self._open_endpoint(Endpoint, number, key, interface, session)
        endpoint.host = self
        return endpoint

    def wait_for_peer(self, which: str | bytes, timeout: float | None = None) -> Peer:
        """Wait until the name of a host, given by name or address, is known.

        Raises :class:`~mxwire.host.errors.HostTimeoutError` with the hosts seen instead.
        """
        return self.driver.wait(PendingPeer(self, names.peer_key(which)), timeout)

    def poll(self) -> None:
        """Poll the links once without blocking, unless a waiting thread does so."""
        self.driver.poll()

    def close(self) -> None:
        """Close all endpoints and links, and end all waits, also in other threads; closing it again does nothing."""
        self._end()
        self.driver.close()
        self._close_links()

    def __enter__(self) -> Host:
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the host."""
        self.close()
