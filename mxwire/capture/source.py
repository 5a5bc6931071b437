"""Byte sources of captures: files, pipes and streams, decompressed if necessary, and the buffer with the bytes in
memory."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import stat
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from mxwire.errors import CaptureError, CaptureNotFoundError
from mxwire.words import printable

SMALLEST_READ_BYTES = 64 << 10
"""Capacity of a pipe; with less free space than this, a new buffer replaces the current one."""
PACKED_READ_BYTES = 256 << 10
"""Size of a read from a compressed file."""


class DamagedCompression(Exception):
    """Truncated or damaged compressed data; the text describes which.

    The reader converts it to a ``CaptureError`` with the number of frames read before.
    """


class ByteSource(Protocol):
    """The bytes of a capture in order."""

    def read_into(self, target: memoryview) -> int:
        """Read at least one byte, but no more than is available without waiting; return 0 at the end."""


class RawBytes:
    """The unmodified bytes of a file, pipe or stream."""

    def __init__(self, stream: BinaryIO, name: str, *, close_stream: bool) -> None:
        """``close_stream`` is True if :meth:`close` closes the stream."""
        self.name = name
        self.bytes_read = 0
        self.total_bytes = _regular_file_size(stream)
        self._stream = stream
        self._close_stream = close_stream
        self._readinto = _prompt_readinto(stream)
        self._ahead = b""

    def read_into(self, target: memoryview) -> int:
        """Read at least one byte, but no more than is available without waiting; return 0 at the end."""
        if self._ahead:
            count = min(len(self._ahead), len(target))
            target[:count] = self._ahead[:count]
            self._ahead = self._ahead[count:]
            return count
        return self._read(target)

    def peek(self, count: int) -> bytes:
        """Return the next ``count`` bytes, or fewer at the end, without consuming them."""
        while len(self._ahead) < count:
            piece = bytearray(count - len(self._ahead))
            length = self._read(memoryview(piece))
            if length == 0:
                break
            self._ahead += piece[:length]
        return self._ahead[:count]

    def is_being_written(self) -> bool:
        """Return whether a file has grown since it was opened, or a program has it open for writing."""
        if self.total_bytes is None:
            return False
        descriptor = self._stream.fileno()
        if os.fstat(descriptor).st_size > self.total_bytes:
            return True
        try:
            # The kernel grants a lease for reading only if no program has the file open for writing. A program that
            # opens it before the lease is returned causes a signal: one that has no effect.
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except OSError as error:
            return error.errno == errno.EAGAIN
        return False

    def close(self) -> None:
        """Close the file if ``open_raw`` opened it."""
        if self._close_stream:
            self._stream.close()

    def _read(self, target: memoryview) -> int:
        try:
            count = self._readinto(target)
        except (OSError, EOFError) as error:
            reason = printable(getattr(error, "strerror", None) or str(error))
            raise CaptureError(f"{self.name}: cannot be read at byte {self.bytes_read}: {reason}") from error
        if count is None:
            raise CaptureError(f"{self.name}: is in non-blocking mode; open it in blocking mode")
        self.bytes_read += count
        return count


def open_raw(source: str | Path | BinaryIO) -> RawBytes:
    """Open a path, standard input ("-") or a binary stream for reading."""
    if source == "-":
        return _open_standard_input()
    if not isinstance(source, (str, Path)):
        if not hasattr(source, "read"):
            raise TypeError(f"a capture is a path or a binary stream, not {source!r}")
        name = getattr(source, "name", None)
        return RawBytes(source, printable(name) if isinstance(name, str) else "stream", close_stream=False)
    name = printable(str(source))
    try:
        # Open without buffering, because the reader's buffers are large, and a further buffer would only add a copy.
        stream = Path(source).open("rb", buffering=0)  # noqa: SIM115  (CaptureReader closes it)
    except FileNotFoundError:
        raise CaptureNotFoundError(f"{name}: no such file; check the path") from None
    except IsADirectoryError:
        raise CaptureError(f"{name}: is a directory; name a capture file in it") from None
    except PermissionError:
        raise CaptureError(f"{name}: permission denied; run as a user with read access") from None
    except (OSError, ValueError) as error:
        reason = printable(getattr(error, "strerror", None) or str(error))
        raise CaptureError(f"{name}: cannot be opened: {reason}") from error
    return RawBytes(cast(BinaryIO, stream), name, close_stream=True)


def _open_standard_input() -> RawBytes:
    name = "standard input"
    if sys.stdin is None:
        raise CaptureError(f"{name}: is closed; pipe a capture into it")
    if sys.stdin.isatty():
        raise CaptureError(f"{name}: is a terminal; pipe a capture into it")
    return RawBytes(sys.stdin.buffer, name, close_stream=False)


def _regular_file_size(stream: BinaryIO) -> int | None:
    try:
        status = os.fstat(stream.fileno())
    except (AttributeError, OSError, ValueError):
        return None  # not a file of the operating system
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _prompt_readinto(stream: BinaryIO) -> Callable[[memoryview], int | None]:
    """The method of ``stream`` that returns available bytes rather than waiting for more."""
    for method in ("readinto1", "readinto"):
        readinto = getattr(stream, method, None)
        if readinto is not None:
            return cast(Callable[[memoryview], int | None], readinto)

    def read_and_copy(target: memoryview) -> int:
        data = stream.read(len(target))
        target[: len(data)] = data
        return len(data)

    return read_and_copy


class _Decompressor(Protocol):
    """The common interface of the decompressors of zlib and zstandard, which unpack one member of a file."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Compression:
    """A compression format."""

    name: str
    start: re.Pattern[bytes]
    """Matches the first four bytes of a member of a compressed file."""
    decompressor: Callable[[], _Decompressor]
    piece_bytes: int
    """Compressed bytes to unpack at once, limited so that hostile ones expand to at most about 32 MiB."""
    duplicate: Callable[[Any], _Decompressor | None]
    """Return a decompressor in the same state, or None if its library cannot duplicate one."""
    error: Callable[[], type[Exception]]
    """Return the exception that the decompressor raises for damaged data."""


def _zstd_decompressor() -> _Decompressor:
    import zstandard  # only for its files: commands start fast

    return zstandard.ZstdDecompressor().decompressobj()


def _zstd_error() -> type[Exception]:
    import zstandard

    return zstandard.ZstdError


COMPRESSIONS = (
    # Deflate expands one byte to at most 1032 bytes; zstd expands a block of 4 bytes to at most 128 KiB.
    Compression(
        "gzip",
        re.compile(rb"\x1f\x8b\x08"),
        lambda: zlib.decompressobj(31),
        16 << 10,
        lambda it: it.copy(),
        lambda: zlib.error,
    ),
    Compression(
        "zstd",
        # The second form is a skippable frame, at the start of files from parallel compressors.
        re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
        _zstd_decompressor,
        1 << 10,
        lambda _: None,
        _zstd_error,
    ),
)


def compression_of(head: bytes) -> Compression | None:
    """The compression of a file with these first four bytes, or None."""
    return next((compression for compression in COMPRESSIONS if compression.start.match(head)), None)


def _unpacked_before_damage(member: _Decompressor | None, piece: bytes) -> bytes:
    """The bytes that a damaged piece unpacks to before the damage: decompressors discard them with the error."""
    unpacked: list[bytes] = []
    if member is not None:
        with suppress(zlib.error):
            unpacked.extend(member.decompress(piece[place : place + 1]) for place in range(len(piece)))
    return b"".join(unpacked)


class UnpackedBytes:
    """The unpacked bytes of a compressed file, which may have several consecutive members."""

    def __init__(self, raw: RawBytes, compression: Compression, warnings: list[str]) -> None:
        """Warnings about the file are appended to ``warnings``."""
        self._raw = raw
        self._compression = compression
        self._warnings = warnings
        self._packed = b""
        self._at = 0
        """Offset in ``_packed`` of the first byte not unpacked yet."""
        self._unpacked = memoryview(b"")
        """Unpacked bytes not returned yet."""
        self._member: _Decompressor | None = None
        self._finished = False
        self._failure: DamagedCompression | CaptureError | None = None
        self._pending: DamagedCompression | None = None
        """Damage to be raised after the bytes in ``_unpacked``."""

    def read_into(self, target: memoryview) -> int:
        """Read as in :class:`ByteSource`; raise ``DamagedCompression`` after returning all bytes before the damage."""
        written = 0
        while written < len(target) and not self._finished:
            if self._unpacked:
                count = min(len(self._unpacked), len(target) - written)
                target[written : written + count] = self._unpacked[:count]
                self._unpacked = self._unpacked[count:]
                written += count
                continue
            if written and self._at == len(self._packed):
                break  # everything available is unpacked: return it rather than wait for more
            try:
                self._unpack_more()
            except (DamagedCompression, CaptureError) as failure:
                self._failure = failure
                self._finished = True
        if not written and self._failure is not None:
            raise self._failure
        return written

    def resume(self) -> bool:
        """Continue after damage at the next member of the file; return False if there is none."""
        self._at = min(self._at + 1, len(self._packed))
        while True:
            rest = self._packed[self._at :]
            found = self._compression.start.search(rest)
            if found is not None and found.start() < len(rest) - 3:
                self._at += found.start()
                self._member, self._failure, self._finished = None, None, False
                return True
            self._at += max(len(rest) - 3, 0)
            if not self._read_packed():
                return False

    def _unpack_more(self) -> None:
        """Unpack the next part, or set ``_finished`` at the end."""
        if self._pending is not None:
            pending, self._pending = self._pending, None
            raise pending
        if self._member is None and not self._start_member():
            self._finished = True
            return
        if self._at == len(self._packed) and not self._read_packed():
            raise DamagedCompression(f"the {self._compression.name} file is cut off")
        assert self._member is not None
        piece = self._packed[self._at : self._at + self._compression.piece_bytes]
        before = self._compression.duplicate(self._member)
        try:
            self._unpacked = memoryview(self._member.decompress(piece))
        except self._compression.error() as error:
            near = self._raw.bytes_read - len(self._packed) + self._at
            self._pending = DamagedCompression(
                f"the {self._compression.name} file is damaged near its byte {near} ({printable(str(error))})"
            )
            self._unpacked = memoryview(_unpacked_before_damage(before, piece))
            return
        self._at += len(piece)
        if self._member.eof:
            self._at -= len(self._member.unused_data)
            self._member = None

    def _start_member(self) -> bool:
        """Start the next member; return False at the end of the file."""
        padding = -1
        while padding != 0:
            while len(self._packed) - self._at < 4 and self._read_packed():
                pass
            rest = self._packed[self._at :]
            # Tapes and block devices leave zeros between and after members; gzip skips them too.
            padding = len(rest) - len(rest.lstrip(b"\0"))
            self._at += padding
        if not rest:
            return False
        if not self._compression.start.match(rest):
            place = self._raw.bytes_read - len(rest)
            self._warnings.append(
                f"{self._raw.name}: ignored the bytes after the {self._compression.name} data, from byte {place}"
            )
            return False
        self._member = self._compression.decompressor()
        return True

    def _read_packed(self) -> bool:
        """Append more of the file to the bytes not unpacked yet; return False at its end."""
        space = bytearray(PACKED_READ_BYTES)
        count = self._raw.read_into(memoryview(space))
        self._packed = self._packed[self._at :] + space[:count]
        self._at = 0
        return count > 0


class ChunkBuffer:
    """The bytes ``buffer[start:end]``: read but not consumed yet.

    Batches refer to the buffer, so its contents never change once read. New bytes are appended while there is room;
    then the remainder (part of one record) is copied to a new buffer. No byte is copied more than a few times, however
    small the pieces in which it is read.

    Files are read rather than mapped: if another process truncates a mapped file, access to the lost pages kills the
    reader with SIGBUS, and captures are often read while they are written or rotated.
    """

    def __init__(self, source: ByteSource, chunk_bytes: int) -> None:
        """``chunk_bytes`` is the size of a buffer, unless a record needs more."""
        self.buffer: NDArray[np.uint8] = np.empty(0, np.uint8)
        self.start = 0
        self.end = 0
        self._source = source
        self._chunk_bytes = chunk_bytes
        self._smallest_read = min(SMALLEST_READ_BYTES, max(chunk_bytes // 4, 1))
        self._buffer_offset = 0

    @property
    def available(self) -> int:
        """Number of bytes in memory and not consumed."""
        return self.end - self.start

    @property
    def offset(self) -> int:
        """Offset in the capture of the first byte not consumed."""
        return self._buffer_offset + self.start

    def fill(self, needed: int) -> bool:
        """Read more, and return False at the end. ``needed`` is the number of available bytes required to continue."""
        if len(self.buffer) - self.end < max(needed - self.available, self._smallest_read):
            self._move_to_fresh_buffer(needed)
        count = self._source.read_into(self.buffer.data[self.end :])
        self.end += count
        return count > 0

    def _move_to_fresh_buffer(self, needed: int) -> None:
        fresh = np.empty(max(self._chunk_bytes, needed), np.uint8)
        fresh[: self.available] = self.buffer[self.start : self.end]
        self._buffer_offset += self.start
        self.start, self.end = 0, self.available
        self.buffer = fresh
