"""Real captures with one thing changed in them break just the rule that it is about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mxwire.analysis.verification import Verification
from mxwire.frames import FrameBatch
from mxwire.rules import CAPTURE
from mxwire.rules.registry import RULES
from mxwire.wire.decoder import Decoder

from .mutations import MUTATIONS, Mutation, recorded

UNTOUCHED = {"R-SEQ-04", "R-SEQ-05", "R-SEQ-06", "R-PUL-10", "R-PUL-12", "R-PUL-14"}
"""Violations that no small change of a capture makes: they need every frame as it is sent, thousands of messages, or
another beginning. They have plays."""


def broken(mutation: Mutation, frames: list[tuple[int, bytes]]) -> set[str]:
    batch = FrameBatch.from_frames([raw for _, raw in frames], [time for time, _ in frames])
    made = Verification(replace(CAPTURE, from_start=mutation.from_start))
    found = [each for decoded in Decoder().decode_all([batch]) for each in made.observe(decoded)]
    return {each.rule for each in found if each.severity == "violation"}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.title)
def test_breaks_this_rule_and_what_follows_from_it(mutation: Mutation) -> None:
    assert broken(mutation, mutation.frames()) == {mutation.rule, *mutation.also}
    assert not broken(replace(mutation, from_start=False), recorded(mutation.capture))


def test_every_violation_has_one() -> None:
    wanted = {each.number for each in RULES if each.severity == "violation" and each.number[0] != "D"}
    assert wanted - {each.rule for each in MUTATIONS} == UNTOUCHED
