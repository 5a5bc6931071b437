"""Link: the protocol that all Ethernet interfaces and their substitutes implement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mxwire.frames import FrameBatch


@dataclass(frozen=True, slots=True)
class LinkStatistics:
    """Counters of a link since it was opened."""

    received: int = 0
    """Frames returned by ``receive``."""
    sent: int = 0
    """Frames sent."""
    dropped: int = 0
    """Frames that arrived and found the receive queue full."""
    foreign: int = 0
    """Frames that arrived with another destination address or a VLAN tag."""
    refused: int = 0
    """Frames that could not be sent: longer than the MTU, link down, queue full."""


class Link(Protocol):
    """An Ethernet interface, or a substitute for one; frames are sent and received as batches.

    All links return only frames of their EtherType whose destination is ``address`` or broadcast, untagged, in the
    order of their arrival. Not thread-safe, except that ``wake`` may be called from anywhere.
    """

    @property
    def name(self) -> str:
        """Name of the interface, as shown by ``ip link``."""

    @property
    def address(self) -> bytes:
        """Ethernet address, 6 bytes."""

    @property
    def mtu(self) -> int:
        """Largest number of bytes in a frame after its Ethernet header."""

    def send(self, batch: FrameBatch) -> int:
        """Send frames in order; return the number sent.

        Never blocks for long, and never raises for the state of the wire: frames that cannot be sent are lost, as on
        any Ethernet, and counted as ``refused``.
        """

    def receive(self, timeout: float | None = 0.0) -> FrameBatch:
        """Return the frames that have arrived; wait up to ``timeout`` seconds for the first (None: without limit).

        The batch is empty after the timeout, and if ``wake`` was called. Its buffer belongs to the link and is reused
        by the next ``receive``. Timestamps are nanoseconds since 1970.
        Raises :class:`~mxwire.link.errors.LinkError` if the interface is gone; one that is down yields no frames.
        """

    def wake(self) -> None:
        """End a ``receive`` that blocks in another thread, or the next one that would."""

    def fileno(self) -> int:
        """Descriptor for event loops, readable when ``receive`` would return frames; -1 once closed."""

    def statistics(self) -> LinkStatistics:
        """Counters since it was opened."""

    def close(self) -> None:
        """Release everything; closing it again does nothing."""


@runtime_checkable
class FewLink(Protocol):
    """A link that can also send and receive single frames, which is faster for a few short ones."""

    def send_few(self, frames: list[bytes]) -> int:
        """Send frames as ``send`` does."""

    def receive_few(self) -> list[bytes] | FrameBatch:
        """Receive as ``receive`` does without waiting; a few short frames are returned as copies."""


@runtime_checkable
class RoomLink(Protocol):
    """A link with memory from which frames are sent without a copy."""

    def room(self, size: int) -> NDArray[np.uint8] | None:
        """Reserve ``size`` bytes in which the caller builds the frames of the batch that it sends next; None without
        free memory. The array is that batch's buffer, and valid until the next call that sends or reserves."""
