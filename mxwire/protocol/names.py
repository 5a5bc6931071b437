"""Host names: HOST_QUERY and HOST_REPLY (behaviour, section 3)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from mxwire.protocol.card.outgoing import Port
from mxwire.protocol.counters import Counter
from mxwire.protocol.machine import Machine, Row, Table
from mxwire.protocol.peers import Peer, name_field
from mxwire.protocol.profile import Defect, Profile
from mxwire.protocol.status import EventKind, Reporter
from mxwire.wire.numbers import HOST_NAME_MAXIMUM
from mxwire.wire.packets import HostQuery, HostReply


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
    search.deadline = now + names.profile.query_interval
    names.queried(search)
    for port in names.ports:
        port.emit(
            Counter.SEND_HOST_QUERY,
            HostQuery(dst_mac=peer.address, src_mac=port.address, src_dst_peer_index=peer.index, magic=names.magic),
        )


NAME: Final = Table(
    "host name",
    NameState.NEW,
    (
        Row(NameState.NEW, NameEvent.ADDED, NameState.ASKED, _ask, ("R-HOST-01",)),
        Row(NameState.NEW, NameEvent.REPLY, NameState.NAMED, None, ("R-HOST-07",)),
        Row(NameState.ASKED, NameEvent.DUE, NameState.ASKED, _ask, ("R-HOST-02",)),
        Row(NameState.ASKED, NameEvent.REPLY, NameState.NAMED, None, ("R-HOST-07",)),
        Row(NameState.ASKED, NameEvent.FORGET, NameState.ASKED, _ask, ("R-HOST-03",)),
        Row(NameState.NAMED, NameEvent.REPLY, NameState.NAMED, None, ("R-HOST-07",)),
        Row(NameState.NAMED, NameEvent.FORGET, NameState.ASKED, _ask, ("R-HOST-03",)),
    ),
)


class NameSearch(Machine):
    """The search for one peer's name."""

    __slots__ = ("deadline", "names", "peer")

    table = NAME

    def __init__(self, names: Names, peer: Peer) -> None:
        super().__init__()
        self.names = names
        self.peer = peer
        self.deadline = 0
        """Time of the next query, in ns."""


class Names:
    """The names of all peers of a host, and the host's own."""

    def __init__(self, profile: Profile, report: Reporter) -> None:
        self.profile = profile
        self._report = report
        self.magic = profile.initial_magic
        """The current magic (R-HOST-03)."""
        self.ports: list[Port] = []
        self._searches: dict[Peer, NameSearch] = {}
        self._wanted: dict[NameSearch, None] = {}
        """Searches whose query leaves with the next transmission."""
        self._waiting: dict[NameSearch, None] = {}
        """Searches without an answer; all have the same interval, so the first is due first."""

    def search(self, peer: Peer) -> None:
        """Search the name of a peer that was added without one."""
        found = self._searches.setdefault(peer, NameSearch(self, peer))
        if found.state == NameState.NEW:
            self._wanted[found] = None

    def queried(self, search: NameSearch) -> None:
        """Queue a search whose query was sent: its next query is due last."""
        self._waiting.pop(search, None)
        self._waiting[search] = None

    def set(self, peer: Peer) -> None:
        """End the search for the name of a peer, which is known now."""
        search = self._searches.get(peer)
        if search is not None:
            search.fire(NameEvent.REPLY)
            self._waiting.pop(search, None)

    def forget(self, peers: Iterable[Peer]) -> None:
        """Forget the names of all remote peers, increase the magic by one, and query all again (R-HOST-03)."""
        self.magic = (self.magic + 1) & 0xFFFF_FFFF
        for peer in peers:
            if peer.own is None:
                peer.name = None
                self._wanted[self._searches.setdefault(peer, NameSearch(self, peer))] = None

    def hurry(self) -> None:
        """Query all nameless peers with the next transmission, before their interval has expired (R-HOST-02)."""
        for search in self._waiting:
            search.deadline = 0

    def answer(self, port: Port, peer: Peer, query: HostQuery) -> None:
        """Answer a query with the name of the interface that received it (R-HOST-06, R-HOST-08)."""
        if not port.speaks():
            return
        name = name_field(port.name)
        echo = self.profile.reply_echoes_index
        port.emit(
            Counter.SEND_HOST_REPLY,
            HostReply(
                dst_mac=query.src_mac,
                src_mac=port.address,
                length=len(name),
                src_dst_peer_index=query.src_dst_peer_index if echo else peer.index,
                magic=query.magic,
                hostname=name,
            ),
        )

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
        peer.name = name
        self.set(peer)
        self._report(EventKind.PEER_NAMED, peer=peer)

    def deadline(self) -> int | None:
        """Time of the next query, in ns; 0 if one waits already; None without any."""
        if self._wanted:
            return 0
        for first in self._waiting:
            return first.deadline
        return None

    def query(self, now: int) -> None:
        """Send the queries that are due."""
        wanted, self._wanted = self._wanted, {}
        for search in wanted:
            # The name may have been learnt before its query was sent.
            if search.peer.name is None:
                search.fire(NameEvent.ADDED if search.state is NameState.NEW else NameEvent.FORGET, now)
        for search in list(self._waiting):
            if search.deadline > now:
                break
            search.fire(NameEvent.DUE, now)
