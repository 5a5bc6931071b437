"""Actions that a run requests from its testbed, and the interface of the application under test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mxwire.errors import MxwireError
from mxwire.protocol import LocalProtocolError
from mxwire.scenarios.expression import Value
from mxwire.scenarios.tester import Tester


class LateAnswerError(MxwireError):
    """The application did not answer in time; the scenario fails, and the next one can be played."""


@dataclass(frozen=True, slots=True)
class Transmission:
    """Request to transmit frames, all at once."""

    frames: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Invocation:
    """Request to make a call on the application; its result or error is returned to the run."""

    verb: str
    arguments: Mapping[str, Value]
    flags: frozenset[str]
    target: Any
    """Object of the call, for example a request to cancel; None without one."""
    tester: Tester


@dataclass(frozen=True, slots=True)
class Query:
    """Request for the current values of a subject: a mapping, or None if they are not available."""

    subject: str
    target: Any
    tester: Tester


Action = Transmission | Invocation | Query


class ScenarioApplication(Protocol):
    """The application on the host under test."""

    def call(self, action: Invocation) -> Any:
        """Make a call; raise :class:`~mxwire.protocol.LocalProtocolError` if it is refused."""

    def ask(self, action: Query) -> Mapping[str, Value] | None:
        """Return the current values of a call's result, the counters, the events or the peer."""


def answer(application: ScenarioApplication | None, action: Invocation | Query) -> Any:
    """Carry out ``action``; return the result of the call or, if it is refused or late, the exception object."""
    if application is None:
        return None
    if isinstance(action, Query) and isinstance(action.target, LocalProtocolError):
        return {"status": int(action.target.status), "done": 1}
    try:
        return application.ask(action) if isinstance(action, Query) else application.call(action)
    except (LocalProtocolError, LateAnswerError) as error:
        return error
