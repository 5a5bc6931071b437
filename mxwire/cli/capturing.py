"""The work of ``mxwire capture``: from a tap into files, lines and a summary."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

from mxwire import __version__
from mxwire.capture import create_capture
from mxwire.capture.writer import CaptureWriter
from mxwire.cli.live_batches import Signals, passing
from mxwire.cli.notes import counted, end_interrupted_line, listening, note
from mxwire.errors import MxwireError
from mxwire.ethernet import mac_text
from mxwire.frames import LINKTYPE_ETHERNET, FrameBatch
from mxwire.host.names import static_peers
from mxwire.link import Tap
from mxwire.link.interface import read_interface
from mxwire.report.frame_output import FrameJson, FrameListing, FrameText
from mxwire.report.json_line import json_line
from mxwire.report.terminal import is_coloured
from mxwire.wire.codec import TYPE_OFFSET, codec_of
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import MXOE, Dialect, dialect_or_auto
from mxwire.wire.enums import PacketType
from mxwire.wire.packets import HostReply
from mxwire.wire.text import hostname_text

_BLOCK_BYTES: Final = 36
"""What a pcapng file has about each frame, besides its bytes."""
_MEGABYTE: Final = 1_000_000
_COMMENT_NAMES: Final = 100
"""Names that go into a file's comment; the block of names holds them all."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the options say."""

    interface: str
    target: str | None
    lines: bool
    count: int | None
    duration: float | None
    snap_length: int
    file_size: float | None
    file_time: float | None
    file_count: int | None
    no_promiscuous: bool
    buffer: int
    comment: str | None
    peers: Path | None
    dialect: Dialect | None
    ethertype: int
    as_json: bool

    @classmethod
    def of(cls, *, dialect: str, **options: Any) -> Wishes:
        """The options as given.

        Raises :class:`~mxwire.errors.MxwireError` for those that contradict each other.
        """
        made = cls(dialect=dialect_or_auto(dialect), **options)
        if made.target is None and not made.lines:
            raise MxwireError("there is nothing to do with the frames: give -w FILE, or -l for a line a frame")
        if made.target == "-" and made.lines:
            raise MxwireError("-w - puts the capture on standard output, where -l prints its lines: use one of them")
        if made.rotates and made.target in (None, "-"):
            raise MxwireError("-C and -G begin another file: give the name of the first with -w FILE")
        if made.file_count is not None and not made.rotates:
            raise MxwireError("-W counts the files of -C and -G: give one of them")
        if made.target is not None and made.target.removesuffix(".gz").removesuffix(".zst").endswith((".pcap", ".cap")):
            raise MxwireError(f"{made.target}: only pcapng files are written here, name it {_as_pcapng(made.target)}")
        return made

    @property
    def rotates(self) -> bool:
        """Whether there may be several files."""
        return self.file_size is not None or self.file_time is not None


def _as_pcapng(name: str) -> str:
    return f"{Path(name.removesuffix('.gz').removesuffix('.zst')).stem}.pcapng"


class _Files:
    """The capture file, or one after the other."""

    def __init__(self, wishes: Wishes, comment: str, names: dict[bytes, str]) -> None:
        self._wishes = wishes
        self._comment = comment
        self._names = names
        """What hosts are called, as far as known; grows meanwhile."""
        self._writer: CaptureWriter | None = None
        self._number = 0
        self._bytes = 0
        self._since = 0
        self._frames = 0
        self._dropped = self._dropped_before = 0
        self.written: list[str] = []
        """The files that are there."""

    def begin(self) -> None:
        """The first file; raises :class:`~mxwire.errors.CaptureError` where it cannot be written."""
        if self._wishes.target is not None:
            self._open()

    def write(self, batch: FrameBatch, dropped: int) -> None:
        """Write frames; ``dropped`` were lost so far."""
        self._dropped = dropped
        while self._writer is not None and len(batch):
            fitting = self._fitting(batch)
            if fitting:
                self._writer.write(_part(batch, 0, fitting))
                self._frames += fitting
                self._since = self._since or int(batch.timestamp_ns[0])
            if fitting == len(batch):
                self._writer.flush()
                return
            batch = _part(batch, fitting, len(batch))
            self._finish()
            self._open()

    def name(self, new: dict[bytes, str]) -> None:
        """Hosts have told their names."""
        if self._writer is not None:
            self._writer.write_names(new)

    def close(self, dropped: int) -> None:
        """Finish the last file."""
        self._dropped = dropped
        self._finish()

    def _fitting(self, batch: FrameBatch) -> int:
        """How many of the frames go into the file; of a new one, one at least."""
        fitting = len(batch)
        if self._wishes.file_time is not None:
            since = self._since or int(batch.timestamp_ns[0])
            late = np.flatnonzero(batch.timestamp_ns - since >= self._wishes.file_time * 1e9)
            fitting = int(late[0]) if len(late) else fitting
        kept = batch.length if not self._wishes.snap_length else np.minimum(batch.length, self._wishes.snap_length)
        sizes = np.cumsum(kept + _BLOCK_BYTES)
        if self._wishes.file_size is not None:
            room = self._wishes.file_size * _MEGABYTE - self._bytes
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
            snap_length=self._wishes.snap_length,
            interface_name=self._wishes.interface,
            comment=self._comment + _names_text(self._names),
        )
        if self._names:
            self._writer.write_names(self._names)
        self._writer.flush()
        self.written.append(path)
        self._keep_newest()

    def _path(self) -> str:
        target = self._wishes.target
        assert target is not None
        if not self._wishes.rotates:
            return target
        self._number += 1
        path = Path(target)
        stem, dot, ending = path.name.partition(".")
        return str(path.with_name(f"{stem}-{self._number:05}{dot}{ending}"))

    def _keep_newest(self) -> None:
        while self._wishes.file_count is not None and len(self.written) > self._wishes.file_count:
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


def _part(batch: FrameBatch, first: int, end: int) -> FrameBatch:
    return batch if (first, end) == (0, len(batch)) else batch.select(np.arange(first, end))


def _names_text(names: dict[bytes, str]) -> str:
    if not names:
        return ""
    told = [f"{mac_text(address)} {name}" for address, name in list(names.items())[:_COMMENT_NAMES]]
    return "; hosts: " + ", ".join(told)


def new_names(batch: FrameBatch, known: dict[bytes, str]) -> dict[bytes, str]:
    """The names that untagged frames of a batch tell for the first time, by Ethernet address."""
    long_enough = np.flatnonzero(batch.length > TYPE_OFFSET)
    types = batch.buffer[batch.offset[long_enough] + TYPE_OFFSET]
    found: dict[bytes, str] = {}
    for place in long_enough[types == PacketType.HOST_REPLY].tolist():
        frame = codec_of(MXOE).parse(batch.frame(place))
        if isinstance(frame, HostReply):
            name = hostname_text(frame.hostname)
            if name and known.get(frame.src_mac) != name:
                found[frame.src_mac] = name
    return found


@dataclass
class _Tally:
    frames: int = 0
    bytes: int = 0
    dropped: int = 0
    started: float = field(default_factory=time.monotonic)


class _Printer:
    """The lines of -l."""

    def __init__(self, wishes: Wishes) -> None:
        self._decoder = Decoder(wishes.dialect, (wishes.ethertype,))
        style = click.style if is_coloured() else None
        self._text: FrameText = FrameJson() if wishes.as_json else FrameListing(style=style)
        self._text.begin(wishes.interface, self._decoder)

    def show(self, batch: FrameBatch) -> None:
        decoded = self._decoder.decode(batch)
        self._text.show(decoded, np.arange(len(decoded)))


def run(wishes: Wishes) -> None:
    """Capture until one of the ends that the user wants; exits with 130 or 143 after a signal."""
    names = {address: name for address, name in static_peers(wishes.peers).items() if name}
    found = read_interface(wishes.interface)
    comment = f"mxwire {__version__} on {os.uname().nodename}, interface {found.name} ({mac_text(found.address)})"
    comment = f"{wishes.comment}; {comment}" if wishes.comment else comment
    files, tally = _Files(wishes, comment, names), _Tally()
    with Tap.open(
        wishes.interface,
        ethertype=wishes.ethertype,
        promiscuous=not wishes.no_promiscuous,
        ring_bytes=wishes.buffer << 20,
    ) as tap:
        signals, begun = Signals(tap), False
        try:
            files.begin()
            begun = True
            if not found.up:
                note(f"{found.name} is down: nothing comes before it is set up")
            listening(found.name, wishes.duration, wishes.count)
            _loop(wishes, tap, signals, files, tally, names)
        finally:
            tally.dropped = tap.statistics().dropped
            signals.restore()
            files.close(tally.dropped)
            if signals.seen == signal.SIGINT:
                end_interrupted_line()
            # Where there can be no file, there is nothing to sum up either.
            if begun:
                _summarize(wishes, files, tally, names)
    sys.stdout.flush()
    if signals.seen is not None:
        sys.exit(128 + signals.seen)


def _loop(wishes: Wishes, tap: Tap, signals: Signals, files: _Files, tally: _Tally, names: dict[bytes, str]) -> None:
    printer = _Printer(wishes) if wishes.lines else None
    for batch in passing(tap, signals, None if wishes.duration is None else tally.started + wishes.duration):
        if wishes.count is not None:
            batch = _part(batch, 0, min(len(batch), wishes.count - tally.frames))
        if not len(batch):
            continue
        new = new_names(batch, names)
        names |= new
        files.write(batch, tap.statistics().dropped)
        if new:
            files.name(new)
        if printer is not None:
            printer.show(batch)
        tally.frames += len(batch)
        tally.bytes += int(batch.wire_length.sum())
        if tally.frames == wishes.count:
            return


def _summarize(wishes: Wishes, files: _Files, tally: _Tally, names: dict[bytes, str]) -> None:
    seconds = time.monotonic() - tally.started
    if wishes.as_json:
        made = {
            "type": "summary",
            "interface": wishes.interface,
            "frames": tally.frames,
            "bytes": tally.bytes,
            "dropped": tally.dropped,
            "seconds": seconds,
            "files": files.written,
            "names": {mac_text(address): name for address, name in names.items()},
        }
        click.echo(json_line(made), err=wishes.target == "-")
        return
    where = f" in {', '.join(files.written)}" if files.written and wishes.target != "-" else ""
    frames, size = counted(tally.frames, "frame"), counted(tally.bytes, "byte")
    click.echo(f"{frames} ({size}) captured in {seconds:.1f} s{where}", err=True)
    if tally.dropped:
        click.echo(
            f"{counted(tally.dropped, 'frame')} dropped for lack of room: try a larger --buffer, or omit -l", err=True
        )
    else:
        click.echo("0 frames dropped", err=True)
