"""Each diagnosis is made where it is right, and only there."""

from __future__ import annotations

import pytest

from mxwire.analysis.diagnosis import CATALOGUE

from .plays import MISSES, MORE, QUIET, SHOWS, Case
from .scene import Scene, diagnosed, ids


@pytest.mark.parametrize("name", CATALOGUE)
def test_diagnosis_is_made_where_it_is_right(name):
    case = SHOWS[name]
    findings = diagnosed(case.scene().batch())
    assert ids(findings) == {name} | case.others, findings
    for found in findings:
        assert found.summary and found.advice, found
        assert found.evidence, found


@pytest.mark.parametrize("name", CATALOGUE)
def test_diagnosis_is_not_made_where_it_only_looks_like_it(name):
    case = MISSES[name]
    findings = diagnosed(case.scene().batch())
    assert ids(findings) == case.others, findings


@pytest.mark.parametrize("case", MORE, ids=lambda case: f"{case.id}-{case.play.__name__}")
def test_diagnosis_is_made_in_other_shapes_too(case: Case):
    findings = diagnosed(case.scene().batch())
    assert ids(findings) == {case.id} | case.others, findings


@pytest.mark.parametrize("case", QUIET, ids=lambda case: case.play.__name__)
def test_harmless_exchanges_that_resemble_trouble_have_no_finding(case: Case):
    findings = diagnosed(case.scene().batch())
    assert ids(findings) == case.others, findings
    assert all(each.confidence == "low" for each in findings)


def test_a_number_that_is_bounded_is_not_given_as_exact(monkeypatch):
    monkeypatch.setattr("mxwire.analysis.diagnosis.troubles.loss._KEPT_OF_RECENT", 1)
    findings = {each.id: each for each in diagnosed(SHOWS["tail-loss"].scene().batch())}
    assert findings["tail-loss"].summary.startswith("at least 1 large message ")
    assert ": 1 block re-requested; at least 1 of " in findings["frames-lost"].summary


def test_a_finding_about_many_hosts_has_four_of_them_as_evidence():
    on = Scene()
    on.connect()
    for last in range(0x0C, 0x11):
        on.b.peer = on.host(last, index=1)
        on.send(on.b.query(src_dst_peer_index=3), on.b.peer.name())
    on.b.peer = on.a
    on.send(on.a.tiny())
    (found,) = [each for each in diagnosed(on.batch()) if each.id == "peer-index-reused"]
    assert found.summary.endswith("assigned index 3 to 6 hosts")
    assert len(found.evidence) == 4
