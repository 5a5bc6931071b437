"""Host: the blocking face of a live host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from types import TracebackType

from mxwire.host import names
from mxwire.host.calls import DEFAULT_KEY
from mxwire.host.driving import Driving
from mxwire.host.endpoint import Endpoint
from mxwire.host.interfaces import Opened
from mxwire.host.opening import Hosting, KnownPeer
from mxwire.host.seeking import PeerAppears
from mxwire.host.sharing import Sharing
from mxwire.link import Link
from mxwire.protocol import Event, Peer, Profile
from mxwire.wire.address import mac_text
from mxwire.wire.dialect import MXOE, Dialect


class Host:
    """A host on one or more links, turned by whoever waits and a thread in the background.

    ``links`` are the interfaces, which the host closes at its end; for those of the kernel there is :meth:`open`.
    ``name`` is its host name, with or without ``:0``; without one it is that of the node. ``dialect`` and ``profile``
    are given as such or by name. ``peers`` are static: names by address, or a file with an address and a name a line.
    A host that does not ``announce`` itself is only answered by hosts that know its address.
    ``on_event`` is told of peers found and partners lost, in whichever thread looks for frames; it must not wait.
    ``spin`` makes waits look for frames all the time instead of sleeping, for so many seconds after the last frame or,
    with True, always. Without ``background`` nothing goes on while nobody waits.

    Raises :class:`~mxwire.errors.MxwireError` for a name, dialect, profile or peers that are none, and for a link
    whose MTU the dialect does not fit into, unless ``small_mtu`` says that no long frames will be sent.
    """

    def __init__(
        self,
        links: Link | Sequence[Link],
        *,
        name: str | None = None,
        dialect: Dialect | str = MXOE,
        profile: Profile | str = "open-mx",
        peers: names.Peers | None = None,
        announce: bool = True,
        on_event: Callable[[Event], object] | None = None,
        spin: bool | float = False,
        background: bool = True,
        rng: Random | None = None,
        sharing: Sharing | None = None,
        small_mtu: bool = False,
    ) -> None:
        self.hosting = Hosting(
            links,
            name=name,
            dialect=dialect,
            profile=profile,
            peers=peers,
            announce=announce,
            on_event=on_event,
            rng=rng,
            sharing=sharing,
            small_mtu=small_mtu,
        )
        """What is common to both faces."""
        self.core = self.hosting.core
        self.driving = Driving(self.core, spin=spin, background=background)
        """Who turns it."""
        self.hosting.poke = self.driving.poke

    @classmethod
    def open(
        cls,
        interfaces: str | Sequence[str],
        *,
        name: str | None = None,
        dialect: Dialect | str = MXOE,
        profile: Profile | str = "open-mx",
        peers: names.Peers | None = None,
        announce: bool = True,
        on_event: Callable[[Event], object] | None = None,
        spin: bool | float = False,
        background: bool = True,
        small_mtu: bool = False,
    ) -> Host:
        """A host on interfaces of this machine, given by name; the rest is as for the host itself.

        Raises :class:`~mxwire.link.errors.LinkError` where there is no such interface, or no permission to use it.
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
                spin=spin,
                background=background,
                small_mtu=small_mtu,
                sharing=opened.sharing,
            )
            opened.keep()
        return host

    @property
    def name(self) -> str:
        """Its name on its first interface, like ``alpha:0``."""
        return self.core.node.interfaces[0].name

    @property
    def addresses(self) -> list[str]:
        """The Ethernet addresses of its interfaces."""
        return [mac_text(each.address) for each in self.core.links]

    @property
    def closed(self) -> bool:
        """Whether it was closed, or has lost an interface."""
        return self.core.ended is not None

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

    def peers(self) -> list[KnownPeer]:
        """The peer table, our own interfaces included, in the order of their indexes."""
        return self.hosting.peers()

    def add_peer(self, address: str | bytes, name: str | None = None) -> Peer:
        """Enter a peer by hand; without a name it is asked for it."""
        return self.hosting.add_peer(address, name)

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
        """Close it, its endpoints as their own ``with`` would."""
        self.close()
