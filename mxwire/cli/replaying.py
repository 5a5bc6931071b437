"""What ``mxwire replay`` does without ``--as``: frames of a capture to an interface, at a pace."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

import click

from mxwire.cli.live import Live, end_like_interrupt
from mxwire.cli.notes import end_interrupted_line
from mxwire.cli.progress import Bar, bar
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
            end_interrupted_line()
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
    total = source.frames * wishes.loop if source.whole and wishes.loop else None
    with bar("frames", total, wanted=not wishes.as_json) as shown:
        for _ in rounds:
            player.play(_told(source.pieces(), player, shown) if shown.shown else source.pieces())
            if not player.result.frames:
                return
    player.listen(wishes.linger)


def _told(pieces: Iterator[Piece], player: Player, shown: Bar) -> Iterator[Piece]:
    """The pieces; the bar shows from time to time how many frames have left."""
    result = player.result
    for piece in pieces:
        before = result.frames + result.refused
        yield piece
        done = result.frames + result.refused
        if done // _EVERY_FRAMES > before // _EVERY_FRAMES:
            shown.update(done)
