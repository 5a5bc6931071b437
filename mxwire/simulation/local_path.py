"""Channels between the nodes of a simulated host: queues in memory, limited like real channels.

The nodes also share what the processes of a real host do: endpoint numbers, the indexes and names of peers, and the
right to query them and to answer for an interface.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from mxwire.protocol import Node
from mxwire.protocol.arguments import Segments
from mxwire.protocol.peers import query_is_due

CHANNEL_BYTES: Final = 1 << 17
"""Bytes of records that a channel holds in each direction."""


class SimulatedChannel:
    """One side of a channel. With ``copies`` = 1 it can read the memory of its neighbour, with 2 it cannot."""

    def __init__(self, owner: SimulatedPath, neighbour: SimulatedPath, copies: int, size: int) -> None:
        self.owner = owner
        self.ended = False
        self.process = neighbour.process
        self._closed = False
        self.other: SimulatedChannel = self
        self.arrived: deque[bytes] = deque()
        self._copies = copies
        self._size = size
        self._room = size
        self._refused = False
        self._described: dict[int, tuple[int, Segments]] = {}
        self._number = 0

    def put(self, head: bytes, data: Any = b"") -> bool:
        """Append a record."""
        record = head + bytes(data)
        if self.ended or len(record) > self._room:
            # So that the reader notifies this side of room (settle); an ended channel never has any again.
            self._refused = not self.ended
            return False
        self._room -= len(record)
        self.other.arrived.append(record)
        self.other.owner.notice(self.other)
        return True

    def peek(self) -> memoryview | None:
        """The oldest record."""
        return memoryview(self.arrived[0]) if self.arrived and not self._closed else None

    def advance(self) -> None:
        """Remove the oldest record."""
        self.other._room += len(self.arrived.popleft())

    def settle(self) -> None:
        """Notify the neighbour that there is room, if a record of it was refused."""
        if self.other._refused:
            self.other._refused = False
            self.other.owner.notice(self.other)

    def describe(self, memory: Segments, endpoint: int) -> bytes:
        """Keep ``memory`` for the neighbour to read, and return its number."""
        self._number += 1
        self._described[self._number] = endpoint, memory
        return self._number.to_bytes(8, "big")

    def read(self, described: bytes, memory: Segments, length: int, endpoint: int, offset: int = 0) -> bool:
        """Copy the described memory of the neighbour into ``memory``; False if it was withdrawn or cannot be read."""
        # Described memory is read once: the record that describes it is.
        found = self.other._described.pop(int.from_bytes(described, "big"), None)
        if found is None or self._copies > 1 or self.ended or found[0] != endpoint or found[1].length < length:
            return False
        data = np.empty(length - offset, np.uint8)
        found[1].take(offset, data)
        memory.put(offset, data)
        return True

    def withdraw(self, endpoint: int) -> None:
        """Forget the memory of an endpoint."""
        for number in [number for number, (owner, _) in self._described.items() if owner == endpoint]:
            del self._described[number]

    def unread(self) -> list[bytes]:
        """The records that were not taken."""
        return list(self.other.arrived)

    def close(self) -> None:
        """End both sides; the other one can still take the records that were sent before."""
        self._closed = True
        # The neighbour is notified even if nothing was sent: only this shows it that the process has died.
        for each in (self, self.other):
            if not each.ended:
                each.ended = True
                each.owner.notice(each)


class SimulatedPath:
    """The path from one node to the other nodes of its host; all paths share ``nodes``."""

    def __init__(self, paths: list[SimulatedPath], *, copies: int = 1, size: int = CHANNEL_BYTES) -> None:
        self.node: Node | None = None
        """Set after the node was made; None again when its process has ended."""
        self._peers: list[bytes] = paths[0]._peers if paths else []
        """The addresses of all peers by index, of all paths."""
        self._names: dict[bytes, str | None] = paths[0]._names if paths else {}
        """The names of peers that any node has learnt."""
        self._queried: dict[tuple[int, bytes], tuple[int, int]] = paths[0]._queried if paths else {}
        """The times of the last two queries of a peer, by interface and peer."""
        self.on_notice: Callable[[bool], None] | None = None
        """Called when :meth:`receive` should be called; with True later, since records were left."""
        # Before the path joins the others, from whose numbers its own follows.
        self.process: int = 1 + max((each.process for each in paths), default=0)
        """Number of the node's process; numbers of dead processes are not reused."""
        self._paths = paths
        self._copies = copies
        self._size = size
        self._noticed: list[Any] = []
        self._channels: list[SimulatedChannel] = []
        paths.append(self)

    def reach(self, interface: int, endpoint: int) -> SimulatedChannel | None:
        """A new channel to the node that has an endpoint open."""
        for each in self._paths:
            if each is not self and each._has(interface, endpoint):
                near = SimulatedChannel(self, each, self._copies, self._size)
                far = SimulatedChannel(each, self, self._copies, self._size)
                near.other, far.other = far, near
                self._channels.append(near)
                each._channels.append(far)
                return near
        return None

    @property
    def busy(self) -> bool:
        """True if a channel has records, room, or has ended."""
        return self.node is not None and bool(self._noticed)

    def notice(self, channel: SimulatedChannel, later: bool = False) -> None:
        """Note that a channel has records, room, or has ended."""
        if channel not in self._noticed:
            self._noticed.append(channel)
        if self.on_notice is not None:
            self.on_notice(later)

    def receive(self, now: int) -> bool:
        """Pass the channels with news to the node; return whether there were any."""
        noticed, self._noticed = self._noticed, []
        if self.node is None or not noticed:
            return False
        self.node.receive_local(noticed, now)
        for each in noticed:
            if each.peek() is not None:
                # Some records were left: like a real channel, this one is reported until it is empty.
                self.notice(each, later=True)
        return True

    def die(self) -> None:
        """Kill the process of the node without closing its endpoints."""
        self.node = None
        for each in self._channels:
            each.close()
        if all(each.node is None for each in self._paths):
            # The table of a real host, too, is removed with its last process.
            self._peers.clear()
            self._names.clear()
            self._queried.clear()

    def successor(self) -> SimulatedPath:
        """The path of a process that is started after this one has died."""
        found = SimulatedPath(self._paths, copies=self._copies, size=self._size)
        # Only now: the number of the successor must differ from that of its predecessor.
        self._paths.remove(self)
        found.on_notice = self.on_notice
        return found

    # Shared with the other nodes: see ``Sharing``.

    def place_of(self, address: bytes) -> int:
        """The index of a peer, added if it is new."""
        if address not in self._peers:
            self._peers.append(address)
        return self._peers.index(address)

    def leave(self, address: bytes) -> None:
        """Keep the index of a peer: simulated hosts have few."""

    def index_of(self, address: bytes) -> int | None:
        """The index of a peer of any node, or None."""
        return self._peers.index(address) if address in self._peers else None

    def address_at(self, index: int) -> bytes | None:
        """The address of the peer with an index, or None."""
        return self._peers[index] if index < len(self._peers) else None

    def news(self) -> Sequence[bytes]:
        """The addresses of all peers."""
        return tuple(self._peers)

    def name_of(self, address: bytes) -> str | None:
        """The name of a peer that any node has learnt."""
        return self._names.get(address)

    def learn(self, address: bytes, name: str | None) -> None:
        """Take the name of a peer, or forget it."""
        self._names[address] = name

    def may_query(self, interface: int, address: bytes, now: int, interval: int) -> bool:
        """Return whether a node may query a peer now."""
        # Shared, since each node would otherwise query the peer at the same interval.
        before, last = self._queried.get((interface, address), (0, 0))
        if not query_is_due(before, last, now, interval):
            return False
        self._queried[interface, address] = last, now
        return True

    def elsewhere(self, interface: int, endpoint: int) -> bool:
        """Return whether another node has an endpoint of that number open."""
        return any(each is not self and each._has(interface, endpoint) for each in self._paths)

    def speaks(self, interface: int) -> bool:
        """Return whether this node answers for the interfaces: the first one does, and after its end the next."""
        return next((each for each in self._paths if each.node is not None), self) is self

    def _has(self, interface: int, endpoint: int) -> bool:
        return self.node is not None and endpoint in self.node.interfaces[interface].endpoints
