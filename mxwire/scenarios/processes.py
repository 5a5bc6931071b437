"""Several processes of the host under test: each call goes to the one that has the endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from mxwire.protocol import LocalProtocolError, Status
from mxwire.scenarios.actions import Invocation, Query, ScenarioApplication
from mxwire.scenarios.expression import Value

FIRST: Final = 0
"""Number of the process under test, which makes all calls except those that name an endpoint of another process."""


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """Result of a call, and the process that has made it."""

    process: int
    result: Any


class HostProcesses:
    """A :class:`~mxwire.scenarios.actions.ScenarioApplication` of several processes, ``first`` and those that are
    started as soon as a scenario opens an endpoint in them.

    ``start`` starts a process and returns its application, ``kill`` kills it. Both take its number, and may raise
    :class:`~mxwire.protocol.LocalProtocolError`.
    """

    def __init__(
        self, first: ScenarioApplication, start: Callable[[int], ScenarioApplication], kill: Callable[[int], None]
    ) -> None:
        self._running = {FIRST: first}
        self._start = start
        self._kill = kill

    def call(self, action: Invocation) -> ProcessResult | None:
        """Make a call in the process of its endpoint; raises :class:`~mxwire.protocol.LocalProtocolError`."""
        number, target = _split(action.target)
        arguments = dict(action.arguments)
        if action.verb == "open":
            chosen = arguments.pop("process", FIRST)
            assert isinstance(chosen, int)
            number = chosen
            if number not in self._running:
                self._running[number] = self._start(number)
        application = self._running.get(number)
        if application is None:
            raise LocalProtocolError(Status.BAD_ENDPOINT, f"process {number} was killed")
        if action.verb == "kill":
            if number == FIRST:
                raise LocalProtocolError(Status.BAD_REQUEST, "the process under test cannot be killed, only others")
            del self._running[number]
            self._kill(number)
            return None
        result = application.call(replace(action, arguments=arguments, target=target))
        return None if result is None else ProcessResult(number, result)

    def ask(self, action: Query) -> Mapping[str, Value] | None:
        """Return the values of a result of any process, or the counters, events and peer of the first one."""
        number, target = _split(action.target)
        application = self._running.get(number)
        # A killed process has no values.
        return {} if application is None else application.ask(replace(action, target=target))


def _split(target: Any) -> tuple[int, Any]:
    return (target.process, target.result) if isinstance(target, ProcessResult) else (FIRST, target)
