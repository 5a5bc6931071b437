"""A played host against a simulated one, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mxwire.frames import FrameBatch
from mxwire.protocol import Node
from mxwire.replay.stateful.actor import ReplayActor
from mxwire.replay.stateful.application import RecordedApplication
from mxwire.units import SECOND

HOP: Final = 5_000
"""Delay of a frame in ns."""
LONGEST: Final = 3600 * SECOND
_START: Final = SECOND

FrameCallback = Callable[[int, bytes], object]
"""Callback for each frame, with its time in ns."""


def play_simulated(
    actor: ReplayActor, node: Node, application: RecordedApplication | None = None, seen: FrameCallback | None = None
) -> int:
    """Play to the end, at most for an hour; return the elapsed virtual time in ns.

    The node must have the actor in its peer table. ``application`` repeats the calls of the recorded host; without one,
    the node is left to its own application.
    """
    now = _START
    while not actor.done and now < LONGEST:
        outgoing = actor.transmit(now, 1)
        busy = application is not None and application.run(actor.position)
        now = _carry(outgoing, now, seen)
        if outgoing:
            node.receive(FrameBatch.from_frames(outgoing), now)
        batch = node.transmit(now)
        answers = [batch.frame(index) for index in range(len(batch))]
        now = _carry(answers, now, seen)
        for each in answers:
            actor.receive(each, now)
        if not outgoing and not answers and not busy:
            times = (actor.deadline(now), node.deadline())
            now = max(now + 1, min(each for each in times if each is not None))
    return now - _START


def _carry(frames: list[bytes], now: int, seen: FrameCallback | None) -> int:
    for each in frames:
        now += HOP
        if seen is not None:
            seen(now, each)
    return now
