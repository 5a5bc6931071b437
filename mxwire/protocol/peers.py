"""The peer table: which hosts there are, and what each of them calls us (wire format, section 5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from mxwire.protocol.errors import LocalProtocolError
from mxwire.protocol.status import Status
from mxwire.wire.address import mac_text

UNKNOWN_INDEX: Final = 0xFFFF
"""Sent while a peer has not taught its index for us (wire format, section 5)."""
NAME_MAXIMUM: Final = 80
"""Longest host name in bytes, with its NUL (R-HOST-08)."""


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
        return self.reverse.get(interface, UNKNOWN_INDEX)


class PeerTable:
    """The peers of a host; entries are never removed but all at once (R-DISC-05)."""

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self._entries: list[Peer] = []
        self._by_address: dict[bytes, Peer] = {}

    def __len__(self) -> int:
        """The number of peers."""
        return len(self._entries)

    def __iter__(self) -> Iterator[Peer]:
        """The peers in the order of their indexes."""
        return iter(self._entries)

    def at(self, index: int) -> Peer | None:
        """The peer that an index designates, or None where it designates none."""
        return self._entries[index] if index < len(self._entries) else None

    def by_address(self, address: bytes) -> Peer | None:
        """The peer with an Ethernet address, or None (R-DISC-01)."""
        return self._by_address.get(address)

    def by_name(self, name: str) -> Peer | None:
        """The first peer with a host name, or None."""
        return next((each for each in self._entries if each.name == name), None)

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
        peer = Peer(len(self._entries), address, name)
        self._entries.append(peer)
        self._by_address[address] = peer
        return peer
