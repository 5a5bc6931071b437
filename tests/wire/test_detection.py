"""The dialect of a pair of hosts, detected from captures and from built traffic."""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np
import pytest

from mxwire.frames import FrameBatch
from mxwire.wire.codec import Malformed, codec_of
from mxwire.wire.decoder import Decoder
from mxwire.wire.detection import Detector, Hint
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.encapsulation import locate
from mxwire.wire.packets import Medium, Pull, PullReply
from tests.frames import make_frame

from .mutation import mutated, scattered
from .support import CAPTURES, dialect_of, frames_of, read_capture, split
from .traffic import A, B, C, D, medium, on_the_wire, transfer

MEDIUM, PULL, PULL_REPLY = 39, 41, 42
BROADCAST = 0xFFFFFFFFFFFF
LIMIT_UNKNOWN = {
    "omx1500-early",
    "omx9000-nack-lib",
    "omx9000-nack-mcp-rdmawin",
    "omx9000-pingpong-sync",
    "omx9000-resends-exhausted",
    "omx9000-truncated",
}
"""Captures of omx in which no full PULL_REPLY but the first, no full block and no fragment of M bytes shows M."""
UNDECIDED = {
    f"{dialect}-{subject}"
    for dialect in ("mxoe", "omx9000", "omx1500")
    for subject in ("connect", "discovery-omxoed", "discovery-static", "driver-load", "many-small")
}


def decoder_of(*batches: FrameBatch) -> Decoder:
    decoder = Decoder()
    for batch in batches:
        decoder.decode(batch)
    return decoder


@cache
def whole(capture: str) -> Decoder:
    """A decoder that has decoded a capture as one batch."""
    return decoder_of(read_capture(capture))


def between_hosts(decoder: Decoder):
    """The answers for pairs of hosts, without broadcasts."""
    return [each for each in decoder.detections() if BROADCAST not in each.hosts]


def batch_of(*frames: list[bytes]) -> FrameBatch:
    return FrameBatch.from_frames([each for some in frames for each in some])


@pytest.mark.parametrize("capture", CAPTURES)
class TestCaptures:
    def test_the_right_dialect(self, capture):
        (found,) = between_hosts(whole(capture))
        if capture in UNDECIDED:
            assert (found.dialect, found.confidence, found.evidence) == (None, 0.0, ())
        elif capture in LIMIT_UNKNOWN:
            assert found.dialect.name == "omx"
            assert found.dialect.generation == "N4"
        else:
            assert found.dialect == dialect_of(capture)
        assert found.dialect is None or 0.8 < found.confidence <= 1
        assert whole(capture).swapped_hosts() == []

    def test_undecided_are_those_without_deciding_frames(self, capture):
        types = {each[16] for each in frames_of(read_capture(capture))}
        assert (capture in UNDECIDED) == types.isdisjoint({MEDIUM, PULL, PULL_REPLY})

    def test_batches_do_not_matter(self, capture):
        """For batches of one frame see also :meth:`test_one_pass_is_enough`."""
        assert decoder_of(*split(read_capture(capture), 7)).detections() == whole(capture).detections()

    def test_evidence_counts_the_frames_that_give_it(self, capture):
        """By hand, straight from the bytes, for the hints that need no more than one look."""
        raw = frames_of(read_capture(capture))
        showing = {
            "PULL with an Open-MX magic at the offset of mxoe": [
                r[16] == PULL and r[36:39] == b"\x21\x07\x19" for r in raw
            ],
            "PULL with an Open-MX magic at the offset of omx": [
                r[16] == PULL and r[44:47] == b"\x21\x07\x19" for r in raw
            ],
            "MEDIUM with a 16-bit length and pipeline 12": [r[16] == MEDIUM and r[43] == 12 for r in raw],
            "MEDIUM with a 32-bit length": [r[16] == MEDIUM and r[20:22] == b"\0\0" for r in raw],
            "PULL_REPLY with more than 4096": [
                r[16] == PULL_REPLY and int.from_bytes(r[18:20], "big") > 4096 for r in raw
            ],
        }
        (found,) = between_hosts(whole(capture))
        for start, shown in showing.items():
            evidence = [each for each in found.evidence if each.text.startswith(start)]
            assert [(each.frames, each.first_frame) for each in evidence] == (
                [(sum(shown), shown.index(True) + 1)] if any(shown) else []
            )

    def test_evidence_names_the_frames_of_its_packet_type(self, capture):
        batch = read_capture(capture)
        types = {"MEDIUM": MEDIUM, "PULL": PULL, "PULL_REPLY": PULL_REPLY}
        (found,) = between_hosts(whole(capture))
        for each in found.evidence:
            assert batch.frame(each.first_frame - 1)[16] == types[each.text.split()[0]]
        strength = {meaning.text: meaning.strength for meaning in Hint}
        reported = [strength[each.text] for each in found.evidence]
        assert reported == sorted(reported, reverse=True)

    def test_one_pass_is_enough(self, capture):
        """Frames that need the dialect are decoded in the right one from the start, even frame by frame."""
        codec = codec_of(dialect_of(capture))
        decoder = Decoder()
        for batch in split(read_capture(capture), 1):
            decoded = decoder.decode(batch)
            assert decoded.frame(0) == codec.parse(batch.frame(0), int(batch.wire_length[0]))
        assert decoder.detections() == whole(capture).detections()


def test_undecided_frames_are_read_as_mxoe():
    decoded = Decoder().decode(read_capture("omx9000-connect"))
    assert decoded.dialect_name(0) is None
    assert decoded.dialect(0) == MXOE
    assert not decoded.assignment.decided.any()


def test_a_given_dialect_wins_but_is_not_believed():
    """Frames are read as requested; the detected dialect is still reported."""
    decoder = Decoder(omx(9000))
    decoded = decoder.decode(read_capture("mxoe-burst"))
    assert {decoded.dialect_name(index) for index in range(len(decoded))} == {"omx:9000"}
    assert [each.dialect for each in between_hosts(decoder)] == [MXOE]


@pytest.mark.parametrize("limit", [256, 1500, 4000, 4096, 4144, 8240, 9000])
class TestLimits:
    def test_known_from_replies(self, limit):
        dialect = omx(limit)
        replies = [each for each in transfer(dialect, dialect.reply_payload * 5) if isinstance(each, PullReply)]
        (found,) = between_hosts(decoder_of(batch_of(on_the_wire(dialect, replies))))
        if dialect.reply_payload == 4096:
            assert found.dialect == MXOE
        else:
            assert found.dialect == dialect

    def test_known_from_the_first_pull(self, limit):
        """It asks for a whole block, which is 32 frames."""
        dialect = omx(limit)
        (first, *_) = transfer(dialect, dialect.block_length + 1)
        (found,) = between_hosts(decoder_of(batch_of(on_the_wire(dialect, [first]))))
        assert found.dialect == dialect

    def test_known_from_fragments_where_they_follow_the_limit(self, limit):
        dialect = omx(limit)
        fragments = medium(dialect, 32768, dialect.fragment_payload)
        (found,) = between_hosts(decoder_of(batch_of(on_the_wire(dialect, fragments))))
        assert found.dialect.family == "omx"
        assert found.dialect.frame_limit_known == (dialect.fragment_payload < 4096)
        assert found.dialect.frame_limit == (limit if dialect.fragment_payload < 4096 else 9000)


def test_a_last_block_does_not_show_the_limit():
    """Only the first PULL of a transfer is sure to ask for all a block holds."""
    *_, last = [each for each in transfer(omx(1500), 100000) if isinstance(each, Pull)]
    assert last.block_length % 32 == 0
    (found,) = between_hosts(decoder_of(batch_of(on_the_wire(omx(1500), [last]))))
    assert found.dialect.name == "omx"


def test_frame_numbers_wrap():
    """They are kept modulo 256; every reply but the first is evidence."""
    raw = [each for each in transfer(MXOE, 600 * 4096) if isinstance(each, PullReply)]
    (found,) = between_hosts(decoder_of(batch_of(on_the_wire(MXOE, raw))))
    assert [(each.supports, each.frames) for each in found.evidence] == [("mxoe", 599)]


def test_announced_data_missing_from_the_frame_are_not_evidence():
    (_, reply, *_) = transfer(omx(), 5000)
    (found,) = between_hosts(decoder_of(batch_of([raw[:60] for raw in on_the_wire(omx(), [reply])])))
    assert reply.frame_length == 5000
    assert found.dialect is None


@pytest.mark.parametrize("size", [1 << pipeline for pipeline in range(7, 16)])
def test_any_pipeline_that_fits_is_mxoe(size):
    """Native MX may send another than 12."""
    raw = on_the_wire(MXOE, medium(MXOE, min(65000, 200 * size), size))
    (found,) = between_hosts(decoder_of(batch_of(raw)))
    assert found.dialect == MXOE
    assert [each.frames for each in found.evidence] == [len(raw)]
    assert ("pipeline 12" in found.evidence[0].text) == (size == 4096)


class TestGenerations:
    """Differences, section 4.2: what older releases of Open-MX sent in their own dialect."""

    @pytest.mark.parametrize("limit", [1500, 9000])
    def test_third(self, limit):
        dialect = omx(limit, "N3")
        frames = medium(dialect, 10000, dialect.fragment_payload) + transfer(dialect, 3 * dialect.block_length)
        (found,) = between_hosts(decoder_of(batch_of(on_the_wire(dialect, frames))))
        assert found.dialect == dialect

    def test_third_by_its_mediums_alone(self):
        dialect = omx(1500, "N3")
        (found,) = between_hosts(decoder_of(batch_of(on_the_wire(dialect, medium(dialect, 10000, 1452)))))
        assert found.dialect.generation == "N3"
        assert 0.5 < found.confidence < 0.7

    @pytest.mark.parametrize(
        ("limit", "fragment", "reply"), [(1500, 1024, 1024), (9000, 4096, 8192), (4500, 4096, 4096)]
    )
    def test_second(self, limit, fragment, reply):
        dialect = omx(limit, "N2")
        frames = transfer(dialect, 3 * dialect.block_length) + medium(dialect, 10000, fragment)
        (found,) = between_hosts(decoder_of(batch_of(on_the_wire(dialect, frames))))
        assert found.dialect.generation == "N2"
        assert found.dialect.reply_payload == reply
        assert found.dialect.medium_format is MXOE.medium_format
        assert found.dialect.pull_format is omx().pull_format

    def test_the_first_is_distinguished_from_all_but_the_second(self):
        """They differ in the block limit only, which no frame has to show."""
        dialect = omx(9000, "N1")
        frames = transfer(dialect, 3 * dialect.block_length) + medium(dialect, 10000, 4096)
        (found,) = between_hosts(decoder_of(batch_of(on_the_wire(dialect, frames))))
        assert found.dialect.generation == "N2"
        assert found.dialect.reply_payload == dialect.reply_payload == 8192

    def test_older_mediums_alone_look_like_mxoe(self):
        """They are the same byte for byte; the confidence is that of the hint."""
        frames = on_the_wire(omx(1500, "N2"), medium(omx(1500, "N2"), 10000, 1024))
        (found,) = between_hosts(decoder_of(batch_of(frames)))
        assert found.dialect == MXOE
        assert found.confidence == pytest.approx(0.85)

    @pytest.mark.parametrize("generation", ["N2", "N3", "N4"])
    def test_built_frames_are_read_again(self, generation):
        dialect = omx(1500, generation)
        frames = transfer(dialect, 2 * dialect.block_length) + medium(dialect, 10000, 1024)
        decoded = Decoder().decode(batch_of(on_the_wire(dialect, frames)))
        codec = codec_of(dialect)
        assert [decoded.frame(index) for index in range(len(frames))] == [codec.parse(codec.build(f)) for f in frames]


class TestSeveralPairs:
    first, second = MXOE, omx(1500)

    def frames(self):
        """Two conversations, frame about frame."""
        one = on_the_wire(self.first, medium(self.first, 20000, 4096, A, B) + transfer(self.first, 70000, A, B))
        other = on_the_wire(self.second, medium(self.second, 20000, 1452, C, D) + transfer(self.second, 70000, D, C))
        mixed = [each for pair in zip(one, other, strict=False) for each in pair]
        return mixed + one[len(other) :] + other[len(one) :]

    @pytest.mark.parametrize("size", [1, 7, 1000])
    def test_each_has_its_own_dialect(self, size):
        decoder = decoder_of(*split(FrameBatch.from_frames(self.frames()), size))
        hosts = [(int.from_bytes(one, "big"), int.from_bytes(other, "big")) for one, other in ((A, B), (C, D))]
        assert [(each.hosts, each.dialect) for each in between_hosts(decoder)] == [
            (hosts[0], self.first),
            (hosts[1], self.second),
        ]

    def test_frames_of_one_batch_are_read_each_in_their_own(self):
        frames = self.frames()
        decoded = Decoder().decode(FrameBatch.from_frames(frames))
        for index, raw in enumerate(frames):
            dialect = self.first if raw[6:12] in (A, B) else self.second
            assert decoded.dialect_name(index) == dialect.name
            assert decoded.frame(index) == codec_of(dialect).parse(raw)
        pulls = {str(block.dialect): len(block) for block in decoded.columns.of("pull")}
        assert pulls == {"mxoe": 3, "omx:1500": 2}
        assert not decoded.columns.reason.any()

    def test_one_host_may_speak_differently_with_others(self):
        frames = on_the_wire(MXOE, transfer(MXOE, 70000, A, B)) + on_the_wire(omx(), transfer(omx(), 70000, A, C))
        assert [each.dialect for each in between_hosts(decoder_of(FrameBatch.from_frames(frames)))] == [MXOE, omx()]

    def test_an_undecided_pair_stays_so(self):
        raw = frames_of(read_capture("mxoe-connect")) + on_the_wire(omx(), transfer(omx(), 70000))
        decoder = Decoder()
        decoded = decoder.decode(FrameBatch.from_frames(raw))
        assert [each.dialect for each in between_hosts(decoder)] == [None, omx()]
        assert decoded.dialect_name(0) is None
        assert decoded.dialect_name(len(raw) - 1) == "omx:9000"


def test_hosts_are_numbered_in_order_of_appearance():
    """Sender before receiver, frame by frame, however the frames come in batches."""
    frames = on_the_wire(MXOE, [*transfer(MXOE, 100, A, B), *transfer(MXOE, 100, C, B), *transfer(MXOE, 100, D, A)])
    for size in (1, 2, 100):
        decoder = decoder_of(*split(FrameBatch.from_frames(frames), size))
        assert decoder.hosts.keys == [int.from_bytes(each, "big") for each in (B, A, C, D)]


def test_the_strongest_evidence_comes_first():
    """One MEDIUM before one PULL, whose magic is surer: however they come in batches."""
    raw = on_the_wire(MXOE, medium(MXOE, 5000, 4096)[-1:] + transfer(MXOE, 100)[:1])
    for size in (1, 2):
        (found,) = between_hosts(decoder_of(*split(FrameBatch.from_frames(raw), size)))
        assert [each.first_frame for each in found.evidence] == [2, 1]


@pytest.mark.parametrize(("size", "text"), [(4096, "pipeline 12"), (3000, "no plausible pipeline")])
def test_a_fragment_in_the_middle_of_its_message_is_full_where_there_is_a_pipeline(size, text):
    frame = make_frame(Medium, src_mac=A, dst_mac=B, length=20000, frag_seqnum=1, frag_pipeline=12, data=bytes(size))
    (found,) = between_hosts(decoder_of(batch_of(on_the_wire(MXOE, [frame]))))
    assert [each.text for each in found.evidence] == [f"MEDIUM with a 16-bit length and {text}"]


def test_a_capture_starts_with_its_first_frame():
    decoder = Decoder()
    for times in ((), (7, 9), (5,)):
        decoder.decode(FrameBatch.from_frames([bytes(60)] * len(times), list(times)))
    assert decoder.start_ns == 7


def test_impossible_lengths_are_not_evidence():
    """A fragment longer than its message shows nothing; the 32 bits at 20 would be a message of 19 MB."""
    (frame,) = on_the_wire(MXOE, medium(MXOE, 300, 4096))
    spoilt = frame[:40] + b"\x10\x01" + frame[42:] + bytes(4000)
    decoder = Decoder()
    decoded = decoder.decode(FrameBatch.from_frames([spoilt]))
    assert decoded.dialect_name(0) is None
    assert isinstance(decoded.frame(0), Malformed)


def test_a_few_odd_frames_do_not_turn_the_answer():
    most = transfer(omx(), 600000) + medium(omx(), 30000, 8192)
    raw = on_the_wire(omx(), most) + on_the_wire(MXOE, medium(MXOE, 5000, 4096))
    (found,) = between_hosts(decoder_of(FrameBatch.from_frames(raw)))
    assert found.dialect == omx()
    assert 0.9 < found.confidence < 0.99
    assert {each.supports for each in found.evidence} == {"omx", "mxoe"}


@pytest.mark.parametrize("seed", range(5))
def test_hostile_traffic_never_raises(seed):
    """Thousands of spoilt frames between many hosts; every answer stays a possible one."""
    random = Random(1000 + seed)
    decoder = Decoder()
    for count in (1, 10, 3000):
        decoded = decoder.decode(scattered([mutated(random) for _ in range(count)], random))
        assert len(decoded.assignment.which) == len(decoded)
        assert np.array_equal(
            decoded.assignment.decided, [decoded.dialect_name(i) is not None for i in range(len(decoded))]
        )
    for each in decoder.detections():
        assert 0 <= each.confidence <= 1
        assert (each.dialect is None) == (each.confidence == 0)
        assert each.dialect is None or 256 <= each.dialect.frame_limit <= 65535
    assert set(decoder.swapped_hosts()) <= set(decoder.hosts.keys)


@pytest.mark.parametrize("frame_limit", [1500, 9000])
def test_the_size_of_replies_reveals_old_pulls(frame_limit):
    old = omx(frame_limit, "N2")
    (found,) = between_hosts(decoder_of(FrameBatch.from_frames(on_the_wire(old, transfer(old, 600000)))))
    assert found.dialect is not None and found.dialect.generation == "N2"
    assert found.dialect.reply_payload == old.reply_payload


def test_replies_of_today_are_not_old_with_any_mediums():
    raw = on_the_wire(omx(), transfer(omx(), 600000)) + on_the_wire(MXOE, medium(MXOE, 5000, 4096))
    (found,) = between_hosts(decoder_of(FrameBatch.from_frames(raw)))
    assert found.dialect == omx()


def test_a_fragment_longer_than_its_frame_is_not_evidence():
    (frame, *_) = on_the_wire(MXOE, medium(MXOE, 5000, 4096))
    (found,) = between_hosts(decoder_of(FrameBatch.from_frames([frame[:100]])))
    assert found.dialect is None


def test_senders_of_different_dialects_are_distinguished():
    one = on_the_wire(MXOE, medium(MXOE, 9000, 4096))
    other = on_the_wire(omx(9000), medium(omx(9000), 9000, 8192, B, A))
    detector = Detector(by_sender=True)
    detector.observe(locate(FrameBatch.from_frames([*one, *other])))
    found = {each.hosts: each.dialect.family for each in detector.detections() if each.dialect is not None}
    number = {each: int.from_bytes(each, "big") for each in (A, B)}
    assert found == {(number[A],) * 2: "mxoe", (number[B],) * 2: "omx"}
