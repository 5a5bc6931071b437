"""A failing run is made smaller, and stays the same failure."""

from __future__ import annotations

import pytest

from mxwire.protocol.card.replies import RegionTable
from mxwire.simulation import InvariantBreach, RunOutcome, Scenario, Simulation, shrink
from mxwire.simulation.scenario import INCIDENTS, RATES
from mxwire.simulation.shrinker import TRIALS_MAXIMUM

BIG = Scenario(
    hosts=5,
    messages=80,
    processes=2,
    interfaces=2,
    discovery="announce",
    loss=0.05,
    duplicate=0.1,
    reorder=0.1,
    jitter=5000,
    coalescing=10_000,
    kill=2,
    stall=1,
)


def outcome(scenario: Scenario, *breaches: tuple[str, str]) -> RunOutcome:
    return RunOutcome(scenario, "", 0, breaches=tuple(InvariantBreach(name, 0, "", rule) for name, rule in breaches))


def test_a_planted_fault_is_found_in_the_smallest_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RegionTable, "release", lambda regions, region: None)
    first = Simulation(BIG).run()
    assert first.breaches[0].invariant == "leftovers"
    smallest = shrink(first)
    scenario = smallest.scenario
    assert smallest.breaches[0].invariant == "leftovers"
    assert scenario.messages <= 5 and scenario.hosts == 2 and scenario.processes == 1 and scenario.interfaces == 1
    assert not any(getattr(scenario, each) for each in (*RATES, *INCIDENTS))
    assert scenario.discovery == "static" and not scenario.jitter and not scenario.coalescing
    assert scenario.seed == BIG.seed
    again = Simulation(scenario).run()
    assert (again.digest, again.breaches) == (smallest.digest, smallest.breaches)


def test_each_thing_that_is_needed_is_kept() -> None:
    """A fault that takes two kills, duplicates, and seven messages."""

    def run(scenario: Scenario) -> RunOutcome:
        fails = scenario.kill >= 2 and scenario.duplicate and scenario.messages >= 7
        return outcome(scenario, *([("once", "")] if fails else []))

    found = shrink(run(BIG), run=run).scenario
    assert (found.kill, found.duplicate, found.messages) == (2, BIG.duplicate, 7)
    assert (found.hosts, found.loss, found.stall) == (2, 0, 0)


@pytest.mark.parametrize("other", [("order", ""), ("rules", "R-ACK-01")])
def test_another_failure_is_no_smaller_one(other: tuple[str, str]) -> None:
    def run(scenario: Scenario) -> RunOutcome:
        return outcome(scenario, ("rules", "R-SEQ-05") if scenario.messages >= 80 else other)

    assert shrink(run(BIG), run=run).scenario.messages == 80


def test_a_run_that_held_is_left_alone() -> None:
    held = outcome(BIG)
    assert shrink(held) is held


def test_it_ends() -> None:
    trials: list[Scenario] = []

    def run(scenario: Scenario) -> RunOutcome:
        trials.append(scenario)
        return outcome(scenario, ("once", ""))

    shrink(outcome(BIG, ("once", "")), run=run)
    assert len(trials) <= TRIALS_MAXIMUM
    trials.clear()
    shrink(outcome(BIG, ("once", "")), trials=5, run=run)
    assert len(trials) == 5
