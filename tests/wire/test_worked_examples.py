"""Every dump of the worked examples, byte for byte."""

from __future__ import annotations

from typing import Any

import pytest

from mxwire.wire.codec import Malformed, build, codec_of, parse
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.packets import Medium, NackLib, NackMcp, Pull, PullReply, Rndv, Tiny

from .support import defined_bytes, layouts
from .worked_examples import Example, examples, tables

EXAMPLES = examples()
A = {"src_mac": bytes.fromhex("02000000000a"), "dst_mac": bytes.fromhex("02000000000b")}
B = {"src_mac": bytes.fromhex("02000000000b"), "dst_mac": bytes.fromhex("02000000000a")}


def spoken(example: Example):
    """The dialects that an example is written in."""
    return [example.dialect] if example.dialect else [MXOE, omx(1500), omx(9000)]


def read(example: Example, dialect):
    """Of frames of which only the start is printed, the rest is long enough on the wire."""
    return codec_of(dialect).parse(example.frame, None if example.complete else 9000)


def test_all_dumps_are_found_and_have_the_right_contents():
    assert [type(read(each, spoken(each)[0])).__name__ for each in EXAMPLES] == [
        "Announcement",
        "HostQuery",
        "HostReply",
        "ConnectRequest",
        "ConnectReply",
        "Tiny",
        "Truc",
        "Small",
        *3 * ["Medium"],
        "Rndv",
        "Pull",
        "PullReply",
        *5 * ["Pull"],
        "Notify",
        *2 * ["NackLib"],
        "NackMcp",
    ]


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_built_again_every_defined_byte_is_the_same(example):
    for dialect in spoken(example):
        frame = read(example, dialect)
        assert not isinstance(frame, Malformed)
        built = build(frame, dialect)
        if example.complete:
            assert len(built) == len(example.shown)
        different = {
            place: (shown, built[place])
            for place, shown in enumerate(example.shown)
            if shown is not None and shown != built[place]
        }
        assert not different


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_exactly_the_undefined_bytes_are_dots(example):
    """But for two: the checksum is undefined in a release library, and an announcement pads with zeros."""
    for dialect in spoken(example):
        frame = read(example, dialect)
        layout = layouts(dialect)[frame.layout_name]
        mask = defined_bytes(layout, example.frame)
        if "checksum" in layout.by_name:
            checksum = layout.by_name["checksum"]
            mask[checksum.offset : checksum.end] = [False, False]
        if layout.name == "raw_omxoed":
            mask = [True] * 64
        assert [shown is not None for shown in example.shown] == mask


def of(name: str, dialect=None, *, heading: str = "") -> Any:
    """The first example of a packet type in a dialect, below a heading."""
    for each in EXAMPLES:
        if each.dialect == dialect and each.heading.startswith(heading):
            frame = read(each, dialect or MXOE)
            if type(frame).__name__ == name:
                return frame
    raise LookupError(name)


def test_tiny_hello():
    assert of("Tiny") == Tiny(
        **A,
        dst_src_peer_index=3,
        dst_endpoint=5,
        src_endpoint=0,
        length=5,
        lib_seqnum=1,
        lib_piggyack=1,
        match_a=0x00010002,
        match_b=0x00030004,
        session=0x33334444,
        data=b"hello",
    )


def test_rndv_of_100000_bytes():
    assert of("Rndv") == Rndv(
        **A,
        dst_src_peer_index=3,
        dst_endpoint=5,
        src_endpoint=0,
        length=8,
        lib_seqnum=3,
        lib_piggyack=1,
        match_a=0x00010002,
        match_b=0x00030004,
        session=0x33334444,
        msg_length=100000,
        pulled_rdma_id=0,
        pulled_rdma_seqnum=23,
        pulled_rdma_offset=0,
    )


@pytest.mark.parametrize(
    ("dialect", "heading", "offset", "block_length"),
    [
        (MXOE, "6.1", 0, 32768),
        (omx(1500), "6.1", 0, 46976),
        (omx(9000), "6.1", 0, 100000),
        (MXOE, "6.2", 291, 32477),
        (omx(1500), "6.2", 291, 46685),
        (omx(9000), "6.2", 291, 100000),
    ],
)
def test_first_pull(dialect, heading, offset, block_length):
    assert of("Pull", dialect, heading=heading) == Pull(
        **B,
        dst_src_peer_index=1,
        dst_endpoint=0,
        src_endpoint=5,
        session=0x11112222,
        total_length=100000,
        pulled_rdma_id=0,
        pulled_rdma_seqnum=23,
        pulled_rdma_offset=offset,
        src_pull_handle=0x23,
        src_magic=0x21071980 ^ 5,
        first_frame_offset=offset,
        block_length=block_length,
        frame_index=0,
    )


def test_nack_of_a_connect_to_a_closed_endpoint():
    assert of("NackLib") == NackLib(
        **B,
        dst_src_peer_index=1,
        src_endpoint=7,
        nack_type=2,
        dst_endpoint=0,
        dst_src_peer_index_copy=1,
        lib_seqnum=0,
    )


def test_nack_of_a_pull_from_a_released_region():
    assert of("NackMcp") == NackMcp(
        **A, dst_src_peer_index=3, src_endpoint=5, nack_type=4, src_pull_handle=0x23, src_magic=0x21071985
    )


def test_others_by_some_fields():
    assert of("HostReply").hostname == b"hosta:0\0"
    assert of("HostReply").src_dst_peer_index == 1
    assert of("ConnectRequest").app_key == 0x12345678
    assert of("ConnectReply").target_session_id == 0x33334444
    assert of("ConnectReply").connect_status_code == 0
    assert (of("Truc").liback_lib_seqnum, of("Truc").liback_acknum) == (2, 1)
    assert of("Small").data == bytes(range(0x28))
    assert of("Medium", MXOE).frag_pipeline == 12
    assert of("Medium", omx(1500)).frag_pipeline is None
    assert (of("Notify").total_length, of("Notify").lib_seqnum, of("Notify").lib_piggyack) == (100000, 1, 4)


def test_tables_of_fragments():
    """Sizes by the dialect, and the frame lengths that building gives."""
    found = tables("fragment")
    assert [each.dialect for each in found] == [MXOE, omx(1500), omx(9000)]
    for table in found:
        dialect = table.dialect
        sizes = [int(row["frag_length"]) for row in table.rows]
        assert all(size == dialect.fragment_payload for size in sizes[:-1])
        assert sum(sizes) == 10000
        for row, size in zip(table.rows, sizes, strict=True):
            frame = Medium(
                **A,
                dst_endpoint=5,
                src_endpoint=0,
                length=10000,
                lib_seqnum=3,
                lib_piggyack=1,
                match_a=1,
                match_b=2,
                session=3,
                frag_length=size,
                frag_seqnum=int(row["frag_seqnum"]),
                frag_pipeline=int(row["frag_pipeline"]) if row["frag_pipeline"] != "undefined" else None,
                data=bytes(size),
            )
            assert len(build(frame, dialect)) == int(row["frame length"])
            assert parse(build(frame, dialect), dialect) == frame


def test_tables_of_replies():
    found = tables("PULL_REPLY of PULL")
    assert [each.dialect for each in found] == 2 * [MXOE, omx(1500), omx(9000)]
    for table in found:
        dialect = table.dialect
        sizes = [int(row["frame_length"]) for row in table.rows]
        assert max(sizes) == dialect.reply_payload
        assert sum(sizes) == 100000
        for row, size in zip(table.rows, sizes, strict=True):
            frame = PullReply(
                **A,
                frame_seqnum=int(row["frame_seqnum"]) % 256,
                frame_length=size,
                msg_offset=int(row["msg_offset"]),
                dst_pull_handle=0x23,
                dst_magic=0x21071985,
                data=bytes(size),
            )
            assert len(build(frame, dialect)) == int(row["frame length"])
            assert parse(build(frame, dialect), dialect) == frame


def test_tables_of_blocks():
    found = tables("PULL")
    assert len(found) == 6
    for table in found:
        full = table.dialect.block_length
        assert all(int(row["first_frame_offset"]) + int(row["block_length"]) <= full for row in table.rows)
        assert sum(int(row["block_length"]) for row in table.rows) == 100000
        starts = [int(row["frame_index"]) for row in table.rows]
        assert starts == [place * table.dialect.frames_per_block for place in range(len(starts))]
