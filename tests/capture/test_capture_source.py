"""Sources of captures: files, pipes, compressed files, and files that are not captures at all."""

from __future__ import annotations

import gzip
import io
import os
import stat
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import pytest
import zstandard
from capture_builders import FRAME, ended, enhanced, interface, pcap_header, read_all, record, section

from mxwire.capture import open_capture
from mxwire.errors import CaptureError

FRAMES = 50
PCAP = pcap_header() + b"".join(record(bytes([number]) * 60) for number in range(FRAMES))
PCAPNG = section() + interface() + b"".join(enhanced(bytes([number]) * 60) for number in range(FRAMES))


def zstd(data, **arguments):
    return zstandard.ZstdCompressor(**arguments).compress(data)


COMPRESSIONS = {"gzip": gzip.compress, "zstd": zstd}
compressed = pytest.mark.parametrize(("compression", "compress"), COMPRESSIONS.items(), ids=COMPRESSIONS)


def open_error(source):
    with pytest.raises(CaptureError) as caught:
        open_capture(source)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Files


def test_a_file(tmp_path):
    path = tmp_path / "a.pcap"
    path.write_bytes(PCAP)
    for source in (path, str(path)):
        with open_capture(source) as reader:
            assert (reader.name, reader.total_bytes) == (str(path), len(PCAP))
            assert len(read_all(reader)) == FRAMES
            assert reader.bytes_read == len(PCAP)


def test_an_open_file_stays_open(tmp_path):
    path = tmp_path / "a.pcap"
    path.write_bytes(PCAP)
    with path.open("rb") as file:
        with open_capture(file) as reader:
            assert (reader.name, reader.total_bytes) == (str(path), len(PCAP))
            assert len(read_all(reader)) == FRAMES
        assert not file.closed


def test_no_such_file(tmp_path):
    assert open_error(tmp_path / "no\nne") == f"{tmp_path}/no\\nne: no such file; check the path"


def test_a_directory(tmp_path):
    assert open_error(tmp_path) == f"{tmp_path}: is a directory; name a capture file in it"


def test_a_name_that_cannot_be_one():
    assert open_error("a\0b") == r"a\x00b: cannot be opened: embedded null byte"


def test_an_empty_file(tmp_path):
    path = tmp_path / "empty.pcap"
    path.touch()
    assert open_error(path) == f"{path}: is empty (0 bytes); record the capture again"


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can become somebody without rights")
def test_permission_denied(tmp_path):
    path = tmp_path / "secret.pcap"
    path.write_bytes(PCAP)
    path.chmod(0)
    # The directories above belong to root alone, so the child gets the file by a relative name.
    program = (
        "import sys, os\n"
        "from mxwire.capture import open_capture\n"
        "from mxwire.errors import CaptureError\n"
        "os.chdir(sys.argv[1])\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "try:\n    open_capture('secret.pcap')\n"
        "except CaptureError as error:\n    print(error)\n"
    )
    tmp_path.chmod(0o755)
    shown = subprocess.run([sys.executable, "-c", program, tmp_path], check=True, capture_output=True, text=True).stdout
    assert shown == "secret.pcap: permission denied; run as a user with read access\n"


def test_a_huge_file_of_zeros_is_answered_at_once(tmp_path):
    path = tmp_path / "zeros.pcap"
    with path.open("wb") as file:
        file.truncate(10 << 30)
    assert open_error(path).startswith(f"{path}: starts with zeros, so it was perhaps never written")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"hello, this is a text", "looks like text ('hello, this is a'), not a capture"),
        ("größe\n".encode(), "looks like text"),
        (b"\n\n\n\n", "looks like text"),
        (b"x", "looks like text ('x')"),
        (b"BZh91AY&SY1234567890", "is compressed with bzip2; unpack it first"),
        (b"\xfd7zXZ\0abcdefghijk", "is compressed with xz; unpack it first"),
        (b"PK\x03\x04abcdefghijkl", "is a zip archive; unpack it first"),
        (b"\x7fELF\2\1\1\0\0\0\0\0\0\0\0\0", "is a program, not a capture"),
        (b"\x34\xcd\xb2\xa1" + bytes(20), "variant with longer headers"),
        (bytes.fromhex("80 81 82 83 84 85 86 87 88"), "is not a capture (it starts with 80 81 82 83 84 85 86 87)"),
        (b"\0", "starts with zeros"),
        (b"\xa1\xb2", "is not a capture (it starts with a1 b2)"),
    ],
)
def test_not_a_capture(content, said):
    assert said in open_error(io.BytesIO(content))
    packed_error = open_error(io.BytesIO(gzip.compress(content)))
    assert packed_error.startswith("stream: is compressed with gzip, and its contents ")
    assert said in packed_error


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that cannot be read")
def test_a_file_that_cannot_be_read():
    assert open_error("/proc/self/mem") == "/proc/self/mem: cannot be read at byte 0: Input/output error"


# Streams


class OnlyRead:
    """As little as a binary stream can have."""

    def __init__(self, data, piece=1 << 20):
        self._stream = io.BytesIO(data)
        self._piece = piece

    def read(self, size=-1):
        return self._stream.read(min(size, self._piece))


class RawStream(io.RawIOBase):
    """An unbuffered stream that returns a few bytes at a time, or reports that it has none yet."""

    def __init__(self, data, piece=13):
        self._stream = io.BytesIO(data)
        self._piece = piece

    def readable(self):
        return True

    def readinto(self, target):
        if self._piece == 0:
            return None
        return self._stream.readinto(memoryview(target)[: self._piece])


@pytest.mark.parametrize(
    "data", [PCAP, PCAPNG, gzip.compress(PCAP), zstd(PCAPNG)], ids=["pcap", "pcapng", "gzip", "zstd"]
)
@pytest.mark.parametrize("kind", [io.BytesIO, OnlyRead, RawStream, lambda data: io.BufferedReader(RawStream(data))])
def test_kinds_of_streams(data, kind):
    with open_capture(kind(data)) as reader:
        assert [frame[4][0] for frame in read_all(reader)] == list(range(FRAMES))
        assert reader.bytes_read == len(data)


def test_a_stream_that_would_block():
    assert "is in non-blocking mode" in open_error(RawStream(PCAP, piece=0))


def test_a_stream_that_fails():
    class Failing(OnlyRead):
        def read(self, size=-1):
            data = super().read(size)
            if not data:
                raise OSError(5, "Input/output error")
            return data

    with open_capture(Failing(PCAP[:-10])) as reader:
        batches = iter(reader)
        assert len(next(batches)) == FRAMES - 1
        with pytest.raises(CaptureError, match=f"stream: cannot be read at byte {len(PCAP) - 10}: Input/output error"):
            next(batches)


def test_frames_of_a_pipe_come_as_soon_as_they_are_there():
    read_end, write_end = os.pipe()
    with open(read_end, "rb", buffering=0) as pipe, open(write_end, "wb", buffering=0) as other:  # noqa: PTH123
        other.write(PCAP[:24])
        with open_capture(pipe) as reader:
            batches = iter(reader)
            for number in range(FRAMES):
                # Each time the rest of a frame and a part of the next one's header.
                at = 24 + 76 * number
                other.write(PCAP[at + (5 if number else 0) : at + 76 + 5])
                batch = next(batches)
                assert batch.number.tolist() == [number + 1]
                assert batch.frame(0) == bytes([number]) * 60


def test_frames_of_a_compressed_pipe_come_as_soon_as_they_are_there():
    packer = zlib.compressobj(wbits=31)
    read_end, write_end = os.pipe()
    with open(read_end, "rb", buffering=0) as pipe, open(write_end, "wb", buffering=0) as other:  # noqa: PTH123
        other.write(packer.compress(pcap_header()) + packer.flush(zlib.Z_SYNC_FLUSH))
        with open_capture(pipe) as reader:
            batches = iter(reader)
            for number in range(1, 4):
                other.write(packer.compress(record(FRAME)) + packer.flush(zlib.Z_SYNC_FLUSH))
                assert next(batches).number.tolist() == [number]


@pytest.mark.parametrize("kind", [io.BytesIO, RawStream])
@pytest.mark.parametrize("chunk_bytes", [1, 200, 4 << 20])
def test_batches_stay_as_they_were_handed_out(kind, chunk_bytes):
    with open_capture(kind(PCAPNG), chunk_bytes=chunk_bytes) as reader:
        batches = list(reader)
    assert [frame[4] for frame in read_all(batches)] == [bytes([number]) * 60 for number in range(FRAMES)]


def test_a_slow_pipe_of_large_records_is_not_read_again_and_again():
    """Many small pieces of large frames: the bytes that wait are not copied with every piece."""
    large = pcap_header(snap_length=1 << 20) + record(bytes(1 << 20)) * 4
    with open_capture(RawStream(large, piece=1 << 10), chunk_bytes=64 << 10) as reader:
        assert [frame[3] for frame in read_all(reader)] == [1 << 20] * 4


def run_python(program, stdin, *arguments):
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], check=False, capture_output=True, **stdin
    )


READ_STANDARD_INPUT = (
    "from mxwire.capture import open_capture\n"
    "from mxwire.errors import CaptureError\n"
    "try:\n"
    "    with open_capture('-') as reader:\n"
    "        print(reader.name, sum(map(len, reader)), reader.total_bytes)\n"
    "except CaptureError as error:\n    print(error)\n"
)


def test_standard_input(tmp_path):
    shown = run_python(READ_STANDARD_INPUT, {"input": PCAP}).stdout
    assert shown == b"standard input 50 None\n"
    path = tmp_path / "a.pcap"
    path.write_bytes(PCAP)
    with path.open("rb") as file:
        assert run_python(READ_STANDARD_INPUT, {"stdin": file}).stdout == b"standard input 50 %d\n" % len(PCAP)
    assert run_python(READ_STANDARD_INPUT, {"input": b""}).stdout.startswith(b"standard input: is empty")


def test_standard_input_that_is_a_terminal():
    master, terminal = os.openpty()
    try:
        assert run_python(READ_STANDARD_INPUT, {"stdin": terminal}).stdout.startswith(b"standard input: is a terminal")
    finally:
        os.close(master)
        os.close(terminal)


def test_closed_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert open_error("-") == "standard input: is closed; pipe a capture into it"


def test_a_named_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert stat.S_ISFIFO(path.stat().st_mode)
    writing = threading.Thread(target=path.write_bytes, args=(PCAP,))
    writing.start()
    with open_capture(path) as reader:
        assert reader.total_bytes is None
        assert len(read_all(reader)) == FRAMES
    writing.join()


# Compressed files


@compressed
@pytest.mark.parametrize("data", [PCAP, PCAPNG], ids=["pcap", "pcapng"])
@pytest.mark.parametrize("chunk_bytes", [1, 4 << 20])
def test_compressed(compression, compress, data, chunk_bytes):
    packed = compress(data)
    with open_capture(io.BytesIO(packed), chunk_bytes=chunk_bytes) as reader:
        assert reader.compression == compression
        assert len(read_all(reader)) == FRAMES
        assert reader.bytes_read == len(packed)
        assert reader.warnings == []


@compressed
def test_several_members(compression, compress):
    packed = compress(PCAP[:1000]) + compress(b"") + compress(PCAP[1000:1001]) + compress(PCAP[1001:])
    with open_capture(io.BytesIO(packed + bytes(1000))) as reader:
        assert len(read_all(reader)) == FRAMES
        assert reader.warnings == []


def test_skippable_frames_of_zstd():
    skippable = b"\x53\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"12345"
    with open_capture(io.BytesIO(skippable + zstd(PCAP) + skippable)) as reader:
        assert reader.compression == "zstd"
        assert len(read_all(reader)) == FRAMES
        assert reader.warnings == []


@compressed
@pytest.mark.parametrize("garbage", [b"x", b"\x1f\x8b", b"garbage", b"\0\0garbage" * 100_000])
def test_something_else_behind_the_end(compression, compress, garbage):
    packed = compress(PCAP)
    with open_capture(io.BytesIO(packed + garbage)) as reader:
        assert len(read_all(reader)) == FRAMES
        place = len(packed) + garbage.count(b"\0\0", 0, 2) * 2
        assert reader.warnings == [f"stream: ignored the bytes after the {compression} data, from byte {place}"]


@compressed
def test_cut_off_anywhere(compression, compress):
    packed = compress(PCAP + record(os.urandom(5000)) * 3)
    for have in range(4, len(packed), 7):
        expected = f"stream: the {compression} file is cut off after "
        try:
            with open_capture(io.BytesIO(packed[:have])) as reader:
                frames = []
                with pytest.raises(CaptureError) as caught:
                    frames.extend(len(batch) for batch in reader)
                assert str(caught.value).startswith(f"{expected}{sum(frames)} whole frame")
        except CaptureError as error:
            assert str(error).startswith(f"{expected}0 whole frames")


def test_all_whole_frames_of_a_cut_off_file_come_first():
    packed = gzip.compress(PCAP, compresslevel=0)  # stored, so that the place of each frame is known
    with open_capture(io.BytesIO(packed[: len(packed) - 8 - 76 * 3 - 1])) as reader:
        batches = iter(reader)
        assert len(next(batches)) == FRAMES - 4
        with pytest.raises(
            CaptureError, match="the gzip file is cut off after 46 whole frames; copy or record it again"
        ):
            next(batches)


@compressed
def test_damaged(compression, compress):
    """The first member is whole, the second breaks after its start."""
    first = compress(PCAP)
    damage = first[:12] + b"\xff" * 200
    with open_capture(io.BytesIO(first + damage)) as reader:
        batches = iter(reader)
        assert len(next(batches)) == FRAMES
        with pytest.raises(CaptureError, match=f"stream: the {compression} file is damaged near its byte ") as caught:
            next(batches)
    assert str(caught.value).endswith("after 50 whole frames; copy or record it again")


def test_a_capture_cut_off_before_it_was_compressed():
    with open_capture(io.BytesIO(gzip.compress(PCAP[:-7]))) as reader:
        assert ended(reader) == (
            FRAMES - 1,
            f"stream (unpacked): cut off in the middle of frame 50 at byte {24 + 49 * 76}: 7 bytes missing",
        )


def test_a_compressed_file_of_nothing():
    assert open_error(io.BytesIO(gzip.compress(b""))) == "stream: has no contents; record the capture again"


def test_the_name_does_not_matter(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(gzip.compress(PCAP))
    with open_capture(path) as reader:
        assert reader.compression == "gzip"
        assert reader.total_bytes == path.stat().st_size


def test_a_wrong_checksum_of_gzip():
    packed = bytearray(gzip.compress(PCAP))
    assert zlib.crc32(PCAP) == int.from_bytes(packed[-8:-4], "little")
    packed[-8] ^= 1
    with open_capture(io.BytesIO(PCAP)) as whole, pytest.raises(CaptureError, match="incorrect data check"):
        assert len(read_all(whole)) == FRAMES
        read_all(open_capture(io.BytesIO(packed)))


def test_closing():
    reader = open_capture(io.BytesIO(PCAP))
    reader.close()
    reader.close()
    assert list(reader) == []
