"""The peer table: which hosts there are, and what each of them calls us (wire format, section 5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mxwire.ethernet import mac_text
from mxwire.protocol.errors import LocalProtocolError
from mxwire.protocol.sharing import Sharing
from mxwire.protocol.status import Status
from mxwire.wire.numbers import HOST_NAME_MAXIMUM, NO_PEER_INDEX


def name_field(name: str) -> bytes:
    """A host name as a HOST_REPLY carries it: UTF-8, as much as fits, and a NUL (R-HOST-08)."""
    return name.encode("utf-8", "replace")[: HOST_NAME_MAXIMUM - 1] + b"\0"


@dataclass(slots=True, eq=False)
class Peer:
    """One interface of some host; the host's own interfaces are peers too."""

    index: int
    """Its place in our table."""
    address: bytes
    """Its Ethernet address."""
    name: str | None = None
    """Its host name, if known."""
    reverse: dict[int, int] = field(default_factory=dict)
    """Our index in its table, by the number of our interface that was taught it ("reverse index"; R-LOC-03)."""
    own: int | None = None
    """The number of our own interface that this is."""

    def index_for(self, interface: int) -> int:
        """What ``dst_src_peer_index`` says in frames from one of our interfaces to this peer."""
        return self.reverse.get(interface, NO_PEER_INDEX)


class PeerTable:
    """The peers of a host; entries are never removed but all at once (R-DISC-05).

    Where nodes share their interfaces, ``sharing`` says the indexes.
    """

    def __init__(self, maximum: int, sharing: Sharing | None = None) -> None:
        self.maximum = maximum
        self._sharing = sharing
        self._entries: dict[int, Peer] = {}
        self._by_address: dict[bytes, Peer] = {}
        self._looked_at = 0
        """How many of the places that nodes share were looked at."""
        self._new: list[Peer] = []
        """Peers that other nodes have entered, until somebody asks for them."""

    def __len__(self) -> int:
        """The number of peers."""
        return len(self._entries)

    def __iter__(self) -> Iterator[Peer]:
        """The peers in the order of their indexes."""
        return iter([self._entries[index] for index in sorted(self._entries)])

    def at(self, index: int) -> Peer | None:
        """The peer that an index designates, or None where it designates none."""
        peer = self._entries.get(index)
        if peer is None and self._sharing is not None and index < self.maximum:
            self._enter_others()
            peer = self._entries.get(index)
        return peer

    def refresh(self) -> list[Peer]:
        """Enter the peers that other nodes on our interfaces have entered; returns those that are new since the last
        call."""
        self._enter_others()
        new, self._new = self._new, []
        return new

    def _enter_others(self) -> None:
        places = [] if self._sharing is None else self._sharing.places()
        # The first place of an address is its index.
        for index in range(self._looked_at, min(len(places), self.maximum)):
            if places[index] not in self._by_address:
                self._new.append(self._enter(index, places[index], None))
        self._looked_at = max(self._looked_at, len(places))

    def by_address(self, address: bytes) -> Peer | None:
        """The peer with an Ethernet address, or None (R-DISC-01); whom one node of a host knows, all of them know."""
        peer = self._by_address.get(address)
        if peer is None and self._sharing is not None:
            self._enter_others()
            peer = self._by_address.get(address)
        return peer

    def by_name(self, name: str) -> Peer | None:
        """The first peer with a host name, or None."""
        return next((each for each in self if each.name == name), None)

    def add(self, address: bytes, name: str | None = None) -> Peer:
        """Enter a peer; one that is known stays where it is and takes the new name, if there is one.

        Raises :class:`~mxwire.protocol.errors.LocalProtocolError` when the table is full.
        """
        known = self._by_address.get(address)
        if known is not None:
            known.name = name or known.name
            return known
        if len(self._entries) >= self.maximum:
            raise LocalProtocolError(
                Status.NO_RESOURCES, f"the peer table is full ({self.maximum} entries): {mac_text(address)} not entered"
            )
        return self._enter(
            len(self._entries) if self._sharing is None else self._sharing.place_of(address), address, name
        )

    def _enter(self, index: int, address: bytes, name: str | None) -> Peer:
        peer = self._entries[index] = self._by_address[address] = Peer(index, address, name)
        return peer
