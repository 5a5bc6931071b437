"""JSON of whole batches is that of their frames, one by one; ordinary values are left out."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.analysis.conversations import Follower
from mxwire.analysis.marks import FrameMarker
from mxwire.frames import FrameBatch
from mxwire.report.compact import compact
from mxwire.report.frame_json import FrameJson, json_lines
from mxwire.report.messages import message_json
from mxwire.wire.decoder import DecodedBatch, Decoder
from tests.analysis.conversations.support import CAPTURES, decoded, dialect_of, read_capture
from tests.report.test_summaries import FILES, damaged

COUNTED_FROM_ONE = {"frame_count": 1, "transmissions": 1, "notify_transmissions": 1}


def alike(batch: DecodedBatch, *, marked: bool, start_ns: int = 0, path: str | None = None) -> int:
    """Check a batch frame by frame; return the number of frames whose lines were made from columns."""
    marks = FrameMarker().observe(batch) if marked else None
    output = FrameJson(several=path is not None)
    decoder = Decoder()
    decoder.start_ns = start_ns
    output.begin(path or "", decoder)
    expected = [next(output.lines(batch, place, marks)) for place in range(len(batch))]
    found = json_lines(batch, marks, start_ns, "" if path is None else f'"file":"{path}",')
    assert [text or each for text, each in zip(found, expected, strict=True)] == expected
    return sum(text is not None for text in found)


@pytest.mark.parametrize("capture", CAPTURES)
def test_lines_of_a_capture_are_those_of_its_frames(capture):
    (batch,) = decoded([read_capture(capture)], dialect_of(capture))
    for marked in (True, False):
        alike(batch, marked=marked, start_ns=int(batch.batch.timestamp_ns[0]))


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1 << 32), start_ns=st.sampled_from((0, 1_700_000_000 * 10**9, -(10**18))))
def test_lines_of_damaged_frames_are_those_of_each(name, seed, start_ns):
    batch = damaged(name, seed)
    assert alike(batch, marked=bool(seed & 1), start_ns=start_ns) > len(batch) / 4


def test_snap_lengths_tags_and_names_of_files_are_shown(tmp_path):
    (batch,) = decoded([read_capture("omx1500-pingpong-small-medium")], None)
    frames = [batch.batch.frame(place) for place in range(len(batch))]
    tagged = [each[:12] + b"\x81\x00\x00\x07" + each[12:] if place % 3 else each for place, each in enumerate(frames)]
    cut = FrameBatch.from_frames([each[:50] for each in frames], batch.batch.timestamp_ns.tolist())
    cut = replace(cut, wire_length=np.array([*map(len, frames)]))
    for each in (cut, FrameBatch.from_frames(tagged, batch.batch.timestamp_ns.tolist())):
        assert alike(Decoder().decode(each), marked=True, path="100%s.pcap") > 10


def test_ordinary_values_are_left_out_and_nothing_else():
    """Every key that is missing has its ordinary value in the full object."""
    follower = Follower()
    messages = [*follower.observe(*decoded([read_capture("mxoe-lossy-1M")], None)), *follower.finish()]
    for each in messages:
        full = json.loads(message_json(each, {}, 0, full=True))
        short = json.loads(message_json(each, {}, 0))
        assert short.items() <= full.items() and [*short] == [key for key in full if key in short]
        for key in full.keys() - short.keys():
            same = {"end_ns": "ack_ns", "bytes_seen": "length"}.get(key, "start_ns")
            assert (
                full[key] in (None, [], COUNTED_FROM_ONE.get(key, 0), "piggyback", full[same])
                or key.endswith(("_s", "_session"))
            ), key  # fmt: skip


def test_an_unfinished_message_is_not_shortened_to_a_complete_one():
    made = compact({"start_ns": 5, "complete_ns": None, "last_ns": 5, "end_ns": 9, "ack_ns": None, "length": 0})
    assert made == {"start_ns": 5, "complete_ns": None, "end_ns": 9, "length": 0}
