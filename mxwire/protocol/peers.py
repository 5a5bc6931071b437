"""The peer table: the known hosts, and the index of this host in the table of each (wire format, section 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mxwire.errors import MxwireError
from mxwire.ethernet import mac_text
from mxwire.protocol.status import LocalProtocolError, Status
from mxwire.wire.numbers import HOST_NAME_MAXIMUM, NO_PEER_INDEX


def name_field(name: str) -> bytes:
    """Encode a host name for a HOST_REPLY: UTF-8, truncated to the field, and a NUL (R-HOST-08)."""
    return name.encode("utf-8", "replace")[: HOST_NAME_MAXIMUM - 1] + b"\0"


def place_of(address: bytes, number: int) -> int:
    """Address and endpoint number as one number."""
    return int.from_bytes(address, "big") << 8 | number


def query_is_due(before: int, last: int, now: int, interval: int) -> bool:
    """Return whether a peer may be queried at time ``now`` in ns, by the times of its last two queries; 0: none.

    There is one query per ``interval``; of two in a row one may be early, since a caller waits for a name (R-HOST-02).
    """
    early = 0 < last <= now < last + interval
    return not early or not 0 < before <= last < before + interval


class Sharing(Protocol):
    """State that several nodes on the same interfaces must agree on; interfaces are numbered from 0 in each node.

    Other hosts know a host by its Ethernet address alone: they store one index for it, and learn one index from it. All
    its nodes must therefore use the same indexes for their peers, only one node may answer for all, and none may refuse
    a packet for an endpoint of another.
    """

    def place_of(self, address: bytes) -> int | None:
        """The index of a peer in the peer tables of all nodes, which belongs to the peer until each node that called
        this has left it; a new peer gets a free index. None if there is none now.

        Raises :class:`~mxwire.errors.MxwireError` if the table cannot be shared.
        """

    def leave(self, address: bytes) -> None:
        """Take back that this node has a peer in its table."""

    def index_of(self, address: bytes) -> int | None:
        """The index of a peer that another node has in its table, or None."""

    def address_at(self, index: int) -> bytes | None:
        """The address of the peer with an index that another node has in its table, or None."""

    def news(self) -> Sequence[bytes]:
        """The addresses of peers that other nodes on these interfaces have added since the last call."""

    def name_of(self, address: bytes) -> str | None:
        """The name of a peer that any of the nodes has learnt; None if unknown."""

    def learn(self, address: bytes, name: str | None) -> None:
        """Take the name of a peer that a node has learnt or, with None, forgotten."""

    def may_query(self, interface: int, address: bytes, now: int, interval: int) -> bool:
        """Return whether a node may query a peer from an interface at time ``now`` in ns; if so, it does.

        All nodes together query as often as one host; see :func:`query_is_due`.
        """

    def elsewhere(self, interface: int, endpoint: int) -> bool:
        """Return whether another node has an endpoint of that number open."""

    def speaks(self, interface: int) -> bool:
        """Return whether this node answers and announces for the interface."""


@dataclass(slots=True, eq=False)
class Peer:
    """One interface of a host; the interfaces of the local host are peers too."""

    index: int
    """Its index in the local peer table."""
    address: bytes
    """Its Ethernet address."""
    name: str | None = None
    """Its host name, or None if unknown."""
    reverse: dict[int, int] = field(default_factory=dict)
    """The local host's index in the peer's table, by local interface number ("reverse index"; R-LOC-03)."""
    own: int | None = None
    """The number of the local interface; None for a remote host."""
    heard: bool = False
    """True if the host has announced itself, or replied with its name."""
    kept: bool = False
    """True if a caller has entered the host, so that it is never replaced."""
    partners: int = 0
    """Number of partners of open endpoints; while there are any, the peer is not replaced."""
    talked: bool = False
    """True if an endpoint has ever had a partner there."""
    removed: bool = False
    """True if another host has replaced it in the peer table."""

    @property
    def met(self) -> bool:
        """True if the host has shown that it has the local one in its peer table, or has a name."""
        return self.name is not None or bool(self.reverse)

    @property
    def replaceable(self) -> bool:
        """True if nothing refers to the peer, so that its index may become that of another host."""
        return not self.partners and not self.kept and self.own is None

    def learn(self, interface: int, index: int) -> None:
        """Learn the index of a local interface in the peer's table (wire format, section 5)."""
        # The node has set the indexes between its own interfaces; a frame that pretends to come from one changes none.
        if self.own is None:
            self.reverse[interface] = index

    def index_for(self, interface: int) -> int:
        """The value of ``dst_src_peer_index`` in frames from a local interface to this peer."""
        return self.reverse.get(interface, NO_PEER_INDEX)


class PeerTable:
    """The peers of a host.

    Announcements can have any address, so forged ones could occupy the table indefinitely. When it is full, a new
    host therefore replaces the oldest one that has never answered; if there is none, the oldest one that was never a
    partner, then the oldest of all; but never one to which anything refers (``Peer.replaceable``). With
    ``never_replaced`` the table takes no more hosts, as that of a real host (R-DISC-05). ``on_removal`` is called with
    each replaced peer. With ``sharing``, nodes that share the interfaces agree on the indexes.
    """

    def __init__(
        self,
        maximum: int,
        sharing: Sharing | None = None,
        *,
        never_replaced: bool = False,
        on_removal: Callable[[Peer], None] = lambda _peer: None,
    ) -> None:
        self.maximum = maximum
        self._sharing = sharing
        self._never_replaced = never_replaced
        self._on_removal = on_removal
        self._silent: dict[Peer, None] = {}
        """Peers that had not answered when they were last looked at, the oldest first; an ordered set."""
        self._others: dict[Peer, None] = {}
        """The other peers, the oldest first."""
        self._free: list[int] = []
        """Indexes of replaced peers that are not given to others yet."""
        self.entries: dict[int, Peer] = {}
        """The peers by index, without those that other nodes have added since the last :meth:`refresh`; :meth:`at`
        finds these."""
        self._by_address: dict[bytes, Peer] = {}
        self._new: dict[Peer, None] = {}
        """Peers of other nodes, until the next :meth:`refresh`; an ordered set."""

    def __len__(self) -> int:
        """The number of peers."""
        return len(self.entries)

    def __iter__(self) -> Iterator[Peer]:
        """The peers in the order of their indexes."""
        return iter([self.entries[index] for index in sorted(self.entries)])

    def at(self, index: int) -> Peer | None:
        """The peer with an index, or None."""
        peer = self.entries.get(index)
        if peer is None and self._sharing is not None:
            address = self._sharing.address_at(index)
            if address is not None:
                self.by_address(address)
                peer = self.entries.get(index)
        return peer

    def refresh(self) -> list[Peer]:
        """Add the peers that other nodes on the same interfaces have added; return those new since the last call."""
        for address in [] if self._sharing is None else self._sharing.news():
            self.by_address(address)
        new, self._new = self._new, {}
        return list(new)

    def by_address(self, address: bytes) -> Peer | None:
        """The peer with an Ethernet address, or None (R-DISC-01); nodes that share interfaces share their peers."""
        peer = self._by_address.get(address)
        if peer is None and self._sharing is not None and self._sharing.index_of(address) is not None:
            peer = self.enter(address)
            if peer is not None:
                self._new[peer] = None
        return peer

    def by_name(self, name: str) -> Peer | None:
        """The first peer with a host name, or None."""
        return next((each for each in self if each.name == name), None)

    def add(self, address: bytes, name: str | None = None) -> Peer:
        """Add a peer; a known peer keeps its index and takes ``name``, unless it is None.

        Raises :class:`~mxwire.protocol.status.LocalProtocolError` if the table is full, and the errors of ``sharing``.
        """
        known = self._by_address.get(address)
        if known is not None:
            known.name = name or known.name
            return known
        peer = self._enter(address)
        if peer is None:
            raise LocalProtocolError(
                Status.NO_RESOURCES,
                f"the peer table is full ({self.maximum} entries, all in use)"
                f"{'' if self._sharing is None else ', or another process was stopped while it changed the table'}: "
                f"{mac_text(address)} not entered",
            )
        peer.name = name
        return peer

    def enter(self, address: bytes) -> Peer | None:
        """Add a peer that is not in the table; return None if the table is full of peers that are in use, or cannot be
        shared."""
        try:
            return self._enter(address)
        except MxwireError:
            # A frame adds the peer, and the host must continue without it.
            return None

    def _enter(self, address: bytes) -> Peer | None:
        if len(self.entries) >= self.maximum and not self._remove_one():
            return None
        index: int | None
        if self._sharing is not None:
            index = self._sharing.place_of(address)
        else:
            index = self._free.pop() if self._free else len(self.entries)
        if index is None:
            return None
        peer = self.entries[index] = self._by_address[address] = Peer(index, address)
        self._silent[peer] = None
        return peer

    def _remove_one(self) -> bool:
        peer = None if self._never_replaced else self._least()
        if peer is None:
            return False
        self.withdraw(peer)
        return True

    def withdraw(self, peer: Peer) -> None:
        """Remove a peer, whose index another one may get."""
        del self.entries[peer.index], self._by_address[peer.address]
        self._new.pop(peer, None)
        peer.removed = True
        self._on_removal(peer)
        # A shared index is free only when all nodes have left it; the shared table decides that.
        if self._sharing is not None:
            self._sharing.leave(peer.address)
        else:
            self._free.append(peer.index)

    def _least(self) -> Peer | None:
        """Take the peer that a new one replaces from the lists; None if all are in use."""
        # Each peer is moved once, so that a flood of forged announcements does not search the whole table each time.
        while self._silent:
            peer = next(iter(self._silent))
            del self._silent[peer]
            if peer.replaceable and not peer.met and not self._is_named(peer):
                return peer
            self._others[peer] = None
        spare = [each for each in self._others if each.replaceable]
        chosen = next((each for each in spare if not each.talked), spare[0] if spare else None)
        if chosen is not None:
            del self._others[chosen]
        return chosen

    def _is_named(self, peer: Peer) -> bool:
        """Return whether another node knows the name of a peer."""
        return self._sharing is not None and self._sharing.name_of(peer.address) is not None
