"""LinkWrapper: a link that stands before another one, and is that one in all that it does not do otherwise."""

from __future__ import annotations

from typing import Self

from mxwire.frames import FrameBatch
from mxwire.link.link import Link, LinkStatistics


class LinkWrapper:
    """What all links have in common that do something to the frames of another one, which they own.

    Frames go as batches only: what the link behind has for a few (:class:`~mxwire.link.link.FewLink`) would pass a
    wrapper by.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        """The link behind it."""

    @property
    def name(self) -> str:
        """The name of the link behind it."""
        return self.link.name

    @property
    def address(self) -> bytes:
        """The address of the link behind it, 6 bytes."""
        return self.link.address

    @property
    def mtu(self) -> int:
        """How many bytes a frame may have after its Ethernet header."""
        return self.link.mtu

    def send(self, batch: FrameBatch) -> int:
        """Give frames to the link behind it; returns how many were taken."""
        return self.link.send(batch)

    def receive(self, timeout: float | None = 0.0) -> FrameBatch:
        """The frames that have arrived; see :meth:`mxwire.link.link.Link.receive`."""
        return self.link.receive(timeout)

    def wake(self) -> None:
        """End a ``receive`` that waits in another thread, or the next one."""
        self.link.wake()

    def fileno(self) -> int:
        """A descriptor that is readable when ``receive`` has something to give; -1 once closed."""
        return self.link.fileno()

    def statistics(self) -> LinkStatistics:
        """What the link behind it has carried."""
        return self.link.statistics()

    def close(self) -> None:
        """Close the link behind it too; calling it again does nothing."""
        self.link.close()

    def __enter__(self) -> Self:
        """The link itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()
