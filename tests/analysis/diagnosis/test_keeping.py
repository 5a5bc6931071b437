"""The memory of examiners is bounded."""

from __future__ import annotations

from mxwire.analysis.diagnosis.finding import KEPT, SHOWN, Observations, evidence
from mxwire.analysis.first_keys import FirstKeys


def test_the_first_few_observations_are_shown_and_all_are_counted():
    found = Observations()
    for number in range(SHOWN + 3):
        found.add(evidence(str(number)), 2)
    assert found.count == 2 * (SHOWN + 3)
    assert [each.text for each in found.shown] == [str(number) for number in range(SHOWN)]


def test_observations_of_kinds_beyond_the_limit_are_left_out():
    found: FirstKeys[int, Observations] = FirstKeys(KEPT, Observations)
    for kind in range(KEPT + 1):
        found[kind].add(evidence("first"))
    found[5].add(evidence("second"))
    assert len(found) == KEPT and KEPT not in found
    assert [each.text for each in found[5].shown] == ["first", "second"]
