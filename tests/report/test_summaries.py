"""Lines of whole batches are those of their frames, one by one."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from mxwire.capture import open_capture
from mxwire.frames import FrameBatch, concatenate
from mxwire.report.frame_line import FrameLines
from mxwire.report.summary import summaries, summary
from mxwire.report.times import seconds_text, seconds_texts
from mxwire.wire.decoder import DecodedBatch, Decoder
from tests.cli.support import CAPTURES

FILES = ("mxoe-every-type", "omx9000-lossy-1M", "omx1500-pingpong-small-medium", "mxoe-lossy-1M")


def damaged(name: str, seed: int) -> DecodedBatch:
    """The frames of a capture, some with one other byte."""
    random = Random(seed)
    with open_capture(CAPTURES / f"{name}.pcap") as reader:
        whole = concatenate([*reader])[:400]
    frames = [bytearray(frame) for frame in whole]
    for frame in random.choices(frames, k=len(frames) // 2):
        frame[random.randrange(14, min(len(frame), 70))] = random.choice((0, 1, 128, 255, random.randrange(256)))
    batch = FrameBatch.from_frames([*map(bytes, frames)], whole.timestamp_ns.tolist())
    return Decoder().decode(replace(batch, wire_length=whole.wire_length))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("seed", range(3))
def test_a_batch_is_described_like_its_frames(name, seed):
    batch = damaged(name, seed)
    expected = [summary(batch.frame(place), batch.dialect(place)) for place in range(len(batch))]
    texts = summaries(batch)
    assert [text or each for text, each in zip(texts, expected, strict=True)] == expected
    assert sum(text is not None for text in texts) > len(batch) / 4
    places = np.arange(len(batch))
    for width in (None, 80, 132):
        whole = FrameLines("relative", width).lines(batch, places)
        # A few frames of a batch are described one by one.
        assert whole == [
            line for place in places for line in FrameLines("relative", width).lines(batch, places[[place]])
        ]
        assert all(width is None or len(line) <= width for each in whole for line in each.split("\n"))


def test_seconds_of_many_durations_are_those_of_each():
    durations = np.array([0, 1, 999_999_999, 10**9, 123_456_789_012_345, 10**18])
    for digits in (3, 6, 9):
        for these in (durations, durations - 5, durations[:0]):
            assert seconds_texts(these, digits) == [seconds_text(each, digits) for each in these.tolist()]
