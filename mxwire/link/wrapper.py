"""LinkWrapper: base of links that change the frames of an inner link."""

from __future__ import annotations

from typing import Self

from mxwire.frames import FrameBatch
from mxwire.link.link import Link, LinkStatistics


class LinkWrapper:
    """Passes all calls to an inner link, which it owns; derived classes override the calls that they change.

    Frames pass as batches only: the inner link's :class:`~mxwire.link.link.FewLink` methods would bypass a wrapper.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        """The inner link."""

    @property
    def name(self) -> str:
        """Name of the inner link."""
        return self.link.name

    @property
    def address(self) -> bytes:
        """Ethernet address of the inner link, 6 bytes."""
        return self.link.address

    @property
    def mtu(self) -> int:
        """Largest number of bytes in a frame after its Ethernet header."""
        return self.link.mtu

    def send(self, batch: FrameBatch) -> int:
        """Send frames through the inner link; return the number sent."""
        return self.link.send(batch)

    def receive(self, timeout: float | None = 0.0) -> FrameBatch:
        """Receive frames; see :meth:`mxwire.link.link.Link.receive`."""
        return self.link.receive(timeout)

    def wake(self) -> None:
        """End a ``receive`` that blocks in another thread, or the next one."""
        self.link.wake()

    def fileno(self) -> int:
        """Descriptor that is readable when ``receive`` would return frames; -1 once closed."""
        return self.link.fileno()

    def statistics(self) -> LinkStatistics:
        """Counters of the inner link."""
        return self.link.statistics()

    def close(self) -> None:
        """Close the inner link; closing it again does nothing."""
        self.link.close()

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the link."""
        self.close()
