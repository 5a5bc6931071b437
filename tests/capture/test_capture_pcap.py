"""The pcap format in all its variants."""

from __future__ import annotations

import io

import pytest
from capture_builders import FRAME, SECOND, ended, frames_in, pcap_header, read_all, record

from mxwire.capture import open_capture
from mxwire.errors import CaptureError
from mxwire.frames import LINKTYPE_ETHERNET, LINKTYPE_LINUX_SLL, LINKTYPE_LINUX_SLL2


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "unit"), [(0xA1B2C3D4, 1000), (0xA1B23C4D, 1)])
def test_byte_orders_and_units(order, magic, unit):
    latest = 2**32 - 1
    data = pcap_header(order, magic=magic)
    data += record(FRAME, order, seconds=5, fraction=999_999)
    data += record(FRAME[:20], order, seconds=latest, fraction=1, original=60)
    assert frames_in(data) == [
        (1, LINKTYPE_ETHERNET, 5 * SECOND + 999_999 * unit, 60, FRAME),
        (2, LINKTYPE_ETHERNET, latest * SECOND + unit, 60, FRAME[:20]),
    ]


@pytest.mark.parametrize("order", ["<", ">"])
def test_properties_of_the_reader(order):
    data = pcap_header(order, magic=0xA1B23C4D, snap_length=96, link_field=LINKTYPE_LINUX_SLL2) + record(FRAME, order)
    with open_capture(io.BytesIO(data)) as reader:
        assert (reader.name, reader.format, reader.compression) == ("stream", "pcap", None)
        assert reader.snap_length == 96
        assert reader.interfaces[0].ticks_per_second == SECOND
        assert reader.interfaces[0].link_type == LINKTYPE_LINUX_SLL2
        assert reader.sections[0].little_endian == (order == "<")
        assert reader.total_bytes is None
        assert reader.frames == 0
        assert len(read_all(reader)) == reader.frames == 1
        assert reader.bytes_read == len(data)
        assert list(reader) == []


@pytest.mark.parametrize("link_type", [LINKTYPE_ETHERNET, LINKTYPE_LINUX_SLL, LINKTYPE_LINUX_SLL2])
def test_link_types(link_type):
    (frame,) = frames_in(pcap_header(link_field=link_type) + record(FRAME))
    assert frame[1] == link_type


@pytest.mark.parametrize(("link_type", "shown"), [(105, "105, IEEE 802.11 (wireless)"), (40000, "40000;")])
def test_a_link_type_that_is_not_read(link_type, shown):
    with pytest.raises(CaptureError, match=r"stream: has link type .*; mxwire reads Ethernet") as caught:
        open_capture(io.BytesIO(pcap_header(link_field=link_type)))
    assert shown in str(caught.value)


@pytest.mark.parametrize(
    ("captured", "original", "left", "on_wire"), [(64, 64, 60, 60), (40, 64, 40, 60), (62, 64, 60, 60), (2, 2, 0, 0)]
)
def test_frame_check_sequences_are_left_out(captured, original, left, on_wire):
    with_four_bytes = LINKTYPE_ETHERNET | 2 << 28 | 1 << 26
    frame = (FRAME + b"FCS!")[:captured]
    data = pcap_header(link_field=with_four_bytes) + record(frame, original=original)
    assert frames_in(data) == [(1, LINKTYPE_ETHERNET, 0, on_wire, frame[:left])]


def test_without_the_flag_the_length_of_the_frame_check_sequence_means_nothing():
    data = pcap_header(link_field=LINKTYPE_ETHERNET | 2 << 28) + record(FRAME)
    assert frames_in(data) == [(1, LINKTYPE_ETHERNET, 0, 60, FRAME)]


def test_less_on_the_wire_than_captured_becomes_as_much():
    assert frames_in(pcap_header() + record(FRAME, original=10)) == [(1, LINKTYPE_ETHERNET, 0, 60, FRAME)]


def test_no_frames():
    assert frames_in(pcap_header()) == []


def test_empty_frames():
    assert frames_in(pcap_header() + record(b"") * 3 + record(FRAME)) == [
        *((number, LINKTYPE_ETHERNET, 0, 0, b"") for number in (1, 2, 3)),
        (4, LINKTYPE_ETHERNET, 0, 60, FRAME),
    ]


@pytest.mark.parametrize("have", range(4, 24))
def test_a_cut_off_header(have):
    with pytest.raises(CaptureError, match=f"stream: cut off after {have} bytes of its header of 24"):
        open_capture(io.BytesIO(pcap_header()[:have]))


def test_a_version_that_does_not_exist():
    with pytest.raises(CaptureError, match=r"version 7\.5 of the pcap format"):
        open_capture(io.BytesIO(pcap_header(version=(7, 5))))


@pytest.mark.parametrize("chunk_bytes", [1, 50, 4 << 20])
def test_cut_off_in_a_frame(chunk_bytes):
    data = pcap_header() + record(FRAME) * 3
    with open_capture(io.BytesIO(data[:-7]), chunk_bytes=chunk_bytes) as reader:
        assert ended(reader) == (2, "stream: cut off in the middle of frame 3 at byte 176: 7 bytes missing")


def test_cut_off_in_the_header_of_a_frame():
    with open_capture(io.BytesIO(pcap_header() + record(FRAME) + bytes(15))) as reader:
        assert ended(reader) == (1, "stream: cut off in the middle of frame 2 at byte 100: at least 1 byte missing")


@pytest.mark.parametrize("snap_length", [0, 65535, 262144])
def test_an_absurd_length(snap_length):
    data = pcap_header(snap_length=snap_length) + record(FRAME) * 2 + bytes(8) + (262145).to_bytes(4, "little") * 2
    with open_capture(io.BytesIO(data)) as reader:
        batches = iter(reader)
        assert len(next(batches)) == 2
        with pytest.raises(CaptureError, match=r"stream: damaged at byte 176: frame 3 claims 262145 captured bytes"):
            next(batches)


def test_a_large_frame_is_believed_where_the_header_announces_it():
    large = bytes(300_000)
    assert frames_in(pcap_header(snap_length=400_000) + record(large))[0][4] == large


def test_no_snap_length_makes_any_length_believable():
    data = pcap_header(snap_length=2**32 - 1) + bytes(8) + (2**32 - 1).to_bytes(4, "little") * 2
    with pytest.raises(CaptureError, match="claims 4294967295 captured bytes"):
        frames_in(data)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="chunk_bytes must be at least 1, not 0"):
        open_capture(io.BytesIO(pcap_header()), chunk_bytes=0)
