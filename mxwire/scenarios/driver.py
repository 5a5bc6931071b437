"""Drivers: programs that make the calls of scenarios on the host under test, controlled by lines of JSON.

With a driver, scenarios with application calls can be played against any host; a driver may be written in any language.
``mxwire scenario host`` is the driver of mxwire's own hosts. Each line is one JSON object, and each request has one
answer. Bytes are written as ``{"hex": "00ff"}``.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import Any, Final

from mxwire.errors import MxwireError
from mxwire.ethernet import mac_bytes, mac_text
from mxwire.lab.child import ChildEndedError, ChildProcess
from mxwire.link import Link
from mxwire.protocol import LocalProtocolError, Status
from mxwire.scenarios.actions import Invocation, LateAnswerError, Query
from mxwire.scenarios.expression import Value
from mxwire.scenarios.live_run import LiveTarget, drain, run_live, skip_reason
from mxwire.scenarios.outcome import ScenarioOutcome, ScenarioVerdict
from mxwire.scenarios.processes import FIRST
from mxwire.scenarios.script import Script
from mxwire.scenarios.simulated_run import skipped
from mxwire.scenarios.tester import Tester
from mxwire.scenarios.vocabulary import COUNTERS
from mxwire.wire.dialect import Dialect

PATIENCE: Final = 30.0
"""Seconds within which a driver must answer."""
_END_SECONDS: Final = 5.0
_SHOWN: Final = 100
"""Maximum number of characters of an invalid answer that an error quotes."""
_COUNTERS: Final = {each.value: name for name, each in COUNTERS.items()}
"""Names of counters in the language, by their names in the real driver."""
_NUMBERS: Final = ("endpoint", "key", "closed", "beyond")
"""Properties of the endpoint under test that a driver may report; defaults are those of mxwire's own hosts."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """Result of an application call, under the number that the driver gave it."""

    number: int


class DriverError(MxwireError):
    """A driver cannot be started, or does not answer correctly."""


class LateDriverError(DriverError, LateAnswerError):
    """A driver did not answer one question in time, but may answer the next."""


class Driver(AbstractContextManager["Driver"]):
    """A running driver; an :class:`~mxwire.scenarios.actions.ScenarioApplication`.

    ``command`` is its command line. Raises :class:`DriverError` if it cannot be started.
    """

    def __init__(self, command: str) -> None:
        self._command = command
        self._owed = 0
        """Number of questions without an answer; answers have the order of the questions."""
        try:
            self._child = ChildProcess(shlex.split(command))
        except (OSError, ValueError, IndexError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise DriverError(f"the driver {command!r} cannot be started: {why}") from None

    def __exit__(self, *_: object) -> None:
        """Close the driver."""
        self.close()

    def close(self) -> None:
        """End the driver by closing its input, and kill it if it still runs; closing it again does nothing."""
        self._child.end(patience=_END_SECONDS)

    def kill(self) -> None:
        """Kill the driver, and with it the host that it has created."""
        self._child.end()

    def host(self, script: Script, dialect: Dialect, tester: bytes, process: int = FIRST) -> LiveTarget | str:
        """Have the driver create a new host as ``script`` requires, with its known peers in the table.

        ``tester`` is the tester's Ethernet address. A ``process`` other than the first has no endpoint until the
        scenario opens one. Returns the endpoint under test, or the reason why the driver cannot create such a host.
        Raises :class:`DriverError` if the driver does not answer correctly.
        """
        question = {
            "do": "host",
            "scenario": script.name,
            "text": script.text,
            "dialect": str(dialect),
            "tester": mac_text(tester),
        }
        answer = self._ask(question if process == FIRST else question | {"process": process})
        if "cannot" in answer:
            return str(answer["cannot"])
        try:
            target = LiveTarget(mac_bytes(answer["address"]), dialect)
            numbers: dict[str, Any] = {name: int(answer[name]) for name in _NUMBERS if name in answer}
            return replace(target, **numbers)
        except (KeyError, TypeError, ValueError, MxwireError):
            raise self._wrong(answer) from None

    def call(self, action: Invocation) -> CallResult | None:
        """Make a call on the application.

        Raises :class:`~mxwire.protocol.LocalProtocolError` if the call is refused, and :class:`DriverError`.
        """
        answer = self._ask(
            {
                "do": "call",
                "verb": action.verb,
                "arguments": {name: as_json(each) for name, each in action.arguments.items()},
                "flags": sorted(action.flags),
                "on": _number(action.target),
                "tester": _tester_record(action.tester),
            }
        )
        try:
            if "refused" in answer:
                raise LocalProtocolError(Status(answer["refused"]), str(answer.get("text", "")))
            return None if answer["made"] is None else CallResult(int(answer["made"]))
        except (KeyError, TypeError, ValueError):
            raise self._wrong(answer) from None

    def ask(self, action: Query) -> Mapping[str, Value] | None:
        """Return the values of a result, the counters, the events or the peer; None if the driver does not report them.

        Counters may have their names in the language or those of the real driver. Raises :class:`DriverError`.
        """
        on, tester = _number(action.target), _tester_record(action.tester)
        answer = self._ask({"do": "ask", "subject": action.subject, "on": on, "tester": tester})
        try:
            known = answer["known"]
            if known is None:
                return None
            names = _COUNTERS if action.subject == "counters" else {}
            return {names.get(str(name), str(name)): of_json(each) for name, each in known.items()}
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self._wrong(answer) from None

    def _ask(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            self._child.write_line(json.dumps(question).encode())
        except ChildEndedError:
            raise self._ended() from None
        self._owed += 1
        end = time.monotonic() + PATIENCE
        while self._owed:
            # The answer to an earlier question, of which its scenario has failed, comes first.
            line = self._line(end)
            self._owed -= 1
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise self._wrong(line.decode(errors="replace").strip())
        return answer

    def _line(self, end: float) -> bytes:
        try:
            line = self._child.read_line(end - time.monotonic())
        except ChildEndedError:
            raise self._ended() from None
        if line is None:
            # A driver that owes two answers hangs, and would delay every scenario that follows.
            kind = LateDriverError if self._owed == 1 else DriverError
            raise kind(f"the driver {self._command!r} did not answer within {PATIENCE:g} s")
        return line

    def _ended(self) -> DriverError:
        with suppress(subprocess.TimeoutExpired):
            self._child.process.wait(_END_SECONDS)
        return DriverError(f"the driver {self._command!r} ended with status {self._child.process.returncode}")

    def _wrong(self, answer: Any) -> DriverError:
        shown = shorten(repr(answer), _SHOWN, placeholder=" …")
        return DriverError(f"the driver {self._command!r} answered {shown}, which is not an answer to the question")


def run_driven(
    script: Script, link: Link, driver: Driver, dialect: Dialect, seed: int | None = None, *, harmful: bool = False
) -> ScenarioOutcome:
    """Play a scenario to a host created by a driver; ``seed`` as for :func:`~mxwire.scenarios.live_run.run_live`.

    Without ``harmful``, scenarios that stop real hosts are skipped, even though the host has a driver.

    It fails if the driver answers late. Raises :class:`DriverError`, :class:`~mxwire.link.errors.LinkError` if the link
    is lost, and :class:`~mxwire.scenarios.errors.ScriptError` for a step that cannot be played as written.
    """
    why = skip_reason(script, dialect, True)
    if why is None and script.harmful and not harmful:
        why = f"it is harmful: {script.harmful}"
    if why is None:
        # Only before the new host exists: its first queries belong to the run.
        drain(link)
    try:
        found = why or driver.host(script, dialect, link.address)
    except LateDriverError as error:
        return ScenarioOutcome(script, ScenarioVerdict.FAIL, dialect.name, reason=f"no host: {error}")
    if isinstance(found, str):
        return skipped(script, dialect, found)
    return run_live(script, link, found, application=driver, seed=seed)


def _number(target: Any) -> int | None:
    return target.number if isinstance(target, CallResult) else None


def _tester_record(tester: Tester) -> dict[str, Any]:
    return {"address": mac_text(tester.station.mac), "endpoint": tester.endpoint}


def as_json(value: Value) -> Any:
    """Encode a value for the driver protocol."""
    return value if isinstance(value, int) else {"hex": value.hex()}


def of_json(value: Any) -> Value:
    """Decode a value of the driver protocol.

    Raises :class:`ValueError` or :class:`TypeError` if it is not one.
    """
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"])
    return int(value)
