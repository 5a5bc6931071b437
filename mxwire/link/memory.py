"""A network in memory: links on a hub, for tests and for hosts in one process."""

from __future__ import annotations

import time
from collections import deque
from threading import Lock

import numpy as np

from mxwire.ethernet import (
    BROADCAST,
    DESTINATION,
    ETHERTYPE,
    ETHERTYPE_MXOE,
    HEADER_SIZE,
    mac_text,
    tagged_ethertype_of,
)
from mxwire.frames import FrameBatch
from mxwire.link.errors import LinkError
from mxwire.link.link import LinkStatistics
from mxwire.link.wakeup import Wakeup, wait_readable

ROOM = 16384
"""Receive queue of a link in frames."""
MTU = 9000
_USED_UP = 0xDD
_NO_FRAMES: list[bytes] = []
_FEW = 4
"""Maximum number of frames for which returning them one by one is cheaper than a batch."""


class MemoryNetwork:
    """A hub: every link receives the frames of all others. Its links may be used in different threads.

    ``mtu`` is in bytes after the Ethernet header, ``room`` the receive queue of each link in frames.
    """

    def __init__(self, *, mtu: int = MTU, room: int = ROOM, ethertype: int = ETHERTYPE_MXOE) -> None:
        self.mtu = mtu
        self.room = room
        self.ethertype = ethertype
        self.ethertype_bytes = ethertype.to_bytes(2, "big")
        self._links: dict[str, MemoryLink] = {}
        self._lock = Lock()

    def attach(self, name: str | None = None, address: bytes | None = None) -> MemoryLink:
        """Return a new link, by default with an unused name and address.

        Raises LinkError if the name or the address is taken.
        """
        with self._lock:
            place = next(each for each in range(len(self._links) + 1) if f"memory{each}" not in self._links)
            name = f"memory{place}" if name is None else name
            address = self._free_address() if address is None else bytes(address)
            if len(address) != 6:
                raise ValueError(f"an Ethernet address has 6 bytes, not {len(address)}")
            if name in self._links:
                raise LinkError(f"{name}: this network has a link of that name already")
            if any(each.address == address for each in self._links.values()):
                raise LinkError(f"{name}: another link of this network has the address {mac_text(address)}")
            link = self._links[name] = MemoryLink(self, name, address)
            return link

    def _free_address(self) -> bytes:
        taken = {each.address for each in self._links.values()}
        addresses = (bytes([2, 0, 0, 0, number >> 8, number & 0xFF]) for number in range(1, 1 << 16))
        return next(each for each in addresses if each not in taken)

    def remove(self, link: MemoryLink) -> None:
        """Remove a link as if its interface had been deleted: its ``receive`` raises LinkError."""
        self._forget(link)
        link._lose()

    def _forget(self, link: MemoryLink) -> None:
        with self._lock:
            if self._links.get(link.name) is link:
                del self._links[link.name]

    def _carry(self, frames: list[bytes], sender: MemoryLink) -> None:
        with self._lock:
            others = [each for each in self._links.values() if each is not sender]
        # Outside of the lock: no thread holds two locks of a network, so that two links cannot block each other.
        for each in others:
            each._arrive(frames)


class MemoryLink:
    """A link of a :class:`MemoryNetwork`, which behaves as a real one."""

    def __init__(self, network: MemoryNetwork, name: str, address: bytes) -> None:
        self._network = network
        self.name = name
        """Name on its network."""
        self.address = address
        """Ethernet address, 6 bytes."""
        self.mtu = network.mtu
        """Largest number of bytes in a frame after its Ethernet header."""
        self._lock = Lock()
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._wakeup = Wakeup()
        self._last_buffer: np.ndarray[tuple[int], np.dtype[np.uint8]] = np.zeros(0, np.uint8)
        self.up = True
        """True if the interface is up; one that is down neither sends nor receives. May be set."""
        self._gone = False
        self._closed = False
        self._received = self._sent = self._dropped = self._foreign = self._refused = 0

    def send(self, batch: FrameBatch) -> int:
        """Send frames to the hub in order; return the number sent."""
        return self.send_few([batch.frame(index) for index in range(len(batch))])

    def send_few(self, frames: list[bytes]) -> int:
        """Send frames as ``send`` does."""
        taken = (
            [each for each in frames if HEADER_SIZE <= len(each) <= HEADER_SIZE + self.mtu] if self._can_send() else []
        )
        self._sent += len(taken)
        self._refused += len(frames) - len(taken)
        if taken:
            self._network._carry(taken, self)
        return len(taken)

    def _can_send(self) -> bool:
        return self.up and not self._gone and not self._closed

    def _arrive(self, frames: list[bytes]) -> None:
        now = time.time_ns()
        with self._lock:
            if not self._can_send():
                return
            for frame in frames:
                self._queue(now, frame)
            if self._waiting:
                self._wakeup.set()

    def _queue(self, now: int, frame: bytes) -> None:
        network = self._network
        if frame[ETHERTYPE] != network.ethertype_bytes:
            self._foreign += tagged_ethertype_of(frame) == network.ethertype
        elif frame[DESTINATION] not in (self.address, BROADCAST):
            self._foreign += 1
        elif len(self._waiting) >= network.room:
            self._dropped += 1
        else:
            self._waiting.append((now, frame))

    def receive(self, timeout: float | None = 0.0) -> FrameBatch:
        """Return the frames that have arrived; wait up to ``timeout`` seconds for the first (None: without limit).

        The next ``receive`` overwrites the batch's buffer, so that code which keeps a batch too long fails here and
        not only on a real interface. Raises LinkError if the link was removed or closed.
        """
        if timeout != 0 and not self._closed:
            wait_readable(self._wakeup.fileno(), timeout)
        return self._batch(self._take())

    def receive_few(self) -> list[bytes] | FrameBatch:
        """Receive as ``receive`` does without waiting; up to ``_FEW`` frames are returned as copies."""
        # Without the lock, which costs more than the rest of an idle poll; later frames wait for the next poll.
        if not (self._waiting or self._wakeup.is_set or self._gone or self._closed):
            return _NO_FRAMES
        frames = self._take()
        if len(frames) > _FEW:
            return self._batch(frames)
        return [frame for _, frame in frames]

    def _take(self) -> list[tuple[int, bytes]]:
        # The lock covers the descriptor too: frames and wakes make it readable, and taking them makes it unreadable.
        with self._lock:
            self._require_open()
            frames = list(self._waiting)
            self._waiting.clear()
            self._wakeup.clear()
            self._received += len(frames)
        return frames

    def _require_open(self) -> None:
        if self._gone:
            raise LinkError(f"{self.name}: the interface is gone")
        if self._closed:
            raise LinkError(f"{self.name}: the link was closed")

    def _batch(self, frames: list[tuple[int, bytes]]) -> FrameBatch:
        self._last_buffer[:] = _USED_UP
        buffer = np.frombuffer(bytearray().join([frame for _, frame in frames]), np.uint8)
        self._last_buffer = buffer
        length = np.array([len(frame) for _, frame in frames], np.int64)
        last = self._received
        return FrameBatch(
            buffer=buffer,
            offset=np.cumsum(length) - length,
            length=length,
            wire_length=length.copy(),
            timestamp_ns=np.array([when for when, _ in frames], np.int64),
            number=np.arange(last - len(frames) + 1, last + 1, dtype=np.int64),
        )

    def wake(self) -> None:
        """End a ``receive`` that blocks in another thread, or the next one."""
        self._wakeup.set()

    def fileno(self) -> int:
        """Descriptor that is readable when ``receive`` would return frames, or was woken."""
        return self._wakeup.fileno()

    def statistics(self) -> LinkStatistics:
        """Counters since it was opened."""
        return LinkStatistics(
            received=self._received,
            sent=self._sent,
            dropped=self._dropped,
            foreign=self._foreign,
            refused=self._refused,
        )

    def _lose(self) -> None:
        with self._lock:
            self._gone = True
            self._wakeup.set()

    def close(self) -> None:
        """Leave the network; closing it again does nothing."""
        self._network._forget(self)
        with self._lock:
            self._closed = True
            self._waiting.clear()
        self._wakeup.close()

    def __enter__(self) -> MemoryLink:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the link."""
        self.close()


def memory_pair(*, mtu: int = MTU, room: int = ROOM) -> tuple[MemoryLink, MemoryLink]:
    """Return two links connected by a cable."""
    network = MemoryNetwork(mtu=mtu, room=room)
    return network.attach(), network.attach()
