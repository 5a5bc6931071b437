"""PacketLink: an Ethernet interface through a packet socket (AF_PACKET) with a mapped receive ring."""

from __future__ import annotations

import math
import socket
from enum import StrEnum
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

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
from mxwire.native import native

RING_BYTES: Final = 16 << 20
"""Default ring size: more bytes than a busy host has in flight; a ring larger than the CPU cache is slower."""


class Mode(StrEnum):
    """Manner in which a link waits for frames."""

    SLEEP = "sleep"
    """Sleep until a frame arrives, and wake at once."""
    SPIN = "spin"
    """Poll continuously: lowest latency, at the cost of a whole CPU."""
    BULK = "bulk"
    """Wake once for many frames: least CPU time, but a single frame is about a millisecond late."""


class PacketLink(RingSocket):
    """An Ethernet interface of this machine, as a :class:`~mxwire.link.link.Link`.

    Received frames are returned in place, in the ring that the kernel writes to, and sent frames are read in place.
    Needs CAP_NET_RAW, and nothing else.
    """

    def __init__(self, interface: NetworkInterface, opened: socket.socket, ring: ReceiveRing) -> None:
        whole = None if native is None else packet_socket.whole_sender(interface)
        super().__init__(interface, opened, ring)
        self._sender = FrameSender(opened, whole)
        self.gathers = native is not None
        """True if ``send_few`` also takes frames whose data is gathered from the memory of the application."""
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
        """Open a link on the interface of that name, in the network namespace of this thread.

        ``ring_bytes`` is the size of the receive queue. ``promiscuous`` returns frames for all destinations, for
        callers that send from several addresses. An interface that is down may be opened. Raises
        :class:`~mxwire.link.errors.LinkError` if there is no such interface, if it is not Ethernet, and without
        permission.
        """
        mode = Mode(mode)
        found = read_interface(interface)
        version = ring_v3.VERSION if mode is Mode.BULK else ring_v2.VERSION
        program = packet_filter.EVERYTHING if promiscuous else packet_filter.for_us(found.address)
        opened = packet_socket.open_socket(found, version, program)
        try:
            if promiscuous:
                packet_socket.make_promiscuous(opened, found)
            ring = BlockRing(opened, ring_bytes) if mode is Mode.BULK else SlotRing(opened, found.mtu, ring_bytes)
            packet_socket.enlarge_send_queue(opened)
            packet_socket.bind(opened, found, ethertype)
            link = cls(found, opened, ring)
        except BaseException:
            opened.close()
            raise
        link.spin = math.inf if mode is Mode.SPIN else 0.0
        return link

    def send(self, batch: FrameBatch) -> int:
        """Send frames in order; return the number sent. Waits at most some 10 ms for a full queue."""
        return 0 if self._closed else self._sender.send(batch)

    def send_few(self, frames: list[bytes]) -> int:
        """Send a few single frames, without the cost of a batch."""
        return 0 if self._closed else self._sender.send_few(frames)

    def _sift(self, arrivals: Arrivals) -> Arrivals:
        """Select the complete frames for this link, and count the others."""
        cut = arrivals.length < arrivals.wire_length
        # The filter in the kernel cuts frames for other hosts after the header.
        foreign = arrivals.tagged | (cut & (arrivals.length == HEADER_SIZE))
        self._foreign += int(foreign.sum())
        # All others that are cut were longer than their slot: the MTU was raised after the link was opened.
        self._dropped += int((cut & ~foreign).sum())
        return arrivals.select(~(cut | foreign))

    def _release(self) -> None:
        self._sender.close()
        super()._release()

    @property
    def next_word(self) -> int:
        """Address of a word whose lowest bit is set when the next frame has arrived, for callers that poll in C.

        It changes with each ``receive``; 0 for a link that was opened for bulk.
        """
        return self._ring.next_word if isinstance(self._ring, SlotRing) else 0

    @property
    def ring_memory(self) -> NDArray[np.uint8]:
        """The mapped ring; a reference keeps its memory when the link is closed."""
        return self._ring.memory

    def statistics(self) -> LinkStatistics:
        """Counters since it was opened."""
        self._count_drops()
        return LinkStatistics(
            received=self._received,
            sent=self._sender.sent,
            dropped=self._dropped,
            foreign=self._foreign,
            refused=self._sender.refused,
        )
