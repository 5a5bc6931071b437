"""What goes wrong with a live host."""

from __future__ import annotations

from typing import Any

from mxwire.errors import MxwireError
from mxwire.protocol import Status


class HostError(MxwireError):
    """Something that was asked of a host did not end well.

    ``status`` is the code that an Open-MX application would be given (behaviour, section 20), ``request`` the request
    it is about, where there is one.
    """

    def __init__(self, status: Status, text: str, request: Any = None) -> None:
        super().__init__(text)
        self.status = status
        self.request = request


class HostTimeoutError(HostError, TimeoutError):
    """It has not ended in the time allowed; ``request`` may still end later, and be waited for again."""

    def __init__(self, text: str, request: Any = None) -> None:
        super().__init__(Status.TIMEOUT, text, request)


class HostClosedError(HostError):
    """The host, or the endpoint, was closed, or has lost its interface."""
