"""``mxwire replay`` without ``--as``: the frames of a capture, sent unchanged."""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from mxwire.cli.live_options import LiveOptions, end_like_interrupt
from mxwire.cli.notes import counted, end_interrupted_line, note, print_record
from mxwire.cli.option_groups import DecodingOptions
from mxwire.cli.progress import Bar, bar
from mxwire.cli.reading import capture_of, decoded_batches, note_frames, selection_of
from mxwire.errors import MxwireError
from mxwire.ethernet import DESTINATION, SOURCE, mac_bytes, mac_text
from mxwire.report.times import seconds_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mxwire.analysis.selection import Selection
    from mxwire.cli.replay import ReplayOptions
    from mxwire.frames import FrameBatch
    from mxwire.replay.raw import Pace, Player, RawReplayResult
    from mxwire.wire.dialect import Dialect

_EVERY_FRAMES: Final = 50_000
"""Frames between two updates of the progress bar."""
_KEPT_BYTES: Final = 256 << 20
"""Bytes of a capture that are prepared before the first frame is sent; the rest is read while frames are sent."""


def _selection(options: ReplayOptions) -> Selection:
    """Return the selected frames. Raises :class:`~mxwire.errors.MxwireError` for mistakes in the filter."""

    filters = replace(options.filters, endpoint=_endpoint(options.endpoints))
    decoding = DecodingOptions(options.dialect, (options.ethertype,), options.skip_damage)
    return selection_of(filters.selection(), filters.host_names(), options.file, decoding)


def _pace(options: ReplayOptions) -> Pace:
    from mxwire.replay.raw import AsRecorded, AtTopSpeed, pace_at

    if options.rate is not None:
        return pace_at(options.rate)
    return AtTopSpeed() if options.top_speed else AsRecorded(1.0 if options.speed is None else options.speed)


def _endpoint(given: tuple[str, ...]) -> int | None:
    """The number of --endpoint, or None."""
    if not given:
        return None
    if len(given) > 1 or not given[0].isdecimal() or int(given[0]) > 0xFF:
        raise MxwireError(f"--endpoint {' '.join(given)}: give one number from 0 to 255 (several only with --as)")
    return int(given[0])


# Sending


def replay_frames(options: ReplayOptions) -> None:
    """Send the frames, or print them."""
    if options.interface is None and not options.dry_run:
        raise MxwireError("name the interface to send on, like -i eth0; --dry-run only prints the frames")
    if options.loop == 0 and options.dry_run:
        raise MxwireError("--dry-run with --loop 0 would never end: give a number of loops")
    from mxwire.link import open_link
    from mxwire.replay.raw import Player

    selection, pace = _selection(options), _pace(options)
    if options.dry_run:
        _print_plan(options, selection, pace)
        return
    end_like_interrupt()
    assert options.interface is not None
    LiveOptions(options.interface).check()
    ethertype = options.new_ethertype or options.ethertype
    with open_link(options.interface, options.via, ethertype=ethertype, promiscuous=True) as link:
        # The player itself polls, shortly before a frame is due.
        link.spin = 0.0
        source = PreparedCapture(options, selection, link.address, link.mtu)
        _require_pace(source, options, pace)
        player = Player(link, pace)
        try:
            _send(source, player, options)
        except KeyboardInterrupt:
            player.result.interrupted = True
            end_interrupted_line()
        finally:
            source.close()
            _summarize(player.result, source, options)
    if not player.result.frames and not player.result.interrupted:
        raise MxwireError(f"{options.file}: no frame was sent{source.empty_reason()}")
    if player.result.interrupted:
        raise click.Abort


def _require_pace(source: PreparedCapture, options: ReplayOptions, pace: Pace) -> None:
    from mxwire.replay.raw import AsRecorded

    if options.loop != 1 and source.whole and source.frames == 1 and isinstance(pace, AsRecorded):
        source.close()
        raise MxwireError(
            f"{options.file}: a single frame has no recorded pace to repeat it at: choose one, "
            f"like --rate 10/s, or --top-speed"
        )


def _send(source: PreparedCapture, player: Player, options: ReplayOptions) -> None:
    rounds = itertools.count() if options.loop == 0 else range(options.loop)
    total = source.frames * options.loop if source.whole and options.loop else None
    with bar("frames", total, wanted=not options.as_json) as shown:
        for _ in rounds:
            player.play(_tracked(source.pieces(), player, shown) if shown.shown else source.pieces())
            # Without a frame, endless loops would only read the file again and again.
            if not player.result.frames:
                return
    player.listen(options.linger)


def _tracked(pieces: Iterator[FrameBatch], player: Player, shown: Bar) -> Iterator[FrameBatch]:
    """The pieces, with an update of the bar after every few pieces."""
    result = player.result
    for piece in pieces:
        before = result.frames + result.refused
        yield piece
        done = result.frames + result.refused
        if done // _EVERY_FRAMES > before // _EVERY_FRAMES:
            shown.update(done)


# Frames to send


class PreparedCapture:
    """The selected frames of a capture, prepared for sending, once per loop.

    They are kept if they fit into ``_KEPT_BYTES``, and otherwise read again for each loop. ``own`` and ``mtu`` are the
    address and the MTU of the interface.
    """

    def __init__(self, options: ReplayOptions, selection: Selection, own: bytes | None, mtu: int | None) -> None:
        from mxwire.replay.raw import FrameRewriter, PiecePreparer
        from mxwire.wire.decoder import Decoder

        self._options = options
        self._selection = selection
        self._open = ExitStack()
        self._decoder = Decoder(ethertypes=(options.ethertype,))
        rewriter = FrameRewriter(_addresses(options.mapped, own), options.new_ethertype)
        self._preparer = PiecePreparer(options.file, rewriter, mtu, options.interface or "", options.pad)
        self._kept: list[FrameBatch] = []
        self.bytes = self.frames = 0
        fresh = self._read()
        self._rest: Iterator[FrameBatch] | None = fresh
        # Prepared before the first frame: decoding between two frames would delay the second one.
        for piece in fresh:
            self._kept.append(piece)
            self.bytes += len(piece.buffer)
            self.frames += len(piece)
            if self.bytes >= _KEPT_BYTES:
                break
        else:
            self._rest = None
            note_frames(options.file, self._decoder)
        self.whole = self._rest is None
        self._refuse_dialect()

    def _read(self) -> Iterator[FrameBatch]:
        """Read all pieces from the file."""
        from mxwire.analysis.selection import FrameSelector

        reader = self._open.enter_context(capture_of(self._options.file, self._options.skip_damage))
        decoded = decoded_batches(self._decoder, reader, watched=False)
        selector = FrameSelector(self._selection)
        yield from self._preparer.pieces((each, selector.places(each, self._decoder.start_ns)) for each in decoded)

    def pieces(self) -> Iterator[FrameBatch]:
        """All pieces of the next loop."""
        if self.whole:
            return iter(self._kept)
        if self._rest is not None:
            # Kept pieces are freed as they are sent.
            kept, rest = self._kept, self._rest
            self._kept, self._rest = [], None
            return itertools.chain(_consumed(kept), rest)
        if self._options.file == "-":
            raise MxwireError("standard input can be read only once: write it to a file, and replay that with --loop")
        from mxwire.wire.decoder import Decoder

        self._open.close()
        self._decoder = Decoder(ethertypes=(self._options.ethertype,))
        return self._read()

    def _refuse_dialect(self) -> None:
        """Refuse a capture in another dialect than --dialect, as frames cannot be converted."""
        from mxwire.wire.dialect import dialect_or_auto

        requested = dialect_or_auto(self._options.dialect)
        for spoken in (each.dialect for each in self._decoder.detections() if requested is not None):
            if requested is not None and spoken is not None and not _alike(spoken, requested):
                raise MxwireError(
                    f"{self._options.file}: speaks {spoken.name}, and its frames cannot be converted to "
                    f"{requested.name}: fragments have other sizes and PULLs another layout, so that a message takes "
                    f"other frames; send the messages themselves (mxwire extract, mxwire send --dialect "
                    f"{requested.name})"
                )

    def empty_reason(self) -> str:
        """The reason why there was no frame to send, as the last words of an error."""
        if self._preparer.cut:
            return ": all its frames are cut off (--pad pads them)"
        return ": no frame matches the selection" if self._selection.is_limited else ": it has no MXoE frames"

    @property
    def cut(self) -> int:
        """Number of frames per loop that the capture truncated."""
        return self._preparer.cut

    def close(self) -> None:
        """Close the file."""
        self._open.close()


def _consumed(kept: list[FrameBatch]) -> Iterator[FrameBatch]:
    # A list removes items from its end without moving the others.
    kept.reverse()
    while kept:
        yield kept.pop()


def _alike(one: Dialect, other: Dialect) -> bool:
    if one.family != other.family:
        return False
    return one.family == "mxoe" or not one.frame_limit_known or one.frame_limit == other.frame_limit


def _addresses(mapped: tuple[str, ...], own: bytes | None) -> dict[bytes, bytes]:
    addresses = {}
    for each in mapped:
        old, equals, new = each.partition("=")
        if not equals:
            raise MxwireError(f"--map {each}: write it like 52:54:00:0a:00:01=02:00:00:00:00:07, or …=self")
        if new == "self" and own is None:
            raise MxwireError(f"--map {each}: self is the address of an interface: name it with -i IF")
        addresses[mac_bytes(old)] = own if new == "self" and own is not None else mac_bytes(new)
    return addresses


# Reports


def _summarize(result: RawReplayResult, source: PreparedCapture, options: ReplayOptions) -> None:
    """Print the frames sent, how closely they followed the pace, and the answers."""
    record, left_out = result.record(), 0 if options.pad else source.cut
    if options.as_json:
        print_record({"event": "summary", **record, "left_out": left_out})
        return
    for line in _lines(record):
        click.echo(line)
    if source.cut:
        how = "were padded with zeros" if options.pad else "were left out (--pad pads them with zeros)"
        note(f"{counted(source.cut, 'frame')}, cut off by the capture, {how}")


def _lines(record: dict[str, Any]) -> Iterator[str]:
    times = f" in {record['loops']} loops" if record["loops"] > 1 else ""
    yield (
        f"sent {counted(record['frames'], 'frame')}, {counted(record['bytes'], 'byte')}{times} "
        f"in {record['elapsed_us'] / 1e6:.6f} s: "
        f"{record['frames_per_second']:,.0f} frames/s, {record['bits_per_second'] / 1e6:,.1f} Mbit/s"
    )
    if record["requested_us"] is not None:
        yield (
            f"pace: requested {record['requested_us'] / 1e6:.6f} s; "
            f"frames late by {record['late_mean_us']:.1f} µs on average, "
            f"99% within {record['late_p99_us']:,.0f} µs, at most {record['late_max_us']:,.1f} µs"
        )
    if record["refused"]:
        yield f"{counted(record['refused'], 'frame')} refused by the interface"
    text = ", ".join(f"{name} {count:,}" for name, count in record["answers"].items())
    yield f"answers: {text or 'none'}"


def _print_plan(options: ReplayOptions, selection: Selection, pace: Pace) -> None:
    """Print the frames that would be sent, and when."""
    own = mtu = None
    if options.interface is not None:
        found = LiveOptions(options.interface).check()
        own, mtu = found.address, found.mtu
    source = PreparedCapture(options, selection, own, mtu)
    frames = size = last = 0
    try:
        for _ in range(options.loop):
            for batch in source.pieces():
                due = pace.due(batch.timestamp_ns, batch.length)
                for place, when in enumerate(due.tolist()):
                    _print_frame(batch, place, when, pace.hurried, options.as_json)
                frames, size, last = frames + len(batch), size + int(batch.length.sum()), int(due[-1])
            pace.repeat()
    finally:
        source.close()
    if not frames:
        raise MxwireError(f"{options.file}: no frame would be sent{source.empty_reason()}")
    if options.as_json:
        print_record({"event": "plan", "frames": frames, "bytes": size, "requested_us": last / 1e3})
    else:
        when = "as fast as possible" if pace.hurried else f"in {last / 1e9:.6f} s"
        note(f"would send {counted(frames, 'frame')}, {counted(size, 'byte')} {when}")


def _print_frame(batch: FrameBatch, place: int, when: int, hurried: bool, as_json: bool) -> None:
    from mxwire.wire.enums import packet_type_name
    from mxwire.wire.layout import TYPE_OFFSET

    raw = batch.frame(place)
    number, length = int(batch.number[place]), len(raw)
    kind = packet_type_name(raw[TYPE_OFFSET]) if length > TYPE_OFFSET else "?"
    destination, source = mac_text(raw[DESTINATION]), mac_text(raw[SOURCE])
    if as_json:
        record: dict[str, Any] = {"event": "frame", "frame": number, "at_us": None if hurried else when / 1e3}
        record |= {"source": source, "destination": destination, "type": kind, "length": length}
        print_record(record)
    else:
        at = "at once".rjust(14) if hurried else seconds_text(when)
        click.echo(f"{at}  frame {number:6}  {source} → {destination}  {kind:10} {length:5} bytes")
