"""The findings of every shipped capture, and of damaged ones."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mxwire.capture.time_order import in_time_order
from mxwire.frames import FrameBatch
from tests.wire.support import CAPTURES, read_capture, split

from .scene import diagnosed, ids

EXPECTED = tomllib.loads(Path(__file__).with_name("captures.toml").read_text(encoding="utf-8"))
"""By the name of a capture, or of a scenario; all others show nothing wrong."""
SOME = CAPTURES[::3]


def expected(capture: str) -> set[str]:
    return set(EXPECTED.get(capture, EXPECTED.get(capture.split("-", 1)[1], ())))


@cache
def found(capture: str) -> set[str]:
    return ids(diagnosed(read_capture(capture)))


@pytest.mark.parametrize("capture", CAPTURES)
def test_shipped_capture_shows_exactly_this(capture):
    assert found(capture) == expected(capture)


@pytest.mark.parametrize("capture", CAPTURES)
def test_batches_make_no_difference(capture):
    batch = read_capture(capture)
    assert ids(diagnosed(*split(batch, max(7, len(batch) // 40)))) == found(capture)


def picked(batch: FrameBatch, which: NDArray[np.intp], later_ns: NDArray[np.int64] | int = 0) -> FrameBatch:
    chosen = batch.select(which)
    numbers = np.arange(1, len(which) + 1)
    times = chosen.timestamp_ns + later_ns
    return FrameBatch(chosen.buffer, chosen.offset, chosen.length, chosen.wire_length, times, numbers)


@pytest.mark.parametrize("capture", SOME)
def test_mirror_that_shows_everything_twice_is_recognised(capture):
    batch = read_capture(capture)
    doubled = picked(batch, np.repeat(np.arange(len(batch)), 2), np.tile([0, 4000], len(batch)))
    assert ids(diagnosed(doubled)) - found(capture) == {"capture-frames-doubled"}


@pytest.mark.parametrize("capture", SOME)
def test_direction_that_is_missing_is_the_fault_of_the_capture(capture):
    batch = read_capture(capture)
    sources = [batch.frame(place)[6:12] for place in range(len(batch))]
    for host in set(sources):
        which = np.array([place for place, source in enumerate(sources) if source == host])
        more = ids(diagnosed(picked(batch, which))) - found(capture)
        assert more <= {"capture-one-direction"}


@pytest.mark.parametrize("capture", SOME)
def test_capture_that_ends_early_shows_nothing_else(capture):
    batch = read_capture(capture)
    for end in np.linspace(1, len(batch), 5, dtype=int).tolist():
        assert ids(diagnosed(picked(batch, np.arange(end)))) <= found(capture)


@pytest.mark.parametrize("capture", [each for each in SOME if "early" not in each])
def test_capture_that_begins_late_shows_at_most_that_frames_are_missing(capture):
    batch = read_capture(capture)
    for start in np.linspace(0, len(batch) - 1, 5, dtype=int).tolist():
        more = ids(diagnosed(picked(batch, np.arange(start, len(batch))))) - found(capture)
        assert more <= {"capture-incomplete", "endpoint-closed", "frames-duplicated"}, start


@pytest.mark.parametrize("capture", SOME)
def test_frames_that_the_capture_lost_make_findings_less_sure(capture):
    batch = read_capture(capture)
    kept = np.flatnonzero(np.random.default_rng(5).random(len(batch)) > 0.04)
    if not len(kept):
        return
    findings = diagnosed(picked(batch, kept))
    unsure = {"frames-lost", "frames-duplicated", "frames-out-of-order", "burst-loss", "tail-loss"}
    assert ids(findings) - found(capture) <= unsure | {"capture-incomplete"}
    if "capture-incomplete" in ids(findings):
        assert not [each for each in findings if each.id in unsure and each.confidence == "high"]


@pytest.mark.parametrize("capture", SOME)
def test_order_of_the_file_does_not_matter(capture):
    batch = read_capture(capture)
    place = np.arange(len(batch))
    swapped = place.copy()
    for at in range(0, len(batch) - 1, 5):
        swapped[at], swapped[at + 1] = place[at + 1], place[at]
    assert ids(diagnosed(*in_time_order([picked(batch, swapped)]))) == found(capture)


@pytest.mark.parametrize(
    ("capture", "output"),
    [
        ("mxoe-nack-mcp-closed", ["endpoint 5 is not open any more: 1 pull"]),
        ("omx9000-nack-lib", ["endpoint 3 is not open any more: 5 messages", "endpoint 7 is not open: 1 connect"]),
    ],
)
def test_an_endpoint_that_closed_is_distinguished_from_one_that_was_never_open(capture, output):
    findings = [each.summary for each in diagnosed(read_capture(capture)) if each.id == "endpoint-closed"]
    assert len(findings) == len(output)
    assert all(text in summary for text, summary in zip(output, findings, strict=True)), findings
