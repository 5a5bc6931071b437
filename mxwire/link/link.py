"""Link: what carries frames between a host and others, whatever it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from mxwire.frames import FrameBatch


@dataclass(frozen=True, slots=True)
class LinkStatistics:
    """What a link has carried since it was opened."""

    received: int = 0
    """Frames handed to the host."""
    sent: int = 0
    """Frames given to the wire."""
    dropped: int = 0
    """Frames that arrived and found no room before the host read them."""
    foreign: int = 0
    """Frames that arrived but were not for us: another destination address, or the tag of a VLAN."""
    refused: int = 0
    """Frames that the wire did not take: longer than its MTU, link down, queue full."""


class Link(Protocol):
    """An Ethernet interface, or what stands for one; frames come and go as batches.

    All links give only frames of their EtherType whose destination is ``address`` or broadcast, untagged, in the
    order of their arrival. Not thread-safe, except that ``wake`` may be called from anywhere.
    """

    @property
    def name(self) -> str:
        """The interface's name, as ``ip link`` shows it."""

    @property
    def address(self) -> bytes:
        """Its own Ethernet address, 6 bytes."""

    @property
    def mtu(self) -> int:
        """How many bytes a frame may have after its Ethernet header."""

    def send(self, batch: FrameBatch) -> int:
        """Give frames to the wire, in order; returns how many it took.

        Never waits for long and never raises for what happens on the wire: what it does not take is lost, as on any
        Ethernet, and counted as ``refused``.
        """

    def receive(self, timeout: float | None = 0.0) -> FrameBatch:
        """The frames that have arrived, waiting for one at most ``timeout`` seconds (None: until one comes).

        May be empty: nothing came in time, or ``wake`` was called. The batch's buffer belongs to the link and is
        used anew by the next ``receive``. Timestamps are nanoseconds since 1970.
        Raises :class:`~mxwire.link.errors.LinkError` when the interface is gone; one that is only down gives nothing.
        """

    def wake(self) -> None:
        """End a ``receive`` that waits in another thread, or the next one that would."""

    def fileno(self) -> int:
        """A descriptor that is readable when ``receive`` has something to give, for event loops; -1 once closed."""

    def statistics(self) -> LinkStatistics:
        """What it has carried so far."""

    def close(self) -> None:
        """Give everything back; calling it again does nothing."""


@runtime_checkable
class FewLink(Protocol):
    """A link on which frames by themselves may come and go as well, which is faster where they are few and short."""

    def send_few(self, frames: list[bytes]) -> int:
        """Give frames to the wire, as ``send`` does."""

    def receive_few(self) -> list[bytes] | FrameBatch:
        """What has arrived, as ``receive`` without waiting gives it; few short frames as copies."""
