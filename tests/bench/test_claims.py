"""The claims: how they are judged, and that the page of documentation is that of its recording."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mxwire.bench.claims.claim import (
    CLAIMS,
    OUTCOMES,
    ClaimEvidence,
    ClaimVerdict,
    all_of,
    compared,
    modelled,
    record_of,
)
from mxwire.bench.claims.model_study import COLLECTIVE, SHARE, TABLE_1, TRIP, run_model
from mxwire.bench.claims.page import judged, page, read_evidence
from mxwire.bench.record import Conditions, Measurement, Recording, Series
from mxwire.errors import MxwireError

DOCS = Path(__file__).parents[2] / "docs"


def point(name: str, samples: tuple[float, ...], x: float = 64, key: str = "size") -> Measurement:
    return Measurement(name, "µs", samples, {key: x})


def live(study: str, series: str, *points: Measurement, quick: bool = False, x: str = "size") -> Recording:
    return Recording(study, Conditions(stage="namespaces", quick=quick), [Series(series, "µs", x, "", list(points))])


def verdict_of(number: str, *recordings: Recording) -> ClaimVerdict:
    return judged(ClaimEvidence(recordings), [number])[0][1]


def test_the_page_is_that_of_the_recording():
    """After `mxwire bench claims -w docs/studies.jsonl --markdown docs/studies.md`."""
    expected = page(read_evidence([DOCS / "studies.jsonl"]))
    assert (DOCS / "studies.md").read_text(encoding="utf-8") == expected


def test_every_claim_of_the_three_texts_is_there():
    judged(ClaimEvidence([]))
    count = {seed: sum(each.startswith(f"{seed}-") for each in CLAIMS) for seed in ("S0", "S1", "S2")}
    assert count == {"S0": 6, "S1": 32, "S2": 26}


def test_without_recordings_nothing_is_applicable():
    for claim, verdict in judged(ClaimEvidence([])):
        assert verdict.outcome == "not applicable", claim.number
        assert verdict.numbers


def test_orderings_need_eight_of_nine_rounds():
    low, high = point("a", (1.0,) * 9), point("b", (2.0,) * 9)
    mixed = point("c", (0.5,) * 4 + (2.0,) * 5)
    assert compared(low, high, "").outcome == "confirmed"
    assert compared(high, low, "").outcome == "refuted"
    assert compared(low, mixed, "").outcome == "undecided"
    assert compared(low, high, "", factor=0.4).outcome == "refuted"
    outcomes = [compared(low, high, ""), compared(low, mixed, "")]
    assert all_of(outcomes, "").outcome == "undecided"
    assert all_of([*outcomes, compared(high, low, "")], "").outcome == "refuted"


@pytest.mark.parametrize(("tcp", "outcome"), [((20.0,) * 9, "confirmed"), ((5.0,) * 9, "refuted")])
def test_latency_is_judged_live(tcp, outcome):
    points = [
        point(f"{rung}, {how}", tcp if rung == "tcp" else (10.0,) * 9)
        for rung in ("tcp", "mxoe")
        for how in ("spinning", "blocking")
    ]
    found = verdict_of("S2-F9-a", live("path", "half round trip", *points))
    assert (found.outcome, found.how) == (outcome, "live")


def test_a_disturbed_measurement_leaves_a_claim_undecided():
    low, high = point("a", (1.0,) * 9), point("b", (2.0,) * 9)
    assert compared(low, replace(high, marks=("disturbed",)), "2 µs") == ClaimVerdict(
        "undecided", "2 µs (disturbed)", "live"
    )
    shaken = replace(point("frames", (-0.5,) * 9, 4096), marks=("disturbed",))
    assert verdict_of("S1-D-d", live("logp", "L", shaken)).outcome == "undecided"


def test_a_quick_recording_is_not_evidence():
    points = [point(f"{rung}, {how}", (10.0,) * 9) for rung in ("tcp", "mxoe") for how in ("spinning", "blocking")]
    found = verdict_of("S2-F9-a", live("path", "half round trip", *points, quick=True))
    assert found.outcome == "not applicable" and "quick" in found.numbers
    # In virtual time, too, a quick study of MTUs has shorter messages than the claim is about.
    found = verdict_of("S2-F14-b", Recording("mtu", Conditions(stage="virtual time", quick=True)))
    assert found.outcome == "not applicable" and "quick" in found.numbers


def test_the_paths_of_the_kernel_are_ordered_round_by_round():
    rungs = {"ring": 1.0, "frames": 2.0, "udp": 3.0, "tcp": 4.0}
    points = [point(f"{name}, spinning", (value,) * 9) for name, value in rungs.items()]
    assert verdict_of("S0-b", live("path", "half round trip", *points)).outcome == "confirmed"
    points[2] = point("udp, spinning", (9.0,) * 9)
    assert verdict_of("S0-b", live("path", "half round trip", *points)).outcome == "refuted"


def test_tcp_depends_on_the_mtu_only_without_segmentation_offload():
    rates = {("tcp", 1500): 100.0, ("tcp", 9000): 105.0}
    rates |= {("tcp, no segmentation offload", 1500): 50.0, ("tcp, no segmentation offload", 9000): 100.0}
    points = [point(name, (value,) * 9, mtu, "mtu") for (name, mtu), value in rates.items()]
    assert verdict_of("S2-F12-b", live("mtu", "rate by frame limit", *points, x="mtu")).outcome == "confirmed"


def test_claims_about_logp_are_judged_by_its_recording():
    def curve(name: str, **values: float) -> Series:
        made = [
            point(each.replace("_", ", ").replace("ping, pong", "ping-pong"), (value,) * 9, 4096)
            for each, value in values.items()
        ]
        return Series(name, "µs", measurements=made)

    rates = {}
    for carrier in ("frames", "tcp"):
        rates |= {f"{carrier}_unidirectional": 409.6, f"{carrier}_ping_pong": 200.0, f"{carrier}_simultaneous": 420.0}
    recording = live("logp", "L", point("frames", (-0.5,) * 9, 4096), point("tcp", (2.0,) * 9, 4096))
    recording.series += [curve("g", frames=10.0, tcp=10.0), curve("o_s", frames=1.0), curve("bandwidth", **rates)]
    assert verdict_of("S1-F11-a", recording).outcome == "confirmed"
    assert verdict_of("S1-F12-a", recording).outcome == "refuted"
    assert verdict_of("S1-D-d", recording).numbers.startswith("1 of 2 points")
    assert verdict_of("S1-D-e", recording).outcome == "confirmed"


def test_fitted_numbers_confirm_nothing():
    assert modelled(True, "1 µs").outcome == "confirmed"
    assert modelled(False, "1 µs").outcome == "refuted"
    fitted = modelled(True, "1 µs", fitted="7.3 µs")
    assert fitted.outcome == "not applicable"
    assert "fitted to 7.3 µs" in fitted.numbers


def test_unknown_claims_are_refused():
    with pytest.raises(MxwireError, match="no claim 'S2-F9-z' \\(did you mean S2-F9"):
        judged(ClaimEvidence([]), ["S2-F9-z"])
    with pytest.raises(MxwireError, match="no claim 'S7'"):
        judged(ClaimEvidence([]), ["S7"])
    assert [claim.number for claim, _ in judged(ClaimEvidence([]), ["s2-f12"])] == ["S2-F12-a", "S2-F12-b", "S2-F12-c"]


def test_a_judged_claim_as_an_object():
    claim, verdict = judged(ClaimEvidence([]), ["S2-F9-b"])[0]
    record = record_of(claim, verdict)
    assert record["claim"] == "S2-F9-b" and record["derived"] is True
    assert record["verdict"] in OUTCOMES


def test_a_quick_model_has_all_series():
    recording = run_model(quick=True)
    assert recording.complete
    names = [each.name for each in recording.series]
    assert TRIP in names and SHARE in names
    assert len(recording.named(COLLECTIVE).measurements) == 2 * (len(TABLE_1) + 1)
    for series in recording.series:
        assert all("modelled" in each.marks for each in series.measurements)
