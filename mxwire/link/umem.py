"""AF_XDP sockets: memory shared with the kernel (UMEM) and the four rings that pass its ownership.

The memory is divided into chunks. A *descriptor* designates bytes of it; the ring in which it is determines their
owner. ``fill`` passes empty chunks to the kernel and ``receive`` returns them with frames;
``transmit`` passes frames to the kernel and ``completion`` returns their memory. Each ring has a producer and a
consumer index, which run freely through 32 bits; the side that advances an index passes the entries before it. No
system call is involved, except to start transmission.

A socket is bound to one queue of one interface. Without receive rings the socket only transmits, and needs only
CAP_NET_RAW; it receives frames once a BPF program redirects them to it (``xdp.py``).
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import socket
import struct
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from enum import IntFlag
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mxwire.link.errors import LinkError
from mxwire.link.ethtool import read_hardware
from mxwire.link.interface import NetworkInterface
from mxwire.link.packet_socket import permission_advice

# Numbers of linux/if_xdp.h and linux/socket.h.
AF_XDP: Final = 44
SOL_XDP: Final = 283
_MMAP_OFFSETS, _RX_RING, _TX_RING, _UMEM_REGISTRATION, _FILL_RING, _COMPLETION_RING, _STATISTICS = 1, 2, 3, 4, 5, 6, 7
_OPTIONS, _TX_BUDGET = 8, 9
_ZERO_COPY_OPTION: Final = 1
_UNALIGNED: Final = 1
_RX_PAGE, _TX_PAGE, _FILL_PAGE, _COMPLETION_PAGE = 0, 0x80000000, 0x100000000, 0x180000000
"""Offsets at which the rings are mapped."""
CONTINUED: Final = 1
"""Option of a descriptor: the frame continues in the next one."""
NEED_WAKEUP: Final = 1
"""Flag of a ring: the kernel waits for a system call."""
CHUNK: Final = 4096
"""Bytes of a chunk, and maximum bytes of a descriptor: the kernel accepts no larger chunk."""
SHORT_CHUNK: Final = 2048
"""The smallest chunk that the kernel accepts. Short frames then lie closer together: with 64 bytes per frame and many
chunks, most of the receive time is spent on cache misses."""
HEADROOM: Final = 256
"""Bytes that the kernel leaves free at the start of a chunk."""
POSITION_BITS: Final = 48
"""Width of an address in a descriptor; the bits above are an offset to be added."""
LOW_WORD: Final = 0xFFFF_FFFF
_LEAST_BUDGET: Final = 32
_SMALLEST_RING: Final = 64
_BIND_TRIES: Final = 100
_BIND_PAUSE: Final = 0.01
"""Seconds between two attempts to bind: a queue stays taken for some 20 ms after its process has ended."""

_libc = ctypes.CDLL(None, use_errno=True)


class BindFlag(IntFlag):
    """Flags of sockaddr_xdp."""

    COPY = 2
    ZERO_COPY = 4
    USE_NEED_WAKEUP = 8
    SCATTER_GATHER = 16
    """Frames may consist of several descriptors (Linux 6.6)."""


class SocketStatistics(NamedTuple):
    """Counters of the kernel for a socket."""

    dropped: int
    """Frames without a chunk to receive them."""
    invalid_fill: int
    invalid_transmit: int
    ring_full: int
    """Frames that found the receive ring full."""
    fill_empty: int
    transmit_empty: int


class XdpRing:
    """One of the four rings. Entries have one word (an address), or two (an address; the length and the options)."""

    def __init__(self, descriptor: int, places: Sequence[int], count: int, words: int, page: int) -> None:
        producer, consumer, first, flags = places
        self._mapped = mmap.mmap(
            descriptor, first + 8 * words * count, mmap.MAP_SHARED | mmap.MAP_POPULATE, offset=page
        )
        view = memoryview(self._mapped)
        self.producer = view[producer : producer + 4].cast("I")
        """The index of the producing side, of shape (1,)."""
        self.consumer = view[consumer : consumer + 4].cast("I")
        """The index of the consuming side, of shape (1,)."""
        self.flags = view[flags : flags + 4].cast("I")
        """``NEED_WAKEUP`` or 0, of shape (1,)."""
        self.words = view[first : first + 8 * words * count].cast("Q")
        """All entries, of shape (count x words,)."""
        view.release()
        self.table: NDArray[np.uint64] = np.frombuffer(self._mapped, np.uint64, words * count, first).reshape(-1, words)
        """All entries, of shape (count, words)."""
        self.count = count
        """Number of entries, a power of two."""

    def close(self) -> None:
        """Unmap the ring: a mapping keeps the queue taken after its socket was closed."""
        for each in (self.producer, self.consumer, self.flags, self.words):
            each.release()
        # All views must be gone: a mapping with one cannot be closed.
        self.table = np.zeros((0, 1), np.uint64)
        with suppress(BufferError):
            self._mapped.close()


class XdpSocket:
    """An AF_XDP socket with its memory and rings, bound by ``bind``.

    ``receive`` and ``transmit`` are numbers of descriptors, powers of two or 0. Descriptors of an ``unaligned`` socket
    may be anywhere in the memory, those of others must not cross the boundary of a chunk of ``chunk`` bytes. Raises
    :class:`~mxwire.link.errors.LinkError` without permission, memory or support of the kernel.
    """

    def __init__(
        self,
        interface: NetworkInterface,
        memory_bytes: int,
        *,
        receive: int = 0,
        transmit: int = 0,
        unaligned: bool,
        chunk: int = CHUNK,
    ) -> None:
        self.interface = interface
        self.unaligned = unaligned
        self.chunk = chunk
        """Bytes of a chunk, and maximum bytes of a descriptor."""
        size = -(-memory_bytes // CHUNK) * CHUNK
        self.socket = _open_socket(interface)
        self._rings: list[XdpRing] = []
        try:
            mapped = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)
            self.memory: NDArray[np.uint8] = np.frombuffer(mapped, np.uint8)
            """The shared memory."""
            self._register()
            counts = (_FILL_RING, receive), (_COMPLETION_RING, transmit), (_RX_RING, receive), (_TX_RING, transmit)
            for option, count in counts:
                if option in (_FILL_RING, _COMPLETION_RING):
                    # The kernel binds no socket without both rings, even if only one of them is used.
                    count = max(count, _SMALLEST_RING)
                if count:
                    self.socket.setsockopt(SOL_XDP, option, count)
            self._map(receive, transmit)
        except OSError as error:
            self.close()
            raise LinkError(f"{interface.name}: the kernel refuses AF_XDP rings: {error.strerror}") from error
        except BaseException:
            self.close()
            raise

    def _register(self) -> None:
        address: int = self.memory.__array_interface__["data"][0]
        flags = _UNALIGNED if self.unaligned else 0
        registration = struct.pack("=QQIIII", address, len(self.memory), self.chunk, 0, flags, 0)
        try:
            self.socket.setsockopt(SOL_XDP, _UMEM_REGISTRATION, registration)
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            raise MemoryLimitError(
                f"{self.interface.name}: AF_XDP needs {len(self.memory) >> 10} KiB of locked memory, more than the "
                f"limit permits (ulimit -l); raise it, grant CAP_IPC_LOCK, or use AF_PACKET (--via packet)"
            ) from error

    def _map(self, receive: int, transmit: int) -> None:
        places = struct.unpack("=16Q", self.socket.getsockopt(SOL_XDP, _MMAP_OFFSETS, 128))
        descriptor = self.socket.fileno()

        def ring(number: int, count: int, words: int, page: int) -> XdpRing:
            made = XdpRing(descriptor, places[4 * number : 4 * number + 4], count, words, page)
            self._rings.append(made)
            return made

        self.fill = ring(2, max(receive, _SMALLEST_RING), 1, _FILL_PAGE)
        self.completion = ring(3, max(transmit, _SMALLEST_RING), 1, _COMPLETION_PAGE)
        self.receive = ring(0, receive, 2, _RX_PAGE) if receive else None
        self.transmit = ring(1, transmit, 2, _TX_PAGE) if transmit else None

    def bind(self, queue: int, flags: BindFlag) -> None:
        """Bind the socket to a queue of its interface.

        Wait for a queue that was just released. Raises OSError if the driver refuses the flags, and
        :class:`~mxwire.link.errors.LinkError` if there is no such queue, or if another socket has it.
        """
        name = self.interface.name
        for _ in range(_BIND_TRIES):
            number = _bind(self.socket.fileno(), flags, self.interface.index, queue)
            if number != errno.EBUSY:
                break
            time.sleep(_BIND_PAUSE)
        if number == errno.EBUSY:
            raise QueueTakenError(
                f"{name}: another AF_XDP socket has queue {queue} (ss --xdp shows it); end its program, or use "
                f"AF_PACKET (--via packet)"
            )
        if number == errno.ENODEV:
            raise LinkError(f"{name}: the interface is gone")
        if number == errno.EINVAL:
            queues = read_hardware(name).queues
            if queues is not None and queue >= queues:
                raise LinkError(f"{name}: there is no queue {queue}, it has {queues}, counted from 0")
        if number:
            raise OSError(number, os.strerror(number))
        if self.transmit is not None and self.transmit.count >= _LEAST_BUDGET:
            # More than 32 frames per system call; unknown to kernels before 6.18.
            with suppress(OSError):
                self.socket.setsockopt(SOL_XDP, _TX_BUDGET, self.transmit.count)

    @property
    def zero_copy(self) -> bool:
        """True if the bound driver accesses the memory itself."""
        return bool(struct.unpack("=I", self.socket.getsockopt(SOL_XDP, _OPTIONS, 4))[0] & _ZERO_COPY_OPTION)

    def statistics(self) -> SocketStatistics:
        """Return the kernel's counters."""
        return SocketStatistics(*struct.unpack("=6Q", self.socket.getsockopt(SOL_XDP, _STATISTICS, 48)))

    def close(self) -> None:
        """Unmap the rings and release the queue; closing it again does nothing.

        The memory lives as long as an array refers to it.
        """
        for each in self._rings:
            each.close()
        self._rings.clear()
        self.socket.close()


class MemoryLimitError(LinkError):
    """The process may not lock the memory of a socket."""


class QueueTakenError(LinkError):
    """Another AF_XDP socket has the queue."""


def _open_socket(interface: NetworkInterface) -> socket.socket:
    if not hasattr(socket, "AF_PACKET"):
        raise LinkError(f"{interface.name}: AF_XDP needs Linux, this is {sys.platform}")
    try:
        return socket.socket(AF_XDP, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
    except PermissionError as error:
        raise LinkError(f"{interface.name}: {permission_advice()}") from error
    except OSError as error:
        raise LinkError(
            f"{interface.name}: this kernel has no AF_XDP sockets ({error.strerror}); use AF_PACKET (--via packet)"
        ) from error


def _bind(descriptor: int, flags: BindFlag, index: int, queue: int) -> int:
    """Bind a socket; return the error number, 0 for none. Python's socket.bind does not support the address family."""
    address = struct.pack("=HHIII", AF_XDP, flags, index, queue, 0)
    return ctypes.get_errno() if _libc.bind(descriptor, address, len(address)) else 0


def pieces_of(length: int, head: int, most: int) -> list[tuple[int, int]]:
    """Return offset and length of the descriptors of a frame, the first of at most ``head`` bytes, the others of at
    most ``most``."""
    first = [(0, min(length, head))]
    return first + [(start, min(most, length - start)) for start in range(head, length, most)]


Descriptors = NDArray[np.uint64]
"""Descriptors as words: address, and length with options in the high half. Shape (n, 2)."""


def descriptors_of(length: int, head: int, most: int, starts: Any) -> Descriptors:
    """Return the descriptors of frames of one length at the addresses ``starts``, of shape (n,)."""
    pieces = pieces_of(length, head, most)
    table = np.empty((len(starts), len(pieces), 2), np.uint64)
    for place, (start, size) in enumerate(pieces):
        table[:, place, 0] = np.asarray(starts, np.uint64) + np.uint64(start)
        table[:, place, 1] = size | (CONTINUED << 32 if place < len(pieces) - 1 else 0)
    return table.reshape(-1, 2)
