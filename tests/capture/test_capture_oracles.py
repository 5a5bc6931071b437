"""Frames are the same as other programs see them, on real captures and on files that other programs made."""

from __future__ import annotations

from decimal import Decimal

import pytest
from capture_builders import SECOND, read_all

from mxwire.capture import create_capture, open_capture
from mxwire.frames import LINKTYPE_ETHERNET, LINKTYPE_LINUX_SLL, LINKTYPE_LINUX_SLL2, FrameBatch

dpkt = pytest.importorskip("dpkt")
pcapng = pytest.importorskip("pcapng")
utils = pytest.importorskip("scapy.utils")


def frames_of(path, **arguments):
    with open_capture(path, **arguments) as reader:
        frames = read_all(reader)
        assert reader.warnings == []
    return frames


def nanoseconds(text):
    return int(Decimal(text) * SECOND)


def tshark_rows(run, path):
    """Number, time, length on the wire and captured length of every frame."""
    fields = ("frame.number", "frame.time_epoch", "frame.len", "frame.cap_len")
    rows = run("tshark", "-n", "-r", path, "-T", "fields", *(part for field in fields for part in ("-e", field)))
    return [
        (int(number), nanoseconds(time), int(length), int(captured))
        for number, time, length, captured in (line.split("\t") for line in rows.splitlines())
    ]


def as_tshark_rows(frames):
    return [(number, time, length, len(data)) for number, _, time, length, data in frames]


def test_capinfos_counts_the_same(real_captures, run):
    rows = run("capinfos", "-M", "-T", "-r", "-c", "-d", "-S", "-a", "-e", *real_captures).splitlines()
    assert len(rows) == len(real_captures)
    for path, row in zip(real_captures, rows, strict=True):
        count, data_bytes, first, last = row.split("\t")[1:]
        frames = frames_of(path)
        times = [time for _, _, time, _, _ in frames]
        assert len(frames) == int(count)
        assert sum(length for _, _, _, length, _ in frames) == int(data_bytes)
        assert (min(times), max(times)) == (nanoseconds(first), nanoseconds(last))


def test_dpkt_sees_the_same(real_captures):
    for path in real_captures:
        with path.open("rb") as file:
            expected = list(dpkt.pcap.Reader(file))
        frames = frames_of(path)
        assert [data for _, _, _, _, data in frames] == [data for _, data in expected]
        assert [time for _, _, time, _, _ in frames] == [nanoseconds(time) for time, _ in expected]


def test_scapy_sees_the_same(real_captures):
    for path in real_captures:
        with utils.RawPcapReader(str(path)) as reader:
            expected = [(meta.sec * SECOND + meta.usec, meta.wirelen, data) for data, meta in reader]
        assert [frame[2:] for frame in frames_of(path)] == expected


def test_tshark_sees_the_same(real_capture, run):
    assert as_tshark_rows(frames_of(real_capture)) == tshark_rows(run, real_capture)


@pytest.mark.parametrize("numba", [False, True])
@pytest.mark.parametrize("chunk_bytes", [1, 1000, 4 << 20])
def test_the_same_in_any_chunks(real_capture, numba, chunk_bytes):
    if numba:
        pytest.importorskip("numba")
    assert frames_of(real_capture, numba=numba, chunk_bytes=chunk_bytes) == frames_of(real_capture)


@pytest.mark.parametrize("file_format", ["pcap", "nsecpcap", "pcapng"])
def test_converted_by_editcap(real_capture, run, tmp_path, file_format):
    converted = tmp_path / "converted"
    run("editcap", "-F", file_format, real_capture, converted)
    frames = frames_of(converted)
    assert as_tshark_rows(frames) == tshark_rows(run, converted)
    unit = 1000 if file_format == "pcap" else 1
    assert [(number, kind, time // unit, *rest) for number, kind, time, *rest in frames_of(real_capture)] == [
        (number, kind, time // unit, *rest) for number, kind, time, *rest in frames
    ]


def test_cut_by_editcap(real_capture, run, tmp_path):
    cut = tmp_path / "cut.pcapng"
    run("editcap", "-s", "40", real_capture, cut)
    frames = frames_of(cut)
    assert as_tshark_rows(frames) == tshark_rows(run, cut)
    assert {len(data) for *_, data in frames} == {40}


def test_merged_by_mergecap(real_captures, run, tmp_path):
    """Two interfaces, frames of both in turn."""
    first, second = sorted(real_captures, key=lambda path: path.stat().st_size)[:2]
    merged = tmp_path / "merged.pcapng"
    run("mergecap", "-I", "none", "-w", merged, first, second)
    with open_capture(merged) as reader:
        frames = read_all(reader)
        assert len(reader.interfaces) == 2
    assert as_tshark_rows(frames) == tshark_rows(run, merged)
    data = [frame[2:] for frame in frames]
    assert sorted(data) == sorted(frame[2:] for path in (first, second) for frame in frames_of(path))


def test_sections_one_after_the_other(real_captures, run, tmp_path):
    first, second = sorted(real_captures, key=lambda path: path.stat().st_size)[:2]
    whole = tmp_path / "whole.pcapng"
    whole.write_bytes(b"")
    for number, path in enumerate((first, second)):
        part = tmp_path / f"{number}.pcapng"
        run("editcap", "-F", "pcapng", path, part)
        whole.write_bytes(whole.read_bytes() + part.read_bytes())
    frames = frames_of(whole)
    assert as_tshark_rows(frames) == tshark_rows(run, whole)
    with open_capture(whole) as reader:
        read_all(reader)
        assert [each.section for each in reader.interfaces] == [0, 1]


@pytest.mark.parametrize("link_type", [LINKTYPE_ETHERNET, LINKTYPE_LINUX_SLL, LINKTYPE_LINUX_SLL2])
@pytest.mark.parametrize("suffix", [".pcap", ".pcapng"])
def test_scapy_and_tshark_read_files_of_mxwire(run, tmp_path, link_type, suffix):
    path = tmp_path / f"written{suffix}"
    data = [bytes([size % 251]) * size for size in (60, 61, 62, 63, 64, 1514, 9000)]
    times = [size * SECOND + 123456789 for size in range(len(data))]
    with create_capture(path) as writer:
        writer.write(FrameBatch.from_frames(data, times, link_type=link_type))
    frames = frames_of(path)
    assert frames == [
        (number, link_type, time, len(frame), frame)
        for number, (time, frame) in enumerate(zip(times, data, strict=True), 1)
    ]
    assert as_tshark_rows(frames) == tshark_rows(run, path)
    with utils.RawPcapReader(str(path)) as reader:
        seen = list(reader)
    assert [frame for frame, _ in seen] == data
    seen_link_type = reader.linktype if suffix == ".pcap" else seen[0][1].linktype
    assert seen_link_type == link_type


@pytest.mark.filterwarnings("ignore:Field type should not be:DeprecationWarning")
def test_python_pcapng_reads_files_of_mxwire(real_capture, tmp_path):
    path = tmp_path / "written.pcapng"
    with (
        open_capture(real_capture) as reader,
        create_capture(path, interface_name="eth7", comment="why\nand how") as writer,
    ):
        for batch in reader:
            writer.write(batch, comments={2: "second", 3: "third, ü"})
    with path.open("rb") as file:
        blocks = list(pcapng.FileScanner(file))
    head, interface, *packets = blocks
    assert head.options["opt_comment"] == "why\nand how"
    assert interface.options["if_name"] == "eth7"
    frames = frames_of(real_capture)
    assert [packet.packet_data for packet in packets] == [data for *_, data in frames]
    assert [(packet.timestamp_high << 32) + packet.timestamp_low for packet in packets] == [
        time for _, _, time, _, _ in frames
    ]
    assert [packet.options.get("opt_comment") for packet in packets[:4]] == [None, "second", "third, ü", None]


def test_tshark_shows_the_comments_that_mxwire_wrote(run, tmp_path):
    path = tmp_path / "commented.pcapng"
    with create_capture(path) as writer:
        writer.write(FrameBatch.from_frames([bytes(60), bytes(61), bytes(62)]), comments={2: "look here"})
    shown = run("tshark", "-n", "-r", path, "-T", "fields", "-e", "frame.comment")
    assert shown == "\nlook here\n\n"


def test_mxwire_reads_files_of_python_pcapng(tmp_path):
    path = tmp_path / "theirs.pcapng"
    head = pcapng.blocks.SectionHeader(endianness=">", options={"shb_userappl": "theirs"})
    head.new_member(
        pcapng.blocks.InterfaceDescription,
        link_type=1,
        snaplen=100,
        options={"if_name": "north", "if_description": "the north port"},
    )
    with path.open("wb") as file:
        writer = pcapng.FileWriter(file, head)
        for size in (60, 61, 62):
            packet = head.new_member(pcapng.blocks.EnhancedPacket, interface_id=0, packet_data=bytes(size))
            packet.timestamp_high, packet.timestamp_low = 1, size
            writer.write_block(packet)
    with open_capture(path) as reader:
        frames = read_all(reader)
        assert [frame[2:] for frame in frames] == [
            (((1 << 32) + size) * 1000, size, bytes(size)) for size in (60, 61, 62)
        ]
        assert reader.sections[0].application == "theirs"
        assert not reader.sections[0].little_endian
        assert (reader.interfaces[0].name, reader.interfaces[0].description) == ("north", "the north port")
        assert reader.snap_length == 100
