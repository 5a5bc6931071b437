"""Scenarios fail when they should: every mutant of the engine is killed by one of the library."""

from __future__ import annotations

import pytest

from tests.mutants import MUTANTS

from .killing import HEADING, Found, killers, line
from .receiver_mutants import RECEIVER_MUTANTS
from .receiver_rules import RECEIVER_RULES

ALL = (*MUTANTS, *RECEIVER_MUTANTS)


@pytest.fixture(scope="module")
def table() -> dict[str, Found]:
    """The first killer of each mutant; printed, so that a failure shows all of it."""
    print(HEADING)
    found = {}
    for mutant, killed in zip(ALL, killers(ALL), strict=True):
        found[mutant.name] = killed
        print(line(mutant.name, mutant.rule, killed))
    return found


def test_every_mutant_is_killed(table: dict[str, Found]) -> None:
    assert [name for name, killed in table.items() if not killed] == []
    assert len(table) == len(ALL) >= 85


def test_each_rule_of_receivers_is_broken_once() -> None:
    assert set(RECEIVER_RULES) - {each.rule for each in ALL} == set()


def test_a_scenario_says_what_it_has_noticed(table: dict[str, Found]) -> None:
    assert table["libacks without counter"][0][2] == "TRUC: liback_acknum is 0, expected 1"
    assert table["pipeline ignored"][0][0].startswith("medium/")
    assert all(text for killed in table.values() for _, _, text in killed)


def test_the_engine_as_it_is_is_killed_by_none() -> None:
    assert list(killers([None], every=True)) == [[]]
