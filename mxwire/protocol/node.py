"""A host as a function: frames, calls and the time go in; frames, events and the next deadline come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, Final, SupportsIndex

from mxwire.ethernet import mac_text
from mxwire.frames import FrameBatch
from mxwire.protocol.arguments import checked_integer, ethernet_address
from mxwire.protocol.card import bulk
from mxwire.protocol.card.endpoint import CardEndpoint
from mxwire.protocol.card.interface import HostInterface
from mxwire.protocol.card.outgoing import FEW, NO_FRAMES
from mxwire.protocol.counters import Counter, Counters
from mxwire.protocol.discovery import Discovery, RawQueue
from mxwire.protocol.library.endpoint import CONTEXT_BITS_MAXIMUM, KEY_MAXIMUM, EndpointSetup, EngineEndpoint
from mxwire.protocol.library.matching import HandlerCalls
from mxwire.protocol.library.partner import Event
from mxwire.protocol.local_channel import LocalChannel, LocalPath
from mxwire.protocol.name_search import Names
from mxwire.protocol.neighbours import Neighbourhood
from mxwire.protocol.peers import Peer, PeerTable, Sharing
from mxwire.protocol.profile import OPEN_MX_1_5, Defect, Profile
from mxwire.protocol.status import EventKind, LocalProtocolError, Status
from mxwire.wire.dialect import MXOE, Dialect
from mxwire.wire.numbers import NO_PEER_INDEX, NO_SESSION

SLICE: Final = 256
"""Frames that the card takes before the library makes a pass: fewer than the ring holds, so that it does not fill."""


class Node:
    """A host: interfaces, peers and endpoints.

    ``addresses`` are the Ethernet addresses of its interfaces, ``hostname`` is its name, to which ``:0`` and so on is
    added per interface. All randomness comes from ``rng``; all times are nanoseconds of any monotonic clock. With
    ``announce`` the host announces itself as the discovery daemon does (R-DISC-02); with ``listen`` alone it only adds
    announced hosts as peers (R-DISC-03). ``sharing`` is required if other nodes share its interfaces, and ``path`` for
    messages to their endpoints. With ``report_completed=False`` the end of a request is not reported, for a caller that
    polls its requests.
    """

    def __init__(
        self,
        addresses: bytes | Sequence[bytes],
        hostname: str = "node",
        *,
        dialect: Dialect = MXOE,
        profile: Profile = OPEN_MX_1_5,
        rng: Random,
        peers: Mapping[bytes, str | None] | None = None,
        announce: bool = False,
        listen: bool = False,
        sharing: Sharing | None = None,
        path: LocalPath | None = None,
        report_completed: bool = True,
    ) -> None:
        self.profile = profile
        self.dialect = dialect
        self.peers = PeerTable(
            profile.peer_maximum,
            sharing,
            never_replaced=profile.has(Defect.PEERS_NEVER_REPLACED),
            on_removal=self._forget_peer,
        )
        self._sharing = sharing
        self._announce = announce
        self._rng = rng
        self.reported: list[Event] = []
        """The events since the last :meth:`events`."""
        self.on_event: Callable[[Event], None] = self.reported.append
        """Called with each event; by default, events are kept for :meth:`events`."""
        self.report_completed = report_completed
        self._names = Names(profile, self.report, sharing)
        self._raw = RawQueue(profile.raw_queue_maximum)
        self.handler_calls = HandlerCalls()
        self.offering: dict[EngineEndpoint, None] = {}
        """The endpoints whose unexpected handler the caller must call now; an ordered set."""
        self.neighbourhood = Neighbourhood(self, path)
        """The other nodes of this host."""
        self.interfaces: list[HostInterface] = []
        self.endpoints: dict[CardEndpoint, EngineEndpoint] = {}
        """The open endpoints by their card's side."""
        self._open: list[EngineEndpoint] = []
        """The open endpoints. The list is replaced when one opens or closes, so loops over it may open and close."""
        self._sent = 0
        """Number of frames transmitted."""
        for address in [addresses] if isinstance(addresses, (bytes, bytearray, str)) else addresses:
            self._attach(ethernet_address(address), hostname)
        if not self.interfaces:
            raise LocalProtocolError(Status.BOARD_NOT_FOUND, f"the host {hostname} has no interface: pass an address")
        self._discoveries = [self._discovery(each) for each in self.interfaces] if announce or listen else []
        for address, name in (peers or {}).items():
            self.add_peer(address, name)

    # Peers.

    def add_peer(self, address: bytes, name: str | None = None) -> Peer:
        """Add a peer, which no other one replaces; query its name unless ``name`` is given (R-DISC-01, R-HOST-01).

        Raises :class:`~mxwire.protocol.status.LocalProtocolError` for a value that is not an address, and
        if the table is full.
        """
        peer = self.peers.add(ethernet_address(address), name)
        peer.kept = True
        self._welcome(peer)
        return peer

    def discover_peer(self, address: bytes) -> Peer | None:
        """Add a host that was only heard, or is a peer of another node; return None if the table is full of peers that
        are in use."""
        peer = self.peers.by_address(address) or self.peers.enter(address)
        if peer is None:
            self.counters[Counter.DROP_PEERS_FULL] += 1
            return None
        self._welcome(peer)
        return peer

    def _welcome(self, peer: Peer) -> None:
        """Answer the early query of a peer, and query its name unless it is known."""
        self._names.meet(peer)
        if peer.name is None:
            self._names.search(peer)
        else:
            self._names.set(peer)

    def peer(self, which: Peer | bytes | str | SupportsIndex) -> Peer:
        """The peer given as a Peer, by address, by host name or by index.

        Raises :class:`~mxwire.protocol.status.LocalProtocolError` if there is none.
        """
        if isinstance(which, Peer):
            if self.peers.at(which.index) is not which:
                owner = "no peer any more" if which.removed else "a peer of another host"
                raise LocalProtocolError(Status.PEER_NOT_FOUND, f"{mac_text(which.address)} is {owner}")
            return which
        if isinstance(which, (bytes, bytearray, memoryview)):
            address = ethernet_address(which)
            found, status, text = self.peers.by_address(address), Status.NIC_ID_NOT_FOUND, mac_text(address)
        elif isinstance(which, str):
            found, status, text = self.peers.by_name(which), Status.PEER_NOT_FOUND, which
        else:
            place = checked_integer("peer index", which, NO_PEER_INDEX, Status.PEER_NOT_FOUND)
            found, status, text = self.peers.at(place), Status.PEER_NOT_FOUND, f"index {place}"
        if found is None:
            raise LocalProtocolError(status, f"no peer {text} in the peer table ({len(self.peers)} entries)")
        return found

    def forget_names(self) -> None:
        """Forget all host names and query them again, with the next magic (R-HOST-03)."""
        self._names.forget(self.peers)

    def ask_names(self) -> None:
        """Query all nameless peers again at once, since a caller waits for a name (R-HOST-02)."""
        self._names.hurry()

    @property
    def magic(self) -> int:
        """The current magic of host queries."""
        return self._names.magic

    # Endpoints.

    def open_endpoint(
        self,
        number: SupportsIndex,
        key: SupportsIndex = 0,
        *,
        interface: int = 0,
        session: SupportsIndex | None = None,
        context_bits: SupportsIndex = 0,
        context_shift: SupportsIndex = 0,
        completions: bool = False,
        acked_sends: bool = False,
    ) -> EngineEndpoint:
        """Open an endpoint with a new random session, unless ``session`` is given (R-EP-01, R-EP-02).

        Up to 16 ``context_bits`` of the match information, starting at bit ``context_shift``, may be declared a
        context id (R-MAT-04). With ``completions`` requests that have ended enter a queue, from which the application
        takes them. With ``acked_sends`` a send of up to 32 KiB ends when it is acked, instead of when it is transmitted
        (R-SND-06). Raises :class:`~mxwire.protocol.status.LocalProtocolError` for a number at or above the
        limit, for one that is open already, and for other values out of range.
        """
        board = self._board(interface)
        number = self._unused_number(board, number)
        key = checked_integer("key", key, KEY_MAXIMUM)
        context_bits = checked_integer("context bits", context_bits, CONTEXT_BITS_MAXIMUM, Status.BAD_PARAMETER_VALUE)
        context_shift = checked_integer("context shift", context_shift, 64 - context_bits, Status.BAD_PARAMETER_VALUE)
        # The highest number means "no session", which an endpoint must refuse (R-CON-12).
        own = None if session is None else checked_integer("session", session, NO_SESSION - 1)
        setup = EndpointSetup(key, context_bits, context_shift, completions, acked_sends)
        endpoint = self.make_endpoint(board, number, own, setup)
        self.endpoints[endpoint.card] = endpoint
        self._open = list(self.endpoints.values())
        return endpoint

    def _unused_number(self, board: HostInterface, number: SupportsIndex) -> int:
        number = checked_integer("endpoint number", number, self.profile.endpoint_maximum - 1, Status.BAD_ENDPOINT)
        if number in board.endpoints:
            raise LocalProtocolError(Status.BUSY, f"endpoint {number} of {board.name} is open already")
        return number

    def make_endpoint(
        self, board: HostInterface, number: int, session: int | None, setup: EndpointSetup
    ) -> EngineEndpoint:
        """Open the card's side of an endpoint, by default with a random session, and return the library's side."""
        return EngineEndpoint(self, self._open_card(board, number, session), setup)

    def _open_card(self, board: HostInterface, number: int, session: int | None) -> CardEndpoint:
        return board.open(number, self._rng.randrange(NO_SESSION) if session is None else session)

    def endpoint_at(self, peer: Peer, number: int) -> EngineEndpoint | None:
        """The open endpoint with a number on the local interface ``peer``."""
        if peer.own is None:
            return None
        card = self.interfaces[peer.own].endpoints.get(number)
        return None if card is None else self.endpoints.get(card)

    def detach(self, endpoint: EngineEndpoint) -> None:
        """Remove an endpoint that closes from its interface."""
        self.offering.pop(endpoint, None)
        for partner in endpoint.partners.values():
            partner.peer.partners -= 1
        del self.endpoints[endpoint.card]
        self._open = list(self.endpoints.values())
        self.interfaces[endpoint.card.port.number].close(endpoint.card)

    # Frames and time.

    def receive(self, batch: FrameBatch, now: int, interface: int = 0) -> None:
        """Take frames from the wire; the buffer of the batch may be reused afterwards.

        The card checks all frames; then the library of every endpoint that progresses makes a pass, unless an
        unexpected handler is running. Raises exceptions of such handlers when all work is done.
        """
        board = self._board(interface)
        if not isinstance(batch, FrameBatch):
            raise LocalProtocolError(
                Status.BAD_REQUEST, f"{type(batch).__name__} is not a FrameBatch: see FrameBatch.from_frames"
            )
        for first in range(0, len(batch), SLICE):
            part = batch if len(batch) <= SLICE else batch.part(first, first + SLICE)
            bulk.receive(board, part, now)
            self._hear_announcements(now)
            self._progress_ready(now)
        if self.handler_calls.raised:
            self._raise_from_handlers()

    def receive_few(self, frames: list[bytes], now: int, interface: int = 0) -> None:
        """Take a few single frames, at most ``SLICE``, with the same effect as in a batch; this is faster."""
        board = self.interfaces[interface]
        board.take_few(frames, now)
        if self._raw.frames:
            self._hear_announcements(now)
        if board.ready.count:
            self._progress_ready(now)
        if self.handler_calls.raised:
            self._raise_from_handlers()

    def receive_local(self, channels: Sequence[LocalChannel], now: int) -> None:
        """Take the records of ``channels``, to other nodes of this host, which have some or have ended (R-LOC-02)."""
        if not self.handler_calls.running:
            self.neighbourhood.receive(channels)
            self.advance(now)

    def advance(self, now: int) -> None:
        """Make a pass for each endpoint with events in its ring, as after :meth:`receive`."""
        self._progress_ready(now)
        if self.handler_calls.raised:
            self._raise_from_handlers()

    def transmit(self, now: int, interface: int = 0) -> FrameBatch:
        """Return all frames to transmit through an interface now, after all timers that are due.

        Raises exceptions of unexpected handlers; the next call then returns the frames.
        """
        frames = self.transmit_few(now, self._board(interface).number, limit=0)
        return frames if isinstance(frames, FrameBatch) else NO_FRAMES

    def transmit_few(
        self, now: int, interface: int = 0, timely: bool = True, limit: int = FEW
    ) -> list[bytes] | FrameBatch:
        """Return the frames to transmit as a list if they are at most ``limit`` and not bulk, otherwise as a batch.

        A list is faster. Unless ``timely``, timers are not run: only the work announced by :meth:`eager` is done.
        """
        outgoing = self.interfaces[interface].outgoing
        if timely:
            for board in self.interfaces:
                board.timers.expire(now)
            for discovery in self._discoveries:
                discovery.tick(now)
        if timely or self._names.urgent:
            self._names.query(now)
        if not self.handler_calls.running:
            for endpoint in self._open:
                if endpoint.overdue(now) if timely else endpoint.eager():
                    endpoint.progress(now)
        # The passes above may have put messages into the rings of other endpoints of this node (R-LOC-02).
        self._progress_ready(now)
        if self.handler_calls.raised:
            self._raise_from_handlers()
        frames = outgoing.take(now, self._sent + 1, limit)
        self._sent += len(frames)
        for endpoint in self._open:
            # The delay of retransmission starts now, when the frames are handed to the link (R-RTX-02).
            endpoint.resends.end_transmission()
        return frames

    def events(self) -> list[Event]:
        """Take the events since the last call, in order."""
        if not self.reported:
            return []
        events = self.reported.copy()
        self.reported.clear()
        return events

    def report(self, kind: EventKind, request: Any = None, *, partner: Any = None, peer: Peer | None = None) -> None:
        """Pass an event to ``on_event``."""
        self.on_event(Event(kind, request, partner, peer))

    def eager(self) -> bool:
        """Return whether ``transmit`` should be called at once, because frames, handlers or other work wait."""
        return bool(self.offering) or self.busy()

    def busy(self) -> bool:
        """Return whether anything but the call of a handler waits."""
        for board in self.interfaces:
            if board.outgoing.frames:
                return True
        for endpoint in self._open:
            if endpoint.eager():
                return True
        return self._names.urgent

    def deadline(self) -> int | None:
        """Latest time in ns of the next call of ``transmit``, if no frame arrives; None if nothing is due.

        A time in the past means that the call is due at once.
        """
        if self.offering:
            return 0
        soonest = self._names.deadline()
        for board in self.interfaces:
            if board.outgoing.frames:
                return 0
            due = board.timers.deadline()
            if due is not None and (soonest is None or due < soonest):
                soonest = due
        for discovery in self._discoveries:
            due = discovery.deadline
            if due is not None and (soonest is None or due < soonest):
                soonest = due
        for endpoint in self._open:
            due = endpoint.deadline()
            if due is not None and (soonest is None or due < soonest):
                soonest = due
        return soonest

    @property
    def counters(self) -> Counters:
        """The counters of the first interface; others have their own."""
        return self.interfaces[0].counters

    # Inside.

    def _board(self, interface: int) -> HostInterface:
        """The interface with a number."""
        if type(interface) is not int or not 0 <= interface < len(self.interfaces):
            raise LocalProtocolError(
                Status.BOARD_NOT_FOUND, f"there is no interface {interface!r}, only 0 to {len(self.interfaces) - 1}"
            )
        return self.interfaces[interface]

    def _attach(self, address: bytes, hostname: str) -> None:
        number = len(self.interfaces)
        if any(each.address == address for each in self.interfaces):
            raise LocalProtocolError(Status.BAD_REQUEST, f"two interfaces have the address {mac_text(address)}")
        name = f"{hostname}:{number}"
        board = HostInterface(
            number, address, name, self.dialect, self.profile, self.peers, self._names, self._raw, self._rng
        )
        if self._sharing is not None:
            board.elsewhere = partial(self._sharing.elsewhere, number)
            board.speaks = partial(self._sharing.speaks, number)
        peer = self.peers.add(address, name)
        peer.own = number
        self.interfaces.append(board)
        self._names.ports.append(board)
        own: Iterable[Peer] = [each for each in self.peers if each.own is not None]
        for each in own:
            # The index between two interfaces of one host is known from the start (wire format, section 5).
            each.reverse.update({other.own: other.index for other in own if other.own is not None})

    def _discovery(self, board: HostInterface) -> Discovery:
        return Discovery(board, self.peers, self.profile, self._rng.getrandbits(32), self._found, self._speaks(board))

    def _speaks(self, board: HostInterface) -> Callable[[], bool]:
        return lambda: self._announce and board.speaks()

    def _found(self, address: bytes) -> bool:
        """Add a host that has announced itself, without a name (R-DISC-03); return False if there is no room for it."""
        known = self.peers.by_address(address)
        peer = self.discover_peer(address)
        if peer is None:
            return False
        peer.heard = True
        if known is None:
            self.report(EventKind.PEER_FOUND, peer=peer)
        return True

    def _forget_peer(self, peer: Peer) -> None:
        """Forget a peer that another one replaces in a full peer table."""
        if not self.counters[Counter.PEER_REPLACED]:
            self.report(EventKind.PEERS_FULL)
        self.counters[Counter.PEER_REPLACED] += 1
        self._names.drop(peer)
        for discovery in self._discoveries:
            discovery.forget(peer.address)
        for board in self.interfaces:
            board.forget_sender(peer)

    def _hear_announcements(self, now: int) -> None:
        """Pass RAW frames to the discovery programs; without one they stay in the queue (R-DISC-06)."""
        if self._discoveries:
            for frame in self._raw.take():
                for discovery in self._discoveries:
                    discovery.hear(frame, now)

    def _progress_ready(self, now: int) -> None:
        """Make a pass for each endpoint with events in its ring (R-GEN-01)."""
        if self.handler_calls.running:
            return
        for board in self.interfaces:
            # Bounded, because an endpoint that does not work now, or whose handler has raised, is listed again.
            for _ in range(board.ready.count):
                card = board.ready.popleft()
                endpoint = self.endpoints.get(card)
                if endpoint is None:
                    continue
                if not endpoint.works:
                    board.ready.append(card)
                    continue
                # Before the pass: a message to itself, which the pass may put into its ring, must list the endpoint
                # again.
                card.ready = False
                try:
                    endpoint.progress(now)
                finally:
                    if card.ring.received.count:
                        # A handler has raised an exception: another pass takes the remaining arrivals.
                        card.announce()

    def _raise_from_handlers(self) -> None:
        calls = self.handler_calls
        if calls.raised and not calls.running:
            raise calls.raised.pop(0)
