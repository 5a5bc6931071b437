"""Scenarios fail when they should: every mutant of the engine is killed by one of the library.

``test_library.py`` tests that the engine as it is is killed by none.
"""

from __future__ import annotations

import pytest

from tests.mutants import MUTANTS, RECEIVER_MUTANTS

from .killing import HEADING, SPECIFIED, killers, line

ALL = (*MUTANTS, *RECEIVER_MUTANTS)
PARTS = 3
"""Processes of the test run share the mutants."""


@pytest.mark.parametrize("part", range(PARTS))
def test_every_mutant_is_killed(part: int) -> None:
    """The first killer of each mutant is printed, so that a failure shows all of them."""
    mutants = ALL[part::PARTS]
    alive = []
    print(HEADING)
    for mutant, killed in zip(mutants, killers(mutants), strict=True):
        print(line(mutant.name, mutant.rule, killed))
        if not (killed and all(text for _, _, text in killed)):
            alive.append(mutant.name)
    assert alive == []


def test_there_are_enough_mutants() -> None:
    assert len({each.name for each in ALL}) == len(ALL) >= 85


def test_each_rule_of_receivers_is_broken_once() -> None:
    assert {*SPECIFIED["receiver_rules"]} - {each.rule for each in ALL} == set()


def test_a_scenario_reports_its_cause() -> None:
    chosen = [each for each in ALL if each.name in ("pipeline ignored", "libacks without counter")]
    pipeline, libacks = killers(chosen)
    assert libacks[0][2] == "TRUC: liback_acknum is 0, expected 1"
    assert pipeline[0][0].startswith("medium/")
