"""What ``mxwire replay`` does without ``--as``: frames of a capture to an interface, at a pace."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import click

from mxwire.cli.decoding import Selection
from mxwire.cli.live import Live, end_like_interrupt, note
from mxwire.cli.options import Range
from mxwire.cli.reading import capture_of, decoded_batches, tell_notes
from mxwire.errors import MxwireError
from mxwire.link import PacketLink
from mxwire.replay.raw import AsRecorded, AtTopSpeed, Pace, Piece, Player, Preparation, Result, Rewriting, pace_at
from mxwire.report.times import seconds_text
from mxwire.wire.address import mac_bytes
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import Dialect, dialect_or_auto
from mxwire.wire.enums import ETHERTYPE_MXOE

_KEPT_BYTES: Final = 256 << 20
"""So much of a capture is made ready before its first frame is sent; larger ones are read meanwhile."""
_LINGER: Final = 0.2
_SELF: Final = "self"
_EVERY_FRAMES: Final = 50_000
"""Frames between two looks of the bar."""


@dataclass(frozen=True)
class Wishes:
    """What the options say."""

    file: str
    interface: str | None
    selection: Selection
    pace: Callable[[], Pace]
    loop: int
    mapped: tuple[str, ...]
    ethertype: int
    new_ethertype: int | None
    pad: bool
    dry_run: bool
    linger: float
    dialect: Dialect | None
    as_json: bool

    @classmethod
    def of(
        cls,
        *,
        interface: str | None,
        speed: float | None,
        rate: str | None,
        top_speed: bool,
        loop: int | None,
        types: tuple[str, ...],
        frames: list[Range] | None,
        hosts: tuple[str, ...],
        endpoints: tuple[str, ...],
        ethertype: int | None,
        linger: float | None,
        dialect: str,
        dry_run: bool,
        **rest: Any,
    ) -> Wishes:
        """Understand the options; raises :class:`~mxwire.errors.MxwireError` for what is not possible."""
        if interface is None and not dry_run:
            raise MxwireError("say where to send with -i IF, like -i eth0; --dry-run only says what would be sent")
        if loop == 0 and dry_run:
            raise MxwireError("--dry-run with --loop 0 would never end: say how often")
        return cls(
            interface=interface,
            selection=Selection.of(types, hosts, frames, _endpoint(endpoints)),
            pace=_pace(speed, rate, top_speed),
            loop=1 if loop is None else loop,
            ethertype=ETHERTYPE_MXOE if ethertype is None else ethertype,
            linger=_LINGER if linger is None else linger,
            dialect=dialect_or_auto(dialect),
            dry_run=dry_run,
            **rest,
        )


def _endpoint(given: tuple[str, ...]) -> int | None:
    if not given:
        return None
    if len(given) > 1 or not given[0].isdecimal() or int(given[0]) > 0xFF:
        raise MxwireError(f"--endpoint {' '.join(given)}: give one number from 0 to 255 (several go only with --as)")
    return int(given[0])


def _pace(speed: float | None, rate: str | None, top_speed: bool) -> Callable[[], Pace]:
    if (speed is not None) + (rate is not None) + top_speed > 1:
        raise MxwireError("--speed, --rate and --top-speed are different paces: choose one")
    if rate is not None:
        pace_at(rate)
        return lambda: pace_at(rate)
    return AtTopSpeed if top_speed else lambda: AsRecorded(1.0 if speed is None else speed)


def run(wishes: Wishes) -> None:
    """Send, or say what would be sent."""
    if wishes.dry_run:
        _tell_plan(wishes)
        return
    end_like_interrupt()
    assert wishes.interface is not None
    Live(wishes.interface).check()
    with PacketLink.open(
        wishes.interface, ethertype=wishes.new_ethertype or wishes.ethertype, promiscuous=True
    ) as link:
        link.spin = 0.0
        source = _Source(wishes, link.address, link.mtu)
        player = Player(link, wishes.pace())
        try:
            _send(source, player, wishes)
        except KeyboardInterrupt:
            player.result.interrupted = True
        finally:
            source.close()
            _summarize(player.result, source, wishes)
    if not player.result.frames and not player.result.interrupted:
        raise MxwireError(f"{wishes.file}: nothing was sent{source.why_nothing()}")
    if player.result.interrupted:
        raise click.Abort


def _send(source: _Source, player: Player, wishes: Wishes) -> None:
    rounds = itertools.count() if wishes.loop == 0 else range(wishes.loop)
    with _bar(source, wishes) as advance:
        for _ in rounds:
            player.play(_told(source.pieces(), advance))
            if not player.result.frames:
                return
    player.listen(wishes.linger)


def _told(pieces: Iterator[Piece], advance: Callable[[int], None] | None) -> Iterator[Piece]:
    if advance is None:
        return pieces
    return _telling(pieces, advance)


def _telling(pieces: Iterator[Piece], advance: Callable[[int], None]) -> Iterator[Piece]:
    waiting = 0
    for piece in pieces:
        yield piece
        waiting += len(piece.batch)
        if waiting >= _EVERY_FRAMES:
            advance(waiting)
            waiting = 0
    advance(waiting)


class _Source:
    """The pieces of a capture, again and again: kept where they fit into memory, read anew otherwise."""

    def __init__(self, wishes: Wishes, own: bytes | None, mtu: int | None) -> None:
        self._wishes = wishes
        self._own = own
        self._open = ExitStack()
        self._decoder = Decoder(ethertypes=(wishes.ethertype,))
        self._preparation = self._prepare(mtu)
        self._kept: list[Piece] = []
        self.bytes = self.frames = 0
        self.left_out = 0
        fresh = self._read()
        self._rest: Iterator[Piece] | None = fresh
        for piece in fresh:
            self._kept.append(piece)
            self.bytes += len(piece.batch.buffer)
            self.frames += len(piece.batch)
            if self.bytes >= _KEPT_BYTES:
                break
        else:
            self._rest = None
            self.left_out = self._preparation.cut
            tell_notes(wishes.file, self._decoder)
        self.whole = self._rest is None
        self._refuse_dialect()

    def _prepare(self, mtu: int | None) -> Preparation:
        wishes = self._wishes
        rewriting = Rewriting(_addresses(wishes.mapped, self._own), wishes.new_ethertype)
        return Preparation(wishes.file, rewriting, mtu, wishes.interface or "", wishes.pad)

    def _read(self) -> Iterator[Piece]:
        """All pieces, read from the file."""
        wishes = self._wishes
        reader = self._open.enter_context(capture_of(wishes.file))
        decoded = decoded_batches(self._decoder, reader, show_progress=False)
        yield from self._preparation.pieces((each, wishes.selection.places(each)) for each in decoded)

    def pieces(self) -> Iterator[Piece]:
        """All pieces, once more."""
        if self.whole:
            return iter(self._kept)
        if self._rest is not None:
            # What was kept is let go as it is sent.
            kept, rest = self._kept, self._rest
            self._kept, self._rest = [], None
            return itertools.chain(_consumed(kept), rest)
        if self._wishes.file == "-":
            raise MxwireError("standard input can be read once only: write it to a file, and replay that with --loop")
        self._open.close()
        self._decoder = Decoder(ethertypes=(self._wishes.ethertype,))
        return self._read()

    def _refuse_dialect(self) -> None:
        """Frames of one dialect cannot be made into frames of another."""
        wanted = self._wishes.dialect
        for found in self._decoder.detections() if wanted is not None else ():
            spoken = found.dialect
            if wanted is not None and spoken is not None and not _alike(spoken, wanted):
                raise MxwireError(
                    f"{self._wishes.file}: speaks {spoken.name}, and its frames cannot be converted to {wanted.name}: "
                    f"fragments have other sizes and PULLs another layout, so that a message takes other frames; send "
                    f"the messages themselves (mxwire extract, mxwire send --dialect {wanted.name})"
                )

    def why_nothing(self) -> str:
        """What is to be said when there was no frame to send."""
        if self._preparation.cut:
            return ": all its frames are cut off (--pad fills them up)"
        return ": no frame matches the selection" if self._wishes.selection.is_limited else ": it has no frames of MXoE"

    @property
    def cut(self) -> int:
        """Frames that were cut off by the capture, in one loop."""
        return self._preparation.cut

    def close(self) -> None:
        """Close the file."""
        self._open.close()


def _consumed(kept: list[Piece]) -> Iterator[Piece]:
    kept.reverse()
    while kept:
        yield kept.pop()


def _alike(spoken: Dialect, wanted: Dialect) -> bool:
    if spoken.family != wanted.family:
        return False
    return spoken.family == "mxoe" or not spoken.frame_limit_known or spoken.frame_limit == wanted.frame_limit


def _addresses(mapped: tuple[str, ...], own: bytes | None) -> dict[bytes, bytes]:
    found = {}
    for each in mapped:
        old, equals, new = each.partition("=")
        if not equals:
            raise MxwireError(f"--map {each}: write it like 52:54:00:0a:00:01=02:00:00:00:00:07, or …=self")
        if new == _SELF and own is None:
            raise MxwireError(f"--map {each}: self is the address of an interface: say which one with -i IF")
        found[mac_bytes(old)] = own if new == _SELF and own is not None else mac_bytes(new)
    return found


@contextmanager
def _bar(source: _Source, wishes: Wishes) -> Iterator[Callable[[int], None] | None]:
    """A progress bar where somebody watches; told how many frames have left."""
    if not sys.stderr.isatty() or wishes.as_json:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    total = source.frames * wishes.loop if source.whole and wishes.loop else None
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=2) as progress:
        task = progress.add_task("frames", total=total)
        yield lambda count: progress.advance(task, count)


# What is said.


def _summarize(result: Result, source: _Source, wishes: Wishes) -> None:
    left_out = 0 if wishes.pad else source.cut
    if wishes.as_json:
        click.echo(json.dumps({"event": "summary", **result.record(), "left_out": left_out}, separators=(",", ":")))
        return
    for line in _lines(result):
        click.echo(line)
    if source.cut:
        how = "were filled up with zeros" if wishes.pad else "were left out (--pad fills them up with zeros)"
        note(f"{source.cut:,} frames, which the capture has not kept whole, {how}")
    sys.stdout.flush()


def _lines(result: Result) -> Iterator[str]:
    times = f" in {result.loops} loops" if result.loops > 1 else ""
    yield (
        f"sent {result.frames:,} frames, {result.bytes:,} bytes{times} in {result.taken_ns / 1e9:.6f} s: "
        f"{result.frames_per_second:,.0f} frames/s, {result.bits_per_second / 1e6:,.1f} Mbit/s"
    )
    errors = result.errors
    if errors.count:
        yield (
            f"pace: asked {result.asked_ns / 1e9:.6f} s; frames left late by {errors.mean_ns / 1e3:.1f} µs on average, "
            f"99 % within {errors.percentile_ns(99) / 1e3:,.0f} µs, the latest by {errors.largest_ns / 1e3:,.1f} µs"
        )
    if result.refused:
        yield f"{result.refused:,} frames were not taken by the interface"
    answers = result.answers_by_type()
    text = ", ".join(f"{name} {count:,}" for name, count in answers.items())
    yield f"came back: {text or 'nothing'}"


def _tell_plan(wishes: Wishes) -> None:
    """What would be sent, and when."""
    own = mtu = None
    if wishes.interface is not None:
        found = Live(wishes.interface).check()
        own, mtu = found.address, found.mtu
    source = _Source(wishes, own, mtu)
    pace = wishes.pace()
    frames = size = last = 0
    try:
        for _ in range(wishes.loop):
            for piece in source.pieces():
                batch = piece.batch
                due = pace.due(batch.timestamp_ns, batch.length)
                for place, when in enumerate(due.tolist()):
                    _tell_frame(piece, place, when, pace.hurried, wishes.as_json)
                frames, size, last = frames + len(batch), size + int(batch.length.sum()), int(due[-1])
            pace.repeat()
    finally:
        source.close()
    if not frames:
        raise MxwireError(f"{wishes.file}: nothing would be sent{source.why_nothing()}")
    if wishes.as_json:
        told = {"event": "plan", "frames": frames, "bytes": size, "asked_us": last / 1e3}
        click.echo(json.dumps(told, separators=(",", ":")))
    else:
        when = "as fast as possible" if pace.hurried else f"in {last / 1e9:.6f} s"
        note(f"would send {frames:,} frames, {size:,} bytes {when}")


def _tell_frame(piece: Piece, place: int, when: int, hurried: bool, as_json: bool) -> None:
    from mxwire.replay.raw.result import type_name
    from mxwire.wire.codec import TYPE_OFFSET

    batch = piece.batch
    raw = batch.frame(place)
    number, length = int(batch.number[place]), len(raw)
    kind = type_name(raw[TYPE_OFFSET]) if length > TYPE_OFFSET else "?"
    destination, source = raw[:6].hex(":"), raw[6:12].hex(":")
    if as_json:
        told: dict[str, Any] = {"event": "frame", "frame": number, "at_us": None if hurried else when / 1e3}
        told |= {"source": source, "destination": destination, "type": kind, "length": length}
        click.echo(json.dumps(told, separators=(",", ":")))
    else:
        at = "at once".rjust(14) if hurried else seconds_text(when)
        click.echo(f"{at}  frame {number:6}  {source} → {destination}  {kind:10} {length:5} bytes")
