"""Division of capture files into ranges of bytes that can be read by themselves.

Theory of operation
===================

A file of terabytes is read by many workers, each of which begins in the middle. Records have no marks, so the first
record after a place is a guess: a place where a record may begin that is followed by another one
(:meth:`~mxwire.capture.resumption.Resumable.plausible`, as behind damage). Payload may look like records, so each guess
is verified when its range is read: a range is right if it begins with a record and its last record ends exactly at its
end. The first range begins at the first record, so if all ranges end exactly, all boundaries are right.

Records cannot be read without the head of the file: the file header of pcap, or all blocks of pcapng before the first
frame (sections, interfaces). :func:`open_range` reads the head and then the range, as if they were a file of their own.
Files whose sections or interfaces change later cannot be divided, and compressed ones cannot be read from the middle.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from struct import error as StructError
from struct import unpack_from
from typing import Any, BinaryIO, Final, cast

from mxwire.capture.blocks import PACKET_LAYOUTS
from mxwire.capture.pcap import FILE_HEADER_BYTES, PcapDecoder, is_pcap
from mxwire.capture.pcapng import PcapngDecoder, is_pcapng
from mxwire.capture.reader import CaptureReader, open_capture
from mxwire.capture.resumption import resume
from mxwire.capture.scan import PYTHON_SCANNER, SMALLEST_BLOCK_BYTES
from mxwire.capture.source import ChunkBuffer, RawBytes
from mxwire.errors import CaptureError

_HEAD_MAXIMUM: Final = 1 << 20
"""Longest head of a pcapng file that can be divided: room for thousands of interfaces."""
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The records of ``file`` from offset ``start`` to ``end`` (exclusive), behind its first ``head`` bytes."""

    file: str
    head: int
    start: int
    end: int

    def joined(self, following: ByteRange) -> ByteRange:
        """Return this range and the one behind it as one."""
        return ByteRange(self.file, self.head, self.start, following.end)


class _RangeStream(io.RawIOBase):
    """The head of a file and a range of it, as one stream."""

    def __init__(self, bytes_: ByteRange) -> None:
        self.name = bytes_.file
        self._file = Path(bytes_.file).open("rb", buffering=0)  # noqa: SIM115 (closed by close)
        self._left = [(0, bytes_.head), (bytes_.start, bytes_.end)]

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        while self._left:
            first, end = self._left[0]
            if first < end:
                count = os.preadv(self._file.fileno(), [memoryview(target)[: end - first]], first)
                # A file that has become shorter ends early, and its last record is cut off.
                self._left[0] = first + count, end if count else first
                if count:
                    return count
            self._left.pop(0)
        return 0

    def close(self) -> None:
        self._file.close()
        super().close()


@contextmanager
def open_range(bytes_: ByteRange, damaged: Callable[[CaptureError], None] | None = None) -> Iterator[CaptureReader]:
    """Open a range as a capture; its frames are numbered from 1. ``damaged`` is that of :func:`open_capture`."""
    with _RangeStream(bytes_) as stream, open_capture(cast(BinaryIO, stream), damaged=damaged) as reader:
        yield reader


def ranges_of(file: str, octets: int) -> list[ByteRange]:
    """Return ranges of about ``octets`` bytes of all records of a file, in order; an empty list if it is shorter, or
    cannot be divided.

    Their boundaries are guesses, except the first and the last one.
    """
    try:
        size = Path(file).stat().st_size if Path(file).is_file() else 0
        head = _head_of(file) if size > octets else 0
        if not head:
            return []
        # None near the end, so that the last range has half of the length at least.
        found = {_boundary(file, head, place) for place in range(head + octets, size - octets // 2, octets)}
    except (OSError, CaptureError):
        return []  # reading it as a whole reports the error
    edges = [head, *sorted(each for each in found if each is not None and head < each < size), size]
    return [ByteRange(file, head, first, end) for first, end in pairwise(edges)] if len(edges) > 2 else []


def _head_of(file: str) -> int:
    """Return the number of bytes before the first record with a frame; 0 if the file cannot be divided."""
    with Path(file).open("rb") as stream:
        data = stream.read(_HEAD_MAXIMUM)
    if is_pcap(data[:4]):
        return FILE_HEADER_BYTES
    if not is_pcapng(data[:4]):
        return 0
    order, at = ("<" if data[8:12] == b"\x4d\x3c\x2b\x1a" else ">"), 0
    try:
        while True:
            block_type, length = unpack_from(f"{order}II", data, at)
            if block_type in PACKET_LAYOUTS:
                return at
            if length < SMALLEST_BLOCK_BYTES:
                return 0
            at += length
    except StructError:
        return 0


def _boundary(file: str, head: int, place: int) -> int | None:
    """Return the first place from ``place`` on where a record may begin; None if there is none."""

    def chunk_of(bytes_: ByteRange) -> ChunkBuffer:
        stream = stack.enter_context(_RangeStream(bytes_))
        return ChunkBuffer(RawBytes(cast(BinaryIO, stream), file, close_stream=False), _CHUNK)

    with ExitStack() as stack:
        chunk = chunk_of(ByteRange(file, head, 0, 0))
        while chunk.fill(head):
            pass
        decoder = (PcapDecoder if is_pcap(chunk.buffer[:4].tobytes()) else PcapngDecoder)(file, chunk)
        # Reads the byte order of the section, and the interfaces.
        for _ in decoder.batches(chunk, PYTHON_SCANNER):
            pass
        # The search begins behind the first byte.
        chunk = chunk_of(ByteRange(file, 0, place - 1, Path(file).stat().st_size))
        return place - 1 + chunk.offset if resume(decoder, chunk, chunk.fill) else None
