"""Host names: HOST_QUERY and HOST_REPLY (behaviour, section 3)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from mxwire.protocol.counters import Counter
from mxwire.protocol.event import Event, EventKind
from mxwire.protocol.machine import Machine, Row, Table
from mxwire.protocol.peers import Peer, name_field
from mxwire.protocol.profile import Defect, Profile
from mxwire.wire.numbers import HOST_NAME_MAXIMUM
from mxwire.wire.packets import HostQuery, HostReply

if TYPE_CHECKING:
    from mxwire.protocol.card.interface import Interface


class NameState(StrEnum):
    """What is known of a peer's name."""

    NEW = "new"
    ASKED = "asked"
    NAMED = "named"


class NameEvent(StrEnum):
    """What can happen to it."""

    ADDED = "added"
    DUE = "query due"
    REPLY = "reply, or told by hand"
    FORGET = "names forgotten"


NAME: Final = Table(
    "host name",
    NameState.NEW,
    (
        Row(NameState.NEW, NameEvent.ADDED, NameState.ASKED, "_ask", ("R-HOST-01",)),
        Row(NameState.NEW, NameEvent.REPLY, NameState.NAMED, "", ("R-HOST-07",)),
        Row(NameState.ASKED, NameEvent.DUE, NameState.ASKED, "_ask", ("R-HOST-02",)),
        Row(NameState.ASKED, NameEvent.REPLY, NameState.NAMED, "", ("R-HOST-07",)),
        Row(NameState.ASKED, NameEvent.FORGET, NameState.ASKED, "_ask", ("R-HOST-03",)),
        Row(NameState.NAMED, NameEvent.REPLY, NameState.NAMED, "", ("R-HOST-07",)),
        Row(NameState.NAMED, NameEvent.FORGET, NameState.ASKED, "_ask", ("R-HOST-03",)),
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
        """When the next query is due, in ns."""

    def _ask(self, now: int) -> None:
        """Query on every interface (R-HOST-01)."""
        self.deadline = now + self.names.profile.query_interval
        self.names.asked(self)
        for interface in self.names.interfaces:
            interface.send(
                Counter.SEND_HOST_QUERY,
                HostQuery(
                    dst_mac=self.peer.address,
                    src_mac=interface.address,
                    src_dst_peer_index=self.peer.index,
                    magic=self.names.magic,
                ),
            )


class Names:
    """The names of all peers of a host, and its own."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.magic = profile.initial_magic
        """The current magic (R-HOST-03)."""
        self.interfaces: list[Interface] = []
        self.events: list[Event] = []
        self._searches: dict[Peer, NameSearch] = {}
        self._wanted: dict[NameSearch, None] = {}
        """Those that are to be asked for with the next transmission."""
        self._waiting: dict[NameSearch, None] = {}
        """Those that were asked for and not answered, the one that is due first in front."""

    def search(self, peer: Peer) -> None:
        """Ask for the name of a peer that was added without one."""
        found = self._searches.setdefault(peer, NameSearch(self, peer))
        if found.state == NameState.NEW:
            self._wanted[found] = None

    def asked(self, search: NameSearch) -> None:
        """A query has been sent: the next one is due after those to all others."""
        self._waiting.pop(search, None)
        self._waiting[search] = None

    def told(self, peer: Peer) -> None:
        """The name of a peer is known: it is not asked for any more."""
        search = self._searches.get(peer)
        if search is not None:
            search.fire(NameEvent.REPLY)
            self._waiting.pop(search, None)

    def forget(self, peers: Iterable[Peer]) -> None:
        """Forget the names of all peers but ourselves: the magic goes up by one, and all are asked anew (R-HOST-03)."""
        self.magic = (self.magic + 1) & 0xFFFF_FFFF
        for peer in peers:
            if peer.own is None:
                peer.name = None
                self._wanted[self._searches.setdefault(peer, NameSearch(self, peer))] = None

    def hurry(self) -> None:
        """Ask all nameless peers with the next transmission, and not only when the interval is over (R-HOST-02)."""
        for search in self._waiting:
            search.deadline = 0

    def answer(self, interface: Interface, peer: Peer, query: HostQuery) -> None:
        """Answer a query with the name of the interface that got it (R-HOST-06, R-HOST-08)."""
        if not interface.speaks():
            return
        name = name_field(interface.name)
        echo = self.profile.reply_echoes_index
        interface.send(
            Counter.SEND_HOST_REPLY,
            HostReply(
                dst_mac=query.src_mac,
                src_mac=interface.address,
                length=len(name),
                src_dst_peer_index=query.src_dst_peer_index if echo else peer.index,
                magic=query.magic,
                hostname=name,
            ),
        )

    def learn(self, peer: Peer, reply: HostReply) -> None:
        """Take the name that a reply tells, asked for or not (R-HOST-07)."""
        if not 1 <= reply.length <= HOST_NAME_MAXIMUM or len(reply.hostname) < reply.length:
            # What corrupts the memory of a real host (D-9) is no name.
            return
        name = reply.hostname.split(b"\0")[0].decode("utf-8", "replace")
        if peer.own is not None:
            if self.profile.has(Defect.REPLY_RENAMES_SELF):
                self.interfaces[peer.own].name = name
            return
        peer.name = name
        self.told(peer)
        self.events.append(Event(EventKind.PEER_NAMED, peer=peer))

    def deadline(self) -> int | None:
        """When the next query is due, in ns; 0 where some are waiting already."""
        if self._wanted:
            return 0
        for first in self._waiting:
            return first.deadline
        return None

    def ask(self, now: int) -> None:
        """Send the queries that are due."""
        wanted, self._wanted = self._wanted, {}
        for search in wanted:
            # The name may have come before it was asked for.
            if search.peer.name is None:
                search.fire(NameEvent.ADDED if search.state is NameState.NEW else NameEvent.FORGET, now)
        for search in list(self._waiting):
            if search.deadline > now:
                break
            search.fire(NameEvent.DUE, now)
