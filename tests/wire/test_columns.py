"""Functions of columns beyond single fields, on frames whose results are known."""

from __future__ import annotations

import numpy as np
import pytest

from mxwire.frames import FrameBatch
from mxwire.wire.checks import Reason
from mxwire.wire.codec import build
from mxwire.wire.columns import decode_columns
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.packets import HostReply, Notify, PullReply, Raw
from tests.frames import make_frame

from .support import CAPTURES, dialect_of, frames_of, read_capture
from .test_codec import HOSTS, PULL, TINY

REPLY = make_frame(PullReply, frame_seqnum=3, msg_offset=12288, dst_magic=0x21071985, data=b"reply")
NOTIFY = make_frame(
    Notify, dst_endpoint=9, src_endpoint=5, total_length=100, pulled_rdma_id=1, lib_seqnum=11, lib_piggyack=12
)
HOST_REPLY = make_frame(HostReply, src_dst_peer_index=4, hostname=b"vm1:0\0")


def columns_of(*frames):
    return decode_columns(FrameBatch.from_frames([build(each, MXOE) for each in frames]), MXOE)


def test_a_field_over_all_frames():
    values, present = columns_of(TINY, REPLY, NOTIFY, TINY).field("lib_seqnum")
    assert present.tolist() == [True, False, True, True]
    assert values.tolist() == [1, 0, 11, 1]


def test_a_field_that_no_frame_has():
    values, present = columns_of(TINY).field("frame_index")
    assert not present.any()
    assert not values.any()


def test_undefined_fields_are_not_offered():
    columns = columns_of(TINY, HOST_REPLY, REPLY)
    assert not columns.field("src_generation")[1].any()
    assert columns.field("dst_src_peer_index")[1].tolist() == [True, False, False]


def test_blocks_by_layout():
    columns = columns_of(TINY, REPLY, NOTIFY, TINY)
    assert [block.place.tolist() for block in columns.of("tiny")] == [[0, 3]]
    assert sorted(block.layout.name for block in columns.of("pull_reply", "notify")) == ["notify", "pull_reply"]
    assert list(columns.of("pull")) == []
    assert sum(len(block) for block in columns.blocks) == len(columns) == 4


def test_fields_are_unsigned_numbers_in_host_order():
    (block,) = columns_of(REPLY).of("pull_reply")
    assert block["msg_offset"].dtype == np.dtype(np.uint32)
    assert block["frame_length"].dtype == np.dtype(np.uint16)
    assert block["frame_seqnum"].dtype == np.dtype(np.uint8)
    assert block["dst_magic"].tolist() == [0x21071985]
    assert block["dst_magic"] is block["dst_magic"]


def test_places_of_data():
    columns = columns_of(TINY, REPLY, NOTIFY, HOST_REPLY, Raw(**HOSTS, opaque=b"abc"))
    assert columns.payload_offset.tolist() == [40, 32, 0, 0, 17]
    assert columns.payload_length.tolist() == [5, 5, -1, -1, 3]
    assert columns.packet_type.tolist() == [37, 42, 43, 4, 1]


def test_malformed_frames_have_no_data_but_their_fields():
    raw = build(TINY, MXOE)
    columns = decode_columns(FrameBatch.from_frames([raw, raw[:20] + b"\0\x21" + raw[22:], raw[:16]]), MXOE)
    assert columns.reason.tolist() == [Reason.NONE, Reason.BAD_DATA_LENGTH, Reason.BAD_HEADER_LENGTH]
    assert columns.reason_offset.tolist() == [0, 20, 16]
    assert columns.payload_length.tolist() == [5, -1, -1]
    assert columns.packet_type.tolist() == [37, 37, -1]
    assert columns.field("length")[0].tolist() == [5, 33, 0]


def test_dialects_side_by_side():
    raw = [build(PULL, dialect) for dialect in (omx(), MXOE, omx(1500))]
    columns = decode_columns(FrameBatch.from_frames(raw), (MXOE, omx()), np.array([1, 0, 1]))
    assert columns.field("src_magic")[0].tolist() == [PULL.src_magic] * 3
    assert columns.field("block_length")[0].tolist() == [PULL.block_length] * 3
    assert sorted(str(block.dialect) for block in columns.of("pull")) == ["mxoe", "omx:9000"]


def test_nothing_is_copied_but_headers():
    batch = FrameBatch.from_frames([build(TINY, MXOE)])
    assert decode_columns(batch, MXOE).batch.buffer is batch.buffer


@pytest.mark.parametrize("capture", [each for each in CAPTURES if "pingpong" in each or "echo" in each])
def test_a_capture_as_its_bytes_say(capture):
    """Offsets by hand, straight from the specification, for what is alike in both dialects."""
    batch = read_capture(capture)
    columns = decode_columns(batch, dialect_of(capture))
    raw = frames_of(batch)
    assert columns.packet_type.tolist() == [each[16] for each in raw]
    for name, packet_types, start, size in (
        ("session", (37, 38, 39, 40), 36, 4),
        ("session", (41, 43), 20, 4),
        ("match_b", (37, 38, 39, 40), 32, 4),
        ("msg_offset", (42,), 20, 4),
        ("frame_length", (42,), 18, 2),
        ("lib_seqnum", (43,), 34, 2),
        ("frag_seqnum", (39,), 42, 1),
        ("liback.acknum", (35,), 36, 4),
    ):
        values, present = columns.field(name)
        for index, each in enumerate(raw):
            if each[16] in packet_types:
                assert present[index]
                assert values[index] == int.from_bytes(each[start : start + size], "big")
