"""RingSocket: a packet socket with a mapped ring: waiting, waking, and interfaces that go down or disappear."""

from __future__ import annotations

import math
import select
import socket
import time
from typing import Final, Self

import numpy as np

from mxwire.frames import FrameBatch
from mxwire.link import packet_filter, packet_socket
from mxwire.link.errors import LinkError
from mxwire.link.interface import NetworkInterface, exists
from mxwire.link.ring import Arrivals, ReceiveRing
from mxwire.link.wakeup import Wakeup

_NOTHING: Final = FrameBatch.from_frames(())
_NO_FRAMES: Final[list[bytes]] = []
CHECK_EVERY: Final = 0.01
"""Seconds between checks for an error of the socket while no thread sleeps on it."""
_CHECK_WITHOUT_EVENT: Final = 0.2
"""Seconds between checks that an interface still exists whose removal causes no event."""
_POLLS: Final = 64
"""Polls between two reads of the clock."""
_monotonic: Final = time.monotonic


class RingSocket:
    """Receives frames of an interface in batches, in place in a mapped ring.

    It is bound to the interface, not to its name, and keeps the address and MTU that the interface had when it was
    opened. It continues after the interface was down.
    """

    def __init__(self, interface: NetworkInterface, opened: socket.socket, ring: ReceiveRing) -> None:
        self.name = interface.name
        """Name of the interface."""
        self.address = interface.address
        """Ethernet address of the interface, 6 bytes."""
        self.mtu = interface.mtu
        """Largest number of bytes in a frame after its Ethernet header, when the link was opened."""
        self._index = interface.index
        self._socket = opened
        self._ring = ring
        self._wakeup = Wakeup()
        self._waiting = select.poll()
        self._waiting.register(opened.fileno(), select.POLLIN)
        self._waiting.register(self._wakeup.fileno(), select.POLLIN)
        self._closed = False
        self._down = not interface.up
        self._reports_removal = True
        """True if the removal of an interface that is up is an event of the socket."""
        self._next_check = 0.0
        self._received = self._dropped = 0
        self.spin = 0.0
        """Seconds for which ``receive`` polls before it sleeps. May be set; infinite: it never sleeps."""

    def receive(self, timeout: float | None = 0.0) -> FrameBatch:
        """Return the frames that have arrived; wait up to ``timeout`` seconds for the first (None: without limit).

        Raises :class:`~mxwire.link.errors.LinkError` if the interface is gone, or the link was closed.
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

    def receive_few(self) -> list[bytes] | FrameBatch:
        """Receive as ``receive`` does without waiting; a few short frames are returned as copies, which is faster for
        callers that handle them one by one."""
        if self._closed or self._wakeup.is_set:
            return self.receive(0.0)
        ring = self._ring
        ring.release()
        frames = ring.take_short()
        if frames:
            self._down = False
            self._received += len(frames)
            return frames
        if frames is None and _monotonic() < self._next_check:
            return _NO_FRAMES
        return self.receive(0.0)

    def _take_later(self, timeout: float) -> FrameBatch:
        now = time.monotonic()
        end, sleep_from = now + timeout, now + self.spin
        while True:
            if now >= self._next_check:
                self._check(now)
            if now >= end or self._wakeup.is_set:
                return _NOTHING
            if now < sleep_from:
                self._poll_ring()
            else:
                self._sleep(end - now)
            batch = self._take()
            if batch is not None:
                return batch
            now = time.monotonic()

    def _poll_ring(self) -> None:
        """Poll for a frame for a few microseconds."""
        ready = self._ring.ready
        for _ in range(_POLLS):
            if ready():
                return

    def _sleep(self, at_most: float) -> None:
        without_event = self._down or not self._reports_removal
        if without_event:
            at_most = min(at_most, _CHECK_WITHOUT_EVENT)
        happened = self._waiting.poll(None if at_most == math.inf else at_most * 1000)
        if without_event or any(what & (select.POLLERR | select.POLLHUP) for _, what in happened):
            self._next_check = 0.0

    def _check(self, now: float) -> None:
        """Detect that the interface is down or gone, by a pending error of the socket."""
        self._next_check = now + CHECK_EVERY
        if packet_socket.take_error(self._socket) or self._down:
            self._require_interface(self._socket)
            self._down = True

    def _require_interface(self, through: socket.socket) -> None:
        """Raise LinkError if the interface is gone from the network namespace of a socket."""
        if not exists(through.fileno(), self._index):
            raise LinkError(f"{self.name}: the interface is gone")

    def _take(self) -> FrameBatch | None:
        while (arrivals := self._ring.take()) is not None:
            if not arrivals.plain:
                arrivals = self._sift(arrivals)
            if len(arrivals.offset):
                return self._batch(arrivals)
            self._ring.release()
        return None

    def _sift(self, arrivals: Arrivals) -> Arrivals:
        """Select and repair frames, some of which are tagged or cut."""
        raise NotImplementedError

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
        """End a ``receive`` that blocks in another thread, or the next one."""
        self._wakeup.set()

    def fileno(self) -> int:
        """Descriptor that is readable when ``receive`` would return frames; -1 once closed.

        It is the socket itself: an epoll around it would cost kernel time for each frame, received or sent.
        """
        return -1 if self._closed else self._socket.fileno()

    def _count_drops(self) -> None:
        if not self._closed:
            self._dropped += packet_socket.take_drops(self._socket)

    def close(self) -> None:
        """Release everything; closing it again does nothing.

        Batches that are still referenced keep the ring's memory, which does not change any more.
        """
        if self._closed:
            return
        self._count_drops()
        self._closed = True
        self._wakeup.close()
        self._release()

    def _release(self) -> None:
        """Release the ring and the socket."""
        packet_filter.attach(self._socket, packet_filter.NOTHING)
        # Before the socket, which the mapping refers to as well.
        self._ring.close()
        self._socket.close()

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the link."""
        self.close()
