"""Opened: the interfaces of this machine that a host is to use, given back if it does not come to that."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from mxwire.errors import MxwireError
from mxwire.host.sharing import MachineSharing
from mxwire.link.packet import Mode, PacketLink


class Opened:
    """Links on interfaces, and what is shared with the other processes that use them.

    Raises :class:`~mxwire.link.errors.LinkError` where there is no such interface, or no permission to use it.
    """

    def __init__(self, interfaces: str | Sequence[str], *, spin: bool | float = False) -> None:
        wanted = [interfaces] if isinstance(interfaces, str) else list(interfaces)
        if len(set(wanted)) < len(wanted):
            raise MxwireError(f"an interface is named twice: {', '.join(wanted)}")
        self.links: list[PacketLink] = []
        self._kept = False
        try:
            for each in wanted:
                self.links.append(PacketLink.open(each, mode=Mode.SPIN if spin is True else Mode.SLEEP))
            self.sharing = MachineSharing(wanted)
        except BaseException:
            self._give_back()
            raise

    def keep(self) -> None:
        """A host has taken them over."""
        self._kept = True

    def _give_back(self) -> None:
        for each in self.links:
            each.close()
        if hasattr(self, "sharing"):
            self.sharing.close()

    def __enter__(self) -> Opened:
        """Themselves."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close them, unless they were kept."""
        if not self._kept:
            self._give_back()
