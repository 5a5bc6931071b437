"""``mxwire decode`` and the plugin mark the same frames with the same flags, although each follows by its own code."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from mxwire.analysis.marks import FLAGS, FrameMarker, flag_names
from mxwire.capture import create_capture, open_capture
from mxwire.dissector import expert_rows
from mxwire.simulation import Scenario, Simulation
from mxwire.wire.decoder import Decoder

from .support import CAPTURES, capture, columns, needs_tshark, parts

Marks = tuple[int, set[str]]
"""The number of the message, 0 without one, and the flags."""


def _path(name: str | Path) -> Path:
    return name if isinstance(name, Path) else capture(name)


@cache
def decoded_marks(name: str | Path) -> dict[int, Marks]:
    """The marks of the frames that have any, by frame number, as ``decode`` makes them."""
    marker, found = FrameMarker(), {}
    with open_capture(_path(name)) as reader:
        for decoded in Decoder().decode_all(reader):
            marks = marker.observe(decoded)
            flags = (set(flag_names(each)) for each in marks.flags.tolist())
            rows = zip(marks.message.tolist(), flags, strict=True)
            found |= dict(zip(decoded.batch.number.tolist(), rows, strict=True))
    return {number: marks for number, marks in found.items() if any(marks)}


FIELDS = ["frame.number", "mxoe.message", *(f"mxoe.analysis.{name}" for name in FLAGS)]


def dissected_marks(rows: list[list[str]]) -> dict[int, Marks]:
    """The same, as the plugin makes them."""
    found = {
        int(number): (int(message or 0), {name for name, value in zip(FLAGS, values, strict=True) if value})
        for number, message, *values in rows
    }
    return {number: marks for number, marks in found.items() if any(marks)}


@needs_tshark
def test_decode_and_the_plugin_mark_the_same_frames_of_the_same_messages(captures, one_pass):
    dissected, decoded = dissected_marks(one_pass(*FIELDS)), decoded_marks(captures)
    for name, rows in parts(captures):
        numbers = range(rows.start + 1, rows.stop + 1)
        assert [dissected.get(each) for each in numbers] == [decoded.get(each) for each in numbers], name


@needs_tshark
@pytest.mark.parametrize("options", [{"seed": 2, "hosts": 3}, {"seed": 8, "hosts": 3, "kill": 2}, {"seed": 12}])
def test_they_number_the_same_messages_of_simulated_hosts(options, tmp_path):
    """With losses, duplicates, disorder, and applications that die, which the captures do not have together."""
    path = tmp_path / "simulated.pcap"
    faults = {"loss": 0.05, "duplicate": 0.03, "reorder": 0.03, "messages": 60, "judged": False}
    with create_capture(path) as written:
        Simulation(Scenario(**options | faults), tap=written.write).run()
    numbers = {number: marks[0] for number, marks in decoded_marks(path).items() if marks[0]}
    dissected = dissected_marks(columns(path, FIELDS))
    assert numbers == {number: marks[0] for number, marks in dissected.items() if marks[0]}


def test_the_captures_show_most_flags():
    found = set().union(*(flags for name in CAPTURES for _, flags in decoded_marks(name).values()))
    assert found >= FLAGS.keys() - {"throttled", "probe"}


def test_the_plugin_declares_the_flags_with_their_words():
    rows = {each.name: each for each in expert_rows()}
    for name, flag in FLAGS.items():
        row = rows[f"mxoe.analysis.{name}"]
        assert (row.meaning, row.severity) == (flag.meaning, flag.severity)
