"""Hosting: what both faces of a host have in common: how it is opened, its endpoints, and its peers."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from mxwire.errors import MxwireError
from mxwire.ethernet import HEADER_SIZE, mac_text
from mxwire.host import names
from mxwire.host.calls import EndpointCalls
from mxwire.host.core import Core
from mxwire.host.errors import HostClosedError, HostError
from mxwire.host.sharing import Sharing
from mxwire.link import Link
from mxwire.protocol import Endpoint as EngineEndpoint
from mxwire.protocol import Event, EventKind, Node, Peer, Profile, Status, profile_by_name
from mxwire.wire.dialect import MEDIUM_DATA_OFFSET, MXOE, PULL_REPLY_DATA_OFFSET, Dialect, as_dialect
from mxwire.wire.numbers import NO_PEER_INDEX

_USUAL_MTU = 9000
DEFAULT_PROFILE = "open-mx"
"""The profile of a host for which none is chosen."""


@dataclass(frozen=True, slots=True)
class KnownPeer:
    """An entry of the peer table."""

    name: str | None
    """Its host name with the number of its interface, like ``alpha:0``; None while it has not told."""
    address: str
    """Its Ethernet address."""
    index: int
    """Its place in our table, which it puts into its frames."""
    reverse_index: int | None
    """Our place in its table, as it told our first interface; None while it has not."""
    own: bool
    """Whether it is an interface of our own."""


class Hosting:
    """A core with endpoints and peers."""

    def __init__(
        self,
        links: Link | Sequence[Link],
        *,
        sharing: Sharing | None = None,
        name: str | None = None,
        dialect: Dialect | str = MXOE,
        profile: Profile | str = DEFAULT_PROFILE,
        peers: names.Peers | None = None,
        announce: bool = True,
        on_event: Callable[[Event], object] | None = None,
        rng: Random | None = None,
        small_mtu: bool = False,
    ) -> None:
        found = tuple(links) if isinstance(links, Sequence) else (links,)
        for each in found:
            if not hasattr(each, "mtu"):
                raise TypeError(f"a host runs on links, not on {each!r}: for interfaces by name there is Host.open")
        if not found:
            raise MxwireError("a host needs at least one interface")
        dialect = as_dialect(dialect)
        profile = profile_by_name(profile) if isinstance(profile, str) else profile
        if not small_mtu:
            for each in found:
                _check_mtu(each, dialect)
        node = Node(
            [each.address for each in found],
            names.own_name(name),
            dialect=dialect,
            profile=profile,
            rng=Random(secrets.randbits(64)) if rng is None else rng,
            peers=names.static_peers(peers),
            announce=announce,
            listen=True,
            sharing=sharing,
        )
        self.core = Core(found, node, on_event=self._heard)
        self.sharing = sharing
        """What other processes are asked; None where nobody shares the links."""
        self.poke: Callable[[], None] = self.core.step
        """Looks for frames without waiting."""
        self._endpoints: dict[EngineEndpoint, EndpointCalls] = {}
        self._on_event = on_event
        self._appeared: set[Peer] = set()
        """Peers that have announced themselves or told their names."""

    # Endpoints.

    def open(
        self,
        make: Callable[[Hosting, EngineEndpoint, int], Any],
        number: int | None,
        key: int,
        interface: int | str,
        session: int | None = None,
    ) -> Any:
        """Open an endpoint and put a face on it."""
        core = self.core
        with core.section:
            core.must_be_open()
            place = self._interface(interface)
            wanted = self._free(place) if number is None else number
            if number is not None:
                self._claim(place, wanted)
            try:
                engine = core.node.open_endpoint(wanted, key, interface=place, session=session)
            except BaseException:
                self._release(place, wanted)
                raise
            calls: EndpointCalls = make(self, engine, place)
            self._endpoints[engine] = calls
            return calls

    def _interface(self, which: int | str) -> int:
        if isinstance(which, int):
            return which
        found = [place for place, each in enumerate(self.core.links) if each.name == which]
        if not found:
            have = ", ".join(each.name for each in self.core.links)
            raise HostError(Status.BOARD_NOT_FOUND, f"this host has no interface {which}: it has {have}")
        return found[0]

    def _claim(self, interface: int, number: int) -> None:
        node = self.core.node
        known = 0 <= interface < len(node.interfaces) and number not in node.interfaces[interface].endpoints
        if self.sharing is not None and known and 0 <= number < node.profile.endpoint_maximum:
            self.sharing.claim(interface, number)

    def _release(self, interface: int, number: int) -> None:
        node = self.core.node
        known = 0 <= interface < len(node.interfaces) and number not in node.interfaces[interface].endpoints
        if self.sharing is not None and known:
            self.sharing.release(interface, number)

    def _free(self, interface: int) -> int:
        """Claim the lowest number that is free."""
        node = self.core.node
        maximum = node.profile.endpoint_maximum
        for number in range(maximum):
            if number in node.interfaces[interface].endpoints:
                continue
            try:
                self._claim(interface, number)
            except HostError:
                continue
            return number
        name = self.core.links[interface].name
        raise HostError(Status.BUSY, f"all {maximum} endpoints of {name} are open: close one")

    def closed(self, calls: EndpointCalls) -> None:
        """An endpoint has been closed."""
        if self._endpoints.pop(calls.engine, None) is not None:
            self._release(calls.engine.card.interface.number, calls.number)

    # Peers.

    def add_peer(self, address: str | bytes, name: str | None = None) -> Peer:
        """Enter a peer by hand; without a name it is asked for it."""
        which = names.who(address)
        if isinstance(which, str):
            raise MxwireError(f"{address!r} is not an Ethernet address: write it like 52:54:00:0a:00:01")
        with self.core.section:
            self.core.must_be_open()
            peer = self.core.node.add_peer(which, None if name is None else str(names.who(name)))
            self.core.flush()
            return peer

    def peers(self) -> list[KnownPeer]:
        """The peer table, our own interfaces included, in the order of their indexes."""
        with self.core.section:
            if self.meet_others() and self.core.ended is None:
                self.core.flush()
            return [_known(each) for each in self.core.node.peers]

    def find(self, which: Peer | str | bytes) -> Peer | None:
        """A peer by name or address, or as such; an address that is not in the table is entered. None for a name that
        nobody has told."""
        if isinstance(which, Peer):
            return which
        key = names.who(which)
        peers = self.core.node.peers
        self.meet_others()
        if isinstance(key, str):
            return peers.by_name(key)
        known = peers.by_address(key)
        if known is None:
            known = self.core.node.add_peer(key)
        return known

    def heard(self) -> list[Peer]:
        """The peers that have announced themselves, told their names, or called us by an index; not those that are
        only known since a user or another process has named them."""
        peers = [each for each in self.core.node.peers if each.own is None]
        return [each for each in peers if each in self._appeared or each.reverse]

    def meet_others(self) -> bool:
        """Ask for the names of peers that other processes have entered; whether there are any."""
        found = self.core.node.peers.refresh()
        for each in found:
            self.core.node.add_peer(each.address)
        return bool(found)

    # The end.

    def shut(self, why: str = "the host was closed") -> None:
        """Close all endpoints, and end all waits; the links stay open."""
        core = self.core
        with core.section:
            if core.ended is None:
                for each in list(self._endpoints.values()):
                    each._close()
                core.end(HostClosedError(Status.CANCELLED, why))

    def give_back(self) -> None:
        """Close the links, when nobody uses them any more."""
        with self.core.section:
            for each in self.core.links:
                each.close()
            if self.sharing is not None:
                self.sharing.close()

    # Inside.

    def _heard(self, event: Event) -> None:
        if event.kind is EventKind.UNDELIVERED and event.request is not None:
            calls = self._endpoints.get(event.request.endpoint)
            if calls is not None:
                calls.undelivered += 1
        elif event.peer is not None and event.kind in (EventKind.PEER_FOUND, EventKind.PEER_NAMED):
            self._appeared.add(event.peer)
        if self._on_event is not None:
            self._on_event(event)


class HostCalls:
    """What both faces of a host have in common."""

    def __init__(self, hosting: Hosting) -> None:
        self.hosting = hosting
        """The host without a face."""
        self.core = hosting.core

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

    def peers(self) -> list[KnownPeer]:
        """The peer table, our own interfaces included, in the order of their indexes."""
        return self.hosting.peers()

    def add_peer(self, address: str | bytes, name: str | None = None) -> Peer:
        """Enter a peer by hand; without a name it is asked for it."""
        return self.hosting.add_peer(address, name)


def _check_mtu(link: Link, dialect: Dialect) -> None:
    longest = longest_frame(dialect) - HEADER_SIZE
    if link.mtu < longest:
        raise HostError(
            Status.NO_DEVICE,
            f"{link.name}: its MTU of {link.mtu} is too small for dialect {dialect}, which needs {longest}: "
            f"raise it (ip link set {link.name} mtu {advised_mtu(longest)}), or use dialect omx:{link.mtu} on all "
            f"hosts",
        )


def advised_mtu(needed: int) -> int:
    """The MTU to set where so much is needed: the usual one of jumbo frames, unless more is needed."""
    return max(needed, _USUAL_MTU)


def longest_frame(dialect: Dialect) -> int:
    """The longest frame that a dialect sends, in bytes with its Ethernet header."""
    return max(
        dialect.frame_limit,
        MEDIUM_DATA_OFFSET + dialect.fragment_payload,
        PULL_REPLY_DATA_OFFSET + dialect.reply_payload,
    )


def _known(peer: Peer) -> KnownPeer:
    index = peer.index_for(0)
    return KnownPeer(
        name=peer.name,
        address=mac_text(peer.address),
        index=peer.index,
        reverse_index=None if index == NO_PEER_INDEX else index,
        own=peer.own is not None,
    )
