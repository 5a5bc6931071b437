"""Errors of live hosts."""

from __future__ import annotations

from typing import Any

from mxwire.errors import MxwireError
from mxwire.protocol import Status


class HostError(MxwireError):
    """A call of a host has failed.

    ``status`` is the code that an Open-MX application would receive (behaviour, section 20), ``request`` is the request
    concerned, or None.
    """

    def __init__(self, status: Status, text: str, request: Any = None) -> None:
        super().__init__(text)
        self.status = status
        self.request = request


class HostTimeoutError(HostError, TimeoutError):
    """The timeout has passed; ``request`` continues, and may be waited for again."""

    def __init__(self, text: str, request: Any = None) -> None:
        super().__init__(Status.TIMEOUT, text, request)


class HostWakeupError(HostTimeoutError):
    """``wake_up`` has ended the wait; ``request`` continues, and may be waited for again."""


class HostClosedError(HostError):
    """The host or the endpoint was closed, or the host has lost its interface."""
