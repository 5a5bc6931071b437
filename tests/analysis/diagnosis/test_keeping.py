"""The memory of examiners is bounded."""

from __future__ import annotations

from mxwire.analysis.diagnosis.finding import KEPT, SHOWN, keep


def test_the_first_few_of_each_kind_are_kept():
    kept: dict[str, list[int]] = {}
    assert all(keep(kept, "one", value) for value in range(SHOWN + 3))
    assert keep(kept, "other", 7)
    assert kept == {"one": list(range(SHOWN)), "other": [7]}


def test_kinds_beyond_the_limit_are_reported_and_left_out():
    kept: dict[int, list[int]] = {}
    assert all(keep(kept, kind, 0) for kind in range(KEPT))
    assert not keep(kept, KEPT, 0)
    assert keep(kept, 5, 1) and kept[5] == [0, 1]
    assert len(kept) == KEPT
