"""Introduction on an Ethernet: a host announces itself before other traffic, and finds other hosts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mxwire.ethernet import BROADCAST, DESTINATION, SOURCE
from mxwire.protocol.peers import name_field
from mxwire.units import MILLISECOND
from mxwire.wire.codec import build, parse
from mxwire.wire.dialect import MXOE
from mxwire.wire.numbers import HOST_QUERY_MAGIC
from mxwire.wire.packets import Announcement, Frame, HostQuery, HostReply
from mxwire.wire.text import hostname_text

EVERY: Final = 250 * MILLISECOND
"""Interval between two announcements."""
_LOW: Final = 0xFFFF_FFFF


def announcement(address: bytes, serial: int) -> Announcement:
    """Announce a host: other hosts drop frames of unknown addresses (R-DISC-01)."""
    number = int.from_bytes(address, "big")
    return Announcement(
        dst_mac=BROADCAST, src_mac=address, nic_id_hi=number >> 32, nic_id_lo=number & _LOW, serial=serial
    )


def query(address: bytes, other: bytes, index: int) -> HostQuery:
    """Query the name of host ``other``, and announce the local index for it (R-HOST-05)."""
    return HostQuery(dst_mac=other, src_mac=address, src_dst_peer_index=index, magic=HOST_QUERY_MAGIC)


def answer(asked: HostQuery, address: bytes, index: int, hostname: str) -> HostReply:
    """Answer a query with the local host name (R-HOST-06)."""
    name = name_field(hostname)
    return HostReply(
        dst_mac=asked.src_mac,
        src_mac=address,
        length=len(name),
        src_dst_peer_index=index,
        magic=asked.magic,
        hostname=name,
    )


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
        self._address = address
        self._name = name
        self._index = index
        self._serial = serial
        self._every = every
        self._known = tuple(known)
        self._leaving: list[Frame] = []

    def transmit(self, now: int) -> list[bytes]:
        """The frames to transmit at time ``now``."""
        if now >= self.deadline:
            self.deadline = now + self._every
            self._leaving.append(announcement(self._address, self._serial))
            for each in dict.fromkeys((*self._known, *self.heard)):
                self._ask(each)
        leaving, self._leaving = self._leaving, []
        return [build(each, MXOE) for each in leaving]

    def receive(self, raw: bytes) -> None:
        """Take any frame from the wire."""
        to, source = raw[: DESTINATION.stop], raw[SOURCE.start : SOURCE.stop]
        if source == self._address:
            return
        frame = parse(raw, MXOE)
        asked = isinstance(frame, HostQuery) and to == self._address
        if isinstance(frame, HostReply) and to == self._address:
            self.names[source] = hostname_text(frame.hostname)
        if isinstance(frame, HostQuery) and asked:
            self._leaving.append(answer(frame, self._address, self._index, self._name))
        if asked or source not in self.heard:
            # The source of a query may have learnt of this host only now; before, it would not reply (R-HOST-04).
            self._ask(source)
        self.heard[source] = None

    def _ask(self, other: bytes) -> None:
        if other not in self.names:
            self._leaving.append(query(self._address, other, self._index))

    def found(self, wanted: str | bytes | None) -> bytes | None:
        """The address of a host that has replied, by name or address; with None, of the first one."""
        for address, name in self.names.items():
            if wanted is None or wanted in (address, name):
                return address
        return None
