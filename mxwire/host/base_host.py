"""Hosts: links, the engine, endpoints and peers.

A ``BaseHost`` is a core (``core.py``) with endpoints (``base_endpoint.py``) and the peers that users give
(``peer_names.py``) or that are discovered. ``Host`` (``host.py``) and ``AsyncHost`` (``async_host.py``) differ in the
driver (``driver.py``) that runs the core.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Self, Unpack

from mxwire.errors import MxwireError
from mxwire.ethernet import mac_text
from mxwire.host.attachment import Attachment
from mxwire.host.base_endpoint import BaseEndpoint, ErrorHandler
from mxwire.host.collection import HostExemption
from mxwire.host.core import Core
from mxwire.host.driver import AsyncioDriver, BlockingDriver
from mxwire.host.errors import HostClosedError, HostError
from mxwire.host.mtu import require_mtu
from mxwire.host.options import DEFAULT_PROFILE, HostOptions
from mxwire.host.peer_names import Peers, own_name, peer_key, static_peers
from mxwire.host.sharing import MachineSharing
from mxwire.host.state import host_state
from mxwire.host.state_socket import StateServer
from mxwire.host.tokens import MemoryTokens
from mxwire.link import Link, LinkKind, open_link
from mxwire.protocol import EngineEndpoint, Event, EventKind, Node, Peer, Profile, Status, profile_by_name
from mxwire.protocol.agent.progress import AgentProgress, agent_progress
from mxwire.protocol.agent.records import ANY_ENDPOINT, AgentRefusalError
from mxwire.protocol.library.endpoint import EndpointOptions
from mxwire.protocol.library.partner import LibraryEndpoint
from mxwire.wire.dialect import MXOE, Dialect, as_dialect
from mxwire.wire.numbers import NO_PEER_INDEX

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KnownPeer:
    """An entry of the peer table."""

    name: str | None
    """Host name with the number of the interface, like ``alpha:0``; None while unknown."""
    address: str
    """Ethernet address."""
    index: int
    """Its index in the local peer table, which it puts into its frames."""
    reverse_index: int | None
    """Index of the first local interface in its peer table; None while unknown."""
    own: bool
    """True if it is an interface of this host."""


def _known(peer: Peer) -> KnownPeer:
    index = peer.index_for(0)
    return KnownPeer(
        name=peer.name,
        address=mac_text(peer.address),
        index=peer.index,
        reverse_index=None if index == NO_PEER_INDEX else index,
        own=peer.own is not None,
    )


@contextmanager
def open_links(
    interfaces: str | Sequence[str], kind: LinkKind | str, spin: bool | float = False, agent: bool | str = False
) -> Iterator[tuple[list[Link], MachineSharing | None, Attachment | None]]:
    """Yield links on interfaces of this machine, and the state shared with other processes that use them; with
    ``agent``, links without frames, and the attachment to the agent of these interfaces.

    An exception in the ``with`` block closes them. Raises :class:`~mxwire.link.errors.LinkError` if an interface does
    not exist, or may not be used.
    """
    requested = [interfaces] if isinstance(interfaces, str) else list(interfaces)
    if len(set(requested)) < len(requested):
        raise MxwireError(f"an interface is named twice: {', '.join(requested)}")
    with ExitStack() as opened:
        links: list[Link] = []
        progress = agent_progress(agent)
        sharing = attachment = None
        if progress is None:
            for each in requested:
                links.append(open_link(each, kind, spin=spin is True))
                opened.callback(links[-1].close)
        if progress is not AgentProgress.MATCH:
            sharing = MachineSharing(requested)
            opened.callback(sharing.close)
        if progress is not None:
            attachment = Attachment(requested, sharing)
            opened.callback(attachment.close)
            links += attachment.links
        yield links, sharing, attachment
        # No error: the links now belong to the host, which closes them.
        opened.pop_all()


def enter_origin(options: HostOptions, sharing: MachineSharing | None, attachment: Attachment | None) -> None:
    """Enter the state that belongs to opened interfaces into the options of their host.

    Raises :class:`~mxwire.errors.MxwireError` if the caller has given such state.
    """
    for each in ("sharing", "attachment"):
        if each in options:
            raise MxwireError(f"{each}= is for hosts on links of the caller: call Host(links, {each}=…), or omit it")
    options["sharing"], options["attachment"] = sharing, attachment


class BaseHost:
    """A core with endpoints and peers, without a driver. Parameters are those of :class:`HostOptions`."""

    _exemption: HostExemption

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Exempt older objects from garbage collection before the host exists, which searches must find."""
        exemption = HostExemption()
        made = super().__new__(cls)
        made._exemption = exemption
        return made

    def __init__(self, links: Link | Sequence[Link], **options: Unpack[HostOptions]) -> None:
        # mypyc passes the options of a TypedDict only to a parameter like it, or to a function of unknown type.
        begin: Any = self._begin
        try:
            begin(links, **options)
        except BaseException:
            self._exemption.end()
            raise

    def _begin(
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
        found = tuple(links) if isinstance(links, Sequence) else (links,)
        for each in found:
            if not hasattr(each, "mtu"):
                raise TypeError(f"a host runs on links, not on {each!r}: for interfaces by name there is Host.open")
        if not found:
            raise MxwireError("a host needs at least one interface")
        self.sharing = sharing
        """State shared with other processes on the same interfaces; None for links of this process alone."""
        self.attachment = attachment
        """The agent that runs the endpoints; None if this host runs them."""
        self._endpoints: dict[LibraryEndpoint, BaseEndpoint] = {}
        self._on_event = on_event
        self._state_server: StateServer | None = None
        self.clients: Callable[[], list[dict[str, Any]]] | None = None
        """Returns the applications attached to this host, if it is that of an agent, for ``mxwire ss``."""
        self.error_handler: ErrorHandler | None = None
        """The error handler of endpoints that have none of their own."""
        if attachment is not None:
            attachment.check_options(own_name(name) if name else None, dialect, profile, announce)
            known_peers = static_peers(peers)
            path = attachment.path
            self.core = Core(found, attachment.node, self._exemption, on_event=self._handle_event, local=path)
            attachment.begin(self.core)
            for address, known in known_peers.items():
                attachment.node.add_peer(address, known)
            return
        dialect = as_dialect(dialect)
        profile = profile_by_name(profile) if isinstance(profile, str) else profile
        if not small_mtu:
            for each in found:
                require_mtu(each, dialect)
        node = Node(
            [each.address for each in found],
            own_name(name),
            dialect=dialect,
            profile=profile,
            rng=Random(secrets.randbits(64)) if rng is None else rng,
            peers=static_peers(peers),
            announce=announce,
            listen=True,
            sharing=sharing,
            path=None if sharing is None else sharing.path,
            report_completed=False,
        )
        local = None if sharing is None else sharing.path
        self.core = Core(found, node, self._exemption, on_event=self._handle_event, local=local)

    def observe_events(self, on_event: Callable[[Event], object] | None) -> None:
        """Set the function that is called for each event, as ``on_event`` of :class:`Host`."""
        with self.core.section:
            self._on_event = on_event

    @property
    def name(self) -> str:
        """Name of the host on its first interface, like ``alpha:0``."""
        return self.core.node.interfaces[0].name

    @property
    def addresses(self) -> list[str]:
        """Ethernet addresses of the interfaces."""
        return [mac_text(each.address) for each in self.core.links]

    @property
    def closed(self) -> bool:
        """True if it was closed, or has lost an interface."""
        return self.core.ended is not None

    def poll(self) -> None:
        """Poll the links once without blocking."""
        self.core.step()

    @property
    def driven(self) -> bool:
        """True if the host progresses while the application makes no call."""
        return True

    # Endpoints.

    def _open_endpoint(
        self,
        make: Callable[[BaseHost, EngineEndpoint], Any],
        number: int | None,
        key: int,
        interface: int | str,
        **options: Unpack[EndpointOptions],
    ) -> Any:
        """Open an engine endpoint with ``options``, and return ``make(self, it)``."""
        core = self.core
        open_endpoint: Any = core.node.open_endpoint
        with core.section:
            core.must_be_open()
            place = self._interface(interface)
            wanted = self._free(place) if number is None else number
            # A number that was chosen here is claimed already.
            if number is not None:
                self._claim(place, wanted)
            try:
                engine = open_endpoint(wanted, key, interface=place, **options)
            except BaseException as error:
                self._release(place, wanted)
                if isinstance(error, AgentRefusalError) and error.status is Status.BUSY:
                    # Another process has the endpoint.
                    raise HostError(error.status, str(error)) from None
                raise
            endpoint: BaseEndpoint = make(self, engine)
            self._endpoints[engine] = endpoint
            endpoint._update_error_reports()
            return endpoint

    def handle_errors(self, handler: ErrorHandler | None) -> None:
        """Set the error handler of all endpoints that have none of their own; see
        :meth:`Endpoint.handle_errors <mxwire.host.Endpoint.handle_errors>`."""
        with self.core.section:
            self.error_handler = handler
            for each in self._endpoints.values():
                each._update_error_reports()

    def _interface(self, which: int | str) -> int:
        if isinstance(which, int):
            return which
        indexes = [index for index, each in enumerate(self.core.links) if each.name == which]
        if not indexes:
            have = ", ".join(each.name for each in self.core.links)
            raise HostError(Status.BOARD_NOT_FOUND, f"this host has no interface {which}: it has {have}")
        return indexes[0]

    def _claim(self, interface: int, number: int) -> None:
        if self.sharing is not None and self._is_free(interface, number):
            self.sharing.claim(interface, number)

    def _release(self, interface: int, number: int) -> None:
        if self.sharing is not None and self._is_free(interface, number):
            self.sharing.release(interface, number)

    def _is_free(self, interface: int, number: int) -> bool:
        """True if the interface and the number are valid and no endpoint of this process has them; the engine reports
        all other errors."""
        node = self.core.node
        possible = 0 <= interface < len(node.interfaces) and 0 <= number < node.profile.endpoint_maximum
        return possible and number not in node.interfaces[interface].endpoints

    def _free(self, interface: int) -> int:
        """Claim the lowest free number, and return it."""
        node = self.core.node
        if self.sharing is None and self.attachment is not None:
            return ANY_ENDPOINT
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

    def endpoint_of(self, engine: EngineEndpoint) -> BaseEndpoint | None:
        """The open endpoint with an endpoint of the engine."""
        return self._endpoints.get(engine)

    def forget_endpoint(self, endpoint: BaseEndpoint) -> None:
        """Release a closed endpoint's number."""
        if self._endpoints.pop(endpoint.engine, None) is not None:
            self._release(endpoint.engine.card.port.number, endpoint.number)

    # Peers.

    def add_peer(self, address: str | bytes, name: str | None = None) -> Peer:
        """Add a static peer; query its name if none is given."""
        which = peer_key(address)
        if isinstance(which, str):
            raise MxwireError(f"{address!r} is not an Ethernet address: write it like 52:54:00:0a:00:01")
        with self.core.section:
            self.core.must_be_open()
            peer = self.core.node.add_peer(which, None if name is None else str(peer_key(name)))
            self.core.transmit()
            return peer

    def peers(self) -> list[KnownPeer]:
        """Peer table, including this host's interfaces, in the order of the indexes."""
        with self.core.section:
            if self.query_shared_peers():
                self.core.transmit()
            return [_known(each) for each in self.core.node.peers]

    def find_peer(self, which: Peer | str | bytes) -> Peer | None:
        """The peer given by name, by address or as a Peer; None for an unknown name. An unknown address is added to the
        table."""
        if isinstance(which, Peer):
            return which
        key = peer_key(which)
        peers = self.core.node.peers
        self.query_shared_peers()
        if isinstance(key, str):
            return peers.by_name(key)
        known = peers.by_address(key)
        if known is None:
            known = self.core.node.add_peer(key)
        return known

    def heard_peers(self) -> list[Peer]:
        """Peers from which frames were received: announcements, names, or frames with the local index.

        Peers known only from a user or another process are not included.
        """
        peers = [each for each in self.core.node.peers if each.own is None]
        return [each for each in peers if each.heard or each.reverse]

    def query_shared_peers(self) -> bool:
        """Query the names of peers that other processes have added; return whether there were any."""
        peers = self.core.node.peers.refresh() if self.core.ended is None else []
        for each in peers:
            self.core.node.discover_peer(each.address)
        return bool(peers)

    def _report_state(self, driver: BlockingDriver | AsyncioDriver) -> None:
        """Open the socket for ``mxwire ss``, if this host uses interfaces of the machine."""
        if self.sharing is not None:
            started = time.monotonic()
            self._state_server = StateServer(
                lambda: driver.inspect(partial(host_state, self.core, started, self.clients))
            )

    @property
    def tokens(self) -> MemoryTokens:
        """Memory that programs of the agent register for each other."""
        return MemoryTokens(self.core)

    # Closing, in two steps, since the driver must leave the links before they are closed.

    def _end(self) -> None:
        """Close all endpoints, and end all waits; the links stay open."""
        core = self.core
        with core.section:
            core.section.await_handlers()
            if core.ended is None:
                for each in list(self._endpoints.values()):
                    each._close()
                core.end(HostClosedError(Status.CANCELLED, "the host was closed"))

    def _close_links(self) -> None:
        if self._state_server is not None:
            self._state_server.close()
        with self.core.section:
            for each in self.core.links:
                each.close()
            if self.sharing is not None:
                self.sharing.close()
            if self.attachment is not None:
                self.attachment.close()

    def _handle_event(self, event: Event) -> None:
        if event.kind is EventKind.FAILED and event.request is not None:
            endpoint = self._endpoints.get(event.request.endpoint)
            if endpoint is not None:
                endpoint._failed(event.request)
            return
        if event.kind is EventKind.UNDELIVERED and event.request is not None:
            endpoint = self._endpoints.get(event.request.endpoint)
            if endpoint is not None:
                endpoint.undelivered += 1
        elif event.kind is EventKind.PEERS_FULL:
            _log.warning(
                "the peer table of %s is full (%d hosts): hosts that never answer give way to new ones",
                self.name,
                self.core.node.peers.maximum,
            )
        if self._on_event is not None:
            self._on_event(event)
