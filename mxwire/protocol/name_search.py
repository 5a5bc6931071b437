"""Host names: each peer without a name is queried until it replies (behaviour, section 3).

Theory of operation
===================

Each peer without a name is queried at an interval until it replies (``Names``). Its query and its reply contain the
index of this host in the peer's table, so that names also teach indexes. A query is answered by the card, without the
library. The magic in a query is repeated in its reply; forgetting all names increases it, so that late replies have no
effect. A peer that never answers is queried less and less often, and at the usual rate again as soon as a frame shows
that it runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from mxwire.protocol.card.outgoing import Port
from mxwire.protocol.counters import Counter
from mxwire.protocol.peers import Peer, Sharing, name_field
from mxwire.protocol.profile import Defect, Profile
from mxwire.protocol.state_machine import StateMachine, TransitionTable
from mxwire.protocol.status import EventKind, Reporter
from mxwire.wire.numbers import HOST_NAME_MAXIMUM, HOST_QUERY_MAGIC
from mxwire.wire.packets import HostQuery, HostReply

_DOUBLINGS: Final = 6
"""Maximum number of doublings of the interval between queries: 5 s become 320 s."""


def query(address: bytes, other: bytes, index: int, magic: int = HOST_QUERY_MAGIC) -> HostQuery:
    """Query the name of host ``other``, and announce the local index for it (R-HOST-05)."""
    return HostQuery(dst_mac=other, src_mac=address, src_dst_peer_index=index, magic=magic)


def answer(query: HostQuery, address: bytes, index: int, hostname: str) -> HostReply:
    """Answer a query with the local host name (R-HOST-06)."""
    name = name_field(hostname)
    return HostReply(
        dst_mac=query.src_mac,
        src_mac=address,
        length=len(name),
        src_dst_peer_index=index,
        magic=query.magic,
        hostname=name,
    )


class NameState(StrEnum):
    """States of the search for a name."""

    NEW = "new"
    ASKED = "asked"
    NAMED = "named"


class NameEvent(StrEnum):
    """Events of the search for a name."""

    ADDED = "added"
    DUE = "query due"
    REPLY = "reply, or set by hand"
    FORGET = "names forgotten"


def _ask(search: NameSearch, now: int) -> None:
    """Query on every interface (R-HOST-01)."""
    names, peer = search.names, search.peer
    names.queried(search, now)
    for port in names.ports:
        if names.may_query(port, peer, now):
            port.emit(Counter.SEND_HOST_QUERY, query(port.address, peer.address, peer.index, names.magic))


NAME: Final = TransitionTable(
    "host name",
    NameState.NEW,
    (
        (NameState.NEW, NameEvent.ADDED, NameState.ASKED, _ask, ("R-HOST-01",)),
        (NameState.NEW, NameEvent.REPLY, NameState.NAMED, None, ("R-HOST-07",)),
        (NameState.ASKED, NameEvent.DUE, NameState.ASKED, _ask, ("R-HOST-02",)),
        (NameState.ASKED, NameEvent.REPLY, NameState.NAMED, None, ("R-HOST-07",)),
        (NameState.ASKED, NameEvent.FORGET, NameState.ASKED, _ask, ("R-HOST-03",)),
        (NameState.NAMED, NameEvent.REPLY, NameState.NAMED, None, ("R-HOST-07",)),
        (NameState.NAMED, NameEvent.FORGET, NameState.ASKED, _ask, ("R-HOST-03",)),
    ),
)


class NameSearch(StateMachine):
    """The search for one peer's name."""

    __slots__ = ("deadline", "interval", "names", "peer", "unanswered")

    table = NAME

    def __init__(self, names: Names, peer: Peer) -> None:
        super().__init__()
        self.names = names
        self.peer = peer
        self.deadline = 0
        """Time of the next query, in ns."""
        self.interval = 0
        """Interval in ns from the last query to the next."""
        self.unanswered = 0
        """Number of queries since the search began, or the peer last showed itself."""


class Names:
    """The names of all peers of a host, and the host's own.

    With ``sharing``, nodes that share the interfaces query a peer together, and take names from each other.
    """

    def __init__(self, profile: Profile, report: Reporter, sharing: Sharing | None = None) -> None:
        self.profile = profile
        self._report = report
        self._sharing = sharing
        self.magic = profile.initial_magic
        """The current magic (R-HOST-03)."""
        self.ports: list[Port] = []
        self._searches: dict[Peer, NameSearch] = {}
        self._wanted: dict[NameSearch, None] = {}
        """Searches whose query is sent with the next transmission."""
        self._early: dict[bytes, tuple[Port, HostQuery]] = {}
        """The last query of each host that is not in the peer table yet, by address."""
        self._waiting: dict[int, dict[NameSearch, None]] = {}
        """Searches without an answer by the interval to their next query, so the first of each interval is due
        first."""
        self.urgent = False
        """True if queries must be sent with the next transmission, even before their time."""

    def search(self, peer: Peer) -> None:
        """Start a search for the name of a peer that was added without one."""
        found = self._searches.setdefault(peer, NameSearch(self, peer))
        if found.state == NameState.NEW:
            self._wanted[found] = None
            self.urgent = True

    def may_query(self, port: Port, peer: Peer, now: int) -> bool:
        """Return whether a peer may be queried from an interface, since no other node has just done so."""
        sharing = self._sharing
        return sharing is None or sharing.may_query(port.number, peer.address, now, self.profile.query_interval)

    def _take_shared(self, peer: Peer) -> bool:
        """Take the name of a peer that another node has learnt; return whether there is one."""
        name = None if self._sharing is None else self._sharing.name_of(peer.address)
        if name is None:
            return False
        self._name(peer, name)
        return True

    def queried(self, search: NameSearch, now: int) -> None:
        """Queue a search whose query is sent at time ``now``.

        After some queries without a sign of the peer, each interval is twice the one before.
        """
        self._unqueue(search)
        profile = self.profile
        search.unanswered += 1
        doublings = min(search.unanswered - profile.query_patience, _DOUBLINGS)
        if doublings < 0 or search.peer.met or profile.has(Defect.NAMELESS_QUERIED_FOREVER):
            doublings = 0
        search.interval = profile.query_interval << doublings
        search.deadline = now + search.interval
        self._waiting.setdefault(search.interval, {})[search] = None

    def _unqueue(self, search: NameSearch) -> None:
        queue = self._waiting.get(search.interval, {})
        queue.pop(search, None)
        if not queue:
            self._waiting.pop(search.interval, None)

    def revive(self, peer: Peer) -> None:
        """Query a peer that has just shown itself, if its queries have become rare."""
        search = self._searches.get(peer)
        if search is not None and search.state == NameState.ASKED and search.interval > self.profile.query_interval:
            search.unanswered = 0
            self._wanted[search] = None
            self.urgent = True

    def drop(self, peer: Peer) -> None:
        """End the search for the name of a peer that another one has replaced."""
        search = self._searches.pop(peer, None)
        if search is not None:
            self._wanted.pop(search, None)
            self._unqueue(search)

    def set(self, peer: Peer) -> None:
        """End the search for the name of a peer, which is known now."""
        search = self._searches.get(peer)
        if search is not None:
            search.fire(NameEvent.REPLY)
            self._unqueue(search)

    def forget(self, peers: Iterable[Peer]) -> None:
        """Forget the names of all remote peers, increase the magic by one, and query all again (R-HOST-03)."""
        self.magic = (self.magic + 1) & 0xFFFF_FFFF
        for peer in peers:
            if peer.own is None:
                peer.name = None
                if self._sharing is not None:
                    self._sharing.learn(peer.address, None)
                search = self._searches.setdefault(peer, NameSearch(self, peer))
                search.unanswered = 0
                self._wanted[search] = None
                self.urgent = True

    def hurry(self) -> None:
        """Query all nameless peers with the next transmission, before their interval has expired (R-HOST-02)."""
        for queue in self._waiting.values():
            for search in queue:
                search.deadline = 0
                self.urgent = True

    def answer(self, port: Port, peer: Peer, query: HostQuery) -> None:
        """Answer a query with the name of the interface that received it (R-HOST-06, R-HOST-08)."""
        if not port.speaks():
            return
        echo = self.profile.reply_echoes_index
        index = query.src_dst_peer_index if echo else peer.index
        port.emit(Counter.SEND_HOST_REPLY, answer(query, port.address, index, port.name))

    def keep(self, port: Port, query: HostQuery) -> None:
        """Keep a query whose source is not in the peer table, in place of the oldest one if there are too many."""
        if self.profile.has(Defect.EARLY_QUERY_UNANSWERED):
            return
        # Entered again, as the newest: the first entry is the one that is dropped when there are too many.
        self._early.pop(query.src_mac, None)
        if len(self._early) >= self.profile.peer_maximum:
            del self._early[next(iter(self._early))]
        self._early[query.src_mac] = port, query

    def meet(self, peer: Peer) -> None:
        """Answer the query that a peer has sent before it was in the peer table, and query it soon.

        A host queries a new peer as soon as it has heard an announcement of it, and repeats the query only after 5 s.
        """
        kept = self._early.pop(peer.address, None)
        if kept is not None:
            port, query = kept
            # A query that is answered teaches the index of this host (R-HOST-05), now as well as on arrival.
            peer.learn(port.number, query.src_dst_peer_index)
            self.answer(port, peer, query)
        self.revive(peer)

    def learn(self, peer: Peer, reply: HostReply) -> None:
        """Take the name in a reply, requested or not (R-HOST-07)."""
        if not 1 <= reply.length <= HOST_NAME_MAXIMUM or len(reply.hostname) < reply.length:
            # A real host would corrupt its memory (D-9); here the reply has no effect.
            return
        name = reply.hostname.split(b"\0")[0].decode("utf-8", "replace")
        if peer.own is not None:
            if self.profile.has(Defect.REPLY_RENAMES_SELF):
                self.ports[peer.own].name = name
            return
        if self._sharing is not None and peer.name != name:
            self._sharing.learn(peer.address, name)
        peer.heard = True
        self._name(peer, name)

    def _name(self, peer: Peer, name: str) -> None:
        peer.name = name
        self.set(peer)
        self._report(EventKind.PEER_NAMED, peer=peer)

    def deadline(self) -> int | None:
        """Time of the next query, in ns; 0 if a query is waiting already; None if no search is running."""
        if self.urgent:
            return 0
        soonest: int | None = None
        for queue in self._waiting.values():
            due = next(iter(queue)).deadline
            if soonest is None or due < soonest:
                soonest = due
        return soonest

    def query(self, now: int) -> None:
        """Send the queries that are due."""
        wanted, self._wanted = self._wanted, {}
        self.urgent = False
        for search in wanted:
            # The name may have been learnt before its query was sent.
            if search.peer.name is None and not self._take_shared(search.peer):
                search.fire(NameEvent.ADDED if search.state is NameState.NEW else NameEvent.FORGET, now)
        # Copies, because each query moves its search to another place in these tables.
        for queue in list(self._waiting.values()):
            for search in list(queue):
                if search.deadline > now:
                    break
                if not self._take_shared(search.peer):
                    search.fire(NameEvent.DUE, now)
