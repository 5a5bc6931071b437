"""Discovery and host names: how hosts learn of each other before any endpoint connects (behaviour, sections 2 and 3).

Theory of operation
===================

A frame identifies its host only by the Ethernet source address and by an index into the receiver's peer table. Two
hosts can therefore exchange messages only if each has the other in its peer table.

*Announcements* (``Discovery``) fill the table. The daemon omxoed broadcasts RAW frames, a series of them at its start
and then one every few minutes; a host that receives one adds its source to the peer table, and starts another series,
so that the new host soon adds this host too. RAW frames wait in a queue (``RawQueue``), because the program that reads
them may not be running.

*Names* (``Names``) follow: each peer without a name is queried at an interval until it replies, and its replies contain
the index of this host in the peer's table. A query is answered by the card, without the library. The magic in a query
is repeated in its reply; forgetting all names increases it, so that late replies have no effect.

*Introduction* does the same for a host without an engine, such as the tester of scenarios and replays.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Final

from mxwire.ethernet import BROADCAST, DESTINATION, SOURCE
from mxwire.protocol.card.outgoing import Port
from mxwire.protocol.counters import Counter
from mxwire.protocol.peers import Peer, PeerTable, Sharing, name_field
from mxwire.protocol.profile import Defect, Profile
from mxwire.protocol.state_machine import StateMachine, TransitionTable
from mxwire.protocol.status import EventKind, Reporter
from mxwire.units import MILLISECOND
from mxwire.wire.codec import build, parse
from mxwire.wire.dialect import MXOE
from mxwire.wire.enums import hostname_text
from mxwire.wire.formats import RAW, RAW_OMXOED
from mxwire.wire.layout import layout_of
from mxwire.wire.numbers import HOST_NAME_MAXIMUM, HOST_QUERY_MAGIC
from mxwire.wire.packets import Announcement, Frame, HostQuery, HostReply, Raw

_NIC_ID: Final = layout_of(RAW_OMXOED).by_name["nic_id_hi"].offset - layout_of(RAW).header_end
"""Offset of the NIC id of an announcement in the content of a RAW frame."""
_ANNOUNCED: Final = struct.Struct(">QI")
"""Packer of NIC id and serial of an announcement."""
EVERY: Final = 250 * MILLISECOND
"""Interval between two announcements of an ``Introduction``."""
_LOW: Final = 0xFFFF_FFFF
_GROUP: Final = 1 << 40
"""The bit of a broadcast or multicast address, in the address as a number."""
_DOUBLINGS: Final = 6
"""Maximum number of doublings of the interval between queries: 5 s become 320 s."""
_HEARD_MAXIMUM: Final = 1024
"""Maximum number of sources that an ``Introduction`` queries."""


# Frames.


def announcement(address: bytes, serial: int) -> Announcement:
    """Announce a host: other hosts drop frames of unknown addresses (R-DISC-01)."""
    number = int.from_bytes(address, "big")
    return Announcement(
        dst_mac=BROADCAST, src_mac=address, nic_id_hi=number >> 32, nic_id_lo=number & _LOW, serial=serial
    )


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


# Announcements.


class RawQueue:
    """The RAW frames that wait for the discovery program (R-DISC-06)."""

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.frames: deque[Raw | Announcement] = deque()

    @property
    def full(self) -> bool:
        """True if another frame would be dropped."""
        return len(self.frames) >= self.maximum

    def put(self, frame: Raw | Announcement) -> bool:
        """Queue a frame; return False if the queue is full."""
        if self.full:
            return False
        self.frames.append(frame)
        return True

    def take(self) -> list[Raw | Announcement]:
        """Take all frames."""
        frames = list(self.frames)
        self.frames.clear()
        return frames


class AnnouncementState(StrEnum):
    """States of a discovery program."""

    SILENT = "silent"
    SERIES = "in a series"
    PAUSE = "between series"


class AnnouncementEvent(StrEnum):
    """Events of a discovery program."""

    START = "started"
    DUE = "announcement due"
    LAST = "last of a series due"
    NEWS = "new peer or new serial"


def _begin(discovery: Discovery, now: int) -> None:
    discovery.remaining = discovery.profile.announcement_count
    discovery.deadline = now


def _restart(discovery: Discovery, now: int) -> None:
    """Start another series, whose first frame is transmitted within one interval."""
    discovery.remaining = discovery.profile.announcement_count
    due = now + discovery.profile.announcement_interval
    discovery.deadline = due if discovery.deadline is None else min(discovery.deadline, due)


def _announce(discovery: Discovery, now: int) -> None:
    profile, pause = discovery.profile, discovery.state == AnnouncementState.PAUSE
    discovery.remaining = max(0, discovery.remaining - 1)
    discovery.deadline = now + (profile.announcement_pause if pause else profile.announcement_interval)
    if discovery.speaks():
        discovery.port.emit(Counter.SEND_RAW, announcement(discovery.port.address, discovery.serial))


_NEWS_RULES: Final = ("R-DISC-03", "R-DISC-04")
ANNOUNCEMENTS: Final = TransitionTable(
    "announcements",
    AnnouncementState.SILENT,
    (
        (AnnouncementState.SILENT, AnnouncementEvent.START, AnnouncementState.SERIES, _begin, ("R-DISC-02",)),
        (AnnouncementState.SERIES, AnnouncementEvent.DUE, AnnouncementState.SERIES, _announce, ("R-DISC-02",)),
        (AnnouncementState.SERIES, AnnouncementEvent.LAST, AnnouncementState.PAUSE, _announce, ("R-DISC-02",)),
        (AnnouncementState.SERIES, AnnouncementEvent.NEWS, AnnouncementState.SERIES, _restart, _NEWS_RULES),
        (AnnouncementState.PAUSE, AnnouncementEvent.DUE, AnnouncementState.PAUSE, _announce, ("R-DISC-02",)),
        (AnnouncementState.PAUSE, AnnouncementEvent.NEWS, AnnouncementState.SERIES, _restart, _NEWS_RULES),
    ),
)


class Discovery(StateMachine):
    """The discovery program of one interface: announces it, and adds announced hosts as peers (R-DISC-07)."""

    __slots__ = ("_add", "_own", "_serials", "deadline", "peers", "port", "profile", "remaining", "serial", "speaks")

    table = ANNOUNCEMENTS

    def __init__(
        self,
        port: Port,
        peers: PeerTable,
        profile: Profile,
        serial: int,
        add: Callable[[bytes], bool],
        speaks: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__()
        self.speaks = speaks
        self.port = port
        self.peers = peers
        self.profile = profile
        self.serial = serial
        """Pseudo-random number of this start of the program (wire format, section 6.1)."""
        self.deadline: int | None = 0
        """Time of the next announcement, in ns."""
        self._own = int.from_bytes(port.address, "big")
        self._serials: dict[int, int] = {}
        self.remaining = 0
        """Announcements left in the current series."""
        self._add = add
        """Adds a host as a peer; returns whether it is one now."""

    def tick(self, now: int) -> None:
        """Send the announcements that are due."""
        if self.state is AnnouncementState.SILENT:
            self.fire(AnnouncementEvent.START, now)
        while self.deadline is not None and self.deadline <= now:
            last = self.state == AnnouncementState.SERIES and self.remaining == 1
            self.fire(AnnouncementEvent.LAST if last else AnnouncementEvent.DUE, now)

    def hear(self, frame: Raw | Announcement, now: int) -> None:
        """Take a RAW frame; only id and serial count, not the source address (R-DISC-05)."""
        if isinstance(frame, Announcement):
            nic, serial = (frame.nic_id_hi << 32) | frame.nic_id_lo, frame.serial
        elif self.profile.has(Defect.ANY_RAW_ANNOUNCES):
            nic, serial = _read_unchecked(frame.opaque)
        else:
            return
        # The field has 64 bits, of which the upper 16 are 0 in every Ethernet address (behaviour, section 1).
        if nic == self._own or nic >> 48 or self._serials.get(nic) == serial:
            return
        if (not nic or nic & _GROUP) and not self.profile.has(Defect.ANY_RAW_ANNOUNCES):
            # No host has such an address, and name queries to a group would reach all hosts.
            return
        if not self._add(nic.to_bytes(6, "big")):
            return
        # Only now: the next announcement of a host for which there was no room must be news again.
        self._serials[nic] = serial
        if self.can(AnnouncementEvent.NEWS):
            self.fire(AnnouncementEvent.NEWS, now)

    def forget(self, address: bytes) -> None:
        """Forget a host that is no peer any more, so that its next announcement is news."""
        self._serials.pop(int.from_bytes(address, "big"), None)


def _read_unchecked(content: bytes) -> tuple[int, int]:
    """NIC id and serial at their offsets in the content of any RAW frame, padded with zeros (R-MEA-22)."""
    nic, serial = _ANNOUNCED.unpack(content[_NIC_ID : _NIC_ID + _ANNOUNCED.size].ljust(_ANNOUNCED.size, b"\0"))
    return nic & (1 << 48) - 1, serial


# Host names.


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


# A host without an engine.


class Introduction:
    """Introduce a host to all hosts that transmit, and learn their names; frames and the time go in, frames come out.

    The host at ``address`` is announced every ``every`` ns, with the ``serial`` of this start, and queries for its
    ``name`` are answered. Sources of frames and ``known`` addresses are queried until they reply. All of them receive
    the same ``index``, since only one conversation follows. These packets are the same in all dialects.
    """

    def __init__(
        self, address: bytes, name: str, *, index: int, serial: int, every: int = EVERY, known: Iterable[bytes] = ()
    ) -> None:
        self.deadline = 0
        """Time of the next announcement, in ns of any monotonic clock."""
        self.heard: dict[bytes, None] = {}
        """The source addresses of all frames, in the order of their first frames."""
        self.names: dict[bytes, str] = {}
        """The names of the hosts that have replied, by address, in the order of their replies."""
        self.magics: dict[bytes, int] = {}
        """The magic of the last query of each host that has sent one."""
        self._address = address
        self._name = name
        self._index = index
        self._serial = serial
        self._every = every
        self._known = tuple(known)
        self._outgoing: list[Frame] = []

    def transmit(self, now: int) -> list[bytes]:
        """The frames to transmit at time ``now``."""
        if now >= self.deadline:
            self.deadline = now + self._every
            self._outgoing.append(announcement(self._address, self._serial))
            for each in dict.fromkeys((*self._known, *self.heard)):
                self._ask(each)
        outgoing, self._outgoing = self._outgoing, []
        return [build(each, MXOE) for each in outgoing]

    def receive(self, raw: bytes) -> None:
        """Take any frame from the wire."""
        to, source = raw[: DESTINATION.stop], raw[SOURCE.start : SOURCE.stop]
        unknown = source not in self.heard and source not in self._known
        if source == self._address or (unknown and len(self.heard) >= _HEARD_MAXIMUM and not self._forget_one()):
            return
        frame = parse(raw, MXOE)
        queried = isinstance(frame, HostQuery) and to == self._address
        if isinstance(frame, HostReply) and to == self._address:
            self.names[source] = hostname_text(frame.hostname)
        if isinstance(frame, HostQuery) and queried:
            self.magics[source] = frame.magic
            self._outgoing.append(answer(frame, self._address, self._index, self._name))
        if queried or source not in self.heard:
            # The source of a query may have learnt of this host only now; before, it would not reply (R-HOST-04).
            self._ask(source)
        self.heard[source] = None

    def _forget_one(self) -> bool:
        """Forget the oldest source that has no name, since frames can have any source; return False if all have one."""
        for each in self.heard:
            if each not in self.names:
                del self.heard[each]
                self.magics.pop(each, None)
                return True
        return False

    def _ask(self, other: bytes) -> None:
        if other not in self.names and len(self._outgoing) < 2 * _HEARD_MAXIMUM:
            self._outgoing.append(query(self._address, other, self._index))

    def found(self, wanted: str | bytes | None) -> bytes | None:
        """The address of the host ``wanted``, a name or an address, if it has replied; if None, of the first host that
        has replied."""
        for address, name in self.names.items():
            if wanted is None or wanted in (address, name):
                return address
        return None
