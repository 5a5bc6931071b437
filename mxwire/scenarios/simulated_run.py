"""The simulated testbed: play a scenario against the engine, in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final

import numpy as np

from mxwire.ethernet import DESTINATION
from mxwire.frames import FrameBatch
from mxwire.protocol import Node, Profile, profile_by_name
from mxwire.scenarios.actions import ScenarioApplication, Transmission, answer
from mxwire.scenarios.application import NodeApplication
from mxwire.scenarios.cast import HOST, Cast, known_hosts
from mxwire.scenarios.outcome import ScenarioOutcome, ScenarioVerdict
from mxwire.scenarios.processes import FIRST, HostProcesses
from mxwire.scenarios.scenario_run import ScenarioRun
from mxwire.scenarios.script import Script
from mxwire.scenarios.tester import TestedEndpoint
from mxwire.scenarios.vocabulary import COUNTERS
from mxwire.units import MILLISECOND
from mxwire.wire.dialect import MXOE, Dialect
from mxwire.wire.numbers import DEFAULT_KEY

if TYPE_CHECKING:
    from mxwire.simulation.local_path import SimulatedPath

START: Final = 1_000_000_000
HOP: Final = 1_000
"""Nanoseconds that a frame takes from one side to the other."""
ENDPOINT, CLOSED = 1, 30
TURNS: Final = 1_000_000
"""Maximum number of steps of the loop, more than any scenario needs: a run that exceeds it does not terminate."""


def run_simulated(
    script: Script, profile: Profile | str = "open-mx-1.5", dialect: Dialect = MXOE, seed: int = 0
) -> ScenarioOutcome:
    """Play a scenario with the engine as the host under test; the same seed gives the same frames.

    Raises :class:`~mxwire.scenarios.errors.ScriptError` for a step that cannot be played as written.
    """
    profile = profile_by_name(profile) if isinstance(profile, str) else profile
    if script.profile:
        profile = profile_by_name(script.profile)
    profile = script.profile_from(profile)
    if not script.applies_to(dialect):
        return skipped(script, dialect, f"it is for the dialect {' and '.join(script.dialects)}", profile.name)
    rng = Random(seed)
    target, *more = [
        TestedEndpoint(_host_mac(number), ENDPOINT, DEFAULT_KEY, CLOSED, profile.endpoint_maximum)
        for number in range(script.interfaces)
    ]
    cast = Cast(script, dialect, target, stations(script), rng, dict(enumerate(more, 1)))
    machine = _Machine(script, profile, dialect, rng)
    node = machine.start(FIRST)
    endpoint = node.open_endpoint(ENDPOINT, DEFAULT_KEY) if script.endpoint else None
    run = ScenarioRun(script, cast, START)
    application: ScenarioApplication = NodeApplication(node, endpoint)
    if script.several_processes:
        application = HostProcesses(
            application, lambda number: NodeApplication(machine.start(number), None), machine.kill
        )
    machine.play(run, application)
    return replace(outcome_of(run, dialect, profile.name, seed), counted=machine.dropped())


def _host_mac(interface: int) -> bytes:
    return bytes([2, 0, 0, 0, 0, 0x0A + interface])


def stations(script: Script) -> dict[int, bytes]:
    """Return the Ethernet addresses of the tester's hosts, by number."""
    numbers = {HOST, *(each.host for each in script.actors)}
    return {number: bytes([2, 0, 0, 0, 1, number]) for number in numbers}


class _Machine:
    """The host under test: a node, or one for each of its processes, with channels between them."""

    def __init__(self, script: Script, profile: Profile, dialect: Dialect, rng: Random) -> None:
        self._script = script
        self._profile = profile
        self._dialect = dialect
        self._rng = rng
        self._nodes: dict[int, Node] = {}
        self._paths: dict[int, SimulatedPath] = {}
        self._all: list[SimulatedPath] = []
        self._due: dict[int, int] = {}
        """Times at which processes take the records of others, by process."""
        self._now = START

    def start(self, process: int) -> Node:
        """Start a process."""
        from mxwire.simulation.local_path import SimulatedPath

        script = self._script
        path: SimulatedPath | None = None
        if script.several_processes:
            old = self._paths.get(process)
            path = self._paths[process] = SimulatedPath(self._all) if old is None else old.successor()
            path.on_notice = partial(self._notice, process)
        addresses = stations(script)
        node = self._nodes[process] = Node(
            [_host_mac(number) for number in range(script.interfaces)],
            "host",
            dialect=self._dialect,
            profile=self._profile,
            rng=self._rng,
            peers={addresses[number]: name for number, name in known_hosts(script).items()},
            # A machine has one discovery daemon, however many processes.
            announce=script.discovery == "announce" and process == FIRST,
            listen=script.discovery == "listen",
            sharing=path,
            path=path,
        )
        if path is not None:
            path.node = node
        return node

    def kill(self, process: int) -> None:
        """End a process without closing its endpoints."""
        del self._nodes[process]
        self._due.pop(process, None)
        self._paths[process].die()

    def play(self, run: ScenarioRun, application: ScenarioApplication) -> None:
        """Play a run to its end."""
        for _ in range(TURNS):
            action = run.advance(self._now)
            if isinstance(action, Transmission):
                self._now += HOP
                self._receive(action.frames)
            elif action is not None:
                run.give(answer(application, action))
            elif run.finished:
                return
            moved = self._carry(run)
            if action is None and not moved:
                deadlines = [node.deadline() for node in self._nodes.values()]
                due = [each for each in (run.deadline, *deadlines, *self._due.values()) if each is not None]
                # Time passes only when nothing else is left to do, and always passes: a deadline of the past would end
                # all progress.
                self._now = max(self._now + 1, min(due))
            elif moved:
                self._now += HOP
        raise RuntimeError("the scenario does not terminate")

    def dropped(self) -> dict[str, int]:
        """Return the counters of dropped frames that are not 0, summed over processes and interfaces."""
        tallies = [each.counters for node in self._nodes.values() for each in node.interfaces]
        sums = {name: sum(each[counter] for each in tallies) for name, counter in COUNTERS.items()}
        return {name: count for name, count in sums.items() if count and name.startswith("drop_")}

    def _receive(self, frames: Sequence[bytes]) -> None:
        for node in self._nodes.values():
            for number in range(len(node.interfaces)):
                # A frame with an unknown destination goes to the first interface, as a switch may flood it.
                mine = [each for each in frames if _interface_of(node, each) == number]
                if mine:
                    node.receive(FrameBatch.from_frames(mine), self._now, number)

    def _carry(self, run: ScenarioRun) -> bool:
        """Pass on the queued frames and records of all processes; return whether there were any."""
        moved = False
        for process in [process for process, time in self._due.items() if time <= self._now]:
            del self._due[process]
            moved |= self._paths[process].receive(self._now)
        for node in self._nodes.values():
            for number in range(len(node.interfaces)):
                batch = node.transmit(self._now, number)
                for place in range(len(batch)):
                    run.arrive(self._now + HOP, batch.frame(place))
                moved = moved or len(batch) > 0
        return moved

    def _notice(self, process: int, later: bool) -> None:
        # Records that a process has left wait for room there, so it is not asked at every hop.
        time = self._now + (MILLISECOND if later else HOP)
        # A notice must not postpone an earlier one.
        self._due[process] = min(time, self._due.get(process, time))


def _interface_of(node: Node, frame: bytes) -> int:
    return next((each.number for each in node.interfaces if each.address == frame[DESTINATION]), 0)


def outcome_of(
    run: ScenarioRun, dialect: Dialect, profile: str, seed: int, *, origin: int = START, start: int = START
) -> ScenarioOutcome:
    """Return the outcome of a finished run; times of frames count from ``origin``, and the run began at ``start``."""
    failure, times = run.failure, [each[0] - origin for each in run.log]
    return ScenarioOutcome(
        script=run.script,
        verdict=run.verdict,
        dialect=dialect.name,
        profile=profile,
        reason=failure.reason if failure else "",
        line=failure.step.place.line if failure and not failure.step.place.file.startswith("<connected") else None,
        expected=failure.expected if failure else "",
        found=failure.found if failure else "",
        differences=tuple(failure.wrong) if failure else (),
        remarks=(*run.remarks, *run.notes),
        frames=FrameBatch.from_frames([each[2] for each in run.log], times),
        sent=np.array([each[1] for each in run.log], bool),
        failed_frame=failure.arrival.place if failure and failure.arrival else None,
        seed=seed,
        duration_ns=run.now - start,
    )


def skipped(script: Script, dialect: Dialect, reason: str, profile: str = "") -> ScenarioOutcome:
    """Return the outcome of a scenario that is not played, for ``reason``."""
    return ScenarioOutcome(script, ScenarioVerdict.SKIPPED, dialect.name, profile, reason)
