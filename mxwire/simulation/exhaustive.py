"""Exhaustive play: every plan of up to a number of faults in a small workload, each judged by all invariants.

A run without faults has a few dozen frames and steps. Each frame can suffer each frame fault, and before each step each
application can be paused or killed: these are the plans of one fault. The run of a plan shows the frames and steps that
follow its last fault, and each fault of one of them extends the plan. The plans of two faults therefore come from the
runs of one fault, and so on. Each plan is played once, from the beginning: a run takes a few milliseconds, less than
copying a world.

Many faults have no lasting effect: a duplicate is discarded, and the next ack replaces a lost one. If two runs have the
same state (``state.py``) before a step, they continue in the same way, so only the plan of the first run is extended
from there. The plans of the last level are not extended, so their states are not examined.

The state does not include the memory of the judge of the wire. A rule that compares a frame with one before the states
became equal is therefore checked in the first run only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple

from mxwire.simulation.faults import FRAME_FAULTS, SIDE_FAULTS, Plan, PlannedFault
from mxwire.simulation.scenario import Scenario
from mxwire.simulation.simulation import RunOutcome, Simulation
from mxwire.simulation.state import state_digest
from mxwire.simulation.world import World


class TracedStep(NamedTuple):
    """A step of a run: its number, the state before it, and the number of frames that were sent before it."""

    number: int
    state: bytes
    frames: int


@dataclass(frozen=True, slots=True)
class PlayedPlan:
    """The run of a plan, and its steps from the last fault on, if they were traced."""

    outcome: RunOutcome
    steps: tuple[TracedStep, ...] = ()

    def values(self) -> dict[str, Any]:
        """Return everything but the scenario, as values of JSON."""
        steps = [(each.number, each.state.hex(), each.frames) for each in self.steps]
        return {"outcome": self.outcome.values(), "steps": steps}

    @classmethod
    def of(cls, values: Mapping[str, Any], scenario: Scenario) -> PlayedPlan:
        """Return the run of a scenario from its :meth:`values`."""
        steps = (TracedStep(number, bytes.fromhex(state), frames) for number, state, frames in values["steps"])
        return cls(RunOutcome.of(scenario, values["outcome"]), tuple(steps))


Play = Callable[[Sequence[Scenario], bool], Iterator[PlayedPlan]]
"""Plays scenarios, in order, with their steps traced or not; a pool of processes may do so."""


def play_plan(scenario: Scenario, traced: bool) -> PlayedPlan:
    """Play the plan of a scenario, and trace its steps if ``traced``."""
    if not traced:
        return PlayedPlan(Simulation(scenario).run())
    steps = [TracedStep(0, b"", 0)] if not scenario.faults else []
    last = max((each.place for each in scenario.faults[-1:] if each.victim is not None), default=0)
    last_frame = max((each.place for each in scenario.faults[-1:] if each.victim is None), default=0)

    def trace(world: World) -> None:
        number, frames = world.schedule.done + 1, world.network.frames
        if frames < last_frame:
            # The step that sends the frame of the last fault. Its state does not include that fault, and is not shared.
            steps[:] = [TracedStep(number, b"", frames)]
        elif number >= last:
            steps.append(TracedStep(number, state_digest(world), frames))

    outcome = Simulation(scenario, trace=trace).run()
    return PlayedPlan(outcome, (*steps, TracedStep(0, b"", outcome.counts["frames"])))


def play_plans(scenarios: Sequence[Scenario], traced: bool) -> Iterator[PlayedPlan]:
    """Play the plans of scenarios one after another."""
    for scenario in scenarios:
        yield play_plan(scenario, traced)


class ExhaustivePlay:
    """The play of all plans of up to ``bound`` faults for ``scenario``, which has none itself."""

    def __init__(self, scenario: Scenario, bound: int) -> None:
        self.scenario = scenario
        self.bound = bound
        self.planned = 1
        """Plans that are known so far."""
        self.played = 0
        """Plans that were played."""
        self.pruned = 0
        """Number of plans that were skipped because another plan leads to the same state before the last fault."""
        self.failed: list[RunOutcome] = []
        """Outcomes in which an invariant was broken: those with fewer faults first."""
        self.unchecked: dict[str, str] = {}
        """Invariants that need not hold in runs with these faults, with the reasons."""
        self._digest = sha256()
        self._states: set[bytes] = set()
        self._extended: set[tuple[object, ...]] = set()

    @property
    def states(self) -> int:
        """Return the number of different states before the steps of the traced runs."""
        return len(self._states)

    @property
    def digest(self) -> str:
        """Return the SHA-256 over the digests of all runs so far, in the order of the plans."""
        return self._digest.hexdigest()

    def record(self) -> dict[str, Any]:
        """Return the results so far as an object for JSON."""
        return {
            "workload": self.scenario.workload,
            "faults": self.bound,
            "held": not self.failed,
            "played": self.played,
            "pruned": self.pruned,
            "states": self.states,
            "unchecked": self.unchecked,
            "failed": [each.record() for each in self.failed],
            "digest": self.digest,
        }

    def outcomes(self, play: Play = play_plans) -> Iterator[RunOutcome]:
        """Play every plan, those with fewer faults first, and yield the outcomes; a plan that fails is not extended."""
        plans: list[Plan] = [()]
        for level in range(self.bound + 1):
            following: list[Plan] = []
            for played in play([replace(self.scenario, faults=plan) for plan in plans], level < self.bound):
                self.played += 1
                self.unchecked |= played.outcome.unchecked
                self._digest.update(played.outcome.digest.encode())
                if played.outcome.held:
                    following += self._extensions(played)
                else:
                    self.failed.append(played.outcome)
                yield played.outcome
            plans = following
            self.planned += len(plans)

    def _extensions(self, played: PlayedPlan) -> Iterator[Plan]:
        """Yield the plans with one more fault, unless another plan was extended by that fault in the same state."""
        plan = played.outcome.scenario.faults
        for step, following in pairwise(played.steps):
            self._states.add(step.state)
            for fault in self._faults(plan, step, following.frames):
                place = fault.place - step.frames if fault.victim is None else fault.victim
                key = step.state, fault.kind, place
                if step.state and key in self._extended:
                    self.pruned += 1
                    continue
                self._extended.add(key)
                yield (*plan, fault)

    def _faults(self, plan: Plan, step: TracedStep, frames: int) -> Iterator[PlannedFault]:
        """Yield the faults of a step behind the last one of a plan; ``frames``: those sent before the next step."""
        last = plan[-1] if plan else None
        if step.number and not (last is not None and _hits(last, step)):
            # Faults before the same step are planned in the order of the applications.
            first = last.victim + 1 if last is not None and last.victim is not None and last.place == step.number else 0
            for victim in range(first, self.scenario.hosts * self.scenario.processes):
                for kind in SIDE_FAULTS:
                    yield PlannedFault(kind, step.number, victim)
        start = last.place if last is not None and _hits(last, step) else step.frames
        for number in range(start + 1, frames + 1):
            for kind in FRAME_FAULTS:
                yield PlannedFault(kind, number)


def _hits(fault: PlannedFault, step: TracedStep) -> bool:
    """Return whether a fault, the last one of the traced run, is at a frame that is sent in a step or later."""
    return fault.victim is None and fault.place > step.frames
