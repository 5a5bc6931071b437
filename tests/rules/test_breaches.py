"""Every rule that the judge applies is found broken by a play that breaks it, and by nothing else."""

from __future__ import annotations

import pytest

from mxwire.rules import CATALOGUE
from mxwire.rules.chapters.encapsulation import MALFORMED
from mxwire.rules.registry import RULES

from .breaches import CASES, NOTES
from .testbed import Testbed


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_breaks_exactly_this_rule(case):
    testbed = Testbed(case.dialect, case.vantage)
    if not case.fresh:
        testbed.connect()
    assert not testbed.found
    case.play(testbed)
    assert testbed.rules == {(case.rule, case.severity)}, "\n".join(map(str, testbed.found))
    found = next(each for each in testbed.found if each.rule == case.rule)
    assert found.frames[-1] <= testbed.number and found.expected and found.found
    assert case.rule in str(found)


@pytest.mark.parametrize("case", NOTES, ids=lambda case: case.title)
def test_known_defects_are_notes(case):
    testbed = Testbed(case.dialect, case.vantage)
    if not case.fresh:
        testbed.connect()
    case.play(testbed)
    assert not testbed.rules, "\n".join(map(str, testbed.found))
    assert {each.rule for each in testbed.found} == {case.rule}


def test_every_rule_of_the_judge_is_broken_once():
    applied = {each.number for each in RULES if each.severity != "note"} | {rule for rule, _ in MALFORMED.values()}
    assert applied == {case.rule for case in CASES}


def test_the_judge_applies_the_rules_of_the_catalogue():
    numbers = {number for each in RULES for number in (each.number, *each.also)}
    numbers |= {rule for rule, _ in MALFORMED.values()}
    assert numbers == {rule.number for rule in CATALOGUE.values() if rule.judged == "wire"}


def test_every_function_is_exercised():
    """A rule with several functions has a play for each."""
    fired = set()
    for case in (*CASES, *NOTES):
        testbed = Testbed(case.dialect, case.vantage)
        if not case.fresh:
            testbed.connect()
        case.play(testbed)
        fired |= testbed.judge.fired
    assert {each.symbol for each in RULES} == fired
