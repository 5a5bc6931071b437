"""The contestants of ``bench path``, which depend on its testbed."""

from __future__ import annotations

import pytest

from mxwire.bench.path import PathStudy
from mxwire.bench.record import Recording
from mxwire.bench.study import StudyOptions
from mxwire.bench.testbed import MemoryTestbed


class TwoProcessors(MemoryTestbed):
    """A testbed whose sides may poll."""

    spins = True


@pytest.mark.parametrize(
    ("testbed", "modes"), [(TwoProcessors, {"spinning", "blocking"}), (MemoryTestbed, {"blocking"})]
)
def test_contestants_poll_only_where_each_side_has_a_processor(testbed, modes):
    with testbed() as one, testbed() as other:
        study = PathStudy(one, Recording("path", one.conditions), StudyOptions(quick=True))
        study.interpreted = other
        found = dict(study.contestants())
    # The last argument of a contestant with trips is its mode.
    trips = {name: run.args[-1] for name, run in found.items() if name.endswith((", spinning", ", blocking"))}
    assert set(trips.values()) == modes
    for name, mode in trips.items():
        assert name.endswith(mode)
    assert "mxoe interpreted, blocking" in trips
    assert ("ring interpreted, spinning" in trips) is ("spinning" in modes)
