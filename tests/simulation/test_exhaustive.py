"""The exhaustive play covers every plan of faults, omits only repeated states, and its findings can be repeated."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from click.testing import CliRunner

from mxwire.cli.main import cli
from mxwire.errors import MxwireError
from mxwire.protocol.neighbours import Neighbour
from mxwire.simulation import SMALL_WORKLOADS, ExhaustivePlay, Scenario, Simulation
from mxwire.simulation.exhaustive import PlayedPlan, TracedStep, play_plan
from mxwire.simulation.faults import FRAME_FAULTS, SIDE_FAULTS, Plan, PlannedFault, parse_plan, plan_text
from mxwire.simulation.state import state_digest
from mxwire.simulation.world import World
from tests.mutants import MUTANTS, engine

LOCAL = ("one-copy", "two-copies")


def steps_of(scenario: Scenario, *, states: bool = False) -> list[TracedStep]:
    """The steps of a run, from the first one; their states only on demand, since these take most of the time."""
    steps: list[TracedStep] = []

    def trace(world: World) -> None:
        state = state_digest(world) if states else b""
        steps.append(TracedStep(world.schedule.done + 1, state, world.network.frames))

    outcome = Simulation(scenario, trace=trace).run()
    return [*steps, TracedStep(0, b"", outcome.counts["frames"])]


def test_a_plan_is_read_as_it_is_written() -> None:
    plan = (PlannedFault("lose", 7), PlannedFault("die", 31, 1), PlannedFault("echo", 40))
    assert plan_text(plan) == "lose@7,die:1@31,echo@40"
    assert parse_plan("lose@7, die:1@31,echo@40") == plan


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "write it as lose@7"),
        ("lose@0", "write it as lose@7"),
        ("lose7", "write it as lose@7"),
        ("lose@7,", "write it as lose@7"),
        ("drop@7", "no fault 'drop'"),
        ("lose:1@7", "has no application; write lose@7"),
        ("die@7", "as in die:0@7"),
    ],
)
def test_a_malformed_plan_is_refused(text: str, error: str) -> None:
    with pytest.raises(MxwireError, match=error):
        parse_plan(text)


@pytest.mark.parametrize("workload", SMALL_WORKLOADS)
def test_every_single_fault_is_played_and_every_invariant_holds(workload: str) -> None:
    scenario = Scenario(workload=workload)
    steps = steps_of(scenario)
    play = ExhaustivePlay(scenario, 1)
    plans = [outcome.scenario.faults for outcome in play.outcomes()]
    assert [str(each.breaches[0]) for each in play.failed] == []
    frames = [(PlannedFault(kind, number),) for number in range(1, steps[-1].frames + 1) for kind in FRAME_FAULTS]
    sides = [
        (PlannedFault(kind, each.number, victim),) for each in steps[:-1] for victim in (0, 1) for kind in SIDE_FAULTS
    ]
    assert len(plans) == len(set(plans)) == play.played == play.planned
    assert set(plans) == {(), *frames, *sides}
    assert play.pruned == 0


@pytest.mark.parametrize("local", LOCAL)
def test_every_pause_and_death_of_a_process_is_played_over_the_local_path(local: str) -> None:
    """R-LOC-02: on one host, where the faults are those of the two sides, and nothing is on the wire."""
    for workload in SMALL_WORKLOADS:
        scenario = Scenario(workload=workload, hosts=1, processes=2, local=local)
        steps = steps_of(scenario)
        play = ExhaustivePlay(scenario, 1)
        outcomes = list(play.outcomes())
        assert [str(each.breaches[0]) for each in play.failed] == []
        assert play.played == 1 + 2 * len(SIDE_FAULTS) * (len(steps) - 1)
        # Connects that must fail are for other hosts, of which there are none.
        assert {each.counts["frames"] for each in outcomes} == {0}


@pytest.mark.parametrize("workload", ["exchange", "crossing"])
def test_a_send_that_waits_is_not_for_a_later_session(workload: str) -> None:
    """R-CLS-05: its target has died and started again before the sender made progress."""
    plan = parse_plan("pause:1@3,die:0@4")
    outcome = Simulation(Scenario(workload=workload, hosts=1, processes=2, local="one-copy", faults=plan)).run()
    assert outcome.held, outcome.breaches


def _nothing(*_: object) -> None:
    """Replace a method."""


@pytest.mark.parametrize(("defect", "invariant"), [("gone", "liveness"), ("_take_ended", "liveness")])
def test_a_defect_of_the_local_path_is_found(monkeypatch: pytest.MonkeyPatch, defect: str, invariant: str) -> None:
    monkeypatch.setattr(Neighbour, defect, _nothing)
    play = ExhaustivePlay(Scenario(workload="synchronous", hosts=1, processes=2, local="one-copy"), 1)
    list(play.outcomes())
    assert invariant in {breach.invariant for each in play.failed for breach in each.breaches}


@pytest.mark.parametrize("kind", FRAME_FAULTS)
def test_a_fault_has_its_effect_on_the_frame(kind: str) -> None:
    scenario = Scenario(workload="train", faults=(PlannedFault(kind, 12),))
    steps, usual = (steps_of(each, states=True) for each in (scenario, replace(scenario, faults=())))
    before = [place for place, each in enumerate(usual) if each.frames < 12]
    assert steps[: len(before)] == usual[: len(before)]
    assert {each.state for each in steps[len(before) :]} != {each.state for each in usual[len(before) :]}


@pytest.mark.parametrize("kind", SIDE_FAULTS)
def test_a_fault_has_its_effect_on_the_application(kind: str) -> None:
    outcome = Simulation(Scenario(workload="train", faults=(PlannedFault(kind, 9, 1),))).run()
    assert outcome.held
    assert outcome.counts["incidents"] == 1
    assert outcome.digest != Simulation(Scenario(workload="train")).run().digest


def test_pairs_of_faults_are_complete_but_for_repeated_states() -> None:
    """Each plan of two faults is played, or one whose first fault has led to the same state before the second one."""
    play = ExhaustivePlay(Scenario(workload="tiny"), 2)
    planned: set[Plan] = set()
    steps: dict[Plan, tuple[TracedStep, ...]] = {}

    def record(scenarios: list[Scenario], traced: bool) -> list[PlayedPlan]:
        """Play the plans that are extended, and only note those of the last level."""
        if not traced:
            planned.update(each.faults for each in scenarios)
            return []
        played = [play_plan(each, traced) for each in scenarios]
        steps.update({each.outcome.scenario.faults: each.steps for each in played})
        return played

    list(play.outcomes(record))
    shared: dict[bytes, list[tuple[Plan, TracedStep]]] = {}
    for first, traced in steps.items():
        for step in traced:
            shared.setdefault(step.state, []).append((first, step))
    known = planned | steps.keys()
    omitted = 0
    for first, traced in steps.items():
        for step, following in pairwise(traced) if first else ():
            start = first[0].place if first[0].victim is None and step.frames < first[0].place else step.frames
            for number in range(start + 1, following.frames + 1):
                if (*first, PlannedFault("lose", number)) in known:
                    continue
                omitted += 1
                assert step.state
                assert any(
                    (*other, PlannedFault("lose", number - step.frames + same.frames)) in known
                    for other, same in shared[step.state]
                )
    assert 0 < omitted <= play.pruned


def test_different_numbers_side_by_side_are_different_states() -> None:
    one: Any = {1: 23}
    other: Any = {12: 3}
    assert state_digest(one) != state_digest(other)


def test_the_outcome_is_the_same_with_processes() -> None:
    runner = CliRunner()
    arguments = ["simulate", "--exhaustive", "1", "--workload", "tiny", "--json", "--jobs"]
    alone, together = (runner.invoke(cli, [*arguments, jobs]) for jobs in ("1", "2"))
    assert alone.exit_code == together.exit_code == 0
    assert alone.stdout == together.stdout
    assert json.loads(alone.stdout)["held"]


def test_a_mutant_is_found_and_its_plan_repeats_the_failure() -> None:
    mutant = next(each for each in MUTANTS if each.name == "large sends complete without NOTIFY")
    with engine(mutant) as simulation:
        play = simulation.ExhaustivePlay(simulation.Scenario(workload="large"), 1)
        list(play.outcomes())
        assert play.failed
        smallest = simulation.shrink(play.failed[0])
        assert len(smallest.scenario.faults) <= 1
        again = simulation.Simulation(play.failed[0].scenario).run()
        assert again.digest == play.failed[0].digest
        assert again.breaches == play.failed[0].breaches
