"""Being known on an Ethernet: what a host says of itself before it says anything else, and whom it finds."""

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
"""How often we say who we are while nobody answers."""
_LOW: Final = 0xFFFF_FFFF


def announcement(address: bytes, serial: int) -> Announcement:
    """Says that a host is there: nobody hears whom he does not know (R-DISC-01)."""
    number = int.from_bytes(address, "big")
    return Announcement(
        dst_mac=BROADCAST, src_mac=address, nic_id_hi=number >> 32, nic_id_lo=number & _LOW, serial=serial
    )


def query(address: bytes, other: bytes, index: int) -> HostQuery:
    """Asks for a name, and teaches our index for the other host (R-HOST-05)."""
    return HostQuery(dst_mac=other, src_mac=address, src_dst_peer_index=index, magic=HOST_QUERY_MAGIC)


def answer(asked: HostQuery, address: bytes, index: int, hostname: str) -> HostReply:
    """Our name for who asks for it (R-HOST-06)."""
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
    """Makes us known to all hosts that are heard, and learns their names; frames and the time go in, frames come out.

    We announce ourselves every ``every`` ns, with the ``serial`` of this start, and answer who asks for our ``name``.
    Who is heard is asked for his, and so are the ``known`` addresses, until they have told it. All of them get the same
    ``index`` of ours, since there is one conversation in the end. These packets are the same in all dialects.
    """

    def __init__(
        self, address: bytes, name: str, *, index: int, serial: int, every: int = EVERY, known: Iterable[bytes] = ()
    ) -> None:
        self.deadline = 0
        """When we announce ourselves next, in ns of any clock that does not run backwards."""
        self.heard: dict[bytes, None] = {}
        """The addresses of who has sent anything, in the order of their first frames."""
        self.names: dict[bytes, str] = {}
        """Those that have answered, and so know us, in the order of their answers."""
        self._address = address
        self._name = name
        self._index = index
        self._serial = serial
        self._every = every
        self._known = tuple(known)
        self._leaving: list[Frame] = []

    def transmit(self, now: int) -> list[bytes]:
        """The frames that leave now."""
        if now >= self.deadline:
            self.deadline = now + self._every
            self._leaving.append(announcement(self._address, self._serial))
            for each in dict.fromkeys((*self._known, *self.heard)):
                self._ask(each)
        leaving, self._leaving = self._leaving, []
        return [build(each, MXOE) for each in leaving]

    def receive(self, raw: bytes) -> None:
        """Take a frame from the wire, whomever it is for."""
        to, source = raw[DESTINATION], raw[SOURCE]
        if source == self._address:
            return
        frame = parse(raw, MXOE)
        asked = isinstance(frame, HostQuery) and to == self._address
        if isinstance(frame, HostReply) and to == self._address:
            self.names[source] = hostname_text(frame.hostname)
        if isinstance(frame, HostQuery) and asked:
            self._leaving.append(answer(frame, self._address, self._index, self._name))
        if asked or source not in self.heard:
            # Who asks may have learnt of us only now, and would not have answered before (R-HOST-04).
            self._ask(source)
        self.heard[source] = None

    def _ask(self, other: bytes) -> None:
        if other not in self.names:
            self._leaving.append(query(self._address, other, self._index))

    def found(self, wanted: str | bytes | None) -> bytes | None:
        """The address of a host that has answered: by its name or address, with None the first one that has."""
        for address, name in self.names.items():
            if wanted is None or wanted in (address, name):
                return address
        return None
