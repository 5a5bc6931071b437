"""Real captures with one thing changed in them break just the rule that it is about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mxwire.analysis.verification import Verification
from mxwire.frames import FrameBatch
from mxwire.rules import CAPTURE
from mxwire.rules.registry import RULES
from mxwire.wire.decoder import Decoder
from tests.mutants import MUTANTS, Mutant, engine

from .mutations import MUTATIONS, Mutation, recorded

_ANSWERED = "self.outgoing.put_bulk(PullReplies(frame, frame.block_length, region, self, count))"

SENT = {
    "R-SEQ-04": Mutant(
        "numbers by twos",
        "R-SEQ-04",
        "Partner.assign",
        "self.tx_next = successor(self.tx_next)",
        "self.tx_next = successor(successor(self.tx_next))",
    ),
    "R-PUL-12": Mutant(
        "every PULL answered twice", "R-PUL-12", "TransferPort._take_pull", _ANSWERED, f"{_ANSWERED}\n{_ANSWERED}"
    ),
}
"""Violations that no capture shows, as the network loses and duplicates frames: only an observer of every frame as
it is sent finds them, such as the simulator in an engine that is changed like this."""
UNTOUCHED = {*SENT, "R-PUL-14"}
"""Violations that no small change of a capture makes. The last one is made by a mutant of the engine, whose capture
shows it and nothing else: ``sessions not checked`` in ``tests/mutants.toml``."""


def broken(mutation: Mutation, frames: list[tuple[int, bytes]]) -> set[str]:
    batch = FrameBatch.from_frames([raw for _, raw in frames], [time for time, _ in frames])
    made = Verification(replace(CAPTURE, from_start=mutation.from_start))
    found = [each for decoded in Decoder().decode_all([batch]) for each in made.observe(decoded)]
    return {each.rule for each in found if each.severity == "violation"}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.title)
def test_it_breaks_this_rule_and_its_consequences_only(mutation: Mutation) -> None:
    assert broken(mutation, mutation.frames()) == {mutation.rule, *mutation.also}
    assert not broken(replace(mutation, from_start=False), recorded(mutation.capture))


def test_every_violation_has_one() -> None:
    wanted = {each.number for each in RULES if each.severity == "violation" and each.number[0] != "D"}
    assert wanted - {each.rule for each in MUTATIONS} == UNTOUCHED


@pytest.mark.parametrize("rule", SENT)
def test_a_view_at_the_sender_finds_more(rule: str) -> None:
    with engine(SENT[rule]) as simulation:
        for seed in range(20):
            outcome = simulation.Simulation(simulation.draw_scenario(seed, loss=0.0, kill=0)).run()
            found = {each.rule for each in outcome.breaches if each.invariant == "rules"}
            if found:
                break
    assert found == {rule}


def test_a_mutant_of_the_engine_breaks_the_remaining_rule() -> None:
    (left,) = UNTOUCHED - {*SENT}
    assert any(each.found and each.found.rules == [left] for each in MUTANTS)
