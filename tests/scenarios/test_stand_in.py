"""The live testbed against a stand-in for a real host with a driver, with and without each precaution."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from mxwire.link import MemoryLink, MemoryNetwork
from mxwire.scenarios import ScenarioOutcome, ScenarioVerdict, Script, ScriptError, live_run, load, parse
from mxwire.scenarios import driver as driver_module
from mxwire.scenarios.actions import Query
from mxwire.scenarios.driver import run_driven
from mxwire.scenarios.expression import Value
from mxwire.scenarios.live_run import Reception, new_seed, run_live, shift_of
from mxwire.scenarios.scenario_run import ScenarioRun
from mxwire.wire.dialect import MXOE

from . import stand_in as stand_in_module
from .stand_in import StandIn
from .test_driver import InThisProcess

US, HOST = bytes.fromhex("020000000077"), bytes.fromhex("5254000a0001")
WELL = (ScenarioVerdict.PASS, ScenarioVerdict.NON_STRICT)
Play = Callable[..., ScenarioOutcome]


@pytest.fixture
def testbed() -> Iterator[tuple[MemoryLink, MemoryNetwork]]:
    network = MemoryNetwork()
    link = network.attach(address=US)
    yield link, network
    link.close()


@pytest.fixture
def play(testbed: tuple[MemoryLink, MemoryNetwork]) -> Iterator[Play]:
    """Plays scenarios to one stand-in, which remembers the earlier ones."""
    link, network = testbed
    stand_in = StandIn(lambda: network.attach(address=HOST), network.attach())

    def played(script: Script | str, **options: Any) -> ScenarioOutcome:
        script = load(script) if isinstance(script, str) else script
        return run_driven(script, link, InThisProcess(stand_in), MXOE, **options)

    yield played
    stand_in.end()


SILENT = "acks/liback-stops-resending"
"""Expects nothing for longer than the time after which an old pull is repeated."""


@pytest.mark.parametrize(
    "name", ["acks/piggyback-of-every-type", "acks/at-close", "acks/order-of-tests", "discovery/raw-longest", SILENT]
)
def test_scenarios_pass_again_and_again(play: Play, name: str) -> None:
    for _ in range(3):
        outcome = play(name)
        assert outcome.verdict in WELL, (outcome.reason, outcome.remarks)


def test_skipped_frames_are_noted(play: Play) -> None:
    play(SILENT)
    notes = [each.text for each in play(SILENT).remarks]
    assert any(each.startswith("ignored, for endpoints or sessions of other runs: ") for each in notes), notes


def test_a_seed_that_is_used_again_meets_the_pulls_of_its_first_run(play: Play) -> None:
    assert play(SILENT, seed=7).verdict in WELL
    outcome = play(SILENT, seed=7)
    assert outcome.verdict is ScenarioVerdict.FAIL and outcome.reason.startswith("PULL arrived during "), outcome.reason


def test_without_a_look_at_sessions_old_pulls_are_taken_for_answers(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_run, "shift_of", lambda seed: 0)
    assert play(SILENT).verdict in WELL and play(SILENT).verdict in WELL
    monkeypatch.setattr(Reception, "_is_ours", lambda self, frame: True)
    assert play(SILENT).verdict is ScenarioVerdict.FAIL


@pytest.mark.realtime
def test_frames_of_the_time_before_are_discarded(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also frames to the current endpoint and session are discarded."""
    # A pull of the first run may arrive in the middle of the second one, which then rightly fails.
    monkeypatch.setattr(stand_in_module, "_pull", lambda host, *_: stand_in_module._query(host))
    assert play("eager/tiny", seed=7).verdict in WELL
    assert play("eager/tiny", seed=7).verdict in WELL
    for module in (live_run, driver_module):
        monkeypatch.setattr(module, "drain", lambda link: [])
    monkeypatch.setattr(Reception, "_is_ours", lambda self, frame: True)
    assert play("eager/tiny", seed=7).verdict is ScenarioVerdict.FAIL


def test_a_counter_that_the_driver_does_not_report_is_not_checked(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = play("acks/wrong-session")
    notes = [each.text for each in outcome.remarks]
    assert outcome.verdict is ScenarioVerdict.PASS
    assert "not checked, unknown to the driver: counters drop_bad_session" in notes
    wrong = load("acks/wrong-session").text.replace("send_nack_lib=0", "send_nack_lib=1")
    assert play(parse(wrong)).reason == "counters: send_nack_lib is 0, expected 1"
    whole = ScenarioRun.__init__
    monkeypatch.setattr(
        ScenarioRun, "__init__", lambda *words, **options: whole(*words, **options | {"partial": False})
    )
    with pytest.raises(ScriptError, match="no value of drop_bad_session in counters"):
        play("acks/wrong-session")


def test_a_refused_call_fails_the_scenario_and_does_not_end_the_run(play: Play) -> None:
    outcome = play(parse('title: x\n! send as $no\n? $no data="x"\n'))
    assert outcome.verdict is ScenarioVerdict.FAIL and outcome.reason.startswith("$no was refused: ")


def test_an_ack_may_cross_the_call(testbed: tuple[MemoryLink, MemoryNetwork], monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver so slow that the delayed ack leaves before the message: that is not a failure, and none may follow."""
    link, network = testbed
    stand_in = StandIn(lambda: network.attach(address=HOST), network.attach(), call=(0.012, 0.014))
    monkeypatch.setattr(live_run, "SETTLE", 10_000_000)
    script = load("acks/piggyback")
    try:
        outcome = run_driven(script, link, InThisProcess(stand_in), MXOE)
        assert outcome.verdict in WELL, outcome.reason
        strict = parse(script.text.replace("ignore: TRUC\n", ""))
        assert run_driven(strict, link, InThisProcess(stand_in), MXOE).verdict is ScenarioVerdict.FAIL
    finally:
        stand_in.end()


def test_the_earliest_time_counts_from_the_beginning_of_a_call(testbed: tuple[MemoryLink, MemoryNetwork]) -> None:
    """Closing an endpoint takes longer than a pull's timer may vary (R-MEA-20)."""
    link, network = testbed
    text = "title: x\nconnected: both\n! receive\n> RNDV msg_length=P\n< PULL\n! stop\n< PULL after 900ms\n"
    stand_in = StandIn(lambda: network.attach(address=HOST), network.attach(), call=(0.3, 0.3))
    try:
        outcome = run_driven(parse(text), link, InThisProcess(stand_in), MXOE)
    finally:
        stand_in.end()
    assert outcome.verdict in WELL, outcome.reason


@pytest.mark.realtime
def test_a_frame_that_came_while_the_driver_was_slow_to_answer_is_in_time(
    testbed: tuple[MemoryLink, MemoryNetwork],
) -> None:
    class Slow(InThisProcess):
        def ask(self, action: Query) -> Mapping[str, Value] | None:
            time.sleep(0.1)
            return super().ask(action)

    link, network = testbed
    stand_in = StandIn(lambda: network.attach(address=HOST), network.attach())
    try:
        outcome = run_driven(load("medium/one-fragment"), link, Slow(stand_in), MXOE)
        assert outcome.verdict in WELL, outcome.reason
        script = parse("title: x\nconnected: once\n> TINY\n? events partner_lost=0\n< TRUC within 60ms\n")
        target = Slow(stand_in).host(script, MXOE, US)
        assert not isinstance(target, str)
        outcome = run_live(script, link, target, application=Slow(stand_in), patience=0)
        assert outcome.verdict is ScenarioVerdict.PASS, outcome.reason
    finally:
        stand_in.end()


def test_consecutive_seeds_have_endpoints_of_their_own() -> None:
    seed = new_seed()
    assert len({shift_of(seed + each) for each in range(255)}) == 255
    turn = seed // 32 * 32  # A window across two turns may have neighbours 7 apart.
    assert len({(shift_of(turn + each) - shift_of(turn)) % 256 // 8 for each in range(32)}) == 32


def test_a_seed_repeats_endpoints_and_sessions(play: Play) -> None:
    outcome = play("eager/tiny")
    again = play("eager/tiny", seed=outcome.seed)
    assert outcome.frames.frame(0) == again.frames.frame(0)
    assert play("eager/tiny").frames.frame(0) != outcome.frames.frame(0)


def test_harmful_scenarios_are_for_a_driver_that_is_asked_to(play: Play) -> None:
    skipped = play("nacks/unknown-type")
    assert skipped.verdict is ScenarioVerdict.SKIPPED and skipped.reason.startswith("it is harmful: ")
    assert play("nacks/unknown-type", harmful=True).verdict in WELL
