"""``mxwire decode`` and the plugin mark the same frames with the same flags, although each follows by its own code."""

from __future__ import annotations

import pytest

from mxwire.analysis.marks import FLAGS, FrameMarker, flag_names
from mxwire.capture import open_capture
from mxwire.dissector import expert_rows
from mxwire.wire.decoder import Decoder
from tests.dissector.support import CAPTURES, capture, columns, needs_tshark


def decoded_marks(path) -> dict[int, set[str]]:
    marker, found = FrameMarker(), {}
    with open_capture(path) as reader:
        for decoded in Decoder().decode_all(reader):
            flags = marker.observe(decoded).flags.tolist()
            found |= dict(zip(decoded.batch.number.tolist(), (set(flag_names(each)) for each in flags), strict=True))
    return {number: flags for number, flags in found.items() if flags}


def dissected_marks(path) -> dict[int, set[str]]:
    rows = columns(path, ["frame.number", *(f"mxoe.analysis.{name}" for name in FLAGS)])
    found = {
        int(number): {name for name, value in zip(FLAGS, values, strict=True) if value} for number, *values in rows
    }
    return {number: flags for number, flags in found.items() if flags}


@needs_tshark
@pytest.mark.parametrize("name", CAPTURES)
def test_decode_and_the_plugin_mark_the_same_frames(name):
    assert dissected_marks(capture(name)) == decoded_marks(capture(name))


def test_the_captures_show_most_flags():
    found = set().union(*(flags for name in CAPTURES for flags in decoded_marks(capture(name)).values()))
    assert found >= FLAGS.keys() - {"throttled", "probe"}


def test_the_plugin_declares_the_flags_with_their_words():
    rows = {each.name: each for each in expert_rows()}
    for name, flag in FLAGS.items():
        row = rows[f"mxoe.analysis.{name}"]
        assert (row.meaning, row.severity) == (flag.meaning, flag.severity)
