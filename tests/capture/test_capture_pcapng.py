"""The pcapng format: its blocks, options, interfaces and sections."""

from __future__ import annotations

import gzip
import io
import struct

import pytest
from capture_builders import (
    FRAME,
    SECOND,
    block,
    end_of_options,
    ended,
    enhanced,
    frames_in,
    interface,
    obsolete,
    option,
    read_all,
    section,
    simple,
)

from mxwire.capture import open_capture, pcapng
from mxwire.capture.pcapng import PcapngDecoder
from mxwire.errors import CaptureError
from mxwire.frames import LINKTYPE_ETHERNET, LINKTYPE_LINUX_SLL

MICROSECOND = 1000
IEEE_802_11 = 105


def times_in(data):
    return [frame[2] for frame in frames_in(data)]


def resolution(value, order="<"):
    return option(9, bytes([value]), order)


@pytest.mark.parametrize("order", ["<", ">"])
def test_all_blocks_that_hold_frames(order):
    data = section(order) + interface(order) + interface(order)
    data += enhanced(FRAME, order, interface=1, ticks=2**32 + 5)
    data += obsolete(FRAME[:33], order, interface=1, ticks=2**33 + 6)
    data += simple(FRAME[:31], order)
    data += enhanced(FRAME[:20], order, original=60, options=option(1, b"a comment", order) + end_of_options(order))
    assert frames_in(data) == [
        (1, LINKTYPE_ETHERNET, (2**32 + 5) * MICROSECOND, 60, FRAME),
        (2, LINKTYPE_ETHERNET, (2**33 + 6) * MICROSECOND, 33, FRAME[:33]),
        (3, LINKTYPE_ETHERNET, 0, 31, FRAME[:31]),
        (4, LINKTYPE_ETHERNET, 0, 60, FRAME[:20]),
    ]


def test_simple_packets_are_cut_to_the_snap_length():
    data = section() + interface(snap_length=32) + simple(FRAME[:32], original=60) + simple(FRAME[:10])
    assert frames_in(data) == [
        (1, LINKTYPE_ETHERNET, 0, 60, FRAME[:32]),
        (2, LINKTYPE_ETHERNET, 0, 10, FRAME[:10]),
    ]


def test_simple_packets_have_no_time_even_on_an_interface_with_an_offset():
    data = section() + interface(options=option(14, struct.pack("<q", 1000))) + simple(FRAME)
    assert times_in(data) == [0]


@pytest.mark.parametrize("order", ["<", ">"])
def test_other_blocks_and_options_are_passed_over(order):
    others = [4, 5, 0xA, 0xBAD, 0x0BAD, 0x40000BAD, 0x80000001]
    between = b"".join(block(number, bytes(range(17)), order) for number in others)
    odd = option(2, b"eth0\0", order) + option(99, b"12345", order) + option(2988, b"", order) + end_of_options(order)
    data = section(order, odd) + between + interface(order, options=odd) + between
    data += between.join([enhanced(FRAME, order, ticks=number) for number in range(5)]) + between
    assert times_in(data) == [number * MICROSECOND for number in range(5)]


def test_properties_of_the_reader():
    texts = option(1, b"nightly\nrun") + option(2, b"EPYC") + option(3, b"Linux") + option(4, b"mxwire")
    properties = option(2, b"eth0") + option(3, b"the \xffport") + option(11, b"\0ether proto 0x86df")
    properties += option(12, b"Linux 6.1") + option(15, b"virtio") + resolution(9) + end_of_options()
    data = section(options=texts + end_of_options()) + interface(snap_length=128, options=properties)
    data += interface(snap_length=256) + section(">") + interface(">", link_type=LINKTYPE_LINUX_SLL, snap_length=64)
    with open_capture(io.BytesIO(data)) as reader:
        assert reader.format == "pcapng"
        assert reader.snap_length is None
        assert read_all(reader) == []
        first, second = reader.sections
        assert (first.hardware, first.operating_system, first.application) == ("EPYC", "Linux", "mxwire")
        assert first.comment == "nightly\nrun"
        assert (first.little_endian, second.little_endian) == (True, False)
        eth0, unnamed, cooked = reader.interfaces
        assert (eth0.name, eth0.description) == ("eth0", "the \N{REPLACEMENT CHARACTER}port")
        assert (eth0.capture_filter, eth0.operating_system) == ("ether proto 0x86df", "Linux 6.1")
        assert (eth0.hardware, eth0.ticks_per_second) == ("virtio", SECOND)
        assert (unnamed.name, unnamed.ticks_per_second, unnamed.number) == (None, 10**6, 1)
        assert (cooked.link_type, cooked.section, cooked.number) == (LINKTYPE_LINUX_SLL, 1, 0)
        assert reader.snap_length == 256


def test_resolutions_and_offsets_by_interface():
    ticks = 0x123456789ABC
    options = [b"", resolution(9), resolution(0), resolution(12), resolution(0x80 | 10), resolution(0x80 | 40)]
    options.append(resolution(9) + option(14, struct.pack("<q", 7)))
    options.append(resolution(9) + option(14, struct.pack("<q", -7)))
    expected = [
        ticks * 1000,
        ticks,
        (ticks * SECOND + 2**63) % 2**64 - 2**63,  # beyond int64: wraps
        ticks // 1000,
        ticks * SECOND >> 10,
        ticks * SECOND >> 40,
        ticks + 7 * SECOND,
        ticks - 7 * SECOND,
    ]
    expected[4] = (expected[4] + 2**63) % 2**64 - 2**63
    data = section() + b"".join(interface(options=each) for each in options)
    data += b"".join(enhanced(FRAME, interface=number, ticks=ticks) for number in range(len(options))) * 2
    assert times_in(data) == expected * 2


def test_sections_with_their_own_byte_order_and_interfaces():
    data = section("<") + interface("<") + enhanced(FRAME, "<", ticks=1)
    data += section(">") + interface(">", options=resolution(9, ">")) + enhanced(FRAME, ">", ticks=2)
    data += section("<") + interface("<", link_type=LINKTYPE_LINUX_SLL) + enhanced(FRAME, "<", ticks=3)
    assert [frame[:3] for frame in frames_in(data)] == [
        (1, LINKTYPE_ETHERNET, 1 * MICROSECOND),
        (2, LINKTYPE_ETHERNET, 2),
        (3, LINKTYPE_LINUX_SLL, 3 * MICROSECOND),
    ]


def test_a_new_batch_where_the_link_type_changes():
    data = section() + interface() + interface(link_type=LINKTYPE_LINUX_SLL)
    data += b"".join(enhanced(FRAME, interface=number) for number in (0, 0, 1, 1, 1, 0))
    with open_capture(io.BytesIO(data)) as reader:
        batches = [(batch.link_type, batch.number.tolist()) for batch in reader]
    assert batches == [(LINKTYPE_ETHERNET, [1, 2]), (LINKTYPE_LINUX_SLL, [3, 4, 5]), (LINKTYPE_ETHERNET, [6])]


def test_frames_of_other_link_types_are_skipped_and_counted():
    data = section() + interface() + interface(link_type=IEEE_802_11, options=option(2, b"wlan\x1b0"))
    data += b"".join(enhanced(FRAME, interface=number) for number in (1, 0, 1, 0, 0, 1))
    with open_capture(io.BytesIO(data)) as reader:
        assert [frame[0] for frame in read_all(reader)] == [2, 4, 5]
        assert reader.frames == 6
        assert reader.warnings == [
            r"stream: skipped 3 frames of interface 1 (wlan\x1b0) with link type 105, IEEE 802.11 (wireless)"
        ]


@pytest.mark.parametrize("chunk_bytes", [1, 4 << 20])
def test_one_warning_for_each_link_type_in_the_order_of_the_file(chunk_bytes):
    data = section() + interface(link_type=IEEE_802_11) + interface(link_type=9) + interface()
    data += b"".join(enhanced(FRAME, interface=number) for number in (0, 1, 2, 1))
    with open_capture(io.BytesIO(data), chunk_bytes=chunk_bytes) as reader:
        assert [frame[0] for frame in read_all(reader)] == [3]
        assert reader.warnings == [
            "stream: skipped 1 frame of interface 0 with link type 105, IEEE 802.11 (wireless)",
            "stream: skipped 2 frames of interface 1 with link type 9, PPP",
        ]


@pytest.mark.parametrize("frames", [0, 2])
def test_nothing_but_other_link_types(frames):
    data = section() + interface(link_type=IEEE_802_11) + enhanced(FRAME) * frames
    with (
        open_capture(io.BytesIO(data)) as reader,
        pytest.raises(CaptureError, match="no supported interface, only interface 0 with link type 105"),
    ):
        read_all(reader)


def test_no_interfaces_and_no_frames():
    assert frames_in(section()) == []


@pytest.mark.parametrize("value", [4, 32])
def test_frame_check_sequences_are_left_out(value):
    """The length is in bytes or in bits, depending on who wrote it."""
    data = section() + interface(options=option(13, bytes([value]))) + interface()
    data += enhanced(FRAME + b"FCS!") + enhanced(FRAME[:20], original=64) + enhanced(FRAME, interface=1)
    assert [frame[3:] for frame in frames_in(data)] == [(60, FRAME), (60, FRAME[:20]), (60, FRAME)]


def test_less_on_the_wire_than_captured_becomes_as_much():
    assert frames_in(section() + interface() + enhanced(FRAME, original=10))[0][3:] == (60, FRAME)


def test_a_block_whose_length_is_not_a_multiple_of_four():
    """Against the specification, but nothing about it is unclear."""
    body = struct.pack("<IIIII", 0, 0, 0, 59, 59) + FRAME[:59]
    unpadded = struct.pack("<II", 6, 91) + body + struct.pack("<I", 91)
    assert [frame[4] for frame in frames_in(section() + interface() + unpadded + enhanced(FRAME))] == [
        FRAME[:59],
        FRAME,
    ]


START = section() + interface() + enhanced(FRAME)


@pytest.mark.parametrize(
    ("damage", "output"),
    [
        (struct.pack("<IIIII", 6, 8, 0, 0, 0), "a block of type 0x6 claims 8 bytes"),
        (struct.pack("<III", 6, 28, 0), "a block of type 0x6 claims 28 bytes"),
        (struct.pack("<III", 1, 16, 0), "a block of type 0x1 claims 16 bytes"),
        (struct.pack("<III", 0xBAD, 11, 0), "a block of type 0xbad claims 11 bytes"),
        (struct.pack("<III", 0xBAD, 2**32 - 4, 0), "a block of type 0xbad claims 4294967292 bytes"),
        (struct.pack("<III", 0xBAD, (16 << 20) + 4, 0), "a block of type 0xbad claims 16777220 bytes"),
        (struct.pack("<IIII", 0xBAD, 16, 0, 20), "claims 16 bytes at its start, 20 at its end"),
        (enhanced(FRAME)[:-4] + bytes(4), "claims 92 bytes at its start, 0 at its end"),
        (enhanced(FRAME, interface=1), "a frame of interface 1, but the section has 1 interface"),
        (obsolete(FRAME, interface=65535), "a frame of interface 65535, but the section has 1 interface"),
        (section() + simple(FRAME), "a frame of interface 0, but the section has 0 interfaces"),
        (simple(FRAME, original=61), "a frame of 61 bytes in a block for 60"),
        (block(6, struct.pack("<IIIII", 0, 0, 0, 5, 5) + bytes(4)), "a frame of 5 bytes in a block for 4"),
        (block(0x0A0D0D0A, bytes(16)), "a section has 00000000 in place of its byte order"),
        (section(version=(2, 0)), "a section claims version 2.0 of the pcapng format"),
    ],
)
@pytest.mark.parametrize("numba", [False, True])
def test_damage(damage, output, numba):
    if numba:
        pytest.importorskip("numba")
    place = len(START) + (len(section()) if "0 interfaces" in output else 0)
    with open_capture(io.BytesIO(START + damage + enhanced(FRAME)), numba=numba) as reader:
        batches = iter(reader)
        assert len(next(batches)) == 1
        with pytest.raises(CaptureError, match=f"stream: damaged at byte {place}, after frame 1: ") as caught:
            next(batches)
    assert output in str(caught.value)


@pytest.mark.parametrize("have", [4, 12, 27])
def test_a_cut_off_header(have):
    with pytest.raises(CaptureError, match=f"cut off after {have} bytes of its header of at least 28"):
        open_capture(io.BytesIO(section()[:have]))


def test_a_cut_off_header_with_options():
    data = section(options=option(1, bytes(100)))
    with open_capture(io.BytesIO(data[:50])) as reader, pytest.raises(CaptureError, match="cut off after 50 bytes"):
        read_all(reader)


def test_cut_off_in_a_block():
    with open_capture(io.BytesIO(START + enhanced(FRAME)[:-5])) as reader:
        assert ended(reader) == (
            1,
            f"stream: cut off in the middle of the block at byte {len(START)}, after frame 1: 5 bytes missing",
        )


def test_cut_off_in_the_start_of_a_block():
    with open_capture(io.BytesIO(START + enhanced(FRAME)[:5])) as reader:
        assert ended(reader) == (
            1,
            f"stream: cut off in the middle of the block at byte {len(START)}, after frame 1: at least 7 bytes missing",
        )


def test_many_interfaces_are_read_in_linear_time():
    each = interface(options=resolution(9)) + interface() + interface(link_type=LINKTYPE_LINUX_SLL)
    data = section() + b"".join(each + enhanced(FRAME, interface=3 * number) for number in range(3000))
    with open_capture(io.BytesIO(data)) as reader:
        assert len(read_all(reader)) == 3000
        assert len(reader.interfaces) == 100


@pytest.mark.parametrize(
    ("repeated", "most", "many"), [(section(), 256, "sections"), (section() + interface() * 2, 128, "interfaces")]
)
def test_a_few_compressed_kilobytes_of_sections_are_refused(monkeypatch, repeated, most, many):
    assert pcapng.MOST_SECTIONS == pcapng.MOST_INTERFACES == 65536
    for limit in ("MOST_SECTIONS", "MOST_INTERFACES"):
        monkeypatch.setattr(pcapng, limit, 256)
    with open_capture(io.BytesIO(gzip.compress(repeated * most))) as reader:
        assert read_all(reader) == []
    with (
        open_capture(io.BytesIO(gzip.compress(repeated * (most + 1)))) as reader,
        pytest.raises(CaptureError, match=f"a file has more than 256 {many}"),
    ):
        read_all(reader)


@pytest.mark.parametrize("numba", [False, True])
def test_blocks_of_unknown_types_are_skipped_together(monkeypatch, numba):
    if numba:
        pytest.importorskip("numba")
    looked_at = []
    whole_block = PcapngDecoder._whole_block

    def counted(self, chunk):
        looked_at.append(chunk.offset)
        return whole_block(self, chunk)

    monkeypatch.setattr(PcapngDecoder, "_whole_block", counted)
    unknown = (block(0x7777, b"") + block(0x7778, b"abcd")) * 50_000
    with open_capture(io.BytesIO(section() + interface() + unknown + enhanced(FRAME)), numba=numba) as reader:
        assert len(read_all(reader)) == 1
    assert len(looked_at) < 20


def test_many_sections_are_read_but_not_all_described():
    data = (section() + interface() + enhanced(FRAME)) * 300
    with open_capture(io.BytesIO(data)) as reader:
        assert len(read_all(reader)) == 300
        assert len(reader.sections) == len(reader.interfaces) == 100
