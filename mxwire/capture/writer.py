"""Writing batches of frames to a pcap or pcapng file."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal, Self, cast

import numpy as np
import zstandard
from numpy.typing import NDArray

from mxwire.capture.encode import Encoder, PcapEncoder, PcapngEncoder, Settings
from mxwire.capture.pcap import ORDINARY_LARGEST_FRAME
from mxwire.capture.text import printable
from mxwire.errors import CaptureError
from mxwire.frames import LINKTYPE_ETHERNET, FrameBatch

CaptureFormat = Literal["pcap", "pcapng"]


class Target:
    """Where bytes are written to: a file, packed or not, or a stream that was given open."""

    def __init__(self, name: str, streams: list[BinaryIO], *, close_streams: bool) -> None:
        """Each of the streams writes to the next; without ``close_streams`` they stay open."""
        self.name = name
        self._streams = streams
        self._close_streams = close_streams

    def write(self, data: bytes | memoryview) -> None:
        """Write all of the bytes."""
        rest = memoryview(data)
        with self._errors():
            while rest:
                written = self._streams[0].write(rest)
                # An unbuffered stream may take less; one made in Python may not say how much it took.
                rest = rest[len(rest) if written is None else written :]

    def flush(self) -> None:
        """Hand what was written to the operating system."""
        with self._errors():
            for stream in self._streams:
                stream.flush()

    def close(self) -> None:
        """Flush, and close what is ours, even if something of it fails."""
        with self._errors(), ExitStack() as finishing:
            for stream in reversed(self._streams):
                finishing.callback(stream.close if self._close_streams else stream.flush)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise  # whoever reads the pipe has had enough, which is no error of a file
        except OSError as error:
            reason = printable(error.strerror or str(error))
            raise CaptureError(f"{self.name}: cannot be written: {reason}") from error


class CaptureWriter:
    """Takes batches and writes them; use ``create_capture``."""

    def __init__(self, target: Target, encoder: Encoder, *, comments_allowed: bool) -> None:
        """Nothing is written yet."""
        self.frames = 0
        """How many frames were written."""
        self._target = target
        self._encoder = encoder
        self._comments_allowed = comments_allowed
        self._begun = False
        self._closed = False

    @property
    def name(self) -> str:
        """What to call the target in messages."""
        return self._target.name

    @property
    def comments_allowed(self) -> bool:
        """Whether the format has comments: pcapng does, pcap does not."""
        return self._comments_allowed

    def begin(self, link_type: int) -> None:
        """Write what comes before frames of a link type, if it is not there yet."""
        self._target.write(self._encoder.begin(link_type))
        self._begun = True

    def add_interface(self, name: str, link_type: int = LINKTYPE_ETHERNET) -> int:
        """Another interface that frames may be from; returns its number. Only into pcapng."""
        made, number = self._pcapng().add_interface(name, link_type)
        self._target.write(made)
        self._begun = True
        return number

    def write(
        self,
        batch: FrameBatch,
        comments: Mapping[int, str] | None = None,
        interfaces: NDArray[np.intp] | None = None,
    ) -> None:
        """Write the frames of a batch, with comments on those whose numbers are in ``comments``.

        ``interfaces`` (shape (n,)) says which of :meth:`add_interface` each is from; without it they are from one of
        their own for each link type. Only pcapng has comments and several interfaces: with pcap, giving any is a
        ``ValueError``.
        """
        if self._closed:
            raise ValueError(f"{self.name} is closed")
        if comments and not self._comments_allowed:
            raise ValueError("a pcap file cannot hold comments, only pcapng can")
        if interfaces is None:
            self.begin(batch.link_type)
        if len(batch):
            if interfaces is None:
                self._target.write(self._encoder.frames(batch, comments or {}))
            else:
                self._target.write(self._pcapng().frames(batch, comments or {}, interfaces))
            self.frames += len(batch)

    def write_names(self, names: Mapping[bytes, str]) -> None:
        """Write what hosts are called, by their Ethernet addresses of 6 bytes; only into pcapng."""
        self.begin(LINKTYPE_ETHERNET)
        self._target.write(self._pcapng().names(names))

    def write_statistics(self, end_ns: int, received: int, dropped: int) -> None:
        """Write how many frames came up to a time (since 1970), and how many of them were lost; only into pcapng."""
        self.begin(LINKTYPE_ETHERNET)
        self._target.write(self._pcapng().statistics(end_ns, received, dropped))

    def _pcapng(self) -> PcapngEncoder:
        if not isinstance(self._encoder, PcapngEncoder):
            raise ValueError("a pcap file cannot hold anything besides frames, only pcapng can")
        return self._encoder

    def flush(self) -> None:
        """Hand what was written to the operating system."""
        self._target.flush()

    def close(self) -> None:
        """Finish the file; a stream that was given open stays open."""
        if self._closed:
            return
        self._closed = True
        try:
            if not self._begun:
                self.begin(LINKTYPE_ETHERNET)  # a file without frames still has to be a capture
        finally:
            self._target.close()

    def __enter__(self) -> Self:
        """Nothing more to do."""
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Finish the file."""
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

    ``target`` is a path (``.gz`` and ``.zst`` at its end compress), ``"-"`` for standard output, or a binary
    stream. Without ``format`` a path that ends in ``.pcap`` or ``.cap`` becomes pcap, all else pcapng.
    ``link_type`` writes the header at once; without, it waits for the first batch and takes its link type.
    Frames are cut to ``snap_length`` bytes, or with 0 not at all. ``interface_name`` and ``comment`` (on the
    whole file) are only for pcapng.

    Raises ``CaptureError`` if the file cannot be created. A ``BrokenPipeError`` of whoever reads what is
    written is left as it is.
    """
    if format is None:
        format = _format_by_suffix(target)
    if format not in ("pcap", "pcapng"):
        raise ValueError(f"there is no format {format!r}, only pcap and pcapng")
    if format == "pcap" and (interface_name is not None or comment is not None):
        raise ValueError("a pcap file cannot hold an interface name or a comment, only pcapng can")
    if not isinstance(target, (str, Path)) and not hasattr(target, "write"):
        raise TypeError(f"a capture is written to a path or a binary stream, not {target!r}")
    if not 0 <= snap_length < 1 << 32:
        raise ValueError(f"snap_length must be from 0 to {(1 << 32) - 1}, not {snap_length}")
    name = _name_of(target)
    settings = Settings(name, snap_length, nanoseconds)
    encoder: Encoder
    if format == "pcap":
        encoder = PcapEncoder(settings)
    else:
        encoder = PcapngEncoder(settings, interface_name, comment)
    writer = CaptureWriter(_open_target(target, name), encoder, comments_allowed=format == "pcapng")
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
    if path.suffix in _PACKINGS:
        path = path.with_suffix("")
    return "pcap" if path.suffix in (".pcap", ".cap") else "pcapng"


def _open_target(target: str | Path | BinaryIO, name: str) -> Target:
    if target == "-":
        if sys.stdout is None or sys.stdout.isatty():
            raise CaptureError(f"{name}: is a terminal or closed; redirect it to a file or a pipe")
        return Target(name, [sys.stdout.buffer], close_streams=False)
    if not isinstance(target, (str, Path)):
        return Target(name, [target], close_streams=False)
    path = Path(target)
    try:
        file = path.open("wb")
    except FileNotFoundError:
        raise CaptureError(f"{name}: there is no such directory; create it first") from None
    except IsADirectoryError:
        raise CaptureError(f"{name}: is a directory; name a file in it") from None
    except PermissionError:
        raise CaptureError(f"{name}: permission denied; write to a place where you may") from None
    except (OSError, ValueError) as error:
        reason = printable(getattr(error, "strerror", None) or str(error))
        raise CaptureError(f"{name}: cannot be created: {reason}") from error
    packing = _PACKINGS.get(path.suffix)
    return Target(name, [packing(file), file] if packing else [file], close_streams=True)


def _gzip_stream(file: BinaryIO) -> BinaryIO:
    # No time and no name in it, so that the same frames make the same file.
    return cast(BinaryIO, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0))


def _zstd_stream(file: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, zstandard.ZstdCompressor().stream_writer(file, closefd=False))


_PACKINGS = {".gz": _gzip_stream, ".zst": _zstd_stream}
