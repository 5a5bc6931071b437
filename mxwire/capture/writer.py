"""The capture writer: writes batches to a pcap or pcapng file."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, Self, cast

import numpy as np
import zstandard
from numpy.typing import NDArray

from mxwire.capture.encoder import Encoder, EncoderSettings, PcapEncoder, PcapngEncoder
from mxwire.capture.pcap import ORDINARY_LARGEST_FRAME
from mxwire.errors import CaptureOutputError
from mxwire.frames import LINKTYPE_ETHERNET, FrameBatch
from mxwire.words import printable

CaptureFormat = Literal["pcap", "pcapng"]


class ByteSink:
    """The destination of a capture's bytes: a file, compressed or not, or a stream of the caller."""

    def __init__(self, name: str, streams: list[BinaryIO], *, close_streams: bool) -> None:
        """Each of ``streams`` writes to the next; they stay open unless ``close_streams``."""
        self.name = name
        self._streams = streams
        self._close_streams = close_streams

    def write(self, data: bytes | memoryview) -> None:
        """Write all of the bytes."""
        rest = memoryview(data)
        with self._errors():
            while rest:
                written = self._streams[0].write(rest)
                # An unbuffered stream may accept less; one implemented in Python may return None.
                rest = rest[len(rest) if written is None else written :]

    def flush(self) -> None:
        """Pass all written bytes to the operating system."""
        with self._errors():
            for stream in self._streams:
                stream.flush()

    def close(self) -> None:
        """Flush all streams, and close those of a file, even if one of them fails."""
        with self._errors(), ExitStack() as finishing:
            # The last callback runs first: a compressor is closed before the file to which it writes.
            for stream in reversed(self._streams):
                finishing.callback(stream.close if self._close_streams else stream.flush)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise  # the reader of the pipe has closed it, which is not an error of the file
        except OSError as error:
            raise CaptureOutputError.of(self.name, error) from error


class CaptureWriter:
    """Writes batches to a capture; create it with ``create_capture``."""

    def __init__(self, sink: ByteSink, encoder: Encoder, *, comments_allowed: bool) -> None:
        """Nothing is written before the first batch or :meth:`begin`."""
        self.frames = 0
        """Number of frames written."""
        self._sink = sink
        self._encoder = encoder
        self.name = sink.name
        """The name of the file, for messages."""
        self.comments_allowed = comments_allowed
        """True if the format supports comments: pcapng, but not pcap."""
        self._begun = False
        self._closed = False

    def begin(self, link_type: int) -> None:
        """Write the header required before frames of a link type, unless already written."""
        self._sink.write(self._encoder.begin(link_type))
        self._begun = True

    def add_interface(self, name: str, link_type: int = LINKTYPE_ETHERNET) -> int:
        """Add an interface for frames, and return its number; pcapng only."""
        block, number = self._pcapng().add_interface(name, link_type)
        self._sink.write(block)
        self._begun = True
        return number

    def write(
        self, batch: FrameBatch, comments: Mapping[int, str] | None = None, interfaces: NDArray[np.intp] | None = None
    ) -> None:
        """Write the frames of a batch, with ``comments`` by frame number.

        ``interfaces`` (shape (n,)) are numbers returned by :meth:`add_interface`; by default each link type has an
        interface of its own. Both need pcapng and raise ``ValueError`` for pcap.
        """
        if self._closed:
            raise ValueError(f"{self.name} is closed")
        if comments and not self.comments_allowed:
            raise ValueError("a pcap file cannot contain comments; use pcapng")
        if interfaces is None:
            self.begin(batch.link_type)
        if len(batch):
            if interfaces is None:
                self._sink.write(self._encoder.frames(batch, comments or {}))
            else:
                self._sink.write(self._pcapng().frames(batch, comments or {}, interfaces))
            self.frames += len(batch)

    def write_names(self, names: Mapping[bytes, str]) -> None:
        """Write the names of hosts by Ethernet address of 6 bytes; pcapng only."""
        self.begin(LINKTYPE_ETHERNET)
        self._sink.write(self._pcapng().names(names))

    def write_statistics(self, end_ns: int, received: int, dropped: int) -> None:
        """Write the number of frames received and dropped up to ``end_ns`` (since 1970); pcapng only."""
        self.begin(LINKTYPE_ETHERNET)
        self._sink.write(self._pcapng().statistics(end_ns, received, dropped))

    def _pcapng(self) -> PcapngEncoder:
        if not isinstance(self._encoder, PcapngEncoder):
            raise ValueError("a pcap file can only contain frames; use pcapng")
        return self._encoder

    def flush(self) -> None:
        """Pass all written bytes to the operating system."""
        self._sink.flush()

    def close(self) -> None:
        """Complete and close the file; a stream passed by the caller stays open."""
        if self._closed:
            return
        self._closed = True
        try:
            if not self._begun:
                self.begin(LINKTYPE_ETHERNET)  # a file without frames must be a valid capture too
        finally:
            self._sink.close()

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()


def create_capture(
    target: str | Path | BinaryIO,
    *,
    format: CaptureFormat | None = None,
    link_type: int | None = None,
    snap_length: int = ORDINARY_LARGEST_FRAME,
    interface_name: str | None = None,
    comment: str | None = None,
    nanoseconds: bool = True,
) -> CaptureWriter:
    """Create a pcap or pcapng file to write batches to.

    ``target`` is a path (the suffixes ``.gz`` and ``.zst`` compress), ``"-"`` for standard output, or a binary stream.
    ``format`` is by default pcap for a path with the suffix ``.pcap`` or ``.cap``, else pcapng. With ``link_type``, the
    header is written immediately, else with the link type of the first batch. Frames are cut to ``snap_length`` bytes,
    unless it is 0. ``interface_name`` and ``comment`` (on the whole file) need pcapng.

    Raises ``CaptureError`` if the file cannot be created. Writing to a closed pipe raises ``BrokenPipeError``.
    """
    if format is None:
        format = _format_by_suffix(target)
    if format not in ("pcap", "pcapng"):
        raise ValueError(f"unknown format {format!r}; use pcap or pcapng")
    if format == "pcap" and (interface_name is not None or comment is not None):
        raise ValueError("a pcap file cannot contain an interface name or a comment; use pcapng")
    if not isinstance(target, (str, Path)) and not hasattr(target, "write"):
        raise TypeError(f"a capture is written to a path or a binary stream, not {target!r}")
    if not 0 <= snap_length < 1 << 32:
        raise ValueError(f"snap_length must be from 0 to {(1 << 32) - 1}, not {snap_length}")
    name = _name_of(target)
    settings = EncoderSettings(name, snap_length, nanoseconds)
    encoder: Encoder
    if format == "pcap":
        encoder = PcapEncoder(settings)
    else:
        encoder = PcapngEncoder(settings, interface_name, comment)
    writer = CaptureWriter(_open_sink(target, name), encoder, comments_allowed=format == "pcapng")
    if link_type is not None:
        writer.begin(link_type)
    return writer


def _name_of(target: str | Path | BinaryIO) -> str:
    if target == "-":
        return "standard output"
    if isinstance(target, (str, Path)):
        return printable(str(target))
    name = getattr(target, "name", None)
    return printable(name) if isinstance(name, str) else "stream"


def _format_by_suffix(target: str | Path | BinaryIO) -> CaptureFormat:
    if not isinstance(target, (str, Path)):
        return "pcapng"
    path = Path(target)
    if path.suffix in _COMPRESSORS:
        path = path.with_suffix("")
    return "pcap" if path.suffix in (".pcap", ".cap") else "pcapng"


def _open_sink(target: str | Path | BinaryIO, name: str) -> ByteSink:
    if target == "-":
        if sys.stdout is None or sys.stdout.isatty():
            raise CaptureOutputError(f"{name}: is a terminal or closed; redirect it to a file or a pipe")
        return ByteSink(name, [sys.stdout.buffer], close_streams=False)
    if not isinstance(target, (str, Path)):
        return ByteSink(name, [target], close_streams=False)
    path = Path(target)
    try:
        file = path.open("wb")
    except OSError as error:
        raise CaptureOutputError.of(name, error) from error
    except ValueError as error:
        raise CaptureOutputError(f"{name}: cannot be written: {error}") from error
    compress = _COMPRESSORS.get(path.suffix)
    return ByteSink(name, [compress(file), file] if compress else [file], close_streams=True)


def _gzip_stream(file: BinaryIO) -> BinaryIO:
    # Without time and name in the header, so that equal frames give equal files.
    return cast(BinaryIO, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0))


def _zstd_stream(file: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, zstandard.ZstdCompressor().stream_writer(file, closefd=False))


_COMPRESSORS = {".gz": _gzip_stream, ".zst": _zstd_stream}
