"""PacketLink: an Ethernet interface through a packet socket (AF_PACKET) with a mapped receive ring."""

from __future__ import annotations

import math
import select
import socket
import time
from enum import StrEnum

import numpy as np

from mxwire.frames import FrameBatch
from mxwire.link import packet_filter, packet_socket, ring_v2, ring_v3
from mxwire.link.errors import LinkError
from mxwire.link.ethernet import HEADER, MXOE
from mxwire.link.interface import Interface, exists, read_interface
from mxwire.link.link import LinkStatistics
from mxwire.link.ring import RING_BYTES, Arrivals, Ring
from mxwire.link.ring_v2 import SlotRing
from mxwire.link.ring_v3 import BlockRing
from mxwire.link.sendmmsg import Sender
from mxwire.link.wakeup import Wakeup

_NOTHING = FrameBatch.from_frames(())
_CHECK_EVERY = 0.01
"""Seconds between looks for an error of the socket, where nobody waits for one."""
_CHECK_WHILE_DOWN = 0.2
"""Seconds between looks whether an interface that is down is still there: that nobody tells."""
_LOOKS = 64


class Mode(StrEnum):
    """How a link waits for frames."""

    SLEEP = "sleep"
    """A frame wakes the receiver at once."""
    SPIN = "spin"
    """The receiver looks all the time: least delay, for a whole processor."""
    BULK = "bulk"
    """Many frames wake the receiver once: least work, but a lone frame comes about a millisecond late."""


class PacketLink:
    """An Ethernet interface of this host; see :class:`~mxwire.link.link.Link` for what all links do.

    What arrives is given as it lies in the ring that the kernel writes to, without a copy; what leaves is taken from
    where it lies. Wants CAP_NET_RAW, and nothing else. It is bound to the interface, not to its name, and keeps the
    address and the MTU that the interface had when it was opened; if the interface goes down and comes up again, so
    does the link.
    """

    def __init__(self, interface: Interface, opened: socket.socket, ring: Ring, mode: Mode) -> None:
        self._opened_as = interface
        self._socket = opened
        self._ring = ring
        self._sender = Sender(opened)
        self._wakeup = Wakeup()
        self._waiting = select.epoll()
        self._waiting.register(opened.fileno(), select.EPOLLIN)
        self._waiting.register(self._wakeup.fileno(), select.EPOLLIN)
        self._closed = False
        self._down = not interface.up
        self._next_check = 0.0
        self._received = self._dropped = self._foreign = 0
        self.spin = math.inf if mode is Mode.SPIN else 0.0
        """Seconds for which ``receive`` looks before it sleeps. May be set."""

    @classmethod
    def open(
        cls,
        interface: str,
        *,
        ethertype: int = MXOE,
        mode: Mode | str = Mode.SLEEP,
        ring_bytes: int = RING_BYTES,
    ) -> PacketLink:
        """A link on the interface of that name, in the network namespace of this thread.

        ``ring_bytes`` of memory hold what has arrived and was not read yet. Raises
        :class:`~mxwire.link.errors.LinkError` where there is no such interface, it is not Ethernet, or this is not
        permitted; an interface that is down may be opened.
        """
        mode = Mode(mode)
        found = read_interface(interface)
        version = ring_v3.VERSION if mode is Mode.BULK else ring_v2.VERSION
        opened = packet_socket.open_socket(found, version, packet_filter.for_us(found.address))
        try:
            ring = BlockRing(opened, ring_bytes) if mode is Mode.BULK else SlotRing(opened, found.mtu, ring_bytes)
            packet_socket.want_long_queue(opened)
            packet_socket.bind(opened, found, ethertype)
            return cls(found, opened, ring, mode)
        except BaseException:
            opened.close()
            raise

    @property
    def name(self) -> str:
        """The name under which the interface was opened."""
        return self._opened_as.name

    @property
    def address(self) -> bytes:
        """The interface's Ethernet address, 6 bytes."""
        return self._opened_as.address

    @property
    def mtu(self) -> int:
        """How many bytes a frame may have after its Ethernet header."""
        return self._opened_as.mtu

    def send(self, batch: FrameBatch) -> int:
        """Give frames to the wire, in order; returns how many it took. Waits at most some 10 ms for a full queue."""
        return 0 if self._closed else self._sender.send(batch)

    def receive(self, timeout: float | None = 0.0) -> FrameBatch:
        """The frames that have arrived, waiting for one at most ``timeout`` seconds (None: until one comes).

        Raises :class:`~mxwire.link.errors.LinkError` when the interface is gone, or the link was closed.
        """
        if self._closed:
            raise LinkError(f"{self.name}: the link was closed")
        self._ring.release()
        batch = self._take()
        if batch is None:
            batch = self._take_later(math.inf if timeout is None else timeout)
        if self._wakeup.is_set:
            self._wakeup.clear()
        return batch

    def _take_later(self, timeout: float) -> FrameBatch:
        now = time.monotonic()
        end, sleep_from = now + timeout, now + self.spin
        while True:
            if now >= self._next_check:
                self._check(now)
            if now >= end or self._wakeup.is_set:
                return _NOTHING
            if now < sleep_from:
                self._look()
            else:
                self._sleep(end - now)
            batch = self._take()
            if batch is not None:
                return batch
            now = time.monotonic()

    def _look(self) -> None:
        """Look for a frame for a microsecond or so."""
        ready = self._ring.ready
        for _ in range(_LOOKS):
            if ready():
                return

    def _sleep(self, at_most: float) -> None:
        if self._down:
            at_most = min(at_most, _CHECK_WHILE_DOWN)
        happened = self._waiting.poll(None if at_most == math.inf else at_most)
        if self._down or any(what & (select.EPOLLERR | select.EPOLLHUP) for _, what in happened):
            self._next_check = 0.0

    def _check(self, now: float) -> None:
        """Find out what the kernel has to tell about the interface, which is nothing nearly always."""
        self._next_check = now + _CHECK_EVERY
        error = packet_socket.take_error(self._socket)
        if error or self._down:
            if not exists(self._socket.fileno(), self._opened_as.index):
                raise LinkError(f"{self.name}: the interface is gone")
            self._down = True

    def _take(self) -> FrameBatch | None:
        while (arrivals := self._ring.take()) is not None:
            if not arrivals.plain:
                arrivals = self._sift(arrivals)
            if len(arrivals.offset):
                return self._batch(arrivals)
            self._ring.release()
        return None

    def _sift(self, arrivals: Arrivals) -> Arrivals:
        """The frames that are for us and whole; the others are counted."""
        cut = arrivals.length < arrivals.wire_length
        # The filter in the kernel leaves no more than the header of what is not for us.
        foreign = arrivals.tagged | (cut & (arrivals.length == HEADER))
        self._foreign += int(foreign.sum())
        # Whatever else is cut found its slot too short: the MTU was raised since the link was opened.
        self._dropped += int((cut & ~foreign).sum())
        return arrivals.select(~(cut | foreign))

    def _batch(self, arrivals: Arrivals) -> FrameBatch:
        self._down = False
        first = self._received + 1
        self._received += len(arrivals.offset)
        return FrameBatch(
            self._ring.memory,
            arrivals.offset,
            arrivals.length,
            arrivals.wire_length,
            arrivals.timestamp_ns,
            np.arange(first, self._received + 1, dtype=np.int64),
        )

    def wake(self) -> None:
        """End a ``receive`` that waits in another thread, or the next one."""
        self._wakeup.set()

    def fileno(self) -> int:
        """A descriptor that is readable when ``receive`` has something to give, or was woken."""
        return self._waiting.fileno()

    def statistics(self) -> LinkStatistics:
        """What it has carried so far."""
        if not self._closed:
            self._dropped += packet_socket.take_drops(self._socket)
        return LinkStatistics(
            received=self._received,
            sent=self._sender.sent,
            dropped=self._dropped,
            foreign=self._foreign,
            refused=self._sender.refused,
        )

    def close(self) -> None:
        """Give everything back; calling it again does nothing.

        A batch that somebody still holds keeps the ring's memory, but nothing is written to it any more.
        """
        if self._closed:
            return
        self.statistics()
        self._closed = True
        packet_filter.attach(self._socket, packet_filter.NOTHING)
        self._ring.close()
        self._waiting.close()
        self._wakeup.close()
        self._socket.close()

    def __enter__(self) -> PacketLink:
        """The link itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()
