"""The library: every scenario passes against the engine, and nothing of the specification is left out."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest

from mxwire.protocol import PROFILES
from mxwire.rules.catalogue import CATALOGUE
from mxwire.scenarios import ScenarioOutcome, ScenarioVerdict, Script, library, run_simulated
from mxwire.scenarios.breaches import breaches
from mxwire.scenarios.steps import CheckStep, ExpectStep, Relation, ScenarioStep, SendStep, walk
from mxwire.wire.dialect import Dialect

from .killing import SPECIFIED, failure_of

SCRIPTS = list(library())

CALLED_FOR = {"discovery/names-forgotten": {"R-HOST-03"}}
"""Deviations that follow from a call of the application: no frame shows that names were forgotten."""


def breaks_no_other_rule(script: Script, outcome: ScenarioOutcome, dialect: Dialect) -> None:
    """The judge convicts no host for its answers to the library."""
    for each in breaches(outcome, dialect):
        reported = f"{script.name} in {dialect}: {each.rule}: {each.found}, expected {each.expected}"
        assert each.rule in CALLED_FOR.get(script.name, ()), reported


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda each: each.name)
def test_it_passes_in_all_dialects(script: Script) -> None:
    for dialect in script.played_in():
        outcome = run_simulated(script, dialect=dialect)
        reported = f"{outcome.dialect}, line {outcome.line}: {outcome.reason} {[each.text for each in outcome.remarks]}"
        assert outcome.verdict is (ScenarioVerdict.INFO if script.info else ScenarioVerdict.PASS), reported
        assert failure_of(outcome) is None
        breaks_no_other_rule(script, outcome, dialect)


def test_each_has_a_description() -> None:
    for script in SCRIPTS:
        assert script.rules, f"{script.name} names no rule"
        assert len(script.title) <= 120 and not script.title.endswith("."), script.name
        assert any(
            isinstance(each, ExpectStep | CheckStep) or "Silence" in type(each).__name__ for each in walk(script.steps)
        ), script.name


def test_there_are_many_and_no_two_are_called_alike() -> None:
    assert len(SCRIPTS) >= 150
    assert len({each.title for each in SCRIPTS}) == len(SCRIPTS)


def test_every_rule_of_receivers_is_covered() -> None:
    """By one of the scenarios, which all pass."""
    rules = {*SPECIFIED["receiver_rules"]}
    assert rules <= set(CATALOGUE) and len(rules) == 42
    assert rules - {rule for each in SCRIPTS for rule in each.rules} == set()


@pytest.mark.parametrize("packet", SPECIFIED["nacked"])
def test_each_line_of_the_nacks_is_played(packet: str) -> None:
    """A frame of the type is sent, and the next thing that is expected is its refusal, with each type there is."""
    ((nack, types),) = SPECIFIED["nacked"][packet].items()
    seen = set()
    for script in SCRIPTS:
        steps = [each for each in walk(script.steps) if isinstance(each, SendStep | ExpectStep)]
        for one, other in itertools.pairwise(steps):
            if (
                isinstance(one, SendStep)
                and isinstance(other, ExpectStep)
                and (one.packet, other.packet) == (packet, nack)
            ):
                condition = other.fields.get("nack_type")
                seen |= {condition.values[0].constant} if condition is not None else set()
    assert {*types} <= seen, f"{packet} is not refused with all of {nack} {types}"


@pytest.mark.parametrize(
    ("counter", "packet"), [(name, each) for name, some in SPECIFIED["drops"].items() for each in some]
)
def test_each_line_of_the_drops_is_played(counter: str, packet: str) -> None:
    """A frame of the type is sent, and the counter is checked."""
    for script in SCRIPTS:
        steps = list(walk(script.steps))
        if any(isinstance(each, SendStep) and each.packet == packet for each in steps) and _counts(steps, counter):
            return
    raise AssertionError(f"unknown scenario sends {packet} and sees {counter} count")


def _counts(steps: Iterable[ScenarioStep], counter: str) -> bool:
    wanted = [
        condition.values[0].constant
        for each in steps
        if isinstance(each, CheckStep) and each.subject == "counters"
        for name, condition in each.conditions.items()
        if name == counter and condition.relation is Relation.EQUAL
    ]
    return any(isinstance(each, int) and each > 0 for each in wanted)


def test_uncounted_drops_are_played_too() -> None:
    names = {each.name for each in SCRIPTS}
    for what, shown in SPECIFIED["not_counted"].items():
        assert shown and set(shown) <= names, what
    assert set(SPECIFIED["order_of_tests"].values()) <= names
    assert all(SPECIFIED["not_to_be_shown"].values())


@pytest.mark.parametrize(
    ("release", "what"), [(release, each) for release, some in SPECIFIED["historic"].items() for each in some]
)
def test_each_historic_defect_is_looked_for(release: str, what: str) -> None:
    found = [
        each.name
        for each in SCRIPTS
        for part in each.history.split("; ")
        if part.startswith(f"{release}, ") and what in part
    ]
    assert found, f"no scenario looks for the defect fixed in {release} ({what})"


def test_the_same_seed_gives_the_same_frames() -> None:
    script = next(each for each in SCRIPTS if each.name == "pull/next-block")
    one, other = run_simulated(script, seed=3), run_simulated(script, seed=3)
    assert one.frames.buffer.tobytes() == other.frames.buffer.tobytes()
    assert one.frames.timestamp_ns.tolist() == other.frames.timestamp_ns.tolist()
    assert run_simulated(script, seed=4).frames.buffer.tobytes() != one.frames.buffer.tobytes()


FAIL_WITH = {
    "open-mx-1.1": {"medium/odd-fragments", "medium/pipeline", "medium/pipeline-small"},
    "open-mx-1.0": set(),
    "open-mx-0.6": {"discovery/index-no-echo", "discovery/query-answered"},
    "open-mx-0.5": set(),
    "native-mx": set(),
}
"""The scenarios that fail with other hosts, and why: the pipeline is ignored up to 1.3.1; names are answered with an
echo of the index up to 0.6.0. Free choices of hosts fail nowhere."""


@pytest.mark.parametrize("profile", FAIL_WITH)
def test_other_hosts_fail_only_the_scenarios_of_their_defects(profile: str) -> None:
    failed = {}
    for script in SCRIPTS:
        outcome = run_simulated(script, PROFILES[profile])
        if not outcome.passed and outcome.verdict is not ScenarioVerdict.SKIPPED:
            failed[script.name] = outcome.reason
    assert failed.keys() == FAIL_WITH[profile], failed


def test_the_host_as_found_fails_nothing_and_breaks_no_other_rule() -> None:
    """As :func:`test_it_passes_in_all_dialects`, with the known defects."""
    for script in SCRIPTS:
        for dialect in script.played_in():
            outcome = run_simulated(script, "open-mx-1.5-as-found", dialect)
            assert outcome.passed, f"{script.name} in {dialect}: {outcome.reason}"
            breaks_no_other_rule(script, outcome, dialect)
