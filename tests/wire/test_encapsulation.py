"""Frames behind VLAN tags and Linux cooked headers are found, and read like untagged ones."""

from __future__ import annotations

import dataclasses
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.frames import LINKTYPE_LINUX_SLL, LINKTYPE_LINUX_SLL2, FrameBatch
from mxwire.wire.codec import build, codec_of, parse
from mxwire.wire.columns import decode_columns
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import MXOE
from mxwire.wire.encapsulation import ROW, locate
from mxwire.wire.packets import Announcement, Raw

from .mutation import mutated, scattered
from .paths import assert_paths_agree
from .strategies import conversations, relaxed
from .test_codec import HOSTS, TINY
from .test_columns import REPLY

PLAIN = build(TINY, MXOE)
C_TAG, S_TAG, OLD_TAG = 0x8100, 0x88A8, 0x9100
SOURCE = int.from_bytes(HOSTS["src_mac"], "big")
DESTINATION = int.from_bytes(HOSTS["dst_mac"], "big")


def tag(protocol: int, control: int) -> bytes:
    return protocol.to_bytes(2, "big") + control.to_bytes(2, "big")


def tagged(frame: bytes, *tags: bytes) -> bytes:
    """An Ethernet frame with tags, the outermost first."""
    return frame[:12] + b"".join(tags) + frame[12:]


def cooked(frame: bytes, *tags: bytes) -> bytes:
    """The frame as LINKTYPE_LINUX_SLL keeps it; tags stand before the protocol, as libpcap puts them."""
    return bytes.fromhex("0000 0001 0006") + frame[6:12] + b"\xaa\xbb" + b"".join(tags) + frame[12:]


def cooked2(frame: bytes, *tags: bytes) -> bytes:
    """The frame as LINKTYPE_LINUX_SLL2 keeps it: the protocol comes first."""
    inside = b"".join(tags) + frame[12:]
    return inside[:2] + bytes.fromhex("0000 00000002 0001 00 06") + frame[6:12] + b"\xaa\xbb" + inside[2:]


def located(*frames: bytes, **options):
    link_type = options.pop("link_type", 1)
    return locate(FrameBatch.from_frames(frames, link_type=link_type), **options)


@pytest.mark.parametrize(
    ("tags", "ids"),
    [
        ((), []),
        ((tag(C_TAG, 5),), [5]),
        ((tag(C_TAG, 0xE000),), [0]),
        ((tag(C_TAG, 0xFFFF),), [4095]),
        ((tag(S_TAG, 100), tag(C_TAG, 7)), [100, 7]),
        ((tag(OLD_TAG, 1), tag(OLD_TAG, 2), tag(C_TAG, 3)), [1, 2, 3]),
        ((tag(C_TAG, 1), tag(C_TAG, 2), tag(C_TAG, 3), tag(C_TAG, 4)), [1, 2, 3, 4]),
    ],
    ids=["untagged", "802.1Q", "priority only", "all bits", "QinQ", "three", "four"],
)
class TestTags:
    def test_are_looked_through(self, tags, ids):
        found = located(tagged(PLAIN, *tags))
        assert found.frame(0) == PLAIN
        assert found.shift.tolist() == [4 * len(tags)]
        assert found.captured.tolist() == found.wire_length.tolist() == [60]
        assert (found.source.tolist(), found.destination.tolist()) == ([SOURCE], [DESTINATION])
        assert found.skipped == 0

    def test_ids_are_kept(self, tags, ids):
        decoded = Decoder().decode(FrameBatch.from_frames([tagged(PLAIN, *tags)]))
        assert decoded.vlan(0) == ids

    def test_both_paths_read_the_packet_behind_the_tags(self, tags, ids):
        columns = decode_columns(FrameBatch.from_frames([tagged(PLAIN, *tags)]), MXOE)
        assert_paths_agree(columns, [codec_of(MXOE)])
        assert columns.payload_offset.tolist() == [40 + 4 * len(tags)]
        assert columns.payload_length.tolist() == [5]

    def test_offsets_of_faults_count_in_the_captured_frame(self, tags, ids):
        """And from the start of an untagged frame in the scalar path."""
        spoilt = tagged(PLAIN[:20] + b"\0\x21" + PLAIN[22:], *tags)
        decoded = Decoder(MXOE).decode(FrameBatch.from_frames([spoilt, spoilt[: 30 + 4 * len(tags)]]))
        assert decoded.columns.reason_offset.tolist() == [20 + 4 * len(tags), 30 + 4 * len(tags)]
        assert [decoded.frame(index).offset for index in (0, 1)] == [20, 30]

    def test_frames_cut_in_the_head_are_skipped(self, tags, ids):
        whole = tagged(PLAIN, *tags)
        for length in range(14 + 4 * len(tags)):
            found = located(whole[:length], PLAIN)
            assert (len(found.batch), found.skipped) == (1, 1)
            assert found.frame(0) == PLAIN

    def test_frames_cut_right_behind_the_head_are_found(self, tags, ids):
        found = located(tagged(PLAIN, *tags)[: 14 + 4 * len(tags)])
        assert found.frame(0) == PLAIN[:14]

    def test_cooked_captures(self, tags, ids):
        for make, link_type, header in ((cooked, LINKTYPE_LINUX_SLL, 16), (cooked2, LINKTYPE_LINUX_SLL2, 20)):
            batch = FrameBatch.from_frames([make(PLAIN, *tags)], link_type=link_type)
            decoded = Decoder(MXOE).decode(batch)
            assert decoded.frame(0) == dataclasses.replace(TINY, dst_mac=bytes(6))
            assert decoded.vlan(0) == ids
            assert decoded.located.shift.tolist() == [header - 14 + 4 * len(tags)]
            assert decoded.located.source.tolist() == [SOURCE]
            assert decoded.columns.payload_offset.tolist() == [40 + header - 14 + 4 * len(tags)]
            assert batch.frame(0)[decoded.columns.payload_offset[0] :][:5] == b"hello"
            assert_paths_agree(decoded.columns, [codec_of(MXOE)])

    def test_cooked_frames_cut_in_the_head_are_skipped(self, tags, ids):
        for make, link_type, header in ((cooked, LINKTYPE_LINUX_SLL, 16), (cooked2, LINKTYPE_LINUX_SLL2, 20)):
            whole = make(PLAIN, *tags)
            end = header + 4 * len(tags)
            found = located(*(whole[:length] for length in range(end)), link_type=link_type)
            assert (len(found.batch), found.skipped) == (0, end)
            assert located(whole[:end], link_type=link_type).skipped == 0


@pytest.mark.parametrize("tags", [(), (tag(C_TAG, 7),), (tag(S_TAG, 9), tag(C_TAG, 7))], ids=len)
def test_the_pieces_are_the_frames(tags):
    """All at once or one by one, tagged, untagged, short or of another protocol."""
    other, reply = PLAIN[:12] + b"\x08\x00" + PLAIN[14:], build(REPLY, MXOE)
    found = located(tagged(PLAIN, *tags), other, tagged(reply, *tags), tagged(PLAIN, *tags)[:40], PLAIN)
    whole, begins, ends = found.pieces()
    pieces = [bytes(whole[begin:end]) for begin, end in zip(begins, ends, strict=True)]
    assert pieces == [found.frame(index) for index in range(4)] and pieces[1] == reply


def test_five_tags_are_too_many():
    assert located(tagged(PLAIN, *[tag(C_TAG, 1)] * 5)).skipped == 1


def test_tagged_and_untagged_in_one_batch():
    batch = FrameBatch.from_frames(
        [PLAIN, tagged(PLAIN, tag(C_TAG, 5)), tagged(PLAIN, tag(S_TAG, 6), tag(C_TAG, 7)), PLAIN[:13], PLAIN]
    )
    decoder = Decoder()
    decoded = decoder.decode(batch)
    assert [decoded.vlan(index) for index in range(4)] == [[], [5], [6, 7], []]
    assert {decoded.frame(index) for index in range(4)} == {TINY}
    assert decoded.batch.number.tolist() == [1, 2, 3, 5]
    assert (decoder.decoded, decoder.skipped) == (4, 1)


class TestDestination:
    def test_cooked_captures_have_none(self):
        for make, link_type in ((cooked, LINKTYPE_LINUX_SLL), (cooked2, LINKTYPE_LINUX_SLL2)):
            found = located(make(PLAIN), link_type=link_type)
            assert not found.has_destination
            assert found.destination.tolist() == [0]
            assert parse(found.frame(0), MXOE).dst_mac == bytes(6)

    def test_ethernet_has_one(self):
        assert located(PLAIN).has_destination
        assert located(PLAIN).destination.tolist() == [DESTINATION]


class TestEthertypes:
    other = PLAIN[:12] + b"\x86\xdd" + PLAIN[14:]
    ip = PLAIN[:12] + b"\x08\x00" + PLAIN[14:]
    reversed_ = PLAIN[:12] + b"\xdf\x86" + PLAIN[14:]

    def test_others_are_skipped_and_counted(self):
        decoder = Decoder()
        for _ in range(2):
            decoded = decoder.decode(FrameBatch.from_frames([self.ip, PLAIN, self.other, self.reversed_]))
            assert decoded.batch.number.tolist() == [2]
        assert (decoder.skipped, decoder.decoded) == (6, 2)

    def test_behind_tags_too(self):
        assert located(tagged(self.ip, tag(C_TAG, 5))).skipped == 1
        assert located(cooked(self.ip), link_type=LINKTYPE_LINUX_SLL).skipped == 1

    @pytest.mark.parametrize(
        ("ethertypes", "numbers"),
        [({0x86DD}, [3]), ((0x86DF, 0x86DD), [2, 3]), ([0x0800, 0x86DD, 0x86DF], [1, 2, 3]), ((), [])],
    )
    def test_alternatives(self, ethertypes, numbers):
        batch = FrameBatch.from_frames([self.ip, PLAIN, self.other])
        assert locate(batch, ethertypes).batch.number.tolist() == numbers
        decoder = Decoder(ethertypes=ethertypes)
        assert decoder.decode(batch).batch.number.tolist() == numbers
        assert decoder.skipped == 3 - len(numbers)

    def test_an_alternative_is_read_like_the_usual_one(self):
        decoded = Decoder(ethertypes=[0x86DD]).decode(FrameBatch.from_frames([self.other]))
        assert decoded.frame(0) == dataclasses.replace(TINY, ethertype=0x86DD)
        assert decoded.columns.field("ethertype")[0].tolist() == [0x86DD]


class TestRows:
    def test_a_short_last_frame_does_not_read_past_the_buffer(self):
        for size in range(14, 60):
            batch = FrameBatch.from_frames([PLAIN, PLAIN[:size]])
            columns = decode_columns(batch, MXOE)
            assert columns.located.frame(1) == PLAIN[:size]
            assert columns.located.row_bytes.shape == (2, ROW)
            assert_paths_agree(columns, [codec_of(MXOE)] * 2)

    def test_a_buffer_shorter_than_a_row(self):
        for size in range(14, ROW):
            frame = build(REPLY, MXOE).ljust(ROW, b"\0")[:size]
            assert_paths_agree(decode_columns(FrameBatch.from_frames([frame]), MXOE), [codec_of(MXOE)])

    def test_an_empty_frame_at_the_end(self):
        assert located(PLAIN, b"").batch.number.tolist() == [1]
        assert located(b"").skipped == 1

    def test_bytes_after_a_short_frame_are_not_taken_as_its_own(self):
        """The type byte of the next frame lies where this one's would be."""
        batch = FrameBatch.from_frames([PLAIN[:15], PLAIN])
        assert decode_columns(batch, MXOE).packet_type.tolist() == [-1, 37]
        batch = FrameBatch.from_frames([build(Raw(**HOSTS, opaque=b""), MXOE), bytes(47)])
        assert parse(locate(batch).frame(0), MXOE) == Raw(**HOSTS, opaque=b"")

    def test_a_cut_announcement_is_not_completed_from_the_following_bytes(self):
        """Zeros behind it would make an announcement of it; a cut one cannot be distinguished from other RAW frames."""
        batch = FrameBatch.from_frames([build(Announcement(**HOSTS, nic_id_hi=0x0200, nic_id_lo=1, serial=2), MXOE)])
        cut = dataclasses.replace(batch, length=np.array([50]))
        columns = decode_columns(cut, MXOE)
        assert [block.layout.name for block in columns.blocks] == ["raw"]
        assert_paths_agree(columns, [codec_of(MXOE)])

    def test_frames_in_the_middle_of_a_buffer_that_has_more(self):
        random = Random(1)
        batch = scattered([(PLAIN, 60), (tagged(PLAIN, tag(C_TAG, 5)), 64), (PLAIN[:59], 60)], random)
        wide = dataclasses.replace(batch, buffer=np.concatenate([batch.buffer, np.full(100, 0xEE, np.uint8)]))
        assert [locate(wide).frame(index) for index in range(3)] == [PLAIN, PLAIN, PLAIN[:59]]

    def test_a_buffer_that_is_not_contiguous(self):
        batch = FrameBatch.from_frames([PLAIN, tagged(PLAIN, tag(C_TAG, 5))])
        spread = np.repeat(batch.buffer, 2)[::2]
        assert not spread.flags.c_contiguous
        found = locate(dataclasses.replace(batch, buffer=spread))
        assert [found.frame(index) for index in (0, 1)] == [PLAIN, PLAIN]

    def test_a_wire_length_below_the_captured_one_is_not_believed(self):
        batch = FrameBatch.from_frames([PLAIN])
        lying = dataclasses.replace(batch, wire_length=np.array([10]))
        assert locate(lying).wire_length.tolist() == [60]
        assert Decoder(MXOE).decode(lying).frame(0) == TINY


@relaxed
@given(
    conversations(), st.lists(st.tuples(st.sampled_from([C_TAG, S_TAG, OLD_TAG]), st.integers(0, 0xFFFF)), max_size=4)
)
def test_tags_change_nothing_else(conversation, tags):
    dialect, frame = conversation
    raw = build(dataclasses.replace(frame, ethertype=0x86DF), dialect)
    made = [tag(*each) for each in tags]
    for make, link_type in ((tagged, 1), (cooked, LINKTYPE_LINUX_SLL), (cooked2, LINKTYPE_LINUX_SLL2)):
        found = located(make(raw, *made), link_type=link_type)
        assert found.frame(0)[6:] == raw[6:]
        assert [each for each in found.vlan[0].tolist() if each >= 0] == [control & 0xFFF for _, control in tags]
        assert int(found.wire_length[0]) == len(raw)


@pytest.mark.parametrize("link_type", [LINKTYPE_LINUX_SLL, LINKTYPE_LINUX_SLL2])
def test_mutated_cooked_frames(link_type):
    random = Random(link_type)
    make, longer = {LINKTYPE_LINUX_SLL: (cooked, 2), LINKTYPE_LINUX_SLL2: (cooked2, 6)}[link_type]
    frames = [(make(frame), length + longer) for frame, length in (mutated(random) for _ in range(3000))]
    batch = dataclasses.replace(scattered(frames, random), link_type=link_type)
    columns = decode_columns(batch, MXOE)
    assert len(columns) > 2500
    assert_paths_agree(columns, [codec_of(MXOE)] * len(columns))


def test_frames_without_any_byte_are_skipped_behind_cooked_headers():
    found = locate(FrameBatch.from_frames([b"", b""], link_type=LINKTYPE_LINUX_SLL))
    assert (len(found.batch), found.skipped) == (0, 2)
