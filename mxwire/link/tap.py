"""Tap: everything that passes an interface, for captures."""

from __future__ import annotations

from typing import Final, Self

import numpy as np

from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.link import packet_filter, packet_socket, ring_v3
from mxwire.link.interface import read_interface
from mxwire.link.link import LinkStatistics
from mxwire.link.ring import RING_BYTES, VLAN_TPID_VALID, Arrivals
from mxwire.link.ring_socket import RingSocket
from mxwire.link.ring_v3 import BlockRing

_TAG: Final = 4
"""Bytes of a VLAN tag."""
_ADDRESSES: Final = 12
_VLAN: Final = 0x8100


class Tap(RingSocket):
    """Listens to an interface without taking part: what arrives, for whomever, and what this host sends.

    Frames have the kernel's times, and VLAN tags are where they were on the wire. Only listens; ``receive``, ``wake``
    and ``fileno`` are those of any :class:`~mxwire.link.link.Link`. Wants CAP_NET_RAW.
    """

    @classmethod
    def open(
        cls,
        interface: str,
        *,
        ethertype: int | None = ETHERTYPE_MXOE,
        promiscuous: bool = True,
        ring_bytes: int = RING_BYTES,
        delay_ms: int = 10,
    ) -> Self:
        """A tap on the interface of that name, in the network namespace of this thread.

        ``ethertype`` None takes frames of all kinds, ``promiscuous`` has the interface pass those for other hosts.
        A frame is seen ``delay_ms`` after it passed at the latest: the longer, the less work. Raises
        :class:`~mxwire.link.errors.LinkError` as :meth:`PacketLink.open <mxwire.link.packet.PacketLink.open>` does.
        """
        found = read_interface(interface)
        wanted = packet_filter.EVERYTHING if ethertype is None else packet_filter.of_ethertype(ethertype)
        opened = packet_socket.open_socket(found, ring_v3.VERSION, wanted)
        try:
            packet_socket.leave_room(opened, _TAG)
            ring = BlockRing(opened, ring_bytes, retire=max(delay_ms, 1))
            if promiscuous:
                packet_socket.make_promiscuous(opened, found)
            packet_socket.bind(opened, found, packet_socket.EVERY_ETHERTYPE)
            return cls(found, opened, ring)
        except BaseException:
            opened.close()
            raise

    def _sift(self, arrivals: Arrivals) -> Arrivals:
        """Put the tags back that the kernel took out of frames."""
        for place in np.flatnonzero(arrivals.tagged).tolist():
            self._put_tag_back(int(arrivals.header[place]), int(arrivals.offset[place]))
        added = arrivals.tagged * _TAG
        return arrivals._replace(
            offset=arrivals.offset - added,
            length=arrivals.length + added,
            wire_length=arrivals.wire_length + added,
        )

    def _put_tag_back(self, header: int, offset: int) -> None:
        note = self._ring.memory[header : header + ring_v3.NOTE.itemsize].view(ring_v3.NOTE)[0]
        protocol = int(note["tag_protocol"]) if int(note["status"]) & VLAN_TPID_VALID else _VLAN
        tag = protocol.to_bytes(2, "big") + int(note["tag"]).to_bytes(2, "big")
        start = offset - _TAG
        memory = self._ring.memory
        memory[start : start + _ADDRESSES] = memory[offset : offset + _ADDRESSES].copy()
        memory[start + _ADDRESSES : start + _ADDRESSES + _TAG] = np.frombuffer(tag, np.uint8)

    def statistics(self) -> LinkStatistics:
        """How many frames were given, and how many found no room."""
        self._count_drops()
        return LinkStatistics(received=self._received, dropped=self._dropped)
