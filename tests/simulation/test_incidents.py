"""Incidents happen as often as the scenario requires, and have the effect of their name."""

from __future__ import annotations

from typing import Any

import pytest

from mxwire.protocol import EngineEndpoint
from mxwire.simulation import Scenario, Simulation
from mxwire.simulation.application import SimulatedApplication
from mxwire.simulation.scenario import INCIDENTS
from mxwire.simulation.world import SimulatedHost
from mxwire.units import MILLISECOND


def scenario(kind: str, **changes: Any) -> Scenario:
    return Scenario(**{"hosts": 3, "messages": 40, "largest": 40_000, kind: 2} | changes)


def watch(patch: pytest.MonkeyPatch, owner: type, name: str, seen: list[tuple[str, int]]) -> None:
    """Write down each call of a method, with its time."""
    original = getattr(owner, name)

    def called(self: Any, *arguments: Any, **options: Any) -> Any:
        seen.append((name, self.world.schedule.now))
        return original(self, *arguments, **options)

    patch.setattr(owner, name, called)


@pytest.mark.parametrize("kind", INCIDENTS)
def test_they_happen_so_often(kind: str) -> None:
    simulation = Simulation(scenario(kind))
    outcome = simulation.run()
    assert outcome.held, outcome.breaches
    assert [each for _, _, each in simulation.world.disturbances] == [kind, kind]
    assert outcome.counts["incidents"] == 2
    for start, end, _ in simulation.world.disturbances:
        assert MILLISECOND <= end - start <= outcome.scenario.incident_longest


def test_a_killed_application_restarts_after_its_frames_have_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int]] = []
    watch(monkeypatch, SimulatedApplication, "die", seen)
    watch(monkeypatch, SimulatedApplication, "start", seen)
    plan = scenario("kill", kill=1, held=50 * MILLISECOND, reorder=0.2)
    simulation = Simulation(plan)
    assert simulation.run().held
    assert sorted(each.starts for each in simulation.world.applications) == [1, 1, 2]
    died = next(time for name, time in seen if name == "die")
    started = next(time for name, time in seen if name == "start" and time > died)
    assert started - died >= plan.slowest


def test_a_crashed_host_boots_with_a_new_node(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int]] = []
    watch(monkeypatch, SimulatedHost, "switch_off", seen)
    simulation = Simulation(scenario("crash", crash=1))
    assert simulation.run().held
    assert [name for name, _ in seen] == ["switch_off"]
    assert sorted(each.boots for each in simulation.world.hosts) == [1, 1, 2]


@pytest.mark.parametrize("kind", ["stall", "pause"])
def test_a_stalled_application_receives_no_events(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asleep: list[int] = []
    original = SimulatedApplication._react

    def react(application: SimulatedApplication, event: Any) -> None:
        assert not application.stalled
        original(application, event)

    monkeypatch.setattr(SimulatedApplication, "_react", react)
    progress = EngineEndpoint.progress

    def progressed(endpoint: EngineEndpoint, now: int) -> None:
        asleep.append(now) if not endpoint.progressing else None
        progress(endpoint, now)

    monkeypatch.setattr(EngineEndpoint, "progress", progressed)
    assert Simulation(scenario(kind)).run().held
    assert not asleep, "the library of an Open-MX host makes no progress while its application sleeps"
