"""The live stage: a scenario against a host behind a link, in real time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random, SystemRandom
from typing import Final, Protocol

from mxwire.frames import FrameBatch
from mxwire.link import Link
from mxwire.scenarios.actions import Application, Invoke, Transmit, answer
from mxwire.scenarios.cast import HOST, Cast
from mxwire.scenarios.outcome import Outcome, Remark
from mxwire.scenarios.reception import Reception
from mxwire.scenarios.run import Run
from mxwire.scenarios.script import Script
from mxwire.scenarios.simulated import outcome_of, skipped
from mxwire.scenarios.steps import Expect, Silence, Wait, walk
from mxwire.scenarios.tester import Target
from mxwire.wire.dialect import MXOE, Dialect
from mxwire.wire.numbers import DEFAULT_KEY

PATIENCE: Final = 500_000_000
"""Nanoseconds that a frame may come late, and is only not strict."""
SETTLE: Final = 30_000_000
"""Nanoseconds between a frame of the tester and a call, so that the host has handled the frame. Longer than a host
delays an acknowledgement (20 ms, R-MEA-20), which could otherwise cross what the call sends."""
LONGEST: Final = 20_000_000_000
"""Nanoseconds that a scenario may wait in one step, unless the caller has more time."""
_SLICE: Final = 0.25
_OF_THE_MEETING: Final = frozenset({"HOST_REPLY"})
"""What was asked when the host was met may be answered late."""
_SPACING: Final = 8
"""Endpoint numbers between the testers of one run and of the next, more than a scenario has testers."""
_ENDPOINTS: Final = 256
SEEDS: Final = 1 << 32
"""Number of seeds."""


@dataclass(frozen=True, slots=True)
class LiveTarget:
    """A live endpoint under test."""

    mac: bytes
    dialect: Dialect = MXOE
    endpoint: int = 1
    key: int = DEFAULT_KEY
    closed: int = 30
    """An endpoint number that is not open."""
    beyond: int = 32
    """The first endpoint number that the host cannot have."""
    name: str = ""
    """Its host name, where it is known."""


def new_seed() -> int:
    """Return a seed that no run has had."""
    return SystemRandom().randrange(SEEDS)


def shift_of(seed: int) -> int:
    """Return what is added to the endpoint numbers of the testers; consecutive seeds share none of 32 runs."""
    turn, place = divmod(seed, _ENDPOINTS // _SPACING)
    return (turn + place * _SPACING) % _ENDPOINTS


def run_live(
    script: Script,
    link: Link,
    target: LiveTarget,
    *,
    application: Application | None = None,
    patience: int = PATIENCE,
    longest: int = LONGEST,
    seed: int | None = None,
    harmful: bool = False,
    clock: Callable[[], int] = time.time_ns,
) -> Outcome:
    """Play a scenario against a live host that knows us; see :func:`~mxwire.scenarios.meeting.meet`.

    ``application`` makes the calls on the host; without one, scenarios that need calls are skipped, as are those that
    need a host built in a certain way. The testers' endpoint numbers and sessions come from ``seed``; without one they
    are new in each run, since a host remembers those of earlier ones (R-MEA-21). ``harmful`` includes scenarios that
    are known to stop real hosts, where there is no ``application``. Times are nanoseconds. Raises
    :class:`~mxwire.link.errors.LinkError` where the link is gone, and
    :class:`~mxwire.scenarios.errors.ScriptError` for a step that cannot be played as it is written.
    """
    why = why_not(script, target.dialect, application is not None, longest, harmful=harmful)
    if why is not None:
        return skipped(script, target.dialect, why)
    seed = new_seed() if seed is None else seed % SEEDS
    addresses = {each.host: address_of(link, each.host) for each in script.actors} | {HOST: link.address}
    known = Target(target.mac, target.endpoint, target.key, target.closed, target.beyond)
    cast = Cast(script, target.dialect, known, addresses, Random(seed), shift=shift_of(seed))
    reception = Reception(script, cast)
    early = [each for each in drain(link) if application is not None and reception.takes_early(each[1])]
    reception.passed_over.clear()
    start = clock()
    run = Run(script, cast, start, patience=patience, foreign=_OF_THE_MEETING, partial=application is not None)
    for arrived, raw in early:
        run.arrive(arrived, raw)
    _Player(run, reception, link, application, clock).play()
    _note_passed_over(run, reception)
    return outcome_of(run, target.dialect, "", seed, origin=0, start=start)


def drain(link: Link) -> list[tuple[int, bytes]]:
    """Take all frames that wait on a link; returns each with the time of its arrival."""
    found: list[tuple[int, bytes]] = []
    while len(batch := link.receive(0.0)):
        found += [(int(batch.timestamp_ns[place]), batch.frame(place)) for place in range(len(batch))]
    return found


def _note_passed_over(run: Run, reception: Reception) -> None:
    counts = reception.passed_over
    if counts:
        text = ", ".join(f"{number} {packet}" for packet, number in sorted(counts.items()))
        run.notes.append(Remark(0, f"passed over, for endpoints or sessions of other runs: {text}"))


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


class _Player:
    """Connects a run with a link, an application and a clock."""

    def __init__(
        self, run: Run, reception: Reception, link: Link, application: Application | None, clock: Callable[[], int]
    ) -> None:
        self._run = run
        self._reception = reception
        self._link = link
        self._application = application
        self._clock = clock
        self._settled = 0
        """When the host has handled what was sent last."""

    def play(self) -> None:
        """Play the run to its end."""
        run = self._run
        while True:
            # What has arrived by now is there before time goes on: an answer may have taken longer than a frame may.
            now = self._clock()
            self._take(0.0)
            action = run.advance(now)
            if isinstance(action, Transmit):
                self._reception.sent(action.frames)
                self._link.send(FrameBatch.from_frames(action.frames))
                self._settled = self._clock() + SETTLE
            elif action is not None:
                if isinstance(action, Invoke):
                    self._settle()
                run.give(answer(self._application, action))
            elif run.finished:
                return
            else:
                self._listen()

    def _settle(self) -> None:
        if self._application is not None:
            time.sleep(max(0, self._settled - self._clock()) / 1e9)

    def _listen(self) -> None:
        """Wait for frames of the host until the run wants to go on."""
        run = self._run
        left = 0.0 if run.deadline is None else (run.deadline - self._clock()) / 1e9
        self._take(min(max(left, 0.0), _SLICE))

    def _take(self, timeout: float) -> None:
        """Give the run the frames of the host that come within ``timeout`` seconds."""
        batch = self._link.receive(timeout)
        for place in range(len(batch)):
            raw = batch.frame(place)
            if self._reception.takes(raw):
                self._run.arrive(int(batch.timestamp_ns[place]), raw)
