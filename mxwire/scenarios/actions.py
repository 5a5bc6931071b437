"""What a run wants from the stage that it is played on, and what it asks of the application under test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mxwire.protocol import LocalProtocolError
from mxwire.scenarios.expression import Value
from mxwire.scenarios.tester import Tester


@dataclass(frozen=True, slots=True)
class Transmit:
    """Send these frames, all at once."""

    frames: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Invoke:
    """Let the application call; the run wants what it returns, or the error that it raises."""

    verb: str
    arguments: Mapping[str, Value]
    flags: frozenset[str]
    target: Any
    """What the call is about, or None."""
    tester: Tester


@dataclass(frozen=True, slots=True)
class Ask:
    """Say what is known; the run wants a mapping of values, or None where nobody can say."""

    subject: str
    target: Any
    tester: Tester


Action = Transmit | Invoke | Ask


class Application(Protocol):
    """The application on the host under test."""

    def call(self, action: Invoke) -> Any:
        """Make a call; raises :class:`~mxwire.protocol.LocalProtocolError` where it is refused."""

    def ask(self, action: Ask) -> Mapping[str, Value] | None:
        """What a result, the counters, the events or a peer say."""


def answer(application: Application | None, action: Invoke | Ask) -> Any:
    """What an action gives: what a call returns or, where it is refused, the refusal."""
    if application is None:
        return None
    if isinstance(action, Ask):
        if isinstance(action.target, LocalProtocolError):
            return {"status": int(action.target.status), "done": 1}
        return application.ask(action)
    try:
        return application.call(action)
    except LocalProtocolError as error:
        return error
