"""The live testbed: hosts on interfaces of this machine, driven by one thread, so that cases run as in a simulation.

Links of mxwire apply the impairments: the frames that a case drops, and the seeded faults.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Final

from mxwire.frames import FrameBatch
from mxwire.host.base_host import BaseHost
from mxwire.interop.impairments import Cut, CuttingLink, Treatment
from mxwire.interop.roles import EndpointAddress, HostSetup, Introduction, Role, UnexpectedResult
from mxwire.interop.testbed import EventLog, RecordedFrame, Testbed, TestbedSide
from mxwire.link import FaultyLink, Link
from mxwire.protocol import Node
from mxwire.units import SECOND

PATIENCE: Final = 15.0
"""Seconds that a case waits for an event that should occur."""
_CALM: Final = 2.0
"""Seconds that an external host has to acknowledge messages before the next case begins."""
_FORGETTING: Final = 0.8
"""Seconds after which omx_perf, as a slave, has forgotten its last sender."""
_ASKING: Final = 0.5
"""Seconds between queries for the name of an external host."""
_REPEATING: Final = 0.6
"""Seconds within which an external host retransmits a lost frame: longer than its resend delay."""
_LULL: Final = 0.03
"""Seconds to wait for frames in flight: longer than an ack may be delayed."""
_LONGEST: Final = 50
"""Maximum sleep in ms: applications are driven in between."""


@dataclass(frozen=True, slots=True)
class ExternalPeer:
    """The known properties of an external host."""

    name: str
    """Host name, with the number of the interface."""
    address: bytes | None
    """Ethernet address of the host; None to find it by name."""
    roles: frozenset[Role]
    """Roles of its programs."""
    start: Callable[[Role, Callable[[str], object]], EndpointAddress]
    """Makes sure that the program with a role runs, and returns its address; after a restart, the callable is called
    with a line that gives the reason."""
    restart: Callable[[Role, str], EndpointAddress]
    """Restarts the program with a role, for a reason."""


class LiveTestbed(Testbed):
    """One or two hosts of mxwire on links; with one, the left host plays against an external host.

    ``links`` are closed at the end. Raises :class:`~mxwire.errors.MxwireError` if a dialect does not fit the MTU of a
    link.
    """

    live: ClassVar[bool] = True

    def __init__(
        self,
        castings: tuple[HostSetup, ...],
        links: tuple[Link, ...],
        treatment: Treatment,
        seed: int,
        *,
        introduction: Introduction = "names",
        patience: float = PATIENCE,
        stranger: ExternalPeer | None = None,
    ) -> None:
        super().__init__(patience)
        self.stranger = stranger
        self.before: list[RecordedFrame] = []
        """Frames of the case before this one, and until this one began."""
        self._impaired = treatment.name != "none"
        both = stranger is not None
        self._links = [CuttingLink(_treated(link, treatment, seed, both=both), both=both) for link in links]
        self._hosts: list[LiveSide] = []
        self.started = time.monotonic_ns()
        self._since_1970 = time.time_ns() - self.started
        # An external host remembers earlier hosts, and must not confuse this one with them.
        fresh = f"/{self._since_1970 + self.started}" if both else ""
        try:
            for place, (casting, link) in enumerate(zip(castings, self._links, strict=True)):
                known = self._known(place, castings, introduction)
                # An external host has no static entry for the tester.
                announce = introduction == "announcements" or stranger is not None
                side = LiveSide(self, casting, link, known, announce=announce, seed=f"{seed}/{place}{fresh}")
                self._hosts.append(side)
        except BaseException:
            self.close()
            raise
        for each in self._hosts:
            each.push()

    def _known(
        self, place: int, castings: tuple[HostSetup, ...], introduction: Introduction
    ) -> dict[str | bytes, str | None]:
        """Return the peer table of a host at the start."""
        if self.stranger is not None:
            return {} if self.stranger.address is None else {self.stranger.address: self.stranger.name}
        if introduction == "announcements":
            return {}
        other = 1 - place
        name = f"{castings[other].name}:0" if introduction == "names" else None
        return {self._links[other].address: name}

    @property
    def right_is_controlled(self) -> bool:
        """True if the right host is one of mxwire."""
        return self.stranger is None

    def has(self, role: Role) -> bool:
        """Return whether a role is available: any on hosts of mxwire, configured ones on external hosts."""
        return self.stranger is None or role in self.stranger.roles

    @property
    def right_address(self) -> bytes:
        """Address of the second host, or of the external host once it is known."""
        if self.stranger is None:
            return super().right_address
        if self.stranger.address is not None:
            return self.stranger.address
        peers, name = self.left.node.peers, self.stranger.name
        self.find(lambda: peers.by_name(name) is not None, self.patience)
        peer = peers.by_name(name)
        if peer is None:
            raise UnexpectedResult(f"{name} was not discovered within {self.patience:g} s")
        return peer.address

    def program(self, role: Role) -> EndpointAddress:
        """Return the address of the program with a role."""
        if self.stranger is None:
            return super().program(role)
        found = self.roles.get(role)
        if found is None:
            found = self.roles[role] = self.stranger.start(role, self._program_restarted)
        self.meet(found)
        return found

    def restart(self, role: Role) -> EndpointAddress:
        """Restart the program with a role."""
        if self.stranger is None:
            return super().restart(role)
        self.roles[role] = self.stranger.restart(role, "the case needs a new one")
        self._program_restarted(f"the program for {role!r} was restarted for the case")
        return self.program(role)

    def _program_restarted(self, text: str) -> None:
        self.note(text)
        # A host of mxwire restarts together with its program.
        self.reboots.append((len(self.frames), self.right_address))

    def find(self, found: Callable[[], bool], seconds: float) -> bool:
        """Wait until an external host is found, with more frequent name queries than R-HOST-02 prescribes.

        It may have ignored the first query, because this host was not in its peer table yet (R-HOST-04).
        """
        end = self.clock() + round(seconds * SECOND)
        while not self.until(found, min(_ASKING, max(0.0, (end - self.clock()) / SECOND))):
            if self.clock() >= end:
                return False
            self.left.node.ask_names()
            self.left.push()
        return True

    def meet(self, where: EndpointAddress) -> None:
        """Wait until the external host is known: it announces itself, or answers a name query."""
        if isinstance(where.host, str):
            _ = self.right_address

    def renew(self, treatment: Treatment, seed: int, patience: float) -> None:
        """Begin another case on the same host: an external host would take a restarted host for a new one."""
        self.settle(_CALM)
        # The external host may still retransmit for the last case, whose faults lost its frames.
        if self._impaired or any(each.cuts for each in self._links):
            self.sleep(_REPEATING)
        if "perf" in self.roles:
            # The slave forgets its partner only after a delay, and would then forget a new partner as well (D-12).
            self.sleep(_FORGETTING)
        for side in self._hosts:
            for end in side.ends:
                if end.engine.open:
                    end.close()
            side.ends.clear()
        # Closing endpoints transmits acks that are owed; they belong to this case.
        self.sleep(_LULL)
        for each in self._links:
            each.cuts.clear()
            if isinstance(each.link, FaultyLink):
                each.link.change(sending=treatment.faults, receiving=treatment.faults, seed=seed)
        self._impaired = treatment.name != "none"
        self.patience = patience
        self.before = self.frames
        self.frames, self.events, self.reports = [], EventLog(), []
        self.reboots.clear()
        self.applications.clear()
        self.roles.clear()
        self.started = time.monotonic_ns()

    def clock(self) -> int:
        """Monotonic clock in ns."""
        return time.monotonic_ns()

    def turn(self, limit: int) -> bool:
        """Sleep until there is work to do, and do it."""
        now = time.monotonic_ns()
        if now >= limit:
            return False
        pauses = [each.core.pause() for each in self._hosts]
        wait = min([limit - now, *(each for each in pauses if each is not None)]) / 1_000_000
        poller = select.poll()
        for each in self._hosts:
            poller.register(each.link.fileno(), select.POLLIN)
        # One poll for both hosts: a thread for each would make cases less reproducible.
        poller.poll(min(max(wait, 0.0), _LONGEST))
        for each in self._hosts:
            each.step()
        return True

    def cut(self, packet_type: int, *places: int, source: bytes | None = None) -> None:
        """Drop these frames of a type, counted from 0 from now on."""
        chosen = Cut(packet_type, frozenset(places), source)
        for each in self._links:
            each.cuts.append(chosen)

    def seen(self, batch: FrameBatch, outgoing: bool) -> None:
        """Record frames of a host of mxwire: transmitted ones, and those of external hosts as they are received."""
        # Between hosts of mxwire, each frame has been recorded by its sender.
        if not outgoing and self.stranger is None:
            return
        now = time.monotonic_ns() + self._since_1970
        self.frames += [RecordedFrame(now, batch.frame(index)) for index in range(len(batch))]

    def close(self) -> None:
        """Close hosts and links; owed acks are not sent."""
        for each in self._links:
            each.close()


def _treated(link: Link, treatment: Treatment, seed: int, *, both: bool) -> Link:
    """Add the faults of an impairment to a link: to transmitted frames, and with ``both`` to received ones."""
    faults = treatment.faults
    if both:
        # An external host has no link of mxwire, so its frames are impaired where they are received.
        return FaultyLink(link, seed=seed, sending=faults, receiving=faults)
    return link if treatment.name == "none" else FaultyLink(link, seed=seed, sending=faults)


class LiveSide(TestbedSide):
    """A host of mxwire on a link."""

    def __init__(
        self,
        testbed: LiveTestbed,
        casting: HostSetup,
        link: CuttingLink,
        known: dict[str | bytes, str | None],
        *,
        announce: bool,
        seed: str,
    ) -> None:
        super().__init__(testbed, casting.name, casting.profile, casting.dialect)
        self._live_testbed = testbed
        self.link = link
        self._known, self._announce, self._seed = known, announce, seed
        self._boots = 0
        self.boot()

    @property
    def node(self) -> Node:
        """The engine."""
        return self.core.node

    @property
    def address(self) -> bytes:
        """The Ethernet address of its interface."""
        return self.link.address

    def boot(self) -> None:
        """Open a host on the link."""
        self._boots += 1
        hosting = BaseHost(
            self.link,
            name=self.name,
            dialect=self.dialect,
            profile=self.profile,
            peers=self._known,
            announce=self._announce,
            on_event=self.heard,
            rng=Random(f"{self._seed}/{self._boots}"),
        )
        self.core = hosting.core
        self.core.observers.append(self._live_testbed.seen)

    def push(self) -> None:
        """Transmit the frames queued by a call."""
        with self.core.section:
            self.core.transmit()

    def step(self) -> None:
        """Take received frames, and run expired timers."""
        with self.core.section:
            self.core.step()
            self.core.must_be_open()
