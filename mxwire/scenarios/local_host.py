"""Live hosts of mxwire as the host under test: opened for a scenario, directly or behind the driver protocol."""

from __future__ import annotations

import shlex
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from random import Random
from typing import Any

from mxwire.errors import MxwireError
from mxwire.ethernet import mac_bytes, mac_text
from mxwire.host import Host, HostError
from mxwire.host.sharing import MachineSharing
from mxwire.link import Link
from mxwire.protocol import EngineEndpoint, Event, LocalProtocolError, Profile, Status, profile_by_name
from mxwire.scenarios.actions import Invocation, Query, ScenarioApplication
from mxwire.scenarios.application import NodeApplication
from mxwire.scenarios.cast import known_hosts
from mxwire.scenarios.driver import Driver, as_json, of_json
from mxwire.scenarios.expression import Value
from mxwire.scenarios.live_run import LiveTarget, address_of
from mxwire.scenarios.parser import parse
from mxwire.scenarios.processes import FIRST, HostProcesses
from mxwire.scenarios.script import Script
from mxwire.scenarios.tester import Station, TestedEndpoint, Tester
from mxwire.wire.dialect import MXOE, Dialect, dialect_by_name


class HostApplication(NodeApplication):
    """Calls on the engine of a live host, whose endpoint numbers are claimed if it shares its interface."""

    def __init__(self, host: Host, events: list[Event]) -> None:
        super().__init__(host.core.node, None)
        self._core = host.core
        self._sharing = host.sharing
        self.events = events

    def call(self, action: Invocation) -> Any:
        """Make a call, and transmit the frames that it has queued."""
        with self._core.section:
            try:
                return super().call(action)
            finally:
                # Even a refused call may have queued frames, and the host's own loop would send them only later.
                self._core.transmit()

    def ask(self, action: Query) -> Mapping[str, Value]:
        """Return the values of the action's subject."""
        with self._core.section:
            return super().ask(action)

    def _open_endpoint(self, number: int, key: int, **options: Any) -> EngineEndpoint:
        if self._sharing is None:
            return super()._open_endpoint(number, key, **options)
        try:
            # Claimed first: the endpoint could otherwise be open in two processes for a moment.
            self._sharing.claim(0, number)
        except HostError as error:
            raise LocalProtocolError(error.status, str(error)) from None
        try:
            return super()._open_endpoint(number, key, **options)
        except LocalProtocolError:
            self._sharing.release(0, number)
            raise

    def _close_endpoint(self, endpoint: EngineEndpoint) -> None:
        super()._close_endpoint(endpoint)
        if self._sharing is not None:
            self._sharing.release(0, endpoint.number)

    def _new_events(self) -> list[Event]:
        return []


@contextmanager
def hosted(
    script: Script,
    link: Link,
    tester: bytes,
    dialect: Dialect = MXOE,
    profile: Profile | str = "open-mx-1.5",
    process: int = FIRST,
) -> Iterator[tuple[LiveTarget, ScenarioApplication]]:
    """Open a live host on ``link``, configured for ``script``, with the tester in its peer table.

    ``tester`` is the Ethernet address of the tester's link. A ``process`` other than the first starts without an
    endpoint. Processes in which the scenario opens endpoints are started on the same interface, in the network
    namespace of this thread. ``link`` is closed at the end. Raises :class:`~mxwire.errors.MxwireError` if the profile
    does not exist or the host cannot be opened.
    """
    profile = profile_by_name(script.profile or profile) if isinstance(profile, str) else profile
    events: list[Event] = []
    with ExitStack() as stack:
        sharing = None
        if script.several_processes:
            _check_shareable(link)
            sharing = stack.enter_context(closing(MachineSharing([link.name])))
        host = Host(
            link,
            name="host",
            dialect=dialect,
            profile=script.profile_from(profile),
            announce=script.discovery == "announce" and process == FIRST,
            on_event=events.append,
            # A process that is started again has another session.
            rng=Random(0) if process == FIRST else None,
            sharing=sharing,
        )
        target = LiveTarget(link.address, dialect)
        stack.enter_context(host)
        application = HostApplication(host, events)
        with host.core.section:
            for number, name in known_hosts(script).items():
                host.core.node.add_peer(address_of(tester, number), name)
            if script.endpoint and process == FIRST:
                application.open(target.endpoint, target.key)
            host.core.transmit()
        if not script.several_processes or process != FIRST:
            yield target, application
            return
        others = _OtherProcesses(stack, script, link.name, tester, dialect, profile)
        yield target, HostProcesses(application, others.start, others.kill)


def _check_shareable(link: Link) -> None:
    try:
        socket.if_nametoindex(link.name)
    except OSError:
        raise MxwireError(f"{link.name}: several processes need an interface of this machine") from None


class _OtherProcesses:
    """The other processes of a host: each is driven as a host on another machine would be."""

    def __init__(
        self, stack: ExitStack, script: Script, interface: str, tester: bytes, dialect: Dialect, profile: Profile
    ) -> None:
        self._stack = stack
        self._details = script, dialect, tester
        self._command = shlex.join(
            [sys.executable, "-m", "mxwire", "scenario", "host", "-i", interface, "--profile", profile.name]
        )
        self._drivers: dict[int, Driver] = {}

    def start(self, number: int) -> Driver:
        """Start a process."""
        driver = self._drivers[number] = self._stack.enter_context(Driver(self._command))
        answer = driver.host(*self._details, process=number)
        if isinstance(answer, str):
            raise LocalProtocolError(Status.BAD_ERROR, answer)
        return driver

    def kill(self, number: int) -> None:
        """Kill a process."""
        self._drivers[number].kill()


_NONE = TestedEndpoint(bytes(6), 0, 0, 0)


class DrivenHost:
    """Answers the requests of a tester; ``open_link`` opens the link of each new host.

    Raises :class:`~mxwire.errors.MxwireError` if ``profile`` does not exist.
    """

    def __init__(self, open_link: Callable[[], Link], profile: str = "open-mx-1.5") -> None:
        self._open_link = open_link
        profile_by_name(profile)
        self._profile = profile
        self._stack = ExitStack()
        self._application: ScenarioApplication | None = None
        self._target = _NONE
        self._dialect: Dialect = MXOE
        self._made: list[Any] = []

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request.

        Raises :class:`~mxwire.errors.MxwireError` if it is not a request of the driver protocol.
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
        # Numbers of results count from 0 for each host.
        self._made.clear()
        script = parse(question["text"], question["scenario"], question["scenario"])
        self._dialect = dialect_by_name(question["dialect"])
        tester, link = mac_bytes(question["tester"]), self._open_link()
        try:
            target, self._application = self._stack.enter_context(
                hosted(script, link, tester, self._dialect, self._profile, int(question.get("process", FIRST)))
            )
        except MxwireError as error:
            # The host takes the link over only when it opens, which may have failed.
            link.close()
            return {"cannot": str(error)}
        self._target = TestedEndpoint(target.mac, target.endpoint, target.key, target.closed, target.beyond)
        return _configuration_of(target)

    def _call(self, question: Mapping[str, Any]) -> dict[str, Any]:
        arguments = {str(name): of_json(each) for name, each in question["arguments"].items()}
        flags, whom = frozenset(map(str, question["flags"])), self._tester(question)
        try:
            result = self._calls().call(Invocation(question["verb"], arguments, flags, self._target_of(question), whom))
        except LocalProtocolError as error:
            return {"refused": int(error.status), "text": str(error)}
        if result is None:
            return {"made": None}
        self._made.append(result)
        return {"made": len(self._made) - 1}

    def _ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        known = self._calls().ask(Query(question["subject"], self._target_of(question), self._tester(question)))
        return {"known": known and {name: as_json(each) for name, each in known.items()}}

    def _calls(self) -> ScenarioApplication:
        if self._application is None:
            raise ValueError("no host has been created")
        return self._application

    def _target_of(self, question: Mapping[str, Any]) -> Any:
        return None if question["on"] is None else self._made[question["on"]]

    def _tester(self, question: Mapping[str, Any]) -> Tester:
        whom = question["tester"]
        station = Station(mac_bytes(whom["address"]), 0)
        return Tester("", station, int(whom["endpoint"]), 0, self._target, self._dialect)


def _configuration_of(target: LiveTarget) -> dict[str, Any]:
    return {
        "address": mac_text(target.mac),
        "endpoint": target.endpoint,
        "key": target.key,
        "closed": target.closed,
        "beyond": target.beyond,
    }
