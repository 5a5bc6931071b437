"""What ``mxwire replay`` says of frames that it has sent, or would send."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from mxwire.cli.live import Live
from mxwire.cli.notes import counted, note
from mxwire.cli.replaying_source import Source
from mxwire.cli.replaying_wishes import Wishes
from mxwire.errors import MxwireError
from mxwire.ethernet import DESTINATION, SOURCE, mac_text
from mxwire.replay.raw import Piece, Result
from mxwire.replay.raw.result import type_name
from mxwire.report.json_line import json_line
from mxwire.report.times import seconds_text
from mxwire.wire.codec import TYPE_OFFSET


def summarize(result: Result, source: Source, wishes: Wishes) -> None:
    """What was sent, how well the pace was kept, and what came back."""
    left_out = 0 if wishes.pad else source.cut
    if wishes.as_json:
        click.echo(json_line({"event": "summary", **result.record(), "left_out": left_out}))
        return
    for line in _lines(result):
        click.echo(line)
    if source.cut:
        how = "were filled up with zeros" if wishes.pad else "were left out (--pad fills them up with zeros)"
        note(f"{counted(source.cut, 'frame')}, which the capture has not kept whole, {how}")
    sys.stdout.flush()


def _lines(result: Result) -> Iterator[str]:
    times = f" in {result.loops} loops" if result.loops > 1 else ""
    yield (
        f"sent {counted(result.frames, 'frame')}, {counted(result.bytes, 'byte')}{times} "
        f"in {result.taken_ns / 1e9:.6f} s: "
        f"{result.frames_per_second:,.0f} frames/s, {result.bits_per_second / 1e6:,.1f} Mbit/s"
    )
    errors = result.errors
    if errors.count:
        yield (
            f"pace: asked {result.asked_ns / 1e9:.6f} s; frames left late by {errors.mean_ns / 1e3:.1f} µs on average, "
            f"99 % within {errors.percentile_ns(99) / 1e3:,.0f} µs, the latest by {errors.largest_ns / 1e3:,.1f} µs"
        )
    if result.refused:
        yield f"{counted(result.refused, 'frame')} refused by the interface"
    answers = result.answers_by_type()
    text = ", ".join(f"{name} {count:,}" for name, count in answers.items())
    yield f"came back: {text or 'nothing'}"


def tell_plan(wishes: Wishes) -> None:
    """What would be sent, and when."""
    own = mtu = None
    if wishes.interface is not None:
        found = Live(wishes.interface).check()
        own, mtu = found.address, found.mtu
    source = Source(wishes, own, mtu)
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
        click.echo(json_line(told))
    else:
        when = "as fast as possible" if pace.hurried else f"in {last / 1e9:.6f} s"
        note(f"would send {counted(frames, 'frame')}, {counted(size, 'byte')} {when}")


def _tell_frame(piece: Piece, place: int, when: int, hurried: bool, as_json: bool) -> None:
    batch = piece.batch
    raw = batch.frame(place)
    number, length = int(batch.number[place]), len(raw)
    kind = type_name(raw[TYPE_OFFSET]) if length > TYPE_OFFSET else "?"
    destination, source = mac_text(raw[DESTINATION]), mac_text(raw[SOURCE])
    if as_json:
        told: dict[str, Any] = {"event": "frame", "frame": number, "at_us": None if hurried else when / 1e3}
        told |= {"source": source, "destination": destination, "type": kind, "length": length}
        click.echo(json_line(told))
    else:
        at = "at once".rjust(14) if hurried else seconds_text(when)
        click.echo(f"{at}  frame {number:6}  {source} → {destination}  {kind:10} {length:5} bytes")
