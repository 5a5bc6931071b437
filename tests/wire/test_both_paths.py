"""One frame at a time or a whole batch as columns: the same answers, whatever the bytes, and never an exception."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.frames import FrameBatch
from mxwire.wire.checks import Reason
from mxwire.wire.codec import codec_of
from mxwire.wire.columns import decode_columns
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.encapsulation import locate

from .mutation import mutated, scattered
from .paths import assert_paths_agree
from .strategies import conversations, relaxed
from .support import CAPTURES, VERDICT_FILES, dialect_of, layouts, read_capture, read_verdicts

MIXED = (MXOE, omx(9000), omx(1500), omx(9000, "N3"))
BATCHES = 10
FRAMES_A_BATCH = 10_000


@pytest.mark.parametrize("capture", CAPTURES)
def test_captures(capture):
    """Read in the right dialect, in the wrong ones, and as if the sender were swapped."""
    located = locate(read_capture(capture))
    dialect = dialect_of(capture)
    verdicts = assert_paths_agree(decode_columns(located, dialect), [codec_of(dialect)] * len(located.batch))
    assert set(verdicts) == {""}
    every = np.ones(len(located.batch), np.bool_)
    for other in MIXED:
        columns = decode_columns(located, other, swapped=every)
        assert_paths_agree(columns, [codec_of(other, swapped=True)] * len(located.batch))


@pytest.mark.parametrize("name", VERDICT_FILES)
@pytest.mark.parametrize("dialect", MIXED, ids=str)
def test_frames_sent_to_the_driver(name, dialect):
    located = locate(FrameBatch.from_frames([each.frame for each in read_verdicts(name)]))
    verdicts = assert_paths_agree(decode_columns(located, dialect), [codec_of(dialect)] * len(located.batch))
    assert verdicts["bad data length"] > 20


@pytest.mark.parametrize("seed", range(BATCHES))
def test_mutated_frames(seed):
    """100,000 in all; dialect and byte order mixed within a batch."""
    random = Random(seed)
    batch = scattered([mutated(random) for _ in range(FRAMES_A_BATCH)], random)
    located = locate(batch)
    assert located.skipped < FRAMES_A_BATCH // 10
    which = np.array(random.choices(range(len(MIXED)), k=len(located.batch)), np.intp)
    swapped = np.array(random.choices((False, True), k=len(located.batch)), np.bool_)
    columns = decode_columns(located, MIXED, which, swapped)
    codecs = [codec_of(MIXED[one], swapped=order) for one, order in zip(which.tolist(), swapped.tolist(), strict=True)]
    verdicts = assert_paths_agree(columns, codecs)
    assert set(verdicts) == {each.text for each in Reason}
    assert min(verdicts.values()) > 5
    assert {block.layout.name for block in columns.blocks} == set(layouts(MXOE))


@pytest.mark.parametrize("seed", range(3))
def test_mutated_frames_through_a_decoder(seed):
    """The decoder's two faces say the same, whatever it makes of such hosts."""
    random = Random(seed)
    decoder = Decoder()
    for _ in range(3):
        decoded = decoder.decode(scattered([mutated(random) for _ in range(1000)], random))
        assert_paths_agree(decoded.columns, [decoded.codec(index) for index in range(len(decoded))])
        assert all(decoded.frame(index) is not None for index in range(0, len(decoded), 50))
    assert decoder.detections()


arbitrary = st.lists(
    st.tuples(
        st.binary(max_size=12),
        st.sampled_from([b"", b"\x86\xdf", b"\x81\x00\x00\x05\x86\xdf", b"\x88\xa8\x00\x05\x81\x00\xff\xff\x86\xdf"]),
        st.sampled_from([0, 1, 2, 3, 4, *range(32, 47), 255]),
        st.binary(max_size=90),
        st.integers(0, 2000),
    ),
    max_size=8,
)


@relaxed
@given(arbitrary, st.sampled_from(MIXED), st.data())
def test_arbitrary_bytes(parts, dialect, data):
    frames = []
    for addresses, ethertype, packet_type, rest, length in parts:
        frame = addresses.ljust(12, b"\x02") + ethertype + b"\0\0" + bytes([packet_type]) + rest
        frames.append((frame[: data.draw(st.integers(0, len(frame)))], length))
    located = locate(scattered(frames, Random(0)))
    count = len(located.batch)
    assert count + located.skipped == len(frames)
    swapped = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    columns = decode_columns(located, dialect, swapped=np.array(swapped, np.bool_))
    assert_paths_agree(columns, [codec_of(dialect, swapped=each) for each in swapped])


@relaxed
@given(st.lists(conversations(), max_size=6), st.booleans())
def test_well_formed_frames(conversations, swapped):
    raw = [codec_of(dialect, swapped=swapped).build(frame) for dialect, frame in conversations]
    located = locate(FrameBatch.from_frames([each[:12] + b"\x86\xdf" + each[14:] for each in raw]))
    dialects = tuple(dialect for dialect, _ in conversations) or (MXOE,)
    which = np.arange(len(raw))
    columns = decode_columns(located, dialects, which, np.full(len(raw), swapped))
    verdicts = assert_paths_agree(columns, [codec_of(each, swapped=swapped) for each in dialects[: len(raw)]])
    assert set(verdicts) <= {""}


def test_nothing_at_all():
    columns = decode_columns(FrameBatch.from_frames([]), MXOE)
    assert len(columns) == 0
    assert columns.blocks == ()
    assert Decoder().decode(FrameBatch.from_frames([])).columns.blocks == ()
