"""ReceiveRing: the common part of the kernel's two kinds of mapped receive ring."""

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

USER: Final = 1
"""Bit of a status word: the kernel has written, user space may read (TP_STATUS_USER)."""
VLAN_VALID: Final = 0x10
"""Bit of a status word: the kernel has removed a VLAN tag from the frame."""
VLAN_TPID_VALID: Final = 0x40
RING_BYTES: Final = 64 << 20
SHORT: Final = 256
"""Maximum length in bytes of frames of which many are copied; longer ones are copied if few frames wait."""
_RX_RING: Final = 5
_SMALLEST: Final = 1 << 20


_NO_FLAGS: Final = np.zeros(0, np.bool_)
_NO_OFFSETS: Final = np.zeros(0, np.int64)


class Arrivals(NamedTuple):
    """Frames in a ring. All arrays have shape (n,)."""

    offset: NDArray[np.int64]
    length: NDArray[np.int64]
    wire_length: NDArray[np.int64]
    timestamp_ns: NDArray[np.int64]
    tagged: NDArray[np.bool_] = _NO_FLAGS
    """True for frames from which the kernel has removed a VLAN tag."""
    header: NDArray[np.int64] = _NO_OFFSETS
    """Offset of the kernel's header of each frame, in bytes from the start of the ring."""
    plain: bool = True
    """True if all are untagged and not cut; then ``tagged`` and ``header`` may be empty."""

    @staticmethod
    def described(notes: NDArray[np.void], header: NDArray[np.int64]) -> Arrivals:
        """Frames described by the kernel's headers ``notes``, which are at ``header``; both have shape (n,)."""
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
        """Select frames by a mask."""
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
    """Memory shared with the kernel, from which received frames are read without a copy."""

    memory: NDArray[np.uint8]
    """The mapped ring."""

    @abstractmethod
    def ready(self) -> bool:
        """True if there are frames that have not been taken."""

    @abstractmethod
    def take(self) -> Arrivals | None:
        """Take the next frames, which stay in place until ``release``; None if there are none."""

    @abstractmethod
    def take_short(self) -> list[bytes] | None:
        """Take copies of the next frames while they are few, short, complete and untagged; release them at once.

        Empty if the next frame is of another kind; None if there is no frame."""

    @abstractmethod
    def release(self) -> None:
        """Return the taken frames' memory to the kernel."""

    @abstractmethod
    def close(self) -> None:
        """Unmap the memory."""


def map_ring(opened: socket.socket, block: int, blocks: int, slot: int, *more: int) -> mmap.mmap:
    """Create a ring of ``blocks`` times ``block`` bytes in the kernel, or of fewer blocks, and map it.

    Raises :class:`~mxwire.link.errors.LinkError` if the kernel refuses even a small one.
    """
    while True:
        request = struct.pack(f"{4 + len(more)}I", block, blocks, slot, blocks * (block // slot), *more)
        try:
            opened.setsockopt(SOL_PACKET, _RX_RING, request)
        except OSError as error:
            if blocks * block <= _SMALLEST:
                raise LinkError(f"the kernel refuses a receive ring: {error.strerror}") from error
            blocks = max(blocks // 2, 1)
        else:
            return mmap.mmap(opened.fileno(), blocks * block, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)


def unmap(memory: mmap.mmap) -> mmap.mmap:
    """Unmap a ring, or leave it to the last batch that refers to it.

    Returns a small mapping to replace the reference, so that only batches keep the ring.
    """
    with suppress(BufferError):
        memory.close()
    return mmap.mmap(-1, 1)


_FENCE: Final = None if platform.machine() in ("x86_64", "AMD64", "i686") else Lock()


def fence() -> None:
    """Order reads of a frame after the read of its status word, on processors that may reorder them.

    Two lock operations are a full barrier on those; x86 needs none.
    """
    if _FENCE is not None:
        with _FENCE:
            pass
        with _FENCE:
            pass
