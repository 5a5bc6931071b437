"""The bytes of a capture: where they come from, unpacked if they are packed, and how far reading has come."""

from __future__ import annotations

import os
import stat
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import zstandard

from mxwire.capture.text import printable
from mxwire.errors import CaptureError, CaptureNotFoundError

PACKED_READ_BYTES = 256 << 10
"""How much of a compressed file is read at once."""


class DamagedCompression(Exception):
    """Compressed bytes that end too early or are not what they should be; the text says which.

    The reader makes a ``CaptureError`` of it that also says how many frames came before.
    """


class Source(Protocol):
    """Bytes in the order of the capture."""

    def read_into(self, target: memoryview) -> int:
        """Read at least one byte, and only what is there without waiting; 0 at the end."""


class RawBytes:
    """The bytes of a file, pipe or stream as they are."""

    def __init__(self, stream: BinaryIO, name: str, *, close_stream: bool) -> None:
        """``close_stream``: whether closing this closes the stream."""
        self.name = name
        self.bytes_read = 0
        self.total_bytes = _regular_file_size(stream)
        self._stream = stream
        self._close_stream = close_stream
        self._readinto = _prompt_readinto(stream)
        self._ahead = b""

    def read_into(self, target: memoryview) -> int:
        """Read at least one byte, and only what is there without waiting; 0 at the end."""
        if self._ahead:
            count = min(len(self._ahead), len(target))
            target[:count] = self._ahead[:count]
            self._ahead = self._ahead[count:]
            return count
        return self._read(target)

    def peek(self, count: int) -> bytes:
        """The next ``count`` bytes, fewer only at the end; they stay to be read."""
        while len(self._ahead) < count:
            piece = bytearray(count - len(self._ahead))
            length = self._read(memoryview(piece))
            if length == 0:
                break
            self._ahead += piece[:length]
        return self._ahead[:count]

    def close(self) -> None:
        """Close what ``open_raw`` opened."""
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
        # Unbuffered: the reader's own buffers are large, so another one in between only costs a copy.
        stream = Path(source).open("rb", buffering=0)  # noqa: SIM115  (CaptureReader closes it)
    except FileNotFoundError:
        raise CaptureNotFoundError(f"{name}: no such file; check the path") from None
    except IsADirectoryError:
        raise CaptureError(f"{name}: is a directory; name a capture file in it") from None
    except PermissionError:
        raise CaptureError(f"{name}: permission denied; run as a user who may read it") from None
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
    """The way to read of this stream that hands out what has arrived rather than wait for more."""
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
    """What the decompressors of zlib and zstandard have in common: each unpacks one member of a file."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Compression:
    """A way to compress files."""

    name: str
    is_start: Callable[[bytes], bool]
    """Whether a member of a compressed file starts with these four bytes."""
    decompressor: Callable[[], _Decompressor]
    piece_bytes: int
    """How much to unpack at once: a hostile file must not become more than about 32 MiB by that."""


def _is_zstd_start(head: bytes) -> bool:
    # The second form is a skippable frame, with which the files of parallel compressors start.
    return head == b"\x28\xb5\x2f\xfd" or (head[1:] == b"\x2a\x4d\x18" and head[0] >> 4 == 5)


COMPRESSIONS = (
    # Deflate makes at most 1032 bytes of one, zstd at most 128 KiB of a block of four.
    Compression("gzip", lambda head: head[:3] == b"\x1f\x8b\x08", lambda: zlib.decompressobj(31), 16 << 10),
    Compression("zstd", _is_zstd_start, lambda: zstandard.ZstdDecompressor().decompressobj(), 1 << 10),
)


def compression_of(head: bytes) -> Compression | None:
    """The compression of a file that starts with these four bytes."""
    return next((compression for compression in COMPRESSIONS if compression.is_start(head)), None)


class UnpackedBytes:
    """The bytes within a compressed file, which may have several members one after the other."""

    def __init__(self, raw: RawBytes, compression: Compression, warnings: list[str]) -> None:
        """``warnings`` is where remarks about the file go."""
        self._raw = raw
        self._compression = compression
        self._warnings = warnings
        self._packed = b""
        self._at = 0
        """How much of ``_packed`` has been unpacked."""
        self._unpacked = memoryview(b"")
        """What has been unpacked but not yet handed out."""
        self._member: _Decompressor | None = None
        self._finished = False
        self._failure: DamagedCompression | CaptureError | None = None

    def read_into(self, target: memoryview) -> int:
        """As ``Source.read_into``; raises ``DamagedCompression`` after all bytes before the damage."""
        written = 0
        while written < len(target) and not self._finished:
            if self._unpacked:
                count = min(len(self._unpacked), len(target) - written)
                target[written : written + count] = self._unpacked[:count]
                self._unpacked = self._unpacked[count:]
                written += count
                continue
            if written and self._at == len(self._packed):
                break  # what has arrived is unpacked: hand it out before waiting for more
            try:
                self._unpack_more()
            except (DamagedCompression, CaptureError) as failure:
                self._failure = failure
                self._finished = True
        if not written and self._failure is not None:
            raise self._failure
        return written

    def _unpack_more(self) -> None:
        """Unpack the next piece, or find that there is none."""
        if self._member is None and not self._start_member():
            self._finished = True
            return
        if self._at == len(self._packed) and not self._read_packed():
            raise DamagedCompression(f"the {self._compression.name} file is cut off")
        assert self._member is not None
        piece = self._packed[self._at : self._at + self._compression.piece_bytes]
        try:
            self._unpacked = memoryview(self._member.decompress(piece))
        except (zlib.error, zstandard.ZstdError) as error:
            near = self._raw.bytes_read - len(self._packed) + self._at
            raise DamagedCompression(
                f"the {self._compression.name} file is damaged near its byte {near} ({printable(str(error))})"
            ) from error
        self._at += len(piece)
        if self._member.eof:
            self._at -= len(self._member.unused_data)
            self._member = None

    def _start_member(self) -> bool:
        """Get ready for the next member; false at the end of the file."""
        padding = -1
        while padding != 0:
            while len(self._packed) - self._at < 4 and self._read_packed():
                pass
            rest = self._packed[self._at :]
            # Zeros between and behind members are what tapes and block devices leave; gzip skips them too.
            padding = len(rest) - len(rest.lstrip(b"\0"))
            self._at += padding
        if not rest:
            return False
        if not self._compression.is_start(rest[:4]):
            place = self._raw.bytes_read - len(rest)
            self._warnings.append(
                f"{self._raw.name}: ignored what follows the {self._compression.name} data from byte {place} on"
            )
            return False
        self._member = self._compression.decompressor()
        return True

    def _read_packed(self) -> bool:
        """Read more of the file behind what is not unpacked yet; false at its end."""
        space = bytearray(PACKED_READ_BYTES)
        count = self._raw.read_into(memoryview(space))
        self._packed = self._packed[self._at :] + space[:count]
        self._at = 0
        return count > 0
