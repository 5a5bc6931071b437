"""Sharing: what the hosts of several processes on one machine must agree in, so that others see one host.

A link of one's own, in memory, is shared with nobody.
"""

from __future__ import annotations

from typing import Protocol


class Sharing(Protocol):
    """What a host asks before it does what only one may do."""

    def claim(self, interface: int, endpoint: int) -> None:
        """Take an endpoint's number on an interface (counted from 0).

        Raises :class:`~mxwire.host.errors.HostError` where another process has it.
        """

    def release(self, interface: int, endpoint: int) -> None:
        """Give an endpoint's number back."""

    def close(self) -> None:
        """Give everything back."""


class Alone:
    """Nobody shares these links."""

    def claim(self, interface: int, endpoint: int) -> None:
        """Nobody else can have it."""

    def release(self, interface: int, endpoint: int) -> None:
        """Nobody waits for it."""

    def close(self) -> None:
        """Nothing was taken."""
