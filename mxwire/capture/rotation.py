"""A live capture in one pcapng file, or in several numbered ones, limited by size or duration."""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from mxwire.capture.writer import create_capture
from mxwire.ethernet import mac_text
from mxwire.frames import LINKTYPE_ETHERNET, FrameBatch

if TYPE_CHECKING:
    from mxwire.capture.writer import CaptureWriter

_BLOCK_BYTES: Final = 36
"""Bytes of a pcapng block in addition to those of its frame."""
_MEGABYTE: Final = 1_000_000
_COMMENT_NAMES: Final = 100
"""Host names that go into the comment of a file; the block of names holds all of them."""


@dataclass(frozen=True, slots=True)
class RotationOptions:
    """Settings of :class:`RotatingWriter`."""

    target: str | None
    """The file, or None for none; with a limit, a number is inserted before its suffix."""
    interface: str
    comment: str | None
    """Comment on each file; the names of hosts are added to it."""
    snap_length: int = 0
    """Bytes kept of each frame; 0 for all."""
    file_size: float | None = None
    """Largest size of a file in millions of bytes."""
    file_time: float | None = None
    """Maximum time between the first and the last frame of a file, in seconds."""
    file_count: int | None = None
    """Number of newest files to keep."""

    @property
    def rotates(self) -> bool:
        """True if there may be several files."""
        return self.file_size is not None or self.file_time is not None


class RotatingWriter:
    """Writes frames to a capture file, and starts another file at each limit.

    ``names`` are the host names known so far, by address; the caller may add to them.
    """

    def __init__(self, options: RotationOptions, names: dict[bytes, str]) -> None:
        self._options = options
        self._names = names
        self._writer: CaptureWriter | None = None
        self._number = 0
        self._bytes = 0
        self._since = 0
        self._frames = 0
        self._dropped = self._dropped_before = 0
        self.written: list[str] = []
        """The files written so far that still exist."""

    def begin(self) -> None:
        """Open the first file; raise :class:`~mxwire.errors.CaptureError` if it cannot be written."""
        if self._options.target is not None:
            self._open()

    def write(self, batch: FrameBatch, dropped: int) -> None:
        """Write frames; ``dropped`` is the number of frames lost so far."""
        self._dropped = dropped
        while self._writer is not None and len(batch):
            fitting = self._fitting(batch)
            if fitting:
                self._writer.write(batch.part(0, fitting))
                self._frames += fitting
                self._since = self._since or int(batch.timestamp_ns[0])
            if fitting == len(batch):
                self._writer.flush()
                return
            batch = batch.part(fitting, len(batch))
            self._finish()
            self._open()

    def name(self, new: dict[bytes, str]) -> None:
        """Write newly known host names."""
        if self._writer is not None:
            self._writer.write_names(new)

    def close(self, dropped: int) -> None:
        """Finish the last file."""
        self._dropped = dropped
        self._finish()

    def _fitting(self, batch: FrameBatch) -> int:
        """The number of frames that fit into the file; at least one fits into a new file."""
        fitting = len(batch)
        if self._options.file_time is not None:
            since = self._since or int(batch.timestamp_ns[0])
            late = np.flatnonzero(batch.timestamp_ns - since >= self._options.file_time * 1e9)
            fitting = int(late[0]) if len(late) else fitting
        captured = (
            batch.length if not self._options.snap_length else np.minimum(batch.length, self._options.snap_length)
        )
        sizes = np.cumsum(captured + _BLOCK_BYTES)
        if self._options.file_size is not None:
            room = self._options.file_size * _MEGABYTE - self._bytes
            fitting = min(fitting, int(np.searchsorted(sizes, room, side="right")))
        if not fitting and not self._frames:
            fitting = 1
        self._bytes += int(sizes[fitting - 1]) if fitting else 0
        return fitting

    def _open(self) -> None:
        path = self._path()
        self._bytes = self._since = self._frames = 0
        self._dropped_before = self._dropped
        self._writer = create_capture(
            path,
            format="pcapng",
            link_type=LINKTYPE_ETHERNET,
            snap_length=self._options.snap_length,
            interface_name=self._options.interface,
            comment=(self._options.comment or "") + _names_text(self._names),
        )
        if self._names:
            self._writer.write_names(self._names)
        self._writer.flush()
        self.written.append(path)
        self._keep_newest()

    def _path(self) -> str:
        target = self._options.target
        assert target is not None
        if not self._options.rotates:
            return target
        self._number += 1
        path = Path(target)
        # Before all suffixes, of which the last may be that of a compression.
        stem, dot, ending = path.name.partition(".")
        return str(path.with_name(f"{stem}-{self._number:05}{dot}{ending}"))

    def _keep_newest(self) -> None:
        while self._options.file_count is not None and len(self.written) > self._options.file_count:
            with suppress(FileNotFoundError):
                Path(self.written.pop(0)).unlink()

    def _finish(self) -> None:
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        dropped = self._dropped - self._dropped_before
        with ExitStack() as finishing:
            finishing.callback(writer.close)
            writer.write_statistics(time.time_ns(), self._frames + dropped, dropped)


def _names_text(names: dict[bytes, str]) -> str:
    if not names:
        return ""
    first = [f"{mac_text(address)} {name}" for address, name in list(names.items())[:_COMMENT_NAMES]]
    return "; hosts: " + ", ".join(first)
