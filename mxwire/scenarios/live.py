"""The live stage: a scenario against whoever is behind a link, in real time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol

from mxwire.frames import FrameBatch
from mxwire.link import Link
from mxwire.scenarios.actions import Application, Invoke, Transmit, answer
from mxwire.scenarios.cast import HOST, Cast
from mxwire.scenarios.outcome import Outcome
from mxwire.scenarios.run import Run
from mxwire.scenarios.script import Script
from mxwire.scenarios.simulated import outcome_of, skipped
from mxwire.scenarios.steps import Expect, Silence, Wait, walk
from mxwire.scenarios.tester import Target
from mxwire.wire.codec import parse
from mxwire.wire.dialect import MXOE, Dialect

PATIENCE: Final = 500_000_000
"""Nanoseconds that a frame may come late, and is only not strict."""
SETTLE: Final = 0.01
"""Seconds between a frame and a call, so that the frame has arrived when the application calls."""
LONGEST: Final = 20_000_000_000
"""Nanoseconds that a scenario may wait in one step, unless the caller has more time."""
_SLICE: Final = 0.25
_OF_THE_MEETING: Final = frozenset({"HOST_REPLY"})
"""What was asked when the host was met may be answered late."""


@dataclass(frozen=True, slots=True)
class LiveTarget:
    """A live endpoint under test."""

    mac: bytes
    dialect: Dialect = MXOE
    endpoint: int = 1
    key: int = 0x12345678
    closed: int = 30
    """An endpoint number that is not open."""
    beyond: int = 32
    """The first endpoint number that the host cannot have."""
    name: str = ""
    """Its host name, where it has told."""


def run_live(
    script: Script,
    link: Link,
    target: LiveTarget,
    *,
    application: Application | None = None,
    patience: int = PATIENCE,
    longest: int = LONGEST,
    shift: int = 0,
    seed: int = 0,
    harmful: bool = False,
    clock: Callable[[], int] = time.time_ns,
) -> Outcome:
    """Play a scenario against a live host that knows us; see :func:`~mxwire.scenarios.meeting.meet`.

    ``application`` makes the calls on a host that is ours; without one, scenarios that need calls are skipped, as are
    those that need a host built in a certain way. ``shift`` moves the endpoint numbers of the tester, so that a host
    has no memory of them. Without ``harmful`` a host that is not ours is spared what is known to stop real hosts. Times
    are nanoseconds. Raises :class:`~mxwire.link.errors.LinkError` where the link is
    gone, and :class:`~mxwire.scenarios.errors.ScriptError` for a step that cannot be played as it is written.
    """
    why = why_not(script, target.dialect, application is not None, longest, harmful=harmful)
    if why is not None:
        return skipped(script, target.dialect, why)
    addresses = {each.host: address_of(link, each.host) for each in script.actors} | {HOST: link.address}
    known = Target(target.mac, target.endpoint, target.key, target.closed, target.beyond)
    cast = Cast(script, target.dialect, known, addresses, Random(seed), shift=shift)
    while application is None and len(link.receive(0.0)):
        # What has come from a host that was there before is no answer.
        continue
    start = clock()
    run = Run(script, cast, start, patience=patience, foreign=_OF_THE_MEETING)
    _play(run, link, target.mac, application, clock)
    return outcome_of(run, target.dialect, "", seed, origin=0, start=start)


class Addressed(Protocol):
    """What has an Ethernet address, like a link."""

    @property
    def address(self) -> bytes:
        """The address, 6 bytes."""


def address_of(link: Addressed, host: int) -> bytes:
    """The address of one of the tester's hosts: that of the link, or one made from it."""
    own = link.address
    return own if host == HOST else bytes([own[0] & 0xFE | 2, *own[1:4], own[4] ^ 0x80, own[5] ^ host])


def why_not(
    script: Script, dialect: Dialect, ours: bool, longest: int = LONGEST, *, harmful: bool = False
) -> str | None:
    """Why a scenario cannot be played against a live host, None if it can.

    ``ours`` says whether the host is built for it, and an application makes the calls; ``harmful`` whether it may be
    harmed.
    """
    if not script.applies_to(dialect):
        return f"it is about the dialect {' and '.join(script.dialects)}"
    if script.only_simulated:
        return script.only_simulated
    if script.interfaces > 1:
        return f"it needs a host with {script.interfaces} interfaces"
    if _longest_wait(script) > longest:
        return f"it waits for {_longest_wait(script) / 1e9:g} s"
    if ours:
        return None
    if script.harmful and not harmful:
        return f"it is harmful: {script.harmful}"
    if script.needs_application:
        return "the application on the host has to make calls"
    if script.needs_profile or script.discovery != "no":
        wanted = [script.profile, *(f"{name}={_said(value)}" for name, value in script.unusual.items())]
        return f"the host has to be built for it: {' '.join(filter(None, wanted)) or 'announcements'}"
    if not script.endpoint or any(each.host != HOST and each.known for each in script.actors):
        return "the host has to be prepared for it"
    return None


def _said(value: object) -> str:
    """A setting of a host as the head of a scenario says it."""
    if isinstance(value, frozenset):
        return ",".join(sorted(map(str, value)))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _longest_wait(script: Script) -> int:
    waits = [script.within]
    for each in walk(script.steps):
        if isinstance(each, Expect):
            waits.append(each.within or each.after)
        elif isinstance(each, Silence | Wait):
            waits.append(each.duration)
    return max(waits)


def _play(run: Run, link: Link, host: bytes, application: Application | None, clock: Callable[[], int]) -> None:
    sent = False
    while True:
        action = run.advance(clock())
        if isinstance(action, Transmit):
            link.send(FrameBatch.from_frames(action.frames))
            sent = True
        elif action is not None:
            if sent and isinstance(action, Invoke):
                time.sleep(SETTLE)
                sent = False
            run.give(answer(application, action))
        elif run.finished:
            return
        else:
            _listen(run, link, host, clock)


def _listen(run: Run, link: Link, host: bytes, clock: Callable[[], int]) -> None:
    """Wait for frames of the host until the run wants to go on."""
    left = 0.0 if run.deadline is None else (run.deadline - clock()) / 1e9
    batch = link.receive(min(max(left, 0.0), _SLICE))
    for place in range(len(batch)):
        frame = batch.frame(place)
        if frame[6:12] == host and not _is_of_an_earlier_run(run, frame):
            run.arrive(int(batch.timestamp_ns[place]), frame)


def _is_of_an_earlier_run(run: Run, raw: bytes) -> bool:
    """Whether a frame is for an endpoint that nobody of this run has: others come again."""
    number = getattr(parse(raw, run.cast.dialect), "dst_endpoint", None)
    return number is not None and number not in run.cast.endpoints
