"""Runs with faults drawn by the seed: every invariant holds. ``make nightly`` has 100,000 of them."""

from __future__ import annotations

import pytest

from mxwire.simulation import Simulation, draw_scenario

SEEDS = 600
CHUNK = 50
"""Small, so that the workers of the test run share them evenly."""


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_everything_holds(first: int) -> None:
    failed: list[str] = []
    delivered = 0
    for seed in range(first, first + CHUNK):
        outcome = Simulation(draw_scenario(seed)).run()
        delivered += outcome.counts["delivered"]
        if not outcome.held:
            failed.append(f"{outcome.breaches[0]}\n{outcome.scenario.command()}")
    assert not failed, "\n".join(failed)
    assert delivered > 5 * CHUNK


FOUND = (
    7817,
    21426,
    22289,
    23005,
    42022,
    47694,
    63253,
    67780,
    69477,
    25541,
    26690,
    20061477,
    20067885,
    30003034,
    30085295,
)
"""Seeds of former campaigns that did not hold once."""


@pytest.mark.parametrize("seed", FOUND)
def test_seeds_with_former_failures_hold(seed: int) -> None:
    outcome = Simulation(draw_scenario(seed)).run()
    assert outcome.held, outcome.breaches[0]
