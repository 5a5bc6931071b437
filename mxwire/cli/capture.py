"""``mxwire capture``: the frames that pass an interface, in capture files or as lines."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import click

from mxwire import __version__
from mxwire.cli import options as shared
from mxwire.cli.conflicts import conflicts, requires
from mxwire.cli.filters import FilterOptions
from mxwire.cli.group import command_with
from mxwire.cli.notes import counted, end_interrupted_line, listening, note, print_record
from mxwire.cli.option_class import group, option, options_class
from mxwire.cli.reading import unannounced_text
from mxwire.errors import MxwireError
from mxwire.ethernet import ADDRESS_SIZE, mac_text

if TYPE_CHECKING:
    from mxwire.analysis.host_names import HostNames
    from mxwire.capture.rotation import RotatingWriter, RotationOptions
    from mxwire.frames import FrameBatch
    from mxwire.link import Tap
    from mxwire.link.live_source import EndSignals
    from mxwire.report.frame_output import FrameOutput
    from mxwire.wire.decoder import Decoder


@conflicts("--write -", "--lines", error="-w - and -l both write to standard output: choose one")
@requires("-W", one_of=("-C", "-G"), error="-W needs -C or -G: give one of them")
@options_class
class CaptureOptions:
    """The options of mxwire capture."""

    interface: str = shared.interface_option(required=True)
    target: str | None = shared.write_option("Write all frames to FILE; -: standard output.")
    lines: bool = shared.flag_option("Print one line per frame, as mxwire decode does.", "-l", "--lines")
    count: int | None = shared.count_option("Stop after N frames.")
    seconds: float | None = shared.duration_option(None, "Stop after S seconds.")
    snap_length: int = shared.integer_option(
        "Keep only the first bytes of each frame.  [default: all]", "-s", "--snap-length BYTES", most=262144, default=0
    )
    file_size: float | None = shared.amount_option(
        "Start a new file before one exceeds MB (10^6 bytes, before compression).", "-C", "--file-size MB"
    )
    file_time: float | None = shared.amount_option("Start a new file every S seconds.", "-G", "--file-time")
    file_count: int | None = shared.integer_option(
        "Keep only the newest N files of -C and -G.", "-W", "--file-count", least=1
    )
    no_promiscuous: bool = shared.flag_option(
        "Do not make the interface receive frames for other hosts.", "-p", "--no-promiscuous"
    )
    buffer: int = shared.integer_option("Memory for bursts.", "--buffer MB", least=1, most=4096, default=64)
    comment: str | None = option("A comment for the capture, in addition to its origin.", "--comment TEXT")
    time_format: str = shared.time_format_option
    filters: FilterOptions = group(FilterOptions)
    dialect: str = shared.dialect_option
    ethertype: int = shared.own_ethertype_option
    as_json: bool | str = shared.full_json_option("JSON Lines: one object per frame (with -l), and a summary.")

    def rotation(self, comment: str) -> RotationOptions:
        """Return the settings of the files, whose comment ends with ``comment``."""
        from mxwire.capture.rotation import RotationOptions

        own = {each.name: getattr(self, each.name) for each in fields(RotationOptions)}
        return RotationOptions(**own | {"comment": f"{self.comment}; {comment}" if self.comment else comment})

    def check(self) -> None:
        """Raise :class:`~mxwire.errors.MxwireError` for mistakes, before the interface is opened."""
        from mxwire.wire.dialect import dialect_or_auto

        self.filters.selection()
        dialect_or_auto(self.dialect)
        target = self.target
        if target is None and not self.lines:
            raise MxwireError("no output was chosen: give -w FILE, or -l for one line per frame")
        if self.rotation("").rotates and target in (None, "-"):
            raise MxwireError("-C and -G start further files: name the first with -w FILE")
        if target is not None and shared.is_plain_pcap(target):
            raise MxwireError(f"{target}: capture writes pcapng only: name it {shared.as_pcapng(target)}")


@command_with(CaptureOptions)
def command(options: CaptureOptions) -> None:
    """Capture the MXoE frames that pass an interface, in both directions.

    It only listens, and sends nothing. Frames have the kernel's times; frames for which the buffer had no room are
    counted. A filter limits the frames that are written and printed; a host can be given by a name of --peers, or by
    one that it announces: then its frames are selected from the announcement on.
    """
    options.check()
    _capture(options)


@dataclass
class _TypeTally:
    frames: int = 0
    bytes: int = 0
    dropped: int = 0
    started: float = field(default_factory=time.monotonic)


def _printer(options: CaptureOptions, decoder: Decoder, names: HostNames) -> FrameOutput:
    """Return the output of -l."""
    from mxwire.report.frame_json import FrameJson
    from mxwire.report.frame_text import FrameListing
    from mxwire.report.terminal import is_coloured

    style = click.style if is_coloured() else None
    printer: FrameOutput = FrameListing(options.time_format, style=style)
    if options.as_json:
        printer = FrameJson(full=options.as_json == "full")
    printer.begin(options.interface, decoder, names if options.filters.by_name else None)
    return printer


def _capture(options: CaptureOptions) -> None:
    """Capture until a limit of the options, or a signal; then exit with 130 or 143."""
    from mxwire.capture.rotation import RotatingWriter
    from mxwire.link import Tap
    from mxwire.link.interface import read_interface
    from mxwire.link.live_source import EndSignals

    known = options.filters.host_names()
    names = {address.to_bytes(ADDRESS_SIZE, "big"): name for address, name in known.items()}
    interface = read_interface(options.interface)
    comment = (
        f"mxwire {__version__} on {os.uname().nodename}, interface {interface.name} ({mac_text(interface.address)})"
    )
    files, tally = RotatingWriter(options.rotation(comment), names), _TypeTally()
    with Tap.open(
        options.interface,
        ethertype=options.ethertype,
        promiscuous=not options.no_promiscuous,
        ring_bytes=options.buffer << 20,
    ) as tap:
        signals, begun = EndSignals(tap), False
        try:
            files.begin()
            begun = True
            if not interface.up:
                note(f"{interface.name} is down: no frames pass until it is set up")
            listening(interface.name, options.seconds, options.count)
            _loop(options, tap, signals, files, tally, names)
        finally:
            # Read before the socket is closed: the last block of the file has this number.
            tally.dropped = tap.statistics().dropped
            signals.restore()
            files.close(tally.dropped)
            if signals.seen == signal.SIGINT:
                end_interrupted_line()
            # Without a first file there is nothing to summarize.
            if begun:
                _summarize(options, files, tally, names)
    if signals.seen is not None:
        sys.exit(128 + signals.seen)


def _loop(
    options: CaptureOptions,
    tap: Tap,
    signals: EndSignals,
    files: RotatingWriter,
    tally: _TypeTally,
    names: dict[bytes, str],
) -> None:
    import numpy as np

    from mxwire.analysis.selection import FrameSelector
    from mxwire.link.live_source import passing
    from mxwire.wire.decoder import Decoder
    from mxwire.wire.dialect import dialect_or_auto

    decoder = Decoder(dialect_or_auto(options.dialect), (options.ethertype,))
    selection = options.filters.selection().resolved(options.filters.host_names(), learns=True)
    selector = FrameSelector(selection) if selection.is_limited else None
    printer = _printer(options, decoder, selection.names) if options.lines else None
    for batch in passing(tap, signals, None if options.seconds is None else tally.started + options.seconds):
        if not len(batch):
            continue
        # Also in frames that the filter leaves out: others with these addresses may follow.
        new = _new_names(batch, names)
        names |= new
        decoded = decoder.decode(batch) if printer is not None or selector is not None else None
        if selector is not None and decoded is not None:
            decoded = selector.select(decoded, decoder.start_ns)
            batch = decoded.batch
        if options.count is not None and len(batch) > options.count - tally.frames:
            batch = batch.part(0, options.count - tally.frames)
            decoded = None if decoded is None else decoded.select(np.arange(len(batch)))
        files.write(batch, tap.statistics().dropped)
        if new:
            files.name(new)
        if printer is not None and decoded is not None:
            if options.filters.by_name:
                selection.names.learn(decoded)
            printer.show(decoded, np.arange(len(decoded)))
        tally.frames += len(batch)
        tally.bytes += int(batch.wire_length.sum())
        if tally.frames == options.count:
            return
    if decoder.decoded and selection.unannounced:
        note(f"{options.interface}: {unannounced_text(selection.unannounced)}")


def _summarize(options: CaptureOptions, files: RotatingWriter, tally: _TypeTally, names: dict[bytes, str]) -> None:
    seconds = time.monotonic() - tally.started
    if options.as_json:
        record = {
            "type": "summary",
            "interface": options.interface,
            "frames": tally.frames,
            "bytes": tally.bytes,
            "dropped": tally.dropped,
            "seconds": seconds,
            "files": files.written,
            "names": {mac_text(address): name for address, name in names.items()},
        }
        print_record(record, err=options.target == "-")
        return
    where = f" in {', '.join(files.written)}" if files.written and options.target != "-" else ""
    frames, size = counted(tally.frames, "frame"), counted(tally.bytes, "byte")
    click.echo(f"{frames} ({size}) captured in {seconds:.1f} s{where}", err=True)
    if tally.dropped:
        omit = ", or omit -l" if options.lines else ""
        click.echo(f"{counted(tally.dropped, 'frame')} dropped for lack of room: try a larger --buffer{omit}", err=True)
    else:
        click.echo("0 frames dropped", err=True)


def _new_names(batch: FrameBatch, known: dict[bytes, str]) -> dict[bytes, str]:
    """Host names in untagged frames of a batch that are not in ``known``, by Ethernet address."""
    import numpy as np

    from mxwire.wire.codec import codec_of
    from mxwire.wire.dialect import MXOE
    from mxwire.wire.enums import PacketType, hostname_text
    from mxwire.wire.layout import TYPE_OFFSET
    from mxwire.wire.packets import HostReply

    long_enough = np.flatnonzero(batch.length > TYPE_OFFSET)
    types = batch.buffer[batch.offset[long_enough] + TYPE_OFFSET]
    names: dict[bytes, str] = {}
    for place in long_enough[types == PacketType.HOST_REPLY].tolist():
        frame = codec_of(MXOE).parse(batch.frame(place))
        if isinstance(frame, HostReply):
            name = hostname_text(frame.hostname)
            if name and known.get(frame.src_mac) != name:
                names[frame.src_mac] = name
    return names
