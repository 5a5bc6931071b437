"""The live testbed: play a scenario against a host behind a link, in real time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random, SystemRandom
from typing import Final

from mxwire.ethernet import is_group
from mxwire.frames import FrameBatch
from mxwire.lab.find_host import find_host
from mxwire.link import Link
from mxwire.scenarios.actions import Invocation, ScenarioApplication, Transmission, answer
from mxwire.scenarios.cast import HOST, Cast, RunScope
from mxwire.scenarios.conditions import packet_of
from mxwire.scenarios.errors import ScriptError
from mxwire.scenarios.outcome import Remark, ScenarioOutcome
from mxwire.scenarios.scenario_run import ScenarioRun
from mxwire.scenarios.script import Script
from mxwire.scenarios.simulated_run import outcome_of, skipped
from mxwire.scenarios.steps import ExpectStep, SilenceStep, WaitStep, walk
from mxwire.scenarios.tester import TestedEndpoint
from mxwire.units import SECOND
from mxwire.wire.codec import Malformed, codec_of
from mxwire.wire.dialect import MXOE, Dialect
from mxwire.wire.numbers import DEFAULT_KEY, HOST_QUERY_MAGIC, NO_SESSION
from mxwire.wire.packets import Announcement, ConnectReply, ConnectRequest, Frame, NackMcp, Pull, PullReply

PATIENCE: Final = 500_000_000
"""Nanoseconds that a frame may be late and still be accepted, as non-strict."""
SETTLE: Final = 30_000_000
"""Nanoseconds between a frame of the tester and a call, in which the host handles the frame. It exceeds the delay of an
acknowledgement (20 ms, R-MEA-20), which could otherwise cross the frames of the call.
"""
LONGEST: Final = 20_000_000_000
"""Maximum nanoseconds of a single wait in a scenario; scenarios that wait longer are skipped."""
_SLICE: Final = 0.25
_OF_THE_MEETING: Final = frozenset({"HOST_REPLY"})
"""Packets that may arrive late in answer to the introduction."""
_SPACING: Final = 8
"""Distance between the endpoint numbers of consecutive runs: more than a scenario has testers."""
_ENDPOINTS: Final = 256
_NAME: Final = "tester:0"
_PLACE: Final = 0x0101
"""Index of the host in the tester's peer table: that of the default tester's host (``cast.py``)."""
MEETING_TIMEOUT: Final = 15.0
"""Timeout in seconds: a host to which the tester is new queries its name at once or after 5 s."""
_FORGED: Final = (
    "it sends with a source address that is not the tester's: a bridge or switch may not deliver such frames, "
    "and may deliver frames for that address to the tester for a while"
)
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
    """Number of an endpoint that is not open."""
    beyond: int = 32
    """First endpoint number beyond the host's range."""
    name: str = ""
    """Its host name, if known."""
    magic: int = HOST_QUERY_MAGIC
    """Magic of its host queries."""


def meet(
    link: Link,
    host: str | bytes,
    dialect: Dialect = MXOE,
    *,
    endpoint: int = 1,
    key: int = DEFAULT_KEY,
    timeout: float = MEETING_TIMEOUT,
) -> LiveTarget:
    """Announce the tester, answer name queries, and wait until a host, given by name or address, answers.

    Raises :class:`~mxwire.errors.MxwireError`, with the hosts that were heard, after ``timeout`` seconds.
    """
    serial = SystemRandom().getrandbits(32)
    found = find_host(link, _NAME, host, timeout, index=_PLACE, serial=serial, every=SECOND)
    return LiveTarget(found.address, dialect, endpoint, key, name=found.name, magic=found.magic)


def new_seed() -> int:
    """Return a random seed."""
    return SystemRandom().randrange(SEEDS)


def shift_of(seed: int) -> int:
    """Return the offset of the testers' endpoint numbers: 8 more for each seed, and 1 more after every 32 seeds."""
    turn, place = divmod(seed, _ENDPOINTS // _SPACING)
    return (turn + place * _SPACING) % _ENDPOINTS


def run_live(
    script: Script,
    link: Link,
    target: LiveTarget,
    *,
    application: ScenarioApplication | None = None,
    patience: int = PATIENCE,
    longest: int = LONGEST,
    seed: int | None = None,
    harmful: bool = False,
) -> ScenarioOutcome:
    """Play a scenario against a live host that has the tester in its peer table; see :func:`meet`.

    ``application`` makes the calls on the host. Without one, scenarios that need calls are skipped, as are those that
    need a specially configured host and, unless ``harmful``, those that stop real hosts. The testers' endpoint numbers
    and sessions derive from ``seed``, by default a random one per run, since a host remembers earlier ones (R-MEA-21).
    Times are nanoseconds. Raises :class:`~mxwire.link.errors.LinkError` if the link is lost, and
    :class:`~mxwire.scenarios.errors.ScriptError` for a step that cannot be played as written.
    """
    why = skip_reason(script, target.dialect, application is not None, longest, harmful=harmful)
    if why is not None:
        return skipped(script, target.dialect, why)
    seed = new_seed() if seed is None else seed % SEEDS
    addresses = {each.host: address_of(link.address, each.host) for each in script.actors} | {HOST: link.address}
    known = TestedEndpoint(target.mac, target.endpoint, target.key, target.closed, target.beyond, magic=target.magic)
    cast = Cast(script, target.dialect, known, addresses, Random(seed), shift=shift_of(seed))
    reception = Reception(script, cast)
    # Without an application, the host existed before the run, and what is queued belongs to earlier traffic.
    early = [each for each in drain(link) if application is not None and reception.takes_early(each[1])]
    # Frames before the run say nothing about it.
    reception.passed_over.clear()
    start = time.time_ns()
    run = ScenarioRun(script, cast, start, patience=patience, foreign=_OF_THE_MEETING, partial=application is not None)
    for arrived, raw in early:
        run.arrive(arrived, raw)
    _ScenarioPlayer(run, reception, link, application).play()
    _note_passed_over(run, reception)
    if script.forges_source:
        run.notes.append(Remark(0, _FORGED))
    return outcome_of(run, target.dialect, "", seed, origin=0, start=start)


def drain(link: Link) -> list[tuple[int, bytes]]:
    """Read all frames queued on a link; return each with its time of arrival."""
    frames: list[tuple[int, bytes]] = []
    while len(batch := link.receive(0.0)):
        frames += [(int(batch.timestamp_ns[place]), batch.frame(place)) for place in range(len(batch))]
    return frames


def _note_passed_over(run: ScenarioRun, reception: Reception) -> None:
    counts = reception.passed_over
    if counts:
        text = ", ".join(f"{number} {packet}" for packet, number in sorted(counts.items()))
        run.notes.append(Remark(0, f"ignored, for endpoints or sessions of other runs: {text}"))


def address_of(own: bytes, host: int) -> bytes:
    """Return the address of a tester's host: ``own``, which is that of its link, or one derived from it."""
    # Locally administered, so that it is no manufacturer's address, and no group.
    return own if host == HOST else bytes([own[0] & 0xFE | 2, *own[1:4], own[4] ^ 0x80, own[5] ^ host])


def skip_reason(
    script: Script, dialect: Dialect, own: bool, longest: int = LONGEST, *, harmful: bool = False
) -> str | None:
    """Return the reason why a scenario cannot be played against a live host; None if it can.

    If ``own``, the host is configured for the scenario and has an application to call; if ``harmful``, scenarios that
    stop real hosts are included.
    """
    if not script.applies_to(dialect):
        return f"it is for the dialect {' and '.join(script.dialects)}"
    if script.only_simulated:
        return script.only_simulated
    if script.interfaces > 1:
        return f"it needs a host with {script.interfaces} interfaces"
    if _longest_wait(script) > longest:
        return f"it waits for {_longest_wait(script) / 1e9:g} s"
    if own:
        return None
    if script.harmful and not harmful:
        return f"it is harmful: {script.harmful}"
    if script.needs_application:
        return "it needs calls of an application on the host"
    if script.needs_profile or script.discovery != "no":
        required = [script.profile, *(f"{name}={_value_text(value)}" for name, value in script.unusual.items())]
        return f"it needs a host configured with: {' '.join(filter(None, required)) or 'announcements'}"
    if not script.endpoint or any(each.host != HOST and each.known for each in script.actors):
        return "it needs a specially prepared host"
    return None


def _value_text(value: object) -> str:
    """Format a profile field as the head of a scenario does."""
    if isinstance(value, frozenset):
        return ",".join(sorted(map(str, value)))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _longest_wait(script: Script) -> int:
    waits = [script.within]
    for each in walk(script.steps):
        if isinstance(each, ExpectStep):
            waits.append(each.within or each.after)
        elif isinstance(each, SilenceStep | WaitStep):
            waits.append(each.duration)
    return max(waits)


@dataclass(slots=True)
class _ScenarioPlayer:
    """Connects a run with a link, an application and the clock."""

    _run: ScenarioRun
    _reception: Reception
    _link: Link
    _application: ScenarioApplication | None
    _settled: int = 0
    """Time by which the host has handled the last transmitted frames."""

    def play(self) -> None:
        """Play the run to its end."""
        run = self._run
        while True:
            # Read the link before advancing the clock: the expected frame may have arrived while the application
            # answered, and advancing first would declare it overdue.
            now = time.time_ns()
            self._take(0.0)
            action = run.advance(now)
            if isinstance(action, Transmission):
                # Before they are sent: the answers may arrive at once and must find their endpoints and handles.
                self._reception.sent(action.frames)
                self._link.send(FrameBatch.from_frames(action.frames))
                self._settled = time.time_ns() + SETTLE
            elif action is not None:
                if isinstance(action, Invocation):
                    self._settle()
                run.give(answer(self._application, action))
            elif run.finished:
                return
            else:
                self._listen()

    def _settle(self) -> None:
        if self._application is not None:
            time.sleep(max(0, self._settled - time.time_ns()) / 1e9)

    def _listen(self) -> None:
        """Wait for frames of the host until the run's deadline."""
        run = self._run
        left = 0.0 if run.deadline is None else (run.deadline - time.time_ns()) / 1e9
        self._take(min(max(left, 0.0), _SLICE))

    def _take(self, timeout: float) -> None:
        """Pass frames of the host that arrive within ``timeout`` seconds to the run."""
        batch = self._link.receive(timeout)
        for place in range(len(batch)):
            raw = batch.frame(place)
            if self._reception.takes(raw):
                self._run.arrive(int(batch.timestamp_ns[place]), raw)


_UNPROMPTED: Final = frozenset({"HOST_QUERY", "RAW", "RAW_OMXOED"})
"""Packets that a host sends unprompted."""
_ETHERNET_ADDRESSES: Final = 12


class Reception:
    """Selects the frames of the host that are meant for the testers of one run.

    A host continues the work of earlier runs, for example the pulls of a closed endpoint (R-MEA-21), and communicates
    with other hosts. A frame belongs to the run if its destination is a tester's address, a group, or an address named
    by the scenario, and if its endpoint, session and pull handle are among those used by the testers in this run.
    """

    def __init__(self, script: Script, cast: Cast) -> None:
        self._codec = codec_of(cast.dialect)
        self._host = cast.target.mac
        self._addresses = {each.mac for each in cast.stations.values()}
        self._elsewhere: set[str] = set()
        """Packets that the scenario expects at an address that is determined only during the run."""
        for step in walk(script.steps):
            if isinstance(step, ExpectStep) and "dst_mac" in step.fields:
                self._expect_at(step, RunScope({}, cast.tester(step.tester)))
        self._endpoints = cast.endpoints
        # The session in frames to an endpoint of which the host knows none.
        self._sessions = {NO_SESSION}
        self._pulls: set[tuple[int, int]] = set()
        self.passed_over: Counter[str] = Counter()
        """Number of frames of the host to a tester's host that match none of its endpoints or sessions, by packet."""

    def _expect_at(self, step: ExpectStep, scope: RunScope) -> None:
        condition = step.fields["dst_mac"]
        try:
            values = [value.value(scope) for each in (condition, *condition.others) for value in each.values]
        except ScriptError:
            # A name that a frame binds during the run: its value is unknown here.
            values = []
        self._addresses.update(each for each in values if isinstance(each, bytes))
        if not values:
            self._elsewhere.add(step.packet)

    def sent(self, frames: Iterable[bytes]) -> None:
        """Record frames of the testers: the host learns endpoints, sessions and handles from them."""
        for raw in frames:
            frame = self._codec.parse(raw)
            endpoint = getattr(frame, "src_endpoint", None)
            # A NACK_MCP carries the puller's endpoint as its source (wire 6.13): that of the host, not the tester's.
            if endpoint is not None and not isinstance(frame, NackMcp):
                self._endpoints.add(endpoint)
            match frame:
                case ConnectRequest():
                    self._sessions.add(frame.src_session_id)
                case ConnectReply():
                    self._sessions.add(frame.target_session_id)
                case Pull():
                    self._pulls.add((frame.src_pull_handle, frame.src_magic))

    def takes(self, raw: bytes) -> bool:
        """Return True for a frame that belongs to the run."""
        if raw[_ETHERNET_ADDRESSES // 2 : _ETHERNET_ADDRESSES] != self._host:
            return False
        frame = self._codec.parse(raw)
        packet = packet_of(frame)
        destination = raw[: _ETHERNET_ADDRESSES // 2]
        if not (destination in self._addresses or is_group(destination) or packet in self._elsewhere):
            return False
        if isinstance(frame, Announcement):
            # A daemon announces the interface, and a neighbour of the host may use its source address (R-DISC-05).
            return frame.nic_id_hi << 32 | frame.nic_id_lo == int.from_bytes(self._host, "big")
        if isinstance(frame, Malformed) or self._is_ours(frame):
            return True
        self.passed_over[packet] += 1
        return False

    def takes_early(self, raw: bytes) -> bool:
        """Return True if a frame received before the first step belongs to the run.

        Only a host that was created for the run sends such frames to the testers.
        """
        return self.takes(raw) and packet_of(self._codec.parse(raw)) in _UNPROMPTED

    def _is_ours(self, frame: Frame) -> bool:
        match frame:
            # Packets of pulls have no destination endpoint; only the handle distinguishes the runs.
            case PullReply():
                return (frame.dst_pull_handle, frame.dst_magic) in self._pulls
            case NackMcp():
                return (frame.src_pull_handle, frame.src_magic) in self._pulls
        if getattr(frame, "dst_endpoint", None) not in (None, *self._endpoints):
            return False
        session = frame.src_session_id if isinstance(frame, ConnectReply) else getattr(frame, "session", None)
        return session is None or session in self._sessions
