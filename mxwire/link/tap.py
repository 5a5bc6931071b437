"""Tap: all frames that pass an interface, for captures."""

from __future__ import annotations

from typing import Final, Self

import numpy as np

from mxwire.ethernet import ETHERTYPE_MXOE, VLAN_TAG_SIZE
from mxwire.link import packet_filter, packet_socket, ring_v3
from mxwire.link.interface import read_interface
from mxwire.link.link import LinkStatistics
from mxwire.link.ring import RING_BYTES, VLAN_TPID_VALID, Arrivals
from mxwire.link.ring_socket import RingSocket
from mxwire.link.ring_v3 import BlockRing

_ADDRESSES: Final = 12
_VLAN: Final = 0x8100


class Tap(RingSocket):
    """Captures the frames that an interface receives, for any destination, and those that this host sends.

    Frames have the kernel's timestamps, and VLAN tags in their place on the wire. A tap cannot send; ``receive``,
    ``wake`` and ``fileno`` are those of a :class:`~mxwire.link.link.Link`. Needs CAP_NET_RAW.
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
        snap: int = packet_filter.WHOLE,
    ) -> Self:
        """Open a tap on the interface of that name, in the network namespace of this thread.

        ``ethertype`` None captures all EtherTypes, ``promiscuous`` also frames for other hosts. A frame is returned at
        most ``delay_ms`` after it passed: the longer the delay, the less CPU time. Only the first ``snap`` bytes of
        each frame are captured. Raises
        :class:`~mxwire.link.errors.LinkError` as :meth:`PacketLink.open <mxwire.link.packet.PacketLink.open>` does.
        """
        found = read_interface(interface)
        program = (
            packet_filter.of_everything(snap) if ethertype is None else packet_filter.of_ethertype(ethertype, snap)
        )
        opened = packet_socket.open_socket(found, ring_v3.VERSION, program)
        try:
            # Room to put a removed VLAN tag back before its frame, in place.
            packet_socket.reserve_headroom(opened, VLAN_TAG_SIZE)
            ring = BlockRing(opened, ring_bytes, retire=max(delay_ms, 1))
            if promiscuous:
                packet_socket.make_promiscuous(opened, found)
            # Last, because frames arrive from here on.
            packet_socket.bind(opened, found, packet_socket.EVERY_ETHERTYPE)
            return cls(found, opened, ring)
        except BaseException:
            opened.close()
            raise

    def _sift(self, arrivals: Arrivals) -> Arrivals:
        """Restore the VLAN tags that the kernel has removed from frames."""
        for place in np.flatnonzero(arrivals.tagged).tolist():
            self._restore_tag(int(arrivals.header[place]), int(arrivals.offset[place]))
        added = arrivals.tagged * VLAN_TAG_SIZE
        return arrivals._replace(
            offset=arrivals.offset - added,
            length=arrivals.length + added,
            wire_length=arrivals.wire_length + added,
        )

    def _restore_tag(self, header: int, offset: int) -> None:
        note = self._ring.memory[header : header + ring_v3.NOTE.itemsize].view(ring_v3.NOTE)[0]
        protocol = int(note["tag_protocol"]) if int(note["status"]) & VLAN_TPID_VALID else _VLAN
        tag = protocol.to_bytes(2, "big") + int(note["tag"]).to_bytes(2, "big")
        start = offset - VLAN_TAG_SIZE
        memory = self._ring.memory
        memory[start : start + _ADDRESSES] = memory[offset : offset + _ADDRESSES].copy()
        memory[start + _ADDRESSES : start + _ADDRESSES + VLAN_TAG_SIZE] = np.frombuffer(tag, np.uint8)

    def statistics(self) -> LinkStatistics:
        """Number of frames returned, and of frames that found the ring full."""
        self._count_drops()
        return LinkStatistics(received=self._received, dropped=self._dropped)
