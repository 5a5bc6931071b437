"""What the kernel's two kinds of receive ring have in common."""

from __future__ import annotations

import mmap
import platform
import socket
import struct
from abc import ABC, abstractmethod
from contextlib import suppress
from threading import Lock
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mxwire.link.errors import LinkError
from mxwire.link.packet_socket import SOL_PACKET
from mxwire.units import SECOND

OURS: Final = 1
"""Bit of a status word: the kernel has written, and we may read (TP_STATUS_USER)."""
VLAN_VALID: Final = 0x10
"""Bit of a status word: the kernel took a VLAN tag out of the frame."""
VLAN_TPID_VALID: Final = 0x40
RING_BYTES: Final = 64 << 20
SHORT: Final = 256
"""Longest frame, in bytes, that is worth to be copied so that it need not be handed out in a batch."""
_RX_RING: Final = 5
_SMALLEST: Final = 1 << 20


NOT_SAID: Final = np.zeros(0, np.bool_)
NOWHERE: Final = np.zeros(0, np.int64)


class Arrivals(NamedTuple):
    """Frames that lie in a ring. All arrays have shape (n,)."""

    offset: NDArray[np.int64]
    length: NDArray[np.int64]
    wire_length: NDArray[np.int64]
    timestamp_ns: NDArray[np.int64]
    tagged: NDArray[np.bool_] = NOT_SAID
    """Whether the kernel took a VLAN tag out of the frame."""
    header: NDArray[np.int64] = NOWHERE
    """Where the kernel's note on each frame starts, in bytes from the start of the ring."""
    plain: bool = True
    """Whether all are untagged and as long as on the wire; only where not, there are ``tagged`` and ``header``."""

    @staticmethod
    def noted(notes: NDArray[np.void], header: NDArray[np.int64]) -> Arrivals:
        """The frames that the kernel's notes tell of, each with its note at ``header``; both have shape (n,)."""
        length, wire = notes["snapped"].astype(np.int64), notes["length"].astype(np.int64)
        tagged = (notes["status"] & VLAN_VALID).astype(np.bool_)
        return Arrivals(
            offset=header + notes["mac"],
            length=length,
            wire_length=wire,
            timestamp_ns=notes["seconds"].astype(np.int64) * SECOND + notes["nanoseconds"],
            tagged=tagged,
            header=header,
            plain=not tagged.any() and bool((length == wire).all()),
        )

    def select(self, which: NDArray[np.bool_]) -> Arrivals:
        """The frames that a mask picks."""
        return Arrivals(
            self.offset[which],
            self.length[which],
            self.wire_length[which],
            self.timestamp_ns[which],
            self.tagged[which],
            self.header[which],
            self.plain,
        )


class ReceiveRing(ABC):
    """Memory that the kernel writes frames into and we read them from, without a copy."""

    memory: NDArray[np.uint8]
    """The ring as it lies in memory."""

    @abstractmethod
    def ready(self) -> bool:
        """Whether there is something that has not been taken."""

    @abstractmethod
    def take(self) -> Arrivals | None:
        """The next frames; they stay where they are until ``release``."""

    @abstractmethod
    def take_short(self) -> list[bytes]:
        """Copies of the next frames, as far as they are few and short, whole and untagged; their room is given back at
        once. Empty: there are none, or others lie before them."""

    @abstractmethod
    def release(self) -> None:
        """Give the kernel back what was taken."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the memory."""


def map_ring(opened: socket.socket, block: int, blocks: int, slot: int, *more: int) -> mmap.mmap:
    """Have the kernel make a ring of ``blocks`` times ``block`` bytes, and map it.

    Raises :class:`~mxwire.link.errors.LinkError` where not even a small one can be had.
    """
    while True:
        request = struct.pack(f"{4 + len(more)}I", block, blocks, slot, blocks * (block // slot), *more)
        try:
            opened.setsockopt(SOL_PACKET, _RX_RING, request)
        except OSError as error:
            if blocks * block <= _SMALLEST:
                raise LinkError(f"the kernel makes no receive ring: {error.strerror}") from error
            blocks = max(blocks // 2, 1)
        else:
            return mmap.mmap(opened.fileno(), blocks * block, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)


def unmap(memory: mmap.mmap) -> mmap.mmap:
    """Unmap a ring, unless somebody still has a batch that lies in it; then it goes with that batch.

    Gives a bit of memory to put in its place, so that nobody else keeps it.
    """
    with suppress(BufferError):
        memory.close()
    return mmap.mmap(-1, 1)


_FENCE: Final = None if platform.machine() in ("x86_64", "AMD64", "i686") else Lock()


def fence() -> None:
    """Keep what is read after a status word behind it, on processors that would reorder the two.

    Releasing a lock and taking it again is a full barrier on those; x86 needs none.
    """
    if _FENCE is not None:
        with _FENCE:
            pass
        with _FENCE:
            pass
