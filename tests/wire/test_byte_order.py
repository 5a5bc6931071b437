"""Senders whose build has the endian option off are recognised, and read to the same values."""

from __future__ import annotations

import dataclasses
from itertools import product

import pytest

from mxwire.frames import FrameBatch
from mxwire.wire.codec import codec_of
from mxwire.wire.columns import decode_columns
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import MXOE, omx

from .support import CAPTURES, DIALECTS, dialect_of, frames_of, read_capture, split
from .test_codec import MEDIUM, TINY
from .traffic import A, B, medium, on_the_wire, transfer, with_swapped


def senders(capture: str) -> list[bytes]:
    return sorted({raw[6:12] for raw in frames_of(read_capture(capture))})


def swaps(capture: str) -> list[list[bytes]]:
    """Each sender of a capture alone, and all of them."""
    found = senders(capture)
    return [*([each] for each in found), found]


@pytest.mark.parametrize("capture", CAPTURES)
class TestCaptures:
    def test_exactly_the_swapped_are_recognised(self, capture):
        for swapped, size in product(swaps(capture), (7, 100_000)):
            decoder = Decoder()
            for batch in split(with_swapped(capture, tuple(swapped)), size):
                decoder.decode(batch)
            found = sorted(each.to_bytes(6, "big") for each in decoder.swapped_hosts())
            assert found == swapped, f"in batches of {size}"

    def test_all_is_the_same(self, capture):
        """Fields, columns and the dialect."""
        codec = codec_of(dialect_of(capture))
        original, straight = read_capture(capture), Decoder()
        straight.decode(original)
        frames = [
            codec.parse(original.frame(index), int(original.wire_length[index])) for index in range(len(original))
        ]
        wanted = decode_columns(original, dialect_of(capture))
        names = {name for block in wanted.blocks for name in block.names}
        fields = {name: [each.tolist() for each in wanted.field(name)] for name in names}
        for swapped in swaps(capture):
            decoder = Decoder()
            decoded = decoder.decode(with_swapped(capture, tuple(swapped)))
            assert decoder.detections() == straight.detections(), swapped
            for index, frame in enumerate(frames):
                assert decoded.frame(index) == frame, swapped
                assert decoded.is_swapped(index) == (frame.src_mac in swapped), swapped
            assert [each.swapped for each in decoded.codecs()] == [frame.src_mac in swapped for frame in frames]
            columns = decoded.columns
            for name, expected in fields.items():
                assert [each.tolist() for each in columns.field(name)] == expected, (name, swapped)
            assert not columns.reason.any(), swapped
            assert columns.payload_length.tolist() == wanted.payload_length.tolist(), swapped


def test_a_quiet_host_is_recognised_behind_a_loud_one():
    """Thousands of frames of a host that show nothing of its byte order come first, in the same batch."""
    loud = codec_of(MXOE).build(MEDIUM)
    back = dataclasses.replace(TINY, src_mac=TINY.dst_mac, dst_mac=TINY.src_mac)
    quiet = codec_of(MXOE, swapped=True).build(back)
    decoder = Decoder()
    decoded = decoder.decode(FrameBatch.from_frames([loud] * 5000 + [quiet]))
    assert decoder.swapped_hosts() == [int.from_bytes(TINY.dst_mac, "big")]
    assert decoded.frame(5000) == back


def test_a_quiet_host_is_recognised_behind_one_whose_frames_read_both_ways():
    """An empty TINY has length 0 in either order."""
    empty = codec_of(MXOE).build(dataclasses.replace(TINY, length=0, data=b""))
    back = dataclasses.replace(TINY, src_mac=TINY.dst_mac, dst_mac=TINY.src_mac)
    decoder = Decoder()
    decoder.decode(FrameBatch.from_frames([empty] * 5000 + [codec_of(MXOE, swapped=True).build(back)]))
    assert decoder.swapped_hosts() == [int.from_bytes(TINY.dst_mac, "big")]


def test_without_evidence_no_host_is_swapped():
    """Frames that are valid in both orders are read in network order."""
    empty = dataclasses.replace(TINY, length=0, data=b"")
    decoder = Decoder()
    decoder.decode(FrameBatch.from_frames([codec_of(MXOE, swapped=True).build(empty)] * 10))
    assert decoder.swapped_hosts() == []


def test_a_length_that_fits_in_neither_order_is_not_evidence():
    """25 bytes of data, read the wrong way round, are not in a frame of 60 bytes either."""
    raw = bytearray(codec_of(MXOE).build(TINY))
    raw[20:22] = b"\x19\0"
    decoder = Decoder()
    decoder.decode(FrameBatch.from_frames([bytes(raw)]))
    assert decoder.swapped_hosts() == []


@pytest.mark.parametrize("size", [1, 100])
def test_one_odd_frame_at_first_is_outvoted(size):
    raw = [codec_of(MXOE, swapped=True).build(TINY)] + [codec_of(MXOE).build(TINY)] * 3
    decoder = Decoder()
    for batch in split(FrameBatch.from_frames(raw), size):
        decoder.decode(batch)
    assert decoder.swapped_hosts() == []


def test_one_odd_frame_does_not_turn_a_settled_sender():
    raw = [codec_of(MXOE).build(TINY)] * 20 + [codec_of(MXOE, swapped=True).build(TINY)] * 3
    for size in (1, 100):
        decoder = Decoder()
        for batch in split(FrameBatch.from_frames(raw), size):
            decoder.decode(batch)
        assert decoder.swapped_hosts() == []


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=str)
def test_swapped_hosts_of_every_dialect(dialect):
    frames = transfer(dialect, 2 * dialect.block_length) + medium(dialect, 30000, dialect.fragment_payload)
    decoder = Decoder()
    decoded = decoder.decode(FrameBatch.from_frames(on_the_wire(dialect, frames, swapped=True)))
    assert {each.to_bytes(6, "big") for each in decoder.swapped_hosts()} == {A, B}
    assert [each.dialect for each in decoder.detections()] == [dialect]
    codec = codec_of(dialect)
    assert [decoded.frame(index) for index in range(len(frames))] == [codec.parse(codec.build(each)) for each in frames]


def test_a_32_bit_length_is_not_taken_for_an_older_generation():
    """In little-endian order its lower half stands where N3 has all of its length."""
    hello = on_the_wire(omx(), [TINY], swapped=True)
    frames = on_the_wire(omx(1500), medium(omx(1500), 10000, 1452, TINY.src_mac, TINY.dst_mac), swapped=True)
    decoder = Decoder()
    decoder.decode(FrameBatch.from_frames(hello + frames))
    assert [each.dialect for each in decoder.detections()] == [omx(1500)]
