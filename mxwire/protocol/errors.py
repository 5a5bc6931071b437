"""What the engine says when it is used wrongly; hostile frames never raise anything."""

from __future__ import annotations

from mxwire.errors import MxwireError
from mxwire.protocol.status import Status


class LocalProtocolError(MxwireError):
    """A call that the protocol does not allow; nothing has changed.

    ``status`` is the code that an Open-MX application would be given (behaviour, section 20).
    """

    def __init__(self, status: Status, text: str) -> None:
        super().__init__(text)
        self.status = status


class ArgumentTypeError(LocalProtocolError, TypeError):
    """An argument of a type that the call does not take; nothing has changed."""


class ImpossibleEventError(MxwireError):
    """An event that a state machine's table has no row for: a defect of mxwire itself."""
