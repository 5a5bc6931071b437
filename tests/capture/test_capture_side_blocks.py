"""The contents of a pcapng file besides its frames: names of hosts, and counts of lost frames."""

from __future__ import annotations

import struct

import pytest

from mxwire.capture import create_capture, open_capture
from mxwire.frames import FrameBatch

FRAME = bytes.fromhex("ffffffffffff02000000000186df") + bytes(50)
START = 10**18


def written(path, *, nanoseconds: bool = True) -> bytes:
    with create_capture(path, link_type=1, nanoseconds=nanoseconds) as writer:
        writer.write_names({b"\2\0\0\0\0\1": "alpha:0", b"\2\0\0\0\0\2": "ä:0"})
        writer.write(FrameBatch.from_frames([FRAME], [START]))
        writer.write_statistics(START + 5000, 7, 3)
    return path.read_bytes()


def blocks(data: bytes) -> list[tuple[int, bytes]]:
    found, place = [], 0
    while place < len(data):
        kind, length = struct.unpack_from("<II", data, place)
        assert struct.unpack_from("<I", data, place + length - 4) == (length,) and not length % 4
        found.append((kind, data[place + 8 : place + length - 4]))
        place += length
    return found


def options(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while True:
        code, length = struct.unpack_from("<HH", data)
        if not code:
            assert data == bytes(4)
            return found
        found[code] = data[4 : 4 + length]
        data = data[4 + (length + 3) // 4 * 4 :]


def test_names_are_records_of_ethernet_addresses(tmp_path):
    data = dict(blocks(written(tmp_path / "a.pcapng")))[4]
    kind, length = struct.unpack_from("<HH", data)
    assert (kind, data[4 : 4 + length]) == (3, b"\2\0\0\0\0\1alpha:0\0")
    rest = data[4 + (length + 3) // 4 * 4 :]
    kind, length = struct.unpack_from("<HH", rest)
    assert (kind, rest[4 : 4 + length]) == (3, b"\2\0\0\0\0\2" + "ä:0".encode() + b"\0")
    assert rest[4 + (length + 3) // 4 * 4 :] == bytes(4)


@pytest.mark.parametrize("nanoseconds", [True, False])
def test_statistics_have_the_time_and_the_counts(tmp_path, nanoseconds):
    data = dict(blocks(written(tmp_path / "a.pcapng", nanoseconds=nanoseconds)))[5]
    interface, high, low = struct.unpack_from("<III", data)
    end = (START + 5000) // (1 if nanoseconds else 1000)
    assert (interface, high << 32 | low) == (0, end)
    assert options(data[12:]) == {3: data[4:12], 4: struct.pack("<Q", 7), 5: struct.pack("<Q", 3)}


def test_the_frames_are_read_as_without(tmp_path):
    written(tmp_path / "a.pcapng")
    with open_capture(tmp_path / "a.pcapng") as capture:
        [batch] = capture
        assert batch.frame(0) == FRAME and batch.timestamp_ns.tolist() == [START]


@pytest.mark.parametrize("what", ["names", "statistics"])
def test_pcap_cannot_hold_them(tmp_path, what):
    with (
        create_capture(tmp_path / "a.pcap") as writer,
        pytest.raises(ValueError, match="only contain frames; use pcapng"),
    ):
        writer.write_names({}) if what == "names" else writer.write_statistics(START, 0, 0)


def test_the_reader_reports_lost_frames(tmp_path):
    path = tmp_path / "x.pcapng"
    with create_capture(path, link_type=1) as writer:
        writer.write(FrameBatch.from_frames([FRAME], [START]))
        for dropped in (1, 3):
            writer.write_statistics(START + 5000, 7, dropped)
    with open_capture(path) as reader:
        assert reader.dropped == 0
        assert sum(map(len, reader)) == 1
        assert reader.dropped == 3


@pytest.mark.parametrize("body", [b"", bytes(4), bytes(12) + b"\5\0\4\0" + bytes(4), bytes(12) + b"\5\0\x08"])
def test_statistics_that_make_no_sense_are_left_out(tmp_path, body):
    path = tmp_path / "x.pcapng"
    data = written(path)
    body = body.ljust(-(-len(body) // 4) * 4, b"\0")
    block = struct.pack("<II", 5, len(body) + 12) + body + struct.pack("<I", len(body) + 12)
    path.write_bytes(data + block)
    with open_capture(path) as reader:
        assert sum(map(len, reader)) == 1 and reader.dropped == 3
