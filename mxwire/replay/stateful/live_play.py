"""The played host on a link: discovery of the live host, and the loop that drives the actor by the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from mxwire.errors import MxwireError
from mxwire.ethernet import HEADER_SIZE, SOURCE, mac_text
from mxwire.frames import FrameBatch
from mxwire.link import Link
from mxwire.link.dialogue import converse
from mxwire.protocol.discovery import Introduction
from mxwire.replay.stateful.actor import ReplayActor
from mxwire.replay.stateful.comparison import RuleWatch
from mxwire.replay.stateful.conversation import FIRST_INDEX
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


@dataclass(frozen=True, slots=True)
class FoundHost:
    """A discovered live host."""

    address: bytes
    name: str


def find(link: Link, own_name: str, wanted: str | None, timeout: float, rng: Random) -> FoundHost:
    """Return the live host called ``wanted`` or, without a name, the first one that answers.

    Announces the played host at the same time, and answers name queries. Raises :class:`~mxwire.errors.MxwireError` if
    the host is not found within ``timeout`` seconds.
    """
    introduction = Introduction(link.address, own_name, index=FIRST_INDEX, serial=rng.getrandbits(32))
    address = converse(link, introduction, lambda: introduction.found(wanted), timeout)
    if address is not None:
        return FoundHost(address, introduction.names[address])
    others = ", ".join(f"{introduction.names.get(each) or '?'} ({mac_text(each)})" for each in introduction.heard)
    who = f"{wanted} was not" if wanted else "no host was"
    heard = f"there are {others}" if others else f"nothing was heard (mxwire doctor -i {link.name} finds the reason)"
    raise MxwireError(f"{link.name}: {who} found within {timeout:g} s; {heard}")


def play_live(actor: ReplayActor, link: Link, watch: RuleWatch, progress: Callable[[int], object] | None = None) -> int:
    """Play to the end; return the duration in ns. ``progress`` is called with the index of the next record."""
    began = time.monotonic_ns()
    while not actor.done:
        now = time.monotonic_ns()
        leaving = actor.transmit(now, _AT_ONCE)
        if leaving:
            link.send(FrameBatch.from_frames(leaving))
            for each in leaving:
                watch.see(now, each)
        if progress is not None:
            progress(actor.position)
        wait = 0.0 if leaving or actor.done else max(0, actor.deadline(now) - now) / SECOND
        batch = link.receive(wait)
        now = time.monotonic_ns()
        for place in range(len(batch)):
            frame = batch.frame(place)
            if frame[SOURCE] == actor.conversation.other:
                watch.see(now, frame)
            actor.receive(frame, now)
    return time.monotonic_ns() - began
