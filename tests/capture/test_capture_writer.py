"""Written files can be read again, and errors of writing are reported in one line."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zstandard
from capture_builders import SECOND, frames_in, read_all
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.capture import create_capture, open_capture
from mxwire.errors import CaptureError
from mxwire.frames import LINKTYPE_ETHERNET, LINKTYPE_LINUX_SLL, LINKTYPE_LINUX_SLL2, FrameBatch

BATCH = FrameBatch.from_frames([bytes([size]) * size for size in (60, 61, 62, 63)], [0, 1, SECOND, 5 * SECOND + 7])


def written(batches, **arguments):
    stream = io.BytesIO()
    with create_capture(stream, **arguments) as writer:
        for batch in batches:
            writer.write(batch)
    return stream.getvalue()


@st.composite
def batches(draw, link_types=(LINKTYPE_ETHERNET,)):
    """Frames with gaps between them in their buffer, cut and whole ones."""
    pieces = draw(st.lists(st.tuples(st.binary(max_size=70), st.binary(max_size=5)), max_size=6))
    length = np.array([len(frame) for frame, _ in pieces], np.int64)
    gap = np.array([len(gap) for _, gap in pieces], np.int64)
    count = len(pieces)
    missing = draw(st.lists(st.integers(0, 2**31), min_size=count, max_size=count))
    times = draw(st.lists(st.integers(0, 2**32 * SECOND - 1), min_size=count, max_size=count))
    return FrameBatch(
        buffer=np.frombuffer(b"".join(frame + gap for frame, gap in pieces), np.uint8),
        offset=np.cumsum(length + gap) - length - gap,
        length=length,
        wire_length=length + np.array(missing, np.int64),
        timestamp_ns=np.array(times, np.int64),
        number=np.arange(count),
        link_type=draw(st.sampled_from(link_types)),
    )


def expected(given_batches, unit=1):
    frames = [
        (
            batch.link_type,
            int(batch.timestamp_ns[index]) // unit * unit,
            int(batch.wire_length[index]),
            batch.frame(index),
        )
        for batch in given_batches
        for index in range(len(batch))
    ]
    return [(number, *frame) for number, frame in enumerate(frames, 1)]


@settings(deadline=None)
@given(given_batches=st.lists(batches(), max_size=4), nanoseconds=st.booleans())
def test_pcap_round_trip(given_batches, nanoseconds):
    data = written(given_batches, format="pcap", nanoseconds=nanoseconds)
    assert frames_in(data) == expected(given_batches, 1 if nanoseconds else 1000)


@settings(deadline=None)
@given(
    given_batches=st.lists(batches((LINKTYPE_ETHERNET, LINKTYPE_LINUX_SLL, LINKTYPE_LINUX_SLL2)), max_size=4),
    nanoseconds=st.booleans(),
    comments=st.dictionaries(st.integers(0, 8), st.text(max_size=20)),
)
def test_pcapng_round_trip(given_batches, nanoseconds, comments):
    stream = io.BytesIO()
    with create_capture(stream, nanoseconds=nanoseconds) as writer:
        for batch in given_batches:
            writer.write(batch, comments)
    assert frames_in(stream.getvalue()) == expected(given_batches, 1 if nanoseconds else 1000)
    assert writer.frames == sum(map(len, given_batches))


def test_metadata_of_the_written_file():
    data = written([BATCH], comment="what\nfor", interface_name="eth0", snap_length=61)
    with open_capture(io.BytesIO(data)) as reader:
        assert [len(frame[4]) for frame in read_all(reader)] == [60, 61, 61, 61]
        assert reader.sections[0].comment == "what\nfor"
        assert reader.sections[0].application == "mxwire"
        (interface,) = reader.interfaces
        assert (interface.name, interface.snap_length, interface.ticks_per_second) == ("eth0", 61, SECOND)


def test_cut_frames_keep_their_length_on_the_wire():
    for file_format in ("pcap", "pcapng"):
        frames = frames_in(written([BATCH], format=file_format, snap_length=20))
        assert [(frame[3], len(frame[4])) for frame in frames] == [(60, 20), (61, 20), (62, 20), (63, 20)]
        whole = frames_in(written([BATCH], format=file_format, snap_length=0))
        assert [len(frame[4]) for frame in whole] == [60, 61, 62, 63]


@pytest.mark.parametrize(
    ("name", "file_format", "compression"),
    [
        ("a.pcap", "pcap", None),
        ("a.cap", "pcap", None),
        ("a.pcapng", "pcapng", None),
        ("a", "pcapng", None),
        ("a.pcap.gz", "pcap", "gzip"),
        ("a.pcapng.zst", "pcapng", "zstd"),
        ("a.gz", "pcapng", "gzip"),
    ],
)
def test_names(tmp_path, name, file_format, compression):
    for target in (tmp_path / name, str(tmp_path / name)):
        with create_capture(target) as writer:
            assert writer.name == str(target)
            writer.write(BATCH)
            writer.flush()
        with open_capture(target) as reader:
            assert (reader.format, reader.compression) == (file_format, compression)
            assert read_all(reader) == expected([BATCH])


def test_compressed_files_are_whole_for_other_readers(tmp_path):
    with create_capture(tmp_path / "a.pcap.gz") as packed, create_capture(tmp_path / "b.pcap.zst") as other:
        packed.write(BATCH)
        other.write(BATCH)
    data = written([BATCH], format="pcap")
    assert gzip.decompress((tmp_path / "a.pcap.gz").read_bytes()) == data
    packed_data = (tmp_path / "b.pcap.zst").read_bytes()
    assert zstandard.ZstdDecompressor().stream_reader(packed_data).read() == data


@pytest.mark.parametrize("file_format", ["pcap", "pcapng"])
def test_without_frames(file_format):
    assert frames_in(written([], format=file_format)) == []
    with open_capture(io.BytesIO(written([], format=file_format, link_type=LINKTYPE_LINUX_SLL))) as reader:
        assert reader.format == file_format
        assert read_all(reader) == []
        assert reader.interfaces[0].link_type == LINKTYPE_LINUX_SLL


def test_the_header_is_written_at_once_if_the_link_type_is_given():
    stream = io.BytesIO()
    with create_capture(stream, format="pcap", link_type=LINKTYPE_ETHERNET) as writer:
        assert len(stream.getvalue()) == 24
        writer.write(BATCH)
    assert not stream.closed


def test_a_pcap_file_takes_the_link_type_of_its_first_frames():
    cooked = FrameBatch.from_frames([bytes(60)], link_type=LINKTYPE_LINUX_SLL)
    assert frames_in(written([cooked], format="pcap"))[0][1] == LINKTYPE_LINUX_SLL
    with pytest.raises(
        CaptureError, match="frames of link type 1, Ethernet cannot go into a pcap file of link type 113"
    ):
        written([cooked, BATCH], format="pcap")


def test_frames_that_pcap_cannot_hold():
    with pytest.raises(ValueError, match="a pcap file cannot contain an interface name or a comment"):
        create_capture(io.BytesIO(), format="pcap", comment="no")
    with pytest.raises(ValueError, match="a pcap file cannot contain an interface name or a comment"):
        create_capture(io.BytesIO(), format="pcap", interface_name="no")
    with create_capture(io.BytesIO(), format="pcap") as writer:
        writer.write(BATCH, comments={})
        with pytest.raises(ValueError, match="a pcap file cannot contain comments"):
            writer.write(BATCH, comments={1: "no"})


@pytest.mark.parametrize("file_format", ["pcap", "pcapng"])
def test_times_that_cannot_be_written(file_format):
    early = FrameBatch.from_frames([bytes(60)], [-1])
    with pytest.raises(CaptureError, match=r"stream: frame 1 has a timestamp \(-1 ns\)"):
        written([early], format=file_format)
    late = FrameBatch.from_frames([bytes(60)], [2**32 * SECOND])
    if file_format == "pcap":
        with pytest.raises(CaptureError, match="that the format cannot represent"):
            written([late], format=file_format)
    else:
        assert frames_in(written([late]))[0][2] == 2**32 * SECOND


def test_wrong_arguments():
    with pytest.raises(ValueError, match="unknown format 'erf'"):
        create_capture(io.BytesIO(), format="erf")
    with pytest.raises(ValueError, match="snap_length must be from 0"):
        create_capture(io.BytesIO(), snap_length=-1)
    with pytest.raises(ValueError, match="a text of 65536 bytes exceeds"):
        create_capture(io.BytesIO(), comment="x" * 65536)
    frames_in(written([BATCH], comment="x" * 65535))


def test_writing_after_closing():
    writer = create_capture(io.BytesIO())
    writer.close()
    writer.close()
    with pytest.raises(ValueError, match="stream is closed"):
        writer.write(BATCH)


def test_an_unbuffered_stream_that_takes_little(tmp_path):
    class Stingy(io.RawIOBase):
        def __init__(self):
            self.data = b""

        def writable(self):
            return True

        def write(self, data):
            self.data += bytes(data[:7])
            return min(len(data), 7)

    stream = Stingy()
    with create_capture(stream) as writer:
        writer.write(BATCH)
    assert stream.data == written([BATCH])


def test_a_stream_that_does_not_say_how_much_it_took():
    class Silent:
        def __init__(self):
            self.data = b""

        def write(self, data):
            self.data += bytes(data)

        def flush(self):
            pass

    stream = Silent()
    with create_capture(stream) as writer:
        writer.write(BATCH)
    assert stream.data == written([BATCH])


def create_error(target):
    with pytest.raises(CaptureError) as caught:
        create_capture(target)
    return str(caught.value)


def test_places_where_nothing_can_be_written(tmp_path):
    assert create_error(tmp_path) == f"{tmp_path}: cannot be written: Is a directory; name a file in it"
    missing = tmp_path / "missing" / "a.pcap"
    why = "cannot be written: No such file or directory; create its directory first"
    assert create_error(missing) == f"{missing}: {why}"
    assert create_error("a\0b") == r"a\x00b: cannot be written: embedded null byte"


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can become somebody without rights")
def test_permission_denied(tmp_path):
    program = (
        "import os, sys\n"
        "from mxwire.capture import create_capture\n"
        "from mxwire.errors import CaptureError\n"
        "os.chdir(sys.argv[1])\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "try:\n    create_capture('a.pcap')\n"
        "except CaptureError as error:\n    print(error)\n"
    )
    tmp_path.chmod(0o755)
    shown = subprocess.run([sys.executable, "-c", program, tmp_path], check=True, capture_output=True, text=True).stdout
    assert shown == "a.pcap: cannot be written: Permission denied; choose a writable place\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("batch", [BATCH, FrameBatch.from_frames([bytes(1 << 20)])])
def test_a_full_disk(batch):
    with (
        pytest.raises(CaptureError, match="/dev/full: cannot be written: No space left on device"),
        create_capture("/dev/full") as writer,
    ):
        writer.write(batch)


WRITE_TO_STANDARD_OUTPUT = (
    "from mxwire.capture import create_capture\n"
    "from mxwire.frames import FrameBatch\n"
    "with create_capture('-', format='pcap') as writer:\n"
    "    writer.write(FrameBatch.from_frames([bytes(60)] * 100_000))\n"
)


def test_standard_output():
    data = subprocess.run([sys.executable, "-c", WRITE_TO_STANDARD_OUTPUT], check=True, capture_output=True).stdout
    assert len(frames_in(data)) == 100_000


def test_standard_output_without_a_reader():
    with subprocess.Popen(
        [sys.executable, "-c", WRITE_TO_STANDARD_OUTPUT], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert b"BrokenPipeError" in process.stderr.read()


def test_standard_output_that_is_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert create_error("-") == "standard output: is a terminal or closed; redirect it to a file or a pipe"
