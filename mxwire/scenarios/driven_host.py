"""mxwire's own hosts behind the driver protocol: created and called as a tester requests (see ``driver.py``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from mxwire.errors import MxwireError
from mxwire.ethernet import mac_bytes, mac_text
from mxwire.link import Link
from mxwire.protocol import LocalProtocolError, profile_by_name
from mxwire.scenarios.actions import Invocation, Query
from mxwire.scenarios.driver import as_json, of_json
from mxwire.scenarios.live import LiveTarget
from mxwire.scenarios.local_host import HostApplication, hosted
from mxwire.scenarios.parser import parse
from mxwire.scenarios.tester import Station, TestedEndpoint, Tester
from mxwire.wire.dialect import MXOE, Dialect, dialect_by_name

_NONE = TestedEndpoint(bytes(6), 0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Known:
    """A tester of which only the address is known."""

    address: bytes


class DrivenHost:
    """Answers the questions of a tester; ``open_link`` opens the link of each new host.

    Raises :class:`~mxwire.errors.MxwireError` if ``profile`` does not exist.
    """

    def __init__(self, open_link: Callable[[], Link], profile: str = "open-mx-1.5") -> None:
        self._open_link = open_link
        profile_by_name(profile)
        self._profile = profile
        self._stack = ExitStack()
        self._application: HostApplication | None = None
        self._target = _NONE
        self._dialect: Dialect = MXOE
        self._made: list[Any] = []

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a question.

        Raises :class:`~mxwire.errors.MxwireError` if it is not a question of the protocol.
        """
        try:
            match question["do"]:
                case "host":
                    return self._host(question)
                case "call":
                    return self._call(question)
                case "ask":
                    return self._ask(question)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            pass
        raise MxwireError(f"{question!r} is not a question of a tester (mxwire scenario run --driver)")

    def close(self) -> None:
        """Close the host."""
        self._stack.close()
        self._application = None

    def _host(self, question: Mapping[str, Any]) -> dict[str, Any]:
        self.close()
        self._made.clear()
        script = parse(question["text"], question["scenario"], question["scenario"])
        self._dialect = dialect_by_name(question["dialect"])
        tester, link = _Known(mac_bytes(question["tester"])), self._open_link()
        try:
            target, self._application = self._stack.enter_context(
                hosted(script, link, tester, self._dialect, self._profile)
            )
        except MxwireError as error:
            link.close()
            return {"cannot": str(error)}
        self._target = TestedEndpoint(target.mac, target.endpoint, target.key, target.closed, target.beyond)
        return _said(target)

    def _call(self, question: Mapping[str, Any]) -> dict[str, Any]:
        arguments = {str(name): of_json(each) for name, each in question["arguments"].items()}
        flags, whom = frozenset(map(str, question["flags"])), self._tester(question)
        try:
            made = self._calls().call(Invocation(question["verb"], arguments, flags, self._target_of(question), whom))
        except LocalProtocolError as error:
            return {"refused": int(error.status), "text": str(error)}
        if made is None:
            return {"made": None}
        self._made.append(made)
        return {"made": len(self._made) - 1}

    def _ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        known = self._calls().ask(Query(question["subject"], self._target_of(question), self._tester(question)))
        return {"known": {name: as_json(each) for name, each in known.items()}}

    def _calls(self) -> HostApplication:
        if self._application is None:
            raise ValueError("no host has been created")
        return self._application

    def _target_of(self, question: Mapping[str, Any]) -> Any:
        return None if question["on"] is None else self._made[question["on"]]

    def _tester(self, question: Mapping[str, Any]) -> Tester:
        whom = question["tester"]
        station = Station(mac_bytes(whom["address"]), 0)
        return Tester("", station, int(whom["endpoint"]), 0, self._target, self._dialect)


def _said(target: LiveTarget) -> dict[str, Any]:
    return {
        "address": mac_text(target.mac),
        "endpoint": target.endpoint,
        "key": target.key,
        "closed": target.closed,
        "beyond": target.beyond,
    }
