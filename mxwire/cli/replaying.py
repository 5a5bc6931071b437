"""What ``mxwire replay`` does without ``--as``: frames of a capture to an interface, at a pace."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import click

from mxwire.cli.live import Live, end_like_interrupt
from mxwire.cli.replaying_report import summarize, tell_plan
from mxwire.cli.replaying_source import Source
from mxwire.cli.replaying_wishes import Wishes
from mxwire.errors import MxwireError
from mxwire.link import PacketLink
from mxwire.replay.raw import AsRecorded, Piece, Player

_EVERY_FRAMES: Final = 50_000
"""Frames between two looks of the bar."""


def run(wishes: Wishes) -> None:
    """Send, or say what would be sent."""
    if wishes.dry_run:
        tell_plan(wishes)
        return
    end_like_interrupt()
    assert wishes.interface is not None
    Live(wishes.interface).check()
    with PacketLink.open(
        wishes.interface, ethertype=wishes.new_ethertype or wishes.ethertype, promiscuous=True
    ) as link:
        link.spin = 0.0
        source = Source(wishes, link.address, link.mtu)
        _must_have_a_pace(source, wishes)
        player = Player(link, wishes.pace())
        try:
            _send(source, player, wishes)
        except KeyboardInterrupt:
            player.result.interrupted = True
        finally:
            source.close()
            summarize(player.result, source, wishes)
    if not player.result.frames and not player.result.interrupted:
        raise MxwireError(f"{wishes.file}: nothing was sent{source.why_nothing()}")
    if player.result.interrupted:
        raise click.Abort


def _must_have_a_pace(source: Source, wishes: Wishes) -> None:
    if wishes.loop != 1 and source.whole and source.frames == 1 and isinstance(wishes.pace(), AsRecorded):
        source.close()
        raise MxwireError(
            f"{wishes.file}: a single frame has no pace of its own to be sent at again and again: say one, "
            f"like --rate 10/s, or --top-speed"
        )


def _send(source: Source, player: Player, wishes: Wishes) -> None:
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


@contextmanager
def _bar(source: Source, wishes: Wishes) -> Iterator[Callable[[int], None] | None]:
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
