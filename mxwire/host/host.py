"""Host: the blocking face of a live host."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Unpack

from mxwire.host import names
from mxwire.host.calls import DEFAULT_KEY
from mxwire.host.driving import Driving
from mxwire.host.endpoint import Endpoint
from mxwire.host.interfaces import Opened
from mxwire.host.opening import HostCalls, Options
from mxwire.host.seeking import PeerAppears
from mxwire.host.sharing import Sharing
from mxwire.link import Link
from mxwire.protocol import Peer


class Host(HostCalls):
    """A host on one or more links, turned by whoever waits, and by a thread in the background while nobody does.

    ``links`` are its interfaces, which it closes at its end; for those of the kernel there is :meth:`open`.
    ``spin`` makes waits look for frames all the time instead of sleeping, for so many seconds after the last frame or,
    with True, always. Without ``background`` nothing goes on while nobody waits. What else it may be told is in
    :class:`~mxwire.host.opening.Options`.

    Raises :class:`~mxwire.errors.MxwireError` for a name, dialect, profile or peers that are none, and for a link
    whose MTU the dialect does not fit into.
    """

    def __init__(
        self,
        links: Link | Sequence[Link],
        *,
        spin: bool | float = False,
        background: bool = True,
        sharing: Sharing | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(links, sharing, options)
        self.driving = Driving(self.core, spin=spin, background=background)
        """Who turns it."""
        self.hosting.poke = self.driving.poke

    @classmethod
    def open(
        cls,
        interfaces: str | Sequence[str],
        *,
        spin: bool | float = False,
        background: bool = True,
        **options: Unpack[Options],
    ) -> Host:
        """A host on interfaces of this machine, given by name.

        Raises :class:`~mxwire.link.errors.LinkError` where there is no such interface, or no permission to use it.
        """
        with Opened(interfaces, spin=spin) as opened:
            host = cls(opened.links, spin=spin, background=background, sharing=opened.sharing, **options)
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
