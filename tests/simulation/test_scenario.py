"""Scenarios: what can be run and what cannot, what a seed draws, and which promises fall."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mxwire.cli import simulate
from mxwire.cli.simulate import command
from mxwire.errors import MxwireError
from mxwire.protocol.profile import NATIVE_MX, OPEN_MX_0_6, OPEN_MX_1_0, OPEN_MX_1_1, OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND
from mxwire.simulation import INVARIANTS, Scenario, Simulation, draw_scenario
from mxwire.simulation.invariants import unchecked, unchecked_rules
from mxwire.simulation.scenario import DISCOVERIES, DRAWN_WORKLOADS, INCIDENTS, RATES
from mxwire.simulation.workload import draw_length
from mxwire.wire.dialect import MXOE, omx

SEEDS = st.integers(0, 10**6)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"hosts": 1}, "one host with one application has no partner: use --processes 2 or more, or --hosts 2"),
        ({"hosts": 1, "processes": 2, "partition": 1}, "--partition separates two hosts, and there is one"),
        ({"hosts": 9}, "9 hosts: a simulated network has 1 to 8"),
        (
            {"workload": "chat"},
            "no workload 'chat': use one of ping-pong, stream, many-to-one, all-to-all, same-host, "
            "tiny, small, medium, large, synchronous, handled, overlapping, pair, exchange, crossing, train",
        ),
        (
            {"workload": "tiny", "hosts": 3},
            "workload 'tiny' has two applications: use 2 hosts with 1 process each, or 1 with 2",
        ),
        ({"discovery": "dns"}, "no discovery 'dns': use one of static, nameless, announce"),
        ({"loss": 1.0}, "loss 1.0: a rate lies between 0 and 1"),
        ({"tamper": -0.1}, "tamper -0.1: a rate lies between 0 and 1"),
        ({"messages": 0}, "messages 0: at least 1 is needed"),
        ({"processes": 0}, "processes 0: at least 1 is needed"),
        ({"kill": -1}, "kill -1: a count cannot be negative"),
        ({"profiles": ()}, "a simulation needs at least one profile"),
    ],
)
def test_impossible_scenarios_are_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(MxwireError) as raised:
        Scenario(**changes)
    assert str(raised.value) == complaint


@given(SEEDS)
def test_the_command_of_a_scenario_runs_that_scenario(seed: int) -> None:
    """The command that a failed campaign prints."""
    scenario = replace(draw_scenario(seed), judged=seed % 2 == 0)
    words = scenario.command().split()
    assert words[:2] == ["mxwire", "simulate"]
    context = command.make_context("simulate", words[2:])
    options = {
        name: value for name, value in context.params.items() if name not in ("seeds", "jobs", "pcap", "as_json")
    }
    read = options.pop("seed")
    assert Scenario(read, **simulate.fixed_by(options)) == scenario


@given(SEEDS)
def test_only_fields_without_an_option_are_drawn(seed: int) -> None:
    drawn = draw_scenario(seed)
    fixed = draw_scenario(seed, hosts=4, loss=0.25, kill=3)
    assert (fixed.hosts, fixed.loss, fixed.kill) == (4, 0.25, 3)
    assert fixed.messages == drawn.messages and fixed.workload == drawn.workload
    assert fixed.resend_maximum >= 16, "with such a loss, random loss alone would abandon partners"


def test_draws_cover_every_choice() -> None:
    drawn = [draw_scenario(seed) for seed in range(1500)]
    assert {each.workload for each in drawn} == set(DRAWN_WORKLOADS)
    assert {each.discovery for each in drawn} == set(DISCOVERIES)
    assert {each.dialect for each in drawn} == {MXOE, omx(1500), omx(9000)}
    for name in (*RATES, *INCIDENTS, "jitter", "coalescing"):
        assert {bool(getattr(each, name)) for each in drawn} == {True, False}, name
    assert {profile.name for each in drawn for profile in each.profiles} == {
        "open-mx-1.5",
        "open-mx-1.5-as-found",
        "open-mx-1.1",
        "open-mx-1.0",
        "open-mx-0.5",
        "native-mx",
    }


def test_hosts_that_cannot_understand_each_other_are_not_drawn_together() -> None:
    """One that ignores the pipeline of a MEDIUM, and one that uses another than its own."""
    for seed in range(1500):
        scenario = draw_scenario(seed)
        if scenario.dialect is MXOE:
            assert not {OPEN_MX_1_1.name, NATIVE_MX.name} <= {each.name for each in scenario.profiles}


@pytest.mark.parametrize("dialect", [MXOE, omx(1500), omx(9000)], ids=str)
def test_lengths_lie_at_every_edge(dialect: Any) -> None:
    from random import Random

    rng = Random(1)
    drawn = {draw_length(dialect, 1 << 21, rng) for _ in range(20_000)}
    fragment, reply, block = dialect.fragment_payload, dialect.reply_payload, dialect.block_length
    edges = {0, 1, 31, 32, 33, 127, 128, 129, fragment - 1, fragment, fragment + 1, 32767, 32768, 32769}
    edges |= {8 * reply, block - 1, block, block + 1, 2 * block, 1 << 20}
    assert edges <= drawn and max(drawn) > 1 << 20
    assert max(draw_length(dialect, 100, rng) for _ in range(1000)) <= 100


def test_no_invariant_is_waived_without_a_reason() -> None:
    assert unchecked(Scenario(loss=0.2, kill=2, crash=1, partition=2)) == {}
    assert unchecked(Scenario(profiles=(OPEN_MX_1_5_AS_FOUND,))) == {}
    assert unchecked(Scenario(profiles=(OPEN_MX_1_5_AS_FOUND,), duplicate=0.2, coalescing=1000)) == {}
    assert unchecked(Scenario(profiles=(OPEN_MX_1_5,), reorder=0.2, jitter=1000)) == {}
    assert unchecked_rules(Scenario(profiles=(OPEN_MX_0_6,))) == {}


@pytest.mark.parametrize(
    ("changes", "names", "why"),
    [
        ({"tamper": 0.01}, set(INVARIANTS) - {"exception", "memory"}, "no checksum detected it"),
        ({"loss": 0.1, "resend_maximum": 3}, {"status", "partner"}, "random loss alone"),
        (
            {"profiles": (OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND), "kill": 1},
            {"delivery", "once", "status", "partner", "liveness", "leftovers", "numbers", "rules"},
            "defect",
        ),
        (
            {"profiles": (OPEN_MX_1_5_AS_FOUND,), "resend_maximum": 3},
            {"delivery", "once", "status", "partner", "liveness", "leftovers", "numbers", "rules"},
            "defect",
        ),
        (
            {"profiles": (OPEN_MX_1_5_AS_FOUND,), "reorder": 0.2},
            {"delivery", "status", "partner", "liveness", "leftovers", "numbers", "rules"},
            "after the NOTIFYs behind it",
        ),
        (
            {"profiles": (OPEN_MX_1_5_AS_FOUND,), "jitter": 1000},
            {"delivery", "status", "partner", "liveness", "leftovers", "numbers", "rules"},
            "D-1",
        ),
        (
            {"profiles": (OPEN_MX_0_6,), "discovery": "nameless"},
            {"delivery", "status", "partner", "liveness", "leftovers", "numbers"},
            "teaches a wrong index",
        ),
    ],
)
def test_waived_invariants_have_a_reason(changes: dict[str, Any], names: set[str], why: str) -> None:
    found = unchecked(Scenario(**changes))
    assert set(found) == names
    assert all(why in text for text in found.values())


def test_only_profiles_in_use_waive_invariants() -> None:
    assert unchecked(Scenario(profiles=(OPEN_MX_1_5, OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND), kill=1)) == {}


def test_breaches_of_waived_invariants_are_counted_and_others_reported() -> None:
    outcome = Simulation(Scenario(messages=60, tamper=0.2)).run()
    assert outcome.held and outcome.counts["unchecked"] > 0
    assert set(outcome.unchecked) == set(INVARIANTS) - {"exception", "memory"}


def test_hosts_are_not_blamed_for_wrong_indexes_that_they_were_taught() -> None:
    hosts = (OPEN_MX_1_0, OPEN_MX_1_0, OPEN_MX_0_6)
    scenario = Scenario(
        hosts=6, processes=2, interfaces=2, messages=25, largest=129, jitter=10**6, discovery="nameless", profiles=hosts
    )
    outcomes = [Simulation(replace(scenario, seed=seed)).run() for seed in range(4)]
    assert all(each.held for each in outcomes)
    assert "W-5" in outcomes[0].unchecked and sum(each.counts["unchecked"] for each in outcomes) > 0


def test_differences_list_the_fields_that_are_not_defaults() -> None:
    assert Scenario(3).differences() == {"seed": 3}
    scenario = Scenario(3, loss=0.1, dialect=omx(1500), profiles=(replace(NATIVE_MX, hz=100),))
    assert scenario.differences() == {"seed": 3, "loss": 0.1, "dialect": "omx:1500", "profiles": "native-mx/100"}


def test_every_field_is_an_option() -> None:
    """But how long incidents last, and whether frames are judged, which has two options."""
    text = CliRunner().invoke(command, ["--help"]).output
    for each in fields(Scenario):
        if each.name not in ("incident_longest", "judged"):
            name = "profile" if each.name == "profiles" else each.name.replace("_", "-")
            assert f"--{name} " in text, each.name
