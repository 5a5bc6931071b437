"""The scalar codec: build and parse undo each other, and nothing that does not fit is built."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.wire.checks import Reason
from mxwire.wire.codec import Codec, Malformed, build, codec_of, parse
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.packets import Announcement, ConnectReply, HostReply, Medium, Pull, PullReply, Raw, Tiny
from tests.frames import make_frame

from .strategies import DIALECTS, conversations, frames, relaxed
from .support import defined_bytes, layouts

HOSTS = {"dst_mac": bytes.fromhex("02000000000b"), "src_mac": bytes.fromhex("02000000000a")}
NAMES = sorted(layouts(MXOE))
TINY = make_frame(
    Tiny, dst_endpoint=5, src_endpoint=0, match_a=0x00010002, match_b=0x00030004, session=0x33334444, data=b"hello"
)
MEDIUM = make_frame(
    Medium,
    dst_endpoint=5,
    length=10000,
    lib_seqnum=3,
    match_a=1,
    match_b=2,
    frag_seqnum=2,
    frag_pipeline=12,
    data=b"data",
)
PULL = make_frame(Pull, src_endpoint=5, session=1, total_length=100000, src_magic=0x21071985, block_length=32768)


@pytest.mark.parametrize("name", NAMES)
class TestGenerated:
    @relaxed
    @given(st.data())
    def test_a_built_frame_has_the_length_of_a_sent_one_and_parses_to_itself(self, name, data):
        dialect, swapped = data.draw(st.sampled_from(DIALECTS)), data.draw(st.booleans())
        frame = data.draw(frames(dialect, name))
        codec = codec_of(dialect, swapped=swapped)
        layout = layouts(dialect)[name]
        payload = getattr(frame, layout.payload.attribute) if layout.payload else b""
        least = {"raw": 0, "host_reply": 60 + len(payload)}.get(name, 60)
        built = codec.build(frame)
        assert len(built) == max(least, layout.header_end + len(payload))
        assert codec.parse(built) == frame


@relaxed
@given(conversations())
def test_undefined_bytes_are_built_as_zero(conversation):
    dialect, frame = conversation
    built = build(frame, dialect)
    mask = defined_bytes(layouts(dialect)[frame.layout_name], built)
    assert not any(byte for byte, defined in zip(built, mask, strict=True) if not defined)


@relaxed
@given(conversations())
def test_swapped_frames_differ_in_the_integers_of_the_sender_only(conversation):
    dialect, frame = conversation
    layout = layouts(dialect)[frame.layout_name]
    network, swapped = (bytearray(Codec(dialect, swapped=order).build(frame)) for order in (False, True))
    for each in layout.defined:
        if each.sender_order:
            swapped[each.offset : each.end] = reversed(swapped[each.offset : each.end])
    assert swapped == network


def test_the_ethertype_is_big_endian_in_every_build():
    assert Codec(MXOE, swapped=True).build(TINY)[12:14] == b"\x86\xdf"


def test_the_numbers_of_an_announcement_are_big_endian_in_every_build():
    announcement = Announcement(**HOSTS, nic_id_hi=0x0200, nic_id_lo=0x0000000A, serial=0x2DACB56D)
    assert Codec(MXOE, swapped=True).build(announcement)[32:44].hex() == "000002000000000a2dacb56d"


@relaxed
@given(conversations(), st.data())
def test_values_that_do_not_fit_are_refused(conversation, data):
    dialect, frame = conversation
    layout = layouts(dialect)[frame.layout_name]
    field = data.draw(st.sampled_from([each for each in layout.defined if each.kind == "integer"]))
    wrong = data.draw(st.sampled_from([-1, 256 ** (field.size or 0), None, "1", 1.5, b"1"]))
    with pytest.raises(ValueError, match=type(frame).__name__):
        build(dataclasses.replace(frame, **{field.attribute: wrong}), dialect)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("wrong", [b"", b"\x02" * 5, b"\x02" * 7, "02:00:00:00:00:0a", None])
@pytest.mark.parametrize("which", ["dst_mac", "src_mac"])
def test_addresses_have_six_bytes(which, wrong, swapped):
    with pytest.raises(ValueError, match="Tiny"):
        Codec(MXOE, swapped=swapped).build(dataclasses.replace(TINY, **{which: wrong}))


@pytest.mark.parametrize("wrong", ["hello", None, 5])
def test_data_are_bytes(wrong):
    with pytest.raises(ValueError, match="Tiny"):
        build(dataclasses.replace(TINY, data=wrong), MXOE)


def test_a_value_may_fit_in_one_dialect_only():
    wide = dataclasses.replace(PULL, block_length=0x10000)
    assert parse(build(wide, omx()), omx()) == wide
    with pytest.raises(ValueError, match="Pull cannot be built in dialect mxoe"):
        build(wide, MXOE)
    long = dataclasses.replace(MEDIUM, length=0x10000)
    with pytest.raises(ValueError, match="mxoe"):
        build(long, MXOE)


def test_mxoe_needs_the_pipeline_that_omx_does_not_have():
    without = dataclasses.replace(MEDIUM, frag_pipeline=None)
    with pytest.raises(ValueError, match="Medium"):
        build(without, MXOE)
    assert parse(build(MEDIUM, omx()), omx()) == without
    assert build(MEDIUM, omx())[43] == 0


@pytest.mark.parametrize("dialect", DIALECTS, ids=str)
def test_tiny_to_the_byte(dialect):
    assert build(TINY, dialect).hex(" ", 4) == (
        "02000000 000b0200 0000000a 86dfffff 25050000 00050000 00010001 00010002 00030004 33334444 "
        "68656c6c 6f000000 00000000 00000000 00000000"
    )


def test_frames_are_read_from_any_buffer():
    raw = build(TINY, MXOE)
    assert parse(bytearray(raw), MXOE) == parse(memoryview(raw), MXOE) == TINY


def test_raw_is_never_padded():
    """It is opaque up to the frame's end: a padded RAW would say something else."""
    assert build(Raw(**HOSTS, opaque=b"abc"), MXOE)[17:] == b"abc"


def test_a_codec_knows_the_layouts_of_its_dialect():
    assert Codec(MXOE).layout("pull").header_end == 48
    assert Codec(omx()).layout("pull").header_end == 60
    assert Codec(MXOE).layout("connect_reply").name == "connect_reply"


class TestAnnouncement:
    announcement = Announcement(**HOSTS, nic_id_hi=0x0200, nic_id_lo=0x0A, serial=1)

    def test_is_recognised(self):
        assert parse(build(self.announcement, MXOE), MXOE) == self.announcement

    @pytest.mark.parametrize("place", [17, 31, 32, 33, 44, 63])
    def test_bytes_that_are_zero_in_every_announcement_decide(self, place):
        raw = bytearray(build(self.announcement, MXOE))
        raw[place] = 1
        assert isinstance(parse(bytes(raw), MXOE), Raw)

    @pytest.mark.parametrize("place", [14, 34, 36, 40, 43])
    def test_others_do_not(self, place):
        raw = bytearray(build(self.announcement, MXOE))
        raw[place] ^= 1
        assert isinstance(parse(bytes(raw), MXOE), Announcement)

    @pytest.mark.parametrize("change", [-1, 1])
    def test_has_64_bytes(self, change):
        raw = build(self.announcement, MXOE) + b"\0"
        assert isinstance(parse(raw[: 64 + change], MXOE), Raw)

    def test_a_frame_cut_by_the_capture_cannot_be_classified(self):
        raw = build(self.announcement, MXOE)
        assert isinstance(parse(raw, MXOE, 65), Raw)
        assert isinstance(parse(raw[:63], MXOE, 64), Raw)


@pytest.mark.parametrize("flag", [1, 2, 255])
def test_any_flag_but_zero_is_a_connect_reply(flag):
    raw = bytearray(60)
    raw[16], raw[20], raw[42] = 36, 16, flag
    assert isinstance(parse(bytes(raw), MXOE), ConnectReply)
    raw[42] = 0
    assert not isinstance(parse(bytes(raw), MXOE), ConnectReply)


def test_a_host_name_longer_than_its_frame_is_read_as_far_as_it_goes():
    """The receiver does not compare the length with the frame (section 6.3)."""
    raw = bytes(16) + b"\x04\x50" + bytes(14) + b"vm1:0\0"
    read = parse(raw.ljust(60, b"."), MXOE)
    assert isinstance(read, HostReply)
    assert read.length == 80
    assert read.hostname == b"vm1:0\0" + b"." * 22


class TestMalformed:
    """Reasons and offsets; the verdicts of a real driver are in test_driver_verdicts."""

    @pytest.mark.parametrize("length", range(17))
    def test_without_a_type(self, length):
        read = parse(bytes(length), MXOE)
        assert (read.reason, read.offset, read.packet_type) == (Reason.BAD_HEADER_LENGTH, length, None)

    @pytest.mark.parametrize("name", [each for each in NAMES if each != "raw_omxoed"])
    def test_header_that_ends_early(self, name):
        """Announcements apart: a shorter one is a RAW."""
        layout = layouts(MXOE)[name]
        raw = bytearray(layout.header_end)
        raw[16] = layout.packet_type
        raw[42:43] = b"\x01" if layout.name == "connect_reply" else b"\0"
        for length in range(17, layout.header_end):
            read = parse(bytes(raw[:length]), MXOE)
            assert (read.reason, read.offset) == (Reason.BAD_HEADER_LENGTH, length)
            assert read.packet_type == layout.packet_type
            assert set(read.fields) == {
                each.name for each in layouts(MXOE)[read.layout_name].defined if each.end <= length
            }
            assert parse(bytes(raw[:length]), MXOE, layout.header_end).reason == Reason.CUT_BY_CAPTURE

    def test_reserved_and_unknown_types(self):
        for value, reason in ((2, Reason.INVALID_TYPE), (34, Reason.INVALID_TYPE), (0, Reason.UNKNOWN_TYPE)):
            read = parse(bytes(16) + bytes([value]) + bytes(43), MXOE)
            assert (read.reason, read.offset, read.packet_type, read.layout_name) == (reason, 16, value, None)
            assert read.fields["ptype"] == value

    def test_impossible_length_points_at_its_field(self):
        read = parse(build(dataclasses.replace(TINY, length=33), MXOE), MXOE)
        assert (read.reason, read.offset, read.layout_name) == (Reason.BAD_DATA_LENGTH, 20, "tiny")
        assert read.fields["length"] == 33
        assert read.fields["session"] == 0x33334444

    def test_missing_data_points_at_the_length(self):
        read = parse(build(TINY, MXOE)[:44], MXOE)
        assert (read.reason, read.offset) == (Reason.BAD_FRAME_LENGTH, 20)
        reply = PullReply(
            **HOSTS, frame_seqnum=0, frame_length=9, msg_offset=0, dst_pull_handle=1, dst_magic=2, data=b""
        )
        assert parse(build(reply, MXOE)[:40], MXOE).offset == 18

    def test_data_missing_only_in_the_capture_are_not_malformed(self):
        read = parse(build(TINY, MXOE)[:42], MXOE, 60)
        assert read == dataclasses.replace(TINY, data=b"he")

    def test_a_wire_length_below_the_captured_one_is_not_believed(self):
        assert parse(build(TINY, MXOE), MXOE, 10) == TINY

    def test_first_failing_test_decides(self):
        """A length that is impossible and does not fit either: the data length is tested first."""
        both = build(dataclasses.replace(TINY, length=0xFFFF), MXOE)
        assert parse(both, MXOE).reason == Reason.BAD_DATA_LENGTH

    @pytest.mark.parametrize(("dialect", "slot"), [(MXOE, 4096), (omx(1500), 2048), (omx(4096), 4096), (omx(), 8192)])
    def test_receive_slot_limits_a_fragment(self, dialect, slot):
        raw = {
            size: build(dataclasses.replace(MEDIUM, frag_length=size, data=bytes(size)), dialect)
            for size in (slot, slot + 1)
        }
        assert isinstance(parse(raw[slot], dialect), Medium)
        assert parse(raw[slot + 1], dialect).reason == Reason.BAD_DATA_LENGTH

    def test_raw_frames_have_at_most_1024_bytes(self):
        raw = build(Raw(**HOSTS, opaque=bytes(1024 - 17)), MXOE)
        assert isinstance(parse(raw, MXOE), Raw)
        read = parse(raw + b"\0", MXOE)
        assert (read.reason, read.offset) == (Reason.RAW_TOO_LARGE, 1024)
        assert parse(raw[:100], MXOE, 1025).reason == Reason.RAW_TOO_LARGE

    def test_reasons_are_explained(self):
        for reason in Reason:
            assert reason.explanation
            assert bool(reason.text) == (reason != Reason.NONE)


@relaxed
@given(st.binary(max_size=200), st.none() | st.integers(0, 300), st.sampled_from(DIALECTS), st.booleans())
def test_any_bytes_are_read(raw, wire_length, dialect, swapped):
    """The type byte is set to a real one in half of the cases, so that layouts are reached."""
    codec = codec_of(dialect, swapped=swapped)
    codec.parse(raw, wire_length)
    for packet_type in range(35, 46):
        read = codec.parse(raw[:16] + bytes([packet_type]) + raw[17:], wire_length)
        assert isinstance(read, Malformed) or read.ptype == packet_type


@pytest.mark.parametrize("dialect", [MXOE, omx(1500), omx(9000)], ids=str)
@pytest.mark.parametrize("swapped", [False, True])
def test_a_stretch_of_fields_can_be_put_into_a_frame_that_is_built(dialect, swapped):
    codec = codec_of(dialect, swapped=swapped)
    known = dict.fromkeys((each.name for each in dataclasses.fields(Pull)), 1) | HOSTS
    other = {"first_frame_offset": 7, "block_length": 4000, "frame_index": 70_000}
    at, packed = codec.stretch("pull", *other)
    frame = codec.build(Pull(**known))
    assert frame[:at] + packed.pack(*other.values()) + frame[at + packed.size :] == codec.build(Pull(**known | other))


def test_fields_with_gaps_are_not_one_stretch():
    with pytest.raises(ValueError, match="are not adjacent"):
        codec_of(MXOE).stretch("pull", "block_length", "first_frame_offset")
