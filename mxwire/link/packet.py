"""PacketLink: an Ethernet interface through a packet socket (AF_PACKET) with a mapped receive ring."""

from __future__ import annotations

import math
import socket
from enum import StrEnum
from typing import Final, Self

from mxwire.ethernet import ETHERTYPE_MXOE, HEADER_SIZE
from mxwire.frames import FrameBatch
from mxwire.link import packet_filter, packet_socket, ring_v2, ring_v3
from mxwire.link.interface import NetworkInterface, read_interface
from mxwire.link.link import LinkStatistics
from mxwire.link.ring import Arrivals, ReceiveRing
from mxwire.link.ring_socket import RingSocket
from mxwire.link.ring_v2 import SlotRing
from mxwire.link.ring_v3 import BlockRing
from mxwire.link.sender import FrameSender

RING_BYTES: Final = 16 << 20
"""More than all transfers of a busy host have under way; what is larger than a processor's cache is slower."""


class Mode(StrEnum):
    """How a link waits for frames."""

    SLEEP = "sleep"
    """A frame wakes the receiver at once."""
    SPIN = "spin"
    """The receiver looks all the time: least delay, for a whole processor."""
    BULK = "bulk"
    """Many frames wake the receiver once: least work, but a lone frame comes about a millisecond late."""


class PacketLink(RingSocket):
    """An Ethernet interface of this host; see :class:`~mxwire.link.link.Link` for what all links do.

    What arrives is given as it lies in the ring that the kernel writes to, without a copy; what leaves is taken from
    where it lies. Wants CAP_NET_RAW, and nothing else.
    """

    def __init__(self, interface: NetworkInterface, opened: socket.socket, ring: ReceiveRing) -> None:
        super().__init__(interface, opened, ring)
        self._sender = FrameSender(opened)
        self._foreign = 0

    @classmethod
    def open(
        cls,
        interface: str,
        *,
        ethertype: int = ETHERTYPE_MXOE,
        mode: Mode | str = Mode.SLEEP,
        ring_bytes: int = RING_BYTES,
        promiscuous: bool = False,
    ) -> Self:
        """A link on the interface of that name, in the network namespace of this thread.

        ``ring_bytes`` of memory hold what has arrived and was not read yet. ``promiscuous`` gives what arrives for
        whomever, which no host wants, but who sends under other addresses does. Raises
        :class:`~mxwire.link.errors.LinkError` where there is no such interface, it is not Ethernet, or this is not
        permitted; an interface that is down may be opened.
        """
        mode = Mode(mode)
        found = read_interface(interface)
        version = ring_v3.VERSION if mode is Mode.BULK else ring_v2.VERSION
        wanted = packet_filter.EVERYTHING if promiscuous else packet_filter.for_us(found.address)
        opened = packet_socket.open_socket(found, version, wanted)
        try:
            if promiscuous:
                packet_socket.make_promiscuous(opened, found)
            ring = BlockRing(opened, ring_bytes) if mode is Mode.BULK else SlotRing(opened, found.mtu, ring_bytes)
            packet_socket.want_long_queue(opened)
            packet_socket.bind(opened, found, ethertype)
            made = cls(found, opened, ring)
        except BaseException:
            opened.close()
            raise
        made.spin = math.inf if mode is Mode.SPIN else 0.0
        return made

    def send(self, batch: FrameBatch) -> int:
        """Give frames to the wire, in order; returns how many it took. Waits at most some 10 ms for a full queue."""
        return 0 if self._closed else self._sender.send(batch)

    def send_few(self, frames: list[bytes]) -> int:
        """The same for a few frames by themselves, which need no batch."""
        return 0 if self._closed else self._sender.send_few(frames)

    def _sift(self, arrivals: Arrivals) -> Arrivals:
        """The frames that are for us and whole; the others are counted."""
        cut = arrivals.length < arrivals.wire_length
        # The filter in the kernel leaves no more than the header of what is not for us.
        foreign = arrivals.tagged | (cut & (arrivals.length == HEADER_SIZE))
        self._foreign += int(foreign.sum())
        # Whatever else is cut found its slot too short: the MTU was raised since the link was opened.
        self._dropped += int((cut & ~foreign).sum())
        return arrivals.select(~(cut | foreign))

    def statistics(self) -> LinkStatistics:
        """What it has carried so far."""
        self._count_drops()
        return LinkStatistics(
            received=self._received,
            sent=self._sender.sent,
            dropped=self._dropped,
            foreign=self._foreign,
            refused=self._sender.refused,
        )
