"""A backlog adds rows late, but in their order: against the same rows added at once."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.analysis.timing import backlog
from mxwire.analysis.timing.backlog import Backlog

rows = st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9), st.integers(-9, 9)), max_size=12)


@given(st.lists(st.one_of(rows, st.integers(0, 6)), max_size=12), st.sampled_from([0, 5, 1000]))
def test_sums_have_all_rows_of_their_key_in_order(steps, most):
    expected: dict[int, list[tuple[int, int]]] = defaultdict(list)

    def add(found: list[tuple[int, int]], *columns: np.ndarray) -> None:
        found += zip(*(each.tolist() for each in columns), strict=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backlog, "MOST", most)
        held: Backlog[list[tuple[int, int]]] = Backlog(list, add)
        for step in steps:
            if isinstance(step, int):
                assert held.get(step) == expected[step]
                continue
            for key, *values in step:
                expected[key].append((values[0], values[1]))
            held.put(*np.array(step, np.int64).reshape(-1, 3).T)
        assert {key: held.get(key) for key in range(7)} == {key: expected[key] for key in range(7)}
