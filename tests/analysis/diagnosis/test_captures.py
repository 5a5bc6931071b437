"""The findings of every shipped capture, and of damaged ones."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from mxwire.capture.time_order import in_time_order
from mxwire.frames import FrameBatch
from tests.wire.support import CAPTURES, read_capture, split

from .scene import diagnosed, ids

ONE_WAY = {"no-reverse-connect"}
"""The target never connects back, so the requester's libacks carry 0xFFFFFFFF and NOTIFYs are repeated (R-CON-13)."""
PERF = {"late-reverse-connect"}
"""omx_perf's receiver connects back after its first NOTIFY: half a second at the start of each run (R-CON-12)."""
CUT = {"capture-frames-cut"}
NACKS = {"endpoint-closed", "endpoint-out-of-range", "session-changed"}
"""A closed endpoint, number 40, and an endpoint that was reopened: the scenario in the captures' index."""
GIVEN_UP = {"receiver-not-progressing", "partner-abandoned", "session-number-differs"}
"""The receiver is stopped, the sender abandons it and connects again; the receiver continues with the old session
number (R-RTX-05, D-4)."""
EXPECTED: dict[str, set[str]] = {
    "burst": ONE_WAY,
    "cancel": ONE_WAY,
    "connect": {"wrong-key"},
    "discovery-static": {"mute-peer"},
    # Messages come half a second after those behind them, and then all of them once more (D-5).
    "early": {"frames-lost"},
    "every-type": ONE_WAY,
    "many": ONE_WAY | CUT,
    "nack-lib": NACKS,
    "nack-mcp-closed": {"endpoint-closed"} | CUT,
    "nack-mcp-rdmawin": ONE_WAY | {"frames-duplicated"},
    "nack-mcp-session": {"session-changed"} | CUT,
    "no-reverse-connect": ONE_WAY,
    "pingpong-small-medium": PERF,
    "pingpong-sync": PERF,
    "receiver-killed": {"endpoint-closed", "zombie-pull"} | CUT,
    "resends-exhausted": GIVEN_UP,
    "stopped-receiver": ONE_WAY | {"receiver-not-progressing"},
    "truncated": ONE_WAY,
    "unexpected": ONE_WAY,
    "uninit": {"endpoint-closed", "endpoint-out-of-range"},
    "vect": ONE_WAY,
    # 2% of the frames lost, 2% doubled, and a delay of 1 to 3 ms that lets frames overtake each other; the server
    # connects back late.
    "mxoe-lossy-1M": PERF | CUT | {"frames-lost", "tail-loss", "frames-duplicated", "frames-out-of-order"},
    "omx9000-lossy-1M": PERF | CUT | {"frames-lost", "frames-out-of-order"},
    # The tester sends the fragments of a message in no order.
    "mxoe-medium-pipeline11": {"frames-out-of-order"},
    # The real host sends the PULLs of one transfer out of order (R-MEA-15).
    "mxoe-rndv-offset": {"pulls-out-of-order"},
}
"""By the name of a capture, or of a scenario; all others show nothing wrong."""
SOME = CAPTURES[::3]


def expected(capture: str) -> set[str]:
    return EXPECTED.get(capture, EXPECTED.get(capture.split("-", 1)[1], set()))


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
