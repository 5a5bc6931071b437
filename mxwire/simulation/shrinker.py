"""Reduction of a failing scenario: fewer messages, faults and hosts, as long as it fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from mxwire.errors import MxwireError
from mxwire.protocol.profile import OPEN_MX_1_5
from mxwire.simulation.scenario import INCIDENTS, RATES, SMALL_WORKLOADS, Scenario
from mxwire.simulation.simulation import RunOutcome, Simulation
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD

TRIALS_MAXIMUM: Final = 200

Run = Callable[[Scenario], RunOutcome]


def shrink(outcome: RunOutcome, trials: int = TRIALS_MAXIMUM, run: Run | None = None) -> RunOutcome:
    """Return the outcome of the smallest scenario found whose first breach is of the same invariant or rule.

    ``trials`` limits the number of runs; ``run`` replaces the simulation of a scenario.
    """
    if outcome.held:
        return outcome
    trial = run or (lambda scenario: Simulation(scenario).run())
    kind = outcome.breaches[0].kind
    best = outcome
    smaller = True
    while smaller and trials > 0:
        smaller = False
        for candidate in _smaller(best.scenario):
            if trials <= 0:
                break
            trials -= 1
            breaches = trial(candidate)
            # Another failure of the smaller scenario would explain nothing about this one.
            if not breaches.held and breaches.breaches[0].kind == kind:
                # From the start again: the largest steps may succeed now, and each saves many small ones.
                best, smaller = breaches, True
                break
    return best


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Yield scenarios that are one step simpler, the largest steps first."""
    for changes in _steps(scenario):
        try:
            candidate = replace(scenario, **changes)
        except MxwireError:
            # Some fields depend on others, and a step changes only one: such a combination is simply not tried.
            continue
        if candidate != scenario:
            yield candidate


def _steps(scenario: Scenario) -> Iterator[dict[str, Any]]:
    for fault in scenario.faults:
        yield {"faults": tuple(each for each in scenario.faults if each != fault)}
    messages = 1 if scenario.workload in SMALL_WORKLOADS else scenario.messages
    for count in (1, messages // 8, messages // 4, messages // 2, messages * 3 // 4, messages - 1):
        if 1 <= count < messages:
            yield {"messages": count}
    for name in INCIDENTS:
        if getattr(scenario, name):
            yield {name: 0}
    for name in RATES:
        if getattr(scenario, name):
            yield {name: 0.0}
    for hosts in (2, scenario.hosts - 1):
        if 2 <= hosts < scenario.hosts:
            yield {"hosts": hosts}
    yield {"jitter": 0}
    yield {"coalescing": 0}
    yield {"processes": 1}
    yield {"local": "shared"}
    yield {"processes": 2}
    yield {"interfaces": 1}
    yield {"discovery": "static"}
    yield {"profiles": (OPEN_MX_1_5,)}
    yield {"profiles": scenario.profiles[:1]}
    for most in (128, RENDEZVOUS_THRESHOLD, 100_000):
        if most < scenario.largest:
            yield {"largest": most}
    yield {"gap": 0}
    for name in INCIDENTS:
        if getattr(scenario, name) > 1:
            yield {name: getattr(scenario, name) - 1}
