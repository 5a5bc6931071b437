"""The simulated stage: play a scenario against the engine, in virtual time."""

from __future__ import annotations

from random import Random
from typing import Final

import numpy as np

from mxwire.ethernet import DESTINATION
from mxwire.frames import FrameBatch
from mxwire.protocol import Node, Profile, profile_by_name
from mxwire.scenarios.actions import Transmission, answer
from mxwire.scenarios.application import NodeApplication
from mxwire.scenarios.cast import HOST, Cast, known_hosts
from mxwire.scenarios.outcome import ScenarioOutcome, ScenarioVerdict
from mxwire.scenarios.run import ScenarioRun
from mxwire.scenarios.script import Script
from mxwire.scenarios.tester import TestedEndpoint
from mxwire.wire.dialect import MXOE, Dialect
from mxwire.wire.numbers import DEFAULT_KEY

START: Final = 1_000_000_000
HOP: Final = 1_000
"""Nanoseconds that a frame takes from one side to the other."""
ENDPOINT, CLOSED = 1, 30
TURNS: Final = 1_000_000
"""Maximum number of steps of the loop, more than any scenario needs: beyond it, the run does not terminate."""


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
    node = _node(script, profile, dialect, rng)
    endpoint = node.open_endpoint(ENDPOINT, DEFAULT_KEY) if script.endpoint else None
    run = ScenarioRun(script, cast, START)
    _play(run, node, NodeApplication(node, endpoint))
    return outcome_of(run, dialect, profile.name, seed)


def _host_mac(interface: int) -> bytes:
    return bytes([2, 0, 0, 0, 0, 0x0A + interface])


def stations(script: Script) -> dict[int, bytes]:
    """Return the Ethernet addresses of the tester's hosts, by number."""
    numbers = {HOST, *(each.host for each in script.actors)}
    return {number: bytes([2, 0, 0, 0, 1, number]) for number in numbers}


def _node(script: Script, profile: Profile, dialect: Dialect, rng: Random) -> Node:
    addresses = stations(script)
    peers = {addresses[number]: name for number, name in known_hosts(script).items()}
    return Node(
        [_host_mac(number) for number in range(script.interfaces)],
        "host",
        dialect=dialect,
        profile=profile,
        rng=rng,
        peers=peers,
        announce=script.discovery == "announce",
        listen=script.discovery == "listen",
    )


def _play(run: ScenarioRun, node: Node, application: NodeApplication) -> None:
    now = START
    for _ in range(TURNS):
        action = run.advance(now)
        if isinstance(action, Transmission):
            now += HOP
            for number in range(len(node.interfaces)):
                # A frame with an unknown destination goes to the first interface, as a switch may flood it.
                mine = [each for each in action.frames if _interface_of(node, each) == number]
                if mine:
                    node.receive(FrameBatch.from_frames(mine), now, number)
        elif action is not None:
            run.give(answer(application, action))
        elif run.finished:
            return
        moved = _carry(run, node, now)
        if action is None and not moved:
            due = [each for each in (run.deadline, node.deadline()) if each is not None]
            now = max(now + 1, min(due))
        elif moved:
            now += HOP
    raise RuntimeError("the scenario does not terminate")


def _carry(run: ScenarioRun, node: Node, now: int) -> bool:
    """Deliver the node's queued frames to the run; return whether there were any."""
    moved = False
    for number in range(len(node.interfaces)):
        batch = node.transmit(now, number)
        for place in range(len(batch)):
            run.arrive(now + HOP, batch.frame(place))
        moved = moved or len(batch) > 0
    return moved


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
