"""Every dump of the worked examples, byte for byte."""

from __future__ import annotations

import pytest

from mxwire.wire.codec import Malformed, build, codec_of, parse
from mxwire.wire.dialect import MXOE, dialect_by_name, omx
from mxwire.wire.packets import Medium, PullReply

from .example_packets import PACKETS
from .support import defined_bytes, layouts
from .worked_examples import Example, examples, tables

EXAMPLES = examples()
A = {"src_mac": bytes.fromhex("02000000000a"), "dst_mac": bytes.fromhex("02000000000b")}


def spoken(example: Example):
    """The dialects that an example is written in."""
    return [example.dialect] if example.dialect else [MXOE, omx(1500), omx(9000)]


def read(example: Example, dialect):
    """Of frames of which only the start is printed, the rest is long enough on the wire."""
    return codec_of(dialect).parse(example.frame, None if example.complete else 9000)


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


@pytest.mark.parametrize(("example", "packet"), [*zip(EXAMPLES, PACKETS, strict=True)], ids=str)
def test_the_fields_have_the_values_of_the_text(example, packet):
    frame = read(example, dialect_by_name(packet.dialect))
    assert frame.layout_name == ("raw_omxoed" if packet.kind == "RAW" else packet.kind.lower())
    assert {name: getattr(frame, name) for name in packet.fields} == packet.fields
    assert not example.complete or getattr(frame, "data", getattr(frame, "hostname", b"")) == packet.data


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
