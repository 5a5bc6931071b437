"""Confidence follows from evidence, for every diagnosis in the same way."""

from __future__ import annotations

import numpy as np
import pytest

from mxwire.analysis.diagnosis.finding import confidence_of, evidence, weighed
from mxwire.units import SECOND
from tests.wire.support import read_capture

from .plays import MORE, SHOWS
from .scene import diagnosed, examine


@pytest.mark.parametrize(
    ("weights", "doubts", "confidence"),
    [
        (["proof"], 0, "high"),
        (["sign"], 0, "medium"),
        (["sign", "hint"], 0, "medium"),
        (["sign", "sign"], 0, "high"),
        (["hint", "hint", "hint"], 0, "low"),
        ([], 0, "low"),
        (["proof"], 1, "medium"),
        (["sign", "sign"], 2, "low"),
        (["proof"], 3, "low"),
    ],
)
def test_confidence_follows_from_the_weights_of_evidence(weights, doubts, confidence):
    assert confidence_of([evidence("", weight=each) for each in weights], doubts) == confidence


def test_one_observation_shown_in_two_sentences_counts_once():
    shown = [evidence("a frame"), evidence("another frame")]
    assert confidence_of(weighed(shown, "sign")) == "medium"
    assert confidence_of(weighed(shown, "sign", 2)) == confidence_of(weighed(shown[:1], "sign", 2)) == "high"


@pytest.mark.parametrize("case", [*SHOWS.values(), *MORE], ids=lambda case: f"{case.id}-{case.play.__name__}")
def test_every_finding_without_low_confidence_has_evidence_with_weight(case):
    for found in diagnosed(case.scene().batch()):
        heavy = [each for each in found.evidence if each.weight != "hint" and each.times]
        assert bool(heavy) == (found.confidence != "low"), found


def test_early_requests_for_replies_that_all_passed_prove_no_loss():
    case = next(each for each in MORE if each.play.__name__ == "replies_behind_the_place_of_capture")
    (found,) = diagnosed(case.scene().batch())
    assert (found.id, found.confidence) == ("frames-lost", "low")


def test_a_timer_for_data_that_passed_does_not_prove_loss():
    """The receiver may have been too slow to take the data."""
    scenes = (each.scene() for each in (SHOWS["tail-loss"], *MORE) if each.id == "tail-loss")
    tails = [each for scene in scenes for each in diagnosed(scene.batch()) if each.id == "tail-loss"]
    assert [each.confidence for each in tails] == ["medium", "medium"]


def test_holes_in_the_capture_are_named_where_they_lower_the_confidence():
    batch = read_capture("mxoe-lossy-1M")
    kept = np.flatnonzero(np.random.default_rng(5).random(len(batch)) > 0.04)
    findings = {each.id: each for each in diagnosed(batch.select(kept))}
    assert "capture-incomplete" in findings
    assert findings["frames-lost"].doubts == ("the capture itself lost frames",)
    assert findings["capture-frames-cut"].doubts == ()


def test_findings_from_a_time_without_the_processor_are_less_certain():
    examination = examine(read_capture("mxoe-lossy-1M"))
    before = {each.id: each.confidence for each in examination.findings()}
    assert before["frames-lost"] == "high"
    start_ns = examination.facts.first_ns
    examination.starve([(start_ns, start_ns + SECOND)])
    after = {each.id: each.confidence for each in examination.findings()}
    assert after["frames-lost"] == "medium" and after["capture-frames-cut"] == "high"
    assert any("lacked the processor for 1.0 s" in each for each in examination.limits())
    examination.starve([(start_ns + 100 * SECOND, start_ns + 101 * SECOND)])
    assert {each.id: each.confidence for each in examination.findings()} == before
