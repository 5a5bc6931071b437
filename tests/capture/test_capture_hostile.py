"""Whatever bytes come: batches, warnings or a CaptureError of one line come out, and nothing else."""

from __future__ import annotations

import gzip
import io
import struct

import pytest
import zstandard
from capture_builders import enhanced, interface, obsolete, option, pcap_header, read_all, record, section, simple
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.capture import open_capture
from mxwire.errors import CaptureError

PCAP = pcap_header() + b"".join(record(bytes(size), seconds=size) for size in (0, 1, 14, 60, 3))
BIG_ENDIAN_PCAP = pcap_header(">", magic=0xA1B23C4D) + record(bytes(60), ">") * 3
PCAPNG = (
    section(options=option(1, b"comment"))
    + interface(snap_length=100, options=option(9, b"\x09") + option(2, b"eth0") + option(14, struct.pack("<q", 5)))
    + interface(link_type=113)
    + enhanced(bytes(14), ticks=7)
    + enhanced(bytes(15), interface=1, options=option(1, b"hi"))
    + simple(bytes(9))
    + obsolete(bytes(4), interface=1)
    + section(">")
    + interface(">", link_type=105)
    + interface(">")
    + enhanced(bytes(5), ">")
    + enhanced(bytes(6), ">", interface=1)
)
SEEDS = {
    "pcap": PCAP,
    "big-endian pcap": BIG_ENDIAN_PCAP,
    "pcapng": PCAPNG,
    "gzip": gzip.compress(PCAP),
    "zstd": zstandard.ZstdCompressor().compress(PCAPNG),
}
seeds = pytest.mark.parametrize("seed", SEEDS.values(), ids=SEEDS)


def read_anything(data, **arguments):
    """The frames that come out, and the message at the end, if any."""
    frames = []
    try:
        with open_capture(io.BytesIO(data), **arguments) as reader:
            for batch in reader:
                frames += read_all([batch])
            assert all("\n" not in warning and warning.isprintable() for warning in reader.warnings)
            return frames, reader.warnings
    except CaptureError as error:
        assert str(error).isprintable()
        return frames, str(error)


@seeds
@pytest.mark.parametrize("chunk_bytes", [1, 4 << 20])
def test_truncated_at_every_byte(seed, chunk_bytes):
    whole, message = read_anything(seed, chunk_bytes=chunk_bytes)
    assert "skipped" in str(message) or not message
    for have in range(len(seed)):
        frames, _ = read_anything(seed[:have], chunk_bytes=chunk_bytes)
        assert frames == whole[: len(frames)]


@seeds
def test_every_byte_changed(seed):
    for place in range(len(seed)):
        for value in (0, 0xFF, seed[place] ^ 1, seed[place] ^ 0x80):
            read_anything(seed[:place] + bytes([value]) + seed[place + 1 :])


changes = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(max_size=8), st.integers(0, 8)), max_size=6)


@seeds
@settings(max_examples=60, deadline=None)
@given(changes=changes, chunk_bytes=st.sampled_from([1, 40, 1 << 16]))
def test_pieces_replaced(seed, changes, chunk_bytes):
    data = seed
    for where, replacement, length in changes:
        place = int(where * len(data))
        data = data[:place] + replacement + data[place + length :]
    read_anything(data, chunk_bytes=chunk_bytes)


@settings(max_examples=60, deadline=None)
@given(start=st.sampled_from([b"", *(seed[:28] for seed in SEEDS.values())]), data=st.binary(max_size=200))
def test_garbage(start, data):
    frames, message = read_anything(start + data)
    again = read_anything(start + data, chunk_bytes=1)
    assert again == (frames, message)


def blocks_of(frames):
    return section() + interface() + b"".join(enhanced(bytes([each]) * 60) for each in frames)


def records_of(frames):
    return pcap_header() + b"".join(record(bytes([each]) * 60, seconds=1000 + each) for each in frames)


@pytest.mark.parametrize(
    ("whole", "record_bytes", "field"),
    [(records_of(range(9)), 76, 8), (blocks_of(range(9)), 92, 4)],
    ids=["pcap", "ng"],
)
@pytest.mark.parametrize("chunk_bytes", [1, 4 << 20])
def test_reading_continues_behind_a_damaged_length(whole, record_bytes, field, chunk_bytes):
    place = len(whole) - 4 * record_bytes + field  # the sixth record
    damaged = whole[:place] + b"\xff" * 4 + whole[place + 4 :]
    good, error = read_anything(whole)
    assert not error
    before, error = read_anything(damaged, chunk_bytes=chunk_bytes)
    assert before == good[:5]
    assert "damaged" in error
    past, warnings = read_anything(damaged, chunk_bytes=chunk_bytes, skip_damage=True)
    assert [data for *_, data in past] == [data for n, (*_, data) in enumerate(good) if n != 5]
    assert warnings == [f"stream: skipped 1 damaged place, {record_bytes} bytes"]


def test_reading_continues_at_the_next_member_of_a_damaged_gzip_file():
    parts = [records_of(range(5)), *(record(bytes([each]) * 60, seconds=1000 + each) for each in range(5, 9))]
    members = [bytearray(gzip.compress(part)) for part in parts]
    members[2][-8] ^= 1  # its check sum: the frame is delivered, and then the damage
    frames, warnings = read_anything(b"".join(members), skip_damage=True)
    assert len(frames) in (8, 9)
    assert len(warnings) == 1


def test_frames_before_damage_within_one_piece_of_a_gzip_file_are_delivered():
    packed = bytearray(gzip.compress(records_of(range(9))))
    packed[-8] ^= 1
    frames, error = read_anything(bytes(packed))
    assert len(frames) == 9
    assert "damaged" in error


@seeds
@settings(max_examples=30, deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), replacement=st.binary(min_size=1, max_size=8))
def test_skipping_damage_ends_without_an_error_of_its_own(seed, place, replacement):
    at = int(place * len(seed))
    read_anything(seed[:at] + replacement + seed[at + len(replacement) :], skip_damage=True)
