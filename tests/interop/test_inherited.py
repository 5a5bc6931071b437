"""Frames that external hosts send because of an earlier cell or run do not count in the current one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mxwire.capture import open_capture
from mxwire.interop.cases import case_by_name
from mxwire.interop.cell_player import CaseOutcome, CellOrder, cell_of
from mxwire.interop.expectations import expected_of
from mxwire.interop.impairments import treatment_by_name
from mxwire.interop.implementations import implementation_by_name
from mxwire.interop.recorded_frames import HostTable, breaches_of, comments, inherited, sessions_named
from mxwire.interop.roles import HostSetup
from mxwire.interop.simulated_testbed import SimulatedTestbed
from mxwire.interop.testbed import RecordedFrame
from mxwire.protocol.profile import profile_by_name
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import as_dialect
from mxwire.wire.packets import Pull, Truc

RECORDING = Path(__file__).parents[1] / "data" / "real-host" / "omx9000-inherited-pulls.pcap"
"""Four cases of a matrix against a real host, which repeats the pulls of an earlier run for 512 s (R-MEA-21)."""
OWN, REAL = bytes.fromhex("ee46a154f241"), bytes.fromhex("5254000a0003")
DIALECT = as_dialect("omx:9000")
LEFT = HostSetup("left", DIALECT, profile_by_name("open-mx-1.5"))
RIGHT = HostSetup("right", DIALECT, profile_by_name("open-mx-1.5-as-found"))
HOSTS = HostTable(
    {OWN: LEFT, REAL: RIGHT}, DIALECT, frozenset(each.value for each in RIGHT.profile.defects), from_start=False
)


@pytest.fixture
def frames() -> list[RecordedFrame]:
    with open_capture(RECORDING) as capture:
        return [
            RecordedFrame(int(batch.timestamp_ns[index]), batch.frame(index))
            for batch in capture
            for index in range(len(batch))
        ]


def changed(each: RecordedFrame, **fields: int) -> RecordedFrame:
    codec = codec_of(DIALECT)
    return replace(each, frame=codec.build(replace(codec.parse(each.frame), **fields)))


@pytest.mark.rule("R-MEA-21")
def test_pulls_of_an_earlier_run_do_not_count_as_breaches(frames):
    assert {each.rule for each in breaches_of(frames, HOSTS, exact=False)} == {"R-EP-02"}
    left_out = inherited(frames, HOSTS, OWN)
    assert {type(codec_of(DIALECT).parse(frames[number - 1].frame)) for number in left_out} == {Pull}
    assert breaches_of(frames, HOSTS, exact=False, left_out=left_out) == []
    noted = comments(frames, (), left_out)
    assert set(noted) == left_out and set(noted.values()) == {"of an exchange before this cell: not judged"}


def test_a_wrong_session_in_the_conduct_of_the_cell_remains_a_breach(frames):
    place = next(
        place
        for place, each in enumerate(frames)
        if each.frame[6:12] == REAL and isinstance(codec_of(DIALECT).parse(each.frame), Truc)
    )
    frames[place] = changed(frames[place], session=0x01020304)
    left_out = inherited(frames, HOSTS, OWN)
    assert place + 1 not in left_out
    (found,) = [each for each in breaches_of(frames, HOSTS, exact=False, left_out=left_out) if each.rule == "R-EP-02"]
    assert found.frames[-1] == place + 1


def test_sessions_named_before_a_cell_are_not_its_conduct(frames):
    """A message that a host retransmits to an endpoint of the cell before, too."""
    place = next(
        place
        for place, each in enumerate(frames)
        if each.frame[6:12] == REAL and isinstance(codec_of(DIALECT).parse(each.frame), Truc)
    )
    before = [changed(frames[place], session=0x01020304)]
    frames[place] = before[0]
    earlier = sessions_named(before, HOSTS, OWN)
    assert earlier == {0x01020304}
    assert place + 1 in inherited(frames, HOSTS, OWN, earlier)


def test_a_cell_reports_the_frames_that_it_inherits(frames, tmp_path):
    part = case_by_name("size-empty")
    left, right = (implementation_by_name(each) for each in ("open-mx-1.5", "open-mx-1.5-as-found"))
    order = CellOrder(left, right, part.case.name, "none", 1)
    testbed = SimulatedTestbed(LEFT, RIGHT, treatment_by_name("none"), 1)
    testbed.frames = frames
    expected = expected_of(part, LEFT, RIGHT)
    outcome, left_out = CaseOutcome(True, "works"), inherited(frames, HOSTS, OWN)
    cell = cell_of(order, part, testbed, expected, outcome, HOSTS, (), tmp_path, left_out)
    assert (cell.verdict, cell.works) == ("pass", True)
    assert cell.reason == f"works; not judged: {len(left_out)} frames of exchanges from before this cell"
    with open_capture(tmp_path / str(cell.capture)) as capture:
        assert sum(len(each) for each in capture) == len(frames)
