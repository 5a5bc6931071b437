"""Host: a live host with a blocking interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from types import TracebackType

from mxwire.host import names
from mxwire.host.driving import Driving
from mxwire.host.endpoint import Endpoint
from mxwire.host.interfaces import Opened
from mxwire.host.names import Peers
from mxwire.host.opening import DEFAULT_PROFILE, HostCalls, Hosting
from mxwire.host.seeking import PeerAppears
from mxwire.host.sharing import Sharing
from mxwire.link import Link
from mxwire.protocol import Event, Peer, Profile
from mxwire.wire.dialect import MXOE, Dialect
from mxwire.wire.numbers import DEFAULT_KEY


class Host(HostCalls):
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
        sharing: Sharing | None = None,
    ) -> None:
        hosting = Hosting(
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
        super().__init__(hosting)
        self.driving = Driving(self.core, spin=spin, background=background)
        """Runs the host for callers that block."""
        self.hosting.poke = self.driving.poke

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
        with Opened(interfaces, spin=spin) as opened:
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
        """Open an endpoint; without a number the lowest that is free. ``interface`` is a name, or counted from 0.

        Raises :class:`~mxwire.errors.MxwireError` where it is open already, here or in another process.
        """
        endpoint: Endpoint = self.hosting.open(Endpoint, number, key, interface, session)
        endpoint.host = self
        return endpoint

    def wait_for_peer(self, which: str | bytes, timeout: float | None = None) -> Peer:
        """Wait until a host, given by name or address, has told its name.

        Raises :class:`~mxwire.host.errors.HostTimeoutError` with the hosts that were seen instead.
        """
        return self.driving.wait(PeerAppears(self.hosting, names.who(which)), timeout)

    def close(self) -> None:
        """Close all endpoints and links, and end all waits, also in other threads; calling it again does nothing."""
        self.hosting.shut()
        self.driving.close()
        self.hosting.give_back()

    def __enter__(self) -> Host:
        """The host itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()
