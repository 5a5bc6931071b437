"""The selection of frames, messages and findings."""

from __future__ import annotations

import pytest

from mxwire.analysis.selection import FindingSelector, Selection
from mxwire.analysis.timing import Timing
from tests.analysis.conversations.support import decoded
from tests.wire.support import read_capture, split


def test_a_finding_is_selected_by_the_frames_that_show_it() -> None:
    selector = FindingSelector(Selection.of(types=["CONNECT"]))
    batches = decoded(split(read_capture("mxoe-connect"), 10))
    connects = set()
    for each in batches:
        selector.observe(each, None, 0)
        connects |= {
            int(number)
            for number, packet_type in zip(each.batch.number, each.columns.packet_type, strict=True)
            if packet_type == 36
        }
    every = [int(number) for each in batches for number in each.batch.number]
    assert connects and {number for number in every if selector.takes([], [number])} == connects
    assert selector.takes([], [0, *connects]) and selector.takes([], [])
    assert selector.left_out == len(every) - len(connects)


@pytest.mark.parametrize(
    ("limits", "only"),
    [
        ({"hosts": ["52:54:00:0a:00:01"]}, True),
        ({"hosts": ["52:54:00:0a:00:01/1"]}, False),
        ({"types": ["PULL"], "hosts": ["52:54:00:0a:00:01"]}, False),
        ({"kinds": ["TINY"]}, False),
        ({"pair": ("52:54:00:0a:00:01", "52:54:00:0a:00:02")}, False),
    ],
)
def test_hosts_alone_are_selected_without_marks(limits: dict[str, object], only: bool) -> None:
    assert Selection.of(**limits).is_of_hosts_only is only  # type: ignore[arg-type]


def test_timing_counts_the_selected_messages() -> None:
    batch = read_capture("mxoe-every-type")
    counts = []
    for selection in (None, Selection.of(), Selection.of(kinds=["TINY"])):
        timing = Timing(selection=selection)
        for each in decoded([batch]):
            timing.observe(each)
        timing.finish()
        counts.append(timing.kinds)
    assert counts[0] == counts[1] and len(counts[0]) > 1
    assert counts[2] == {"TINY": counts[0]["TINY"]}
