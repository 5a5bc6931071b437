"""A played host on a link: finding the live one, and playing against it by the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.link import Link
from mxwire.replay.stateful import introduction
from mxwire.replay.stateful.actor import Actor
from mxwire.replay.stateful.conversation import FIRST_INDEX
from mxwire.replay.stateful.script import Script
from mxwire.replay.stateful.watching import Watch
from mxwire.wire.address import mac_text
from mxwire.wire.codec import Malformed, codec_of
from mxwire.wire.packets import HostQuery, HostReply
from mxwire.wire.text import hostname_text

_HEADER: Final = 14
_AT_ONCE: Final = 64
SECOND: Final = 1_000_000_000


def refuse_long(script: Script, link: Link) -> None:
    """Raise where a link does not take the frames that would be sent."""
    length = max(each.length for each in script.records)
    if length > _HEADER + link.mtu:
        raise MxwireError(
            f"{link.name}: takes {link.mtu} bytes behind the Ethernet header (its MTU), and the recorded hosts sent up "
            f"to {length - _HEADER}; raise it: ip link set {link.name} mtu {length - _HEADER}"
        )


@dataclass(frozen=True, slots=True)
class Found:
    """A live host."""

    address: bytes
    name: str


def find(link: Link, script: Script, own_name: str, wanted: str | None, timeout: float, rng: Random) -> Found:
    """The live host with a name, or the only one there is: the first that answers, where nobody is named.

    We announce ourselves meanwhile, and answer who asks for our name. Raises :class:`~mxwire.errors.MxwireError` where
    it is not found within ``timeout`` seconds.
    """
    codec = codec_of(script.dialect)
    announcement = codec.build(introduction.announcement(link.address, rng.getrandbits(32)))
    seen: dict[bytes, str] = {}
    end, next_announcement = time.monotonic_ns() + int(timeout * SECOND), 0
    while (now := time.monotonic_ns()) < end:
        if now >= next_announcement:
            next_announcement = now + introduction.EVERY
            link.send(FrameBatch.from_frames([announcement]))
        batch = link.receive(max(0, min(next_announcement, end) - now) / SECOND)
        answers: list[bytes] = []
        for place in range(len(batch)):
            frame = codec.parse(batch.frame(place))
            if isinstance(frame, Malformed) or frame.src_mac == link.address:
                continue
            known = seen.setdefault(frame.src_mac, "")
            if isinstance(frame, HostQuery):
                answers.append(codec.build(introduction.answer(frame, link.address, FIRST_INDEX, own_name)))
            if isinstance(frame, HostReply):
                seen[frame.src_mac] = hostname_text(frame.hostname)
                if wanted in (None, seen[frame.src_mac]):
                    return Found(frame.src_mac, seen[frame.src_mac])
            elif not known:
                answers.append(codec.build(introduction.query(link.address, frame.src_mac, FIRST_INDEX)))
        if answers:
            link.send(FrameBatch.from_frames(answers))
    raise MxwireError(_not_found(link.name, wanted, timeout, seen))


def _not_found(link: str, wanted: str | None, timeout: float, seen: dict[bytes, str]) -> str:
    others = ", ".join(f"{name or '?'} ({mac_text(each)})" for each, name in seen.items())
    who = f"{wanted} was not" if wanted else "no host was"
    heard = f"there are {others}" if others else f"nothing was heard (mxwire doctor -i {link} looks why)"
    return f"{link}: {who} found within {timeout:g} s; {heard}"


def play(actor: Actor, link: Link, watch: Watch, progress: Callable[[int], object] | None = None) -> int:
    """Play to the end; returns how long that took, in ns. ``progress`` is told the place in the script."""
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
            if frame[6:12] == actor.conversation.other:
                watch.see(now, frame)
            actor.receive(frame, now)
    return time.monotonic_ns() - began
