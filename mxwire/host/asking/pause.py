"""Waits in which a host goes on working."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from mxwire.host.errors import HostTimeoutError
from mxwire.host.host import Host
from mxwire.host.pending import Pending


class _Until(Pending[None]):
    """Waits until a function says so."""

    __slots__ = ("_over",)

    def __init__(self, over: Callable[[], bool]) -> None:
        self._over = over

    def ready(self) -> bool:
        """Ask it."""
        return self._over()

    def result(self) -> None:
        """Nothing."""


def pause(host: Host, seconds: float, over: Callable[[], bool] = lambda: False) -> None:
    """Let a host work for so many seconds, or until something is over.

    Raises :class:`~mxwire.host.errors.HostClosedError` where the host ends meanwhile.
    """
    with suppress(HostTimeoutError):
        host.driving.wait(_Until(over), seconds)
