"""The played host on a link: the loop that drives the actor by the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from mxwire.errors import MxwireError
from mxwire.ethernet import HEADER_SIZE, SOURCE
from mxwire.frames import FrameBatch
from mxwire.link import Link
from mxwire.replay.stateful.actor import ReplayActor
from mxwire.replay.stateful.comparison import RuleWatch
from mxwire.replay.stateful.script import ReplayScript
from mxwire.units import SECOND

_AT_ONCE: Final = 64


def refuse_long(script: ReplayScript, link: Link) -> None:
    """Raise if a link does not transmit frames as long as those of the script."""
    length = max(each.length for each in script.records)
    if length > HEADER_SIZE + link.mtu:
        raise MxwireError(
            f"{link.name}: its MTU is {link.mtu}, and the recorded hosts sent up to {length - HEADER_SIZE} bytes after "
            f"the Ethernet header; raise it: ip link set {link.name} mtu {length - HEADER_SIZE}"
        )


def play_live(actor: ReplayActor, link: Link, watch: RuleWatch, progress: Callable[[int], object] | None = None) -> int:
    """Play to the end; return the duration in ns. ``progress`` is called with the index of the next record."""
    began = time.monotonic_ns()
    while not actor.done:
        now = time.monotonic_ns()
        outgoing = actor.transmit(now, _AT_ONCE)
        if outgoing:
            link.send(FrameBatch.from_frames(outgoing))
            for each in outgoing:
                watch.see(now, each)
        if progress is not None:
            progress(actor.position)
        wait = 0.0 if outgoing or actor.done else max(0, actor.deadline(now) - now) / SECOND
        batch = link.receive(wait)
        now = time.monotonic_ns()
        for place in range(len(batch)):
            frame = batch.frame(place)
            if frame[SOURCE] == actor.conversation.other:
                watch.see(now, frame)
            actor.receive(frame, now)
    return time.monotonic_ns() - began
