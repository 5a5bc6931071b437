"""Testbeds of two hosts for the fixtures, judged after each test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import pytest

from mxwire.errors import MxwireError
from mxwire.interop.cell_player import casting_of
from mxwire.interop.configuration import ExternalHost, InterfaceLocation, LiveConfiguration, read_configuration
from mxwire.interop.impairments import treatment_by_name
from mxwire.interop.implementations import implementation_by_name
from mxwire.interop.live_matrix import LivePlayer, against, between, hosts_against, opened
from mxwire.interop.live_testbed import LiveTestbed
from mxwire.interop.recorded_frames import HostTable, breaches_of
from mxwire.interop.roles import Introduction
from mxwire.interop.simulated_testbed import SimulatedTestbed
from mxwire.lab.namespaces import process_name
from mxwire.rules import Violation

_SHOWN: Final = 5


class SimulatedTestbeds:
    """A factory of simulated testbeds that judges their frames."""

    def __init__(self) -> None:
        self._made: list[tuple[SimulatedTestbed, HostTable]] = []

    def __call__(
        self,
        left: str = "open-mx-1.5",
        right: str = "open-mx-1.5",
        *,
        impairment: str = "none",
        seed: int = 1,
        introduction: Introduction = "names",
        patience: float = 60.0,
    ) -> SimulatedTestbed:
        """Return a testbed of two implementations, by the names that ``mxwire interop --list`` shows."""
        castings = [casting_of(implementation_by_name(each), name) for each, name in ((left, "left"), (right, "right"))]
        testbed = SimulatedTestbed(
            castings[0], castings[1], treatment_by_name(impairment), seed, introduction=introduction, patience=patience
        )
        self._made.append((testbed, HostTable.on(testbed, castings)))
        return testbed

    def judge(self) -> None:
        """Fail the test if a host has broken a rule; hosts with different dialects are not judged."""
        for testbed, hosts in self._made:
            if len({each.dialect for each in hosts.castings.values()}) == 1:
                _fail(breaches_of(testbed.frames, hosts, exact=True, reboots=testbed.reboots, slowest=testbed.slowest))


class Session:
    """The hosts of ``--mxwire-config``, for all tests of a run: namespaces and programs are created once."""

    def __init__(self, configuration: LiveConfiguration, player: LivePlayer) -> None:
        self.configuration = configuration
        self.player = player


_SESSION: Final = pytest.StashKey[Session]()


def session_of(config: pytest.Config) -> Session:
    """Return the hosts of the session; without a file, those in two new namespaces.

    Skip the test if the namespaces cannot be created; fail it with one line if the file or its interfaces are
    invalid.
    """
    found = config.stash.get(_SESSION, None)
    if found is None:
        path = config.getoption("--mxwire-config")
        stack = ExitStack()
        config.add_cleanup(stack.close)
        try:
            configuration = _namespaces() if path is None else read_configuration(str(path))
            found = Session(configuration, stack.enter_context(opened(configuration, None)))
        except MxwireError as error:
            pytest.fail(str(error), pytrace=False)
        config.stash[_SESSION] = found
    return found


@contextmanager
def live_pair(config: pytest.Config) -> Iterator[LiveTestbed]:
    """Yield a testbed of two live hosts; skip the test if this is impossible."""
    configuration = session_of(config).configuration
    if configuration.right is None:
        pytest.skip(f"{configuration.path} describes no interface [right]")
    implementation = configuration.implementations[0]
    castings = casting_of(implementation, "left"), casting_of(implementation, "right")
    testbed = between(configuration, castings, "none", 1, "names", configuration.patience)
    try:
        yield testbed
        _fail(breaches_of(testbed.frames, HostTable.on(testbed, castings), exact=False, reboots=testbed.reboots))
    finally:
        testbed.close()


@contextmanager
def external(config: pytest.Config, test: str, failed: Callable[[], bool]) -> Iterator[LiveTestbed]:
    """Yield a testbed of a live host and an external one; skip the test if none is described.

    If ``failed`` returns True at the end, the programs used by ``test`` are restarted before their next use.
    """
    session, described = external_of(config)
    configuration, player = session.configuration, session.player
    left = casting_of(configuration.implementations[0], "left")
    right = casting_of(described.taken_for, described.implementation.name)
    programs = player.programs(described)
    testbed = against(configuration, described, left, programs, 1)
    try:
        player.must_be_there(testbed, described)
        testbed.patience = configuration.patience
        yield testbed
        _fail(breaches_of(testbed.frames, hosts_against(testbed, left, right, described), exact=False))
    finally:
        if failed():
            programs.suspect(testbed.roles, f"{test} has failed")
        testbed.close()


def external_of(config: pytest.Config) -> tuple[Session, ExternalHost]:
    """Return the first external host of ``--mxwire-config``; skip the test if there is none."""
    path = config.getoption("--mxwire-config")
    if path is None:
        pytest.skip("an external host is described by --mxwire-config FILE")
    session = session_of(config)
    if not session.configuration.externals:
        pytest.skip(f"{path} describes no [[external]] host")
    return session, session.configuration.externals[0]


def _namespaces() -> LiveConfiguration:
    """Return a configuration with two new namespaces for this process."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root: run as root, or name interfaces with --mxwire-config")
    prefix = process_name("pytest")
    return LiveConfiguration(
        path="--mxwire-config",
        title="pytest",
        left=InterfaceLocation("veth0", f"{prefix}-left"),
        right=InterfaceLocation("veth1", f"{prefix}-right"),
        make=True,
        implementations=(implementation_by_name("open-mx-1.5"),),
    )


def _fail(findings: list[Violation]) -> None:
    broken = [str(each) for each in findings if each.severity == "violation"]
    if broken:
        more = f"\n… and {len(broken) - _SHOWN} more" if len(broken) > _SHOWN else ""
        pytest.fail("rules were broken:\n" + "\n".join(broken[:_SHOWN]) + more, pytrace=False)
