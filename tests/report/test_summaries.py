"""Lines of whole batches are those of their frames, one by one."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.capture import open_capture
from mxwire.frames import FrameBatch, concatenate
from mxwire.report.frame_line import FrameLines
from mxwire.report.summary import summary, summary_column
from mxwire.report.text_columns import (
    chosen,
    constant,
    decimals,
    described,
    extended,
    hexadecimals,
    rows_of,
    seconds_column,
    sequence_column,
    text_of,
)
from mxwire.report.times import seconds_text
from mxwire.wire.decoder import DecodedBatch, Decoder
from mxwire.wire.enums import sequence_text
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
@pytest.mark.parametrize(("seed", "width"), [(0, None), (1, 80), (2, 132)])
def test_a_batch_is_described_like_its_frames(name, seed, width):
    batch = damaged(name, seed)
    places = np.arange(len(batch))
    expected = [summary(batch.frame(place), batch.dialect(place)).encode() for place in places]
    column, others = summary_column(batch, places)
    texts = rows_of(len(batch), column)
    assert {place for place in places if texts[place] != expected[place]} == {*others.tolist()}
    assert not any(texts[place] for place in others)
    assert len(others) < len(batch) * 3 / 4
    whole = FrameLines("relative", width).lines(batch, places)
    # A few frames of a batch are described one by one.
    assert whole == [line for place in places for line in FrameLines("relative", width).lines(batch, places[[place]])]
    assert all(width is None or len(line) <= width for each in whole for line in each.split("\n"))
    for marks in ({}, {0: "retransmission"}, {int(place): f"mark {place}" for place in places[: len(places) // 2 : 7]}):
        lines = FrameLines("relative", None).lines(batch, places[::2], marks)
        octets = FrameLines("relative", None).octets(batch, places[::2], marks)
        assert octets == "".join(f"{each}\n" for each in lines).encode()


def test_seconds_of_many_durations_are_those_of_each():
    durations = np.array([0, 1, 999_999_999, 10**9, 123_456_789_012_345, 10**18])
    for digits in (3, 6, 9):
        for these in (durations, durations - 5, durations[:0]):
            expected = [seconds_text(each, digits).encode() for each in these.tolist()]
            assert rows_of(len(these), seconds_column(these, digits)) == expected


@given(
    numbers=st.lists(st.integers(0, 2**62) | st.integers(0, 99_999)),
    width=st.integers(1, 12),
    fill=st.sampled_from(" 0"),
)
def test_a_column_of_decimals_has_the_text_of_each_number(numbers, width, fill):
    expected = [f"{each:{fill}>{width}}".encode() for each in numbers]
    assert rows_of(len(numbers), decimals(np.array(numbers, np.int64), width, fill)) == expected


@given(numbers=st.lists(st.integers(0, 2**32 - 1)))
def test_a_column_of_hexadecimal_numbers_has_8_digits_each(numbers):
    expected = [b"%08x" % each for each in numbers]
    assert rows_of(len(numbers), hexadecimals(np.array(numbers, np.int64))) == expected


@given(numbers=st.lists(st.integers(0, 2**16 - 1)))
def test_a_column_of_sequence_numbers_has_their_sessions(numbers):
    expected = [sequence_text(each).encode() for each in numbers]
    assert rows_of(len(numbers), sequence_column(np.array(numbers, np.int64))) == expected


@given(
    rows=st.lists(st.tuples(st.integers(0, 2**33) | st.integers(0, 9), st.text("aµ→", max_size=3))), same=st.text("x→")
)
def test_columns_side_by_side_are_the_texts_one_after_another(rows, same):
    numbers, texts = np.array([number for number, _ in rows], np.int64), [text for _, text in rows]
    found = rows_of(len(rows), described(hex, numbers), constant(same), chosen(texts))
    assert found == [f"{number:#x}{same}{text}".encode() for number, text in rows]


@given(rests=st.lists(st.none() | st.text("aµ", max_size=3)))
def test_some_rows_of_a_text_are_extended(rests):
    text = text_of(len(rests), chosen([f"→{row}" for row in range(len(rests))]))
    found = extended(text, {row: rest for row, rest in enumerate(rests) if rest is not None})
    assert found == "".join(f"→{row}{rest or ''}\n" for row, rest in enumerate(rests)).encode()


def test_small_unsigned_numbers_of_64_bits_are_described():
    """Like the match information of messages."""
    assert rows_of(3, described(hex, np.array([5, 3, 5], np.uint64))) == [b"0x5", b"0x3", b"0x5"]
