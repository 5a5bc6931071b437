"""A live stage: hosts on interfaces of this machine, turned by one thread, so that a case is played as in a simulation.

What is done to frames is done by links of our own: the case's cuts, and the seeded impairment.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

from mxwire.frames import FrameBatch
from mxwire.interop.casting import Casting, Introduction, Role, Unexpected, Unsuitable, Where
from mxwire.interop.cutting import CuttingLink
from mxwire.interop.impairments import Cut, Treatment
from mxwire.interop.live_side import LiveSide
from mxwire.interop.side import Side
from mxwire.interop.stage import Recorded, Stage, Told
from mxwire.link import FaultyLink, Link
from mxwire.units import SECOND

PATIENCE: Final = 15.0
"""Seconds that a case waits for what should work."""
_CALM: Final = 2.0
"""Seconds that a stranger has to acknowledge what was sent, before the next case begins."""
_FORGETTING: Final = 0.8
"""Seconds after which omx_perf, as a slave, has forgotten who has measured."""
_ASKING: Final = 0.5
"""Seconds between questions for the name of a stranger that is looked for."""
_REPEATING: Final = 0.6
"""Seconds after which a stranger has sent again what of ours was lost on the way: longer than a resend delay."""
_LULL: Final = 0.03
"""Seconds for what is still on its way: longer than an ack may wait."""
_LONGEST: Final = 50
"""Longest sleep, in ms: applications are looked after in between."""


@dataclass(frozen=True, slots=True)
class Stranger:
    """An external host, as far as it is known."""

    name: str
    """What it calls itself, with the number of its interface."""
    address: bytes | None
    """Its Ethernet address; None where its name has to do."""
    roles: frozenset[Role]
    """What its programs can be."""
    start: Callable[[Role, Callable[[str], object]], Where]
    """Makes sure that a program with a role runs there, and returns where; where it had to be restarted, the callable
    gets a line that says why."""
    restart: Callable[[Role, str], Where]
    """Restarts a program with a role, for a reason."""


class LiveStage(Stage):
    """One or two hosts of ours on links; the left one plays against a stranger where there is no right one.

    ``links`` are taken over, and closed at the end. Raises :class:`~mxwire.errors.MxwireError` where a dialect does
    not fit into the MTU of a link.
    """

    live: ClassVar[bool] = True

    def __init__(
        self,
        castings: tuple[Casting, ...],
        links: tuple[Link, ...],
        treatment: Treatment,
        seed: int,
        *,
        introduction: Introduction = "names",
        patience: float = PATIENCE,
        stranger: Stranger | None = None,
    ) -> None:
        super().__init__(patience)
        self.reboots: list[tuple[int, bytes]] = []
        self.stranger = stranger
        self._impaired = treatment.name != "none"
        both = stranger is not None
        self._links = [CuttingLink(_treated(link, treatment, seed, both=both), both=both) for link in links]
        self._hosts: list[LiveSide] = []
        self._started = time.monotonic_ns()
        self._since_1970 = time.time_ns() - self._started
        # A stranger remembers those who were there before, and must not take us for one of them.
        fresh = f"/{self._since_1970 + self._started}" if both else ""
        try:
            for place, (casting, link) in enumerate(zip(castings, self._links, strict=True)):
                known = self._known(place, castings, introduction)
                announce = introduction == "announcements" or stranger is not None
                side = LiveSide(self, casting, link, known, announce=announce, seed=f"{seed}/{place}{fresh}")
                self._hosts.append(side)
        except BaseException:
            self.close()
            raise
        self.left = self._hosts[0]
        for each in self._hosts:
            each.push()

    def _known(
        self, place: int, castings: tuple[Casting, ...], introduction: Introduction
    ) -> dict[str | bytes, str | None]:
        """Whom a host knows from the start."""
        if self.stranger is not None:
            return {} if self.stranger.address is None else {self.stranger.address: self.stranger.name}
        if introduction == "announcements":
            return {}
        other = 1 - place
        name = f"{castings[other].name}:0" if introduction == "names" else None
        return {self._links[other].address: name}

    @property
    def right(self) -> Side:
        """The second host."""
        if len(self._hosts) < 2:
            raise Unsuitable("the case needs both hosts in its hand, and the right one is external")
        return self._hosts[1]

    @property
    def sides(self) -> tuple[Side, ...]:
        """The hosts of ours."""
        return tuple(self._hosts)

    @property
    def right_is_ours(self) -> bool:
        """Whether nobody else is on the right."""
        return self.stranger is None

    def has(self, role: Role) -> bool:
        """Ours can be anything; of a stranger the programs must be known."""
        return self.stranger is None or role in self.stranger.roles

    @property
    def right_address(self) -> bytes:
        """Of the second host, or of the stranger that is known by now."""
        if self.stranger is None:
            return super().right_address
        if self.stranger.address is not None:
            return self.stranger.address
        peers, name = self.left.node.peers, self.stranger.name
        self.find(lambda: peers.by_name(name) is not None, self.patience)
        peer = peers.by_name(name)
        if peer is None:
            raise Unexpected(f"{name} is not heard within {self.patience:g} s")
        return peer.address

    def far(self, role: Role) -> Where:
        """Where a program with a role is."""
        if self.stranger is None:
            return super().far(role)
        found = self.roles.get(role)
        if found is None:
            found = self.roles[role] = self.stranger.start(role, self._program_restarted)
        self.meet(found)
        return found

    def restart(self, role: Role) -> Where:
        """End the program that plays a role, and start it again."""
        if self.stranger is None:
            return super().restart(role)
        self.roles[role] = self.stranger.restart(role, "the case wants a new one")
        self._program_restarted(f"the program for {role!r} was restarted, as the case wants it")
        return self.far(role)

    def _program_restarted(self, text: str) -> None:
        self.note(text)
        # With a program the host may have begun anew.
        self.reboots.append((len(self.frames), self.right_address))

    def find(self, found: Callable[[], bool], seconds: float) -> bool:
        """Wait for a stranger, and ask for names more often than hosts do (R-HOST-02): our first question it may not
        have answered, as it did not know us yet (R-HOST-04)."""
        end = self.clock() + round(seconds * SECOND)
        while not self.until(found, min(_ASKING, max(0.0, (end - self.clock()) / SECOND))):
            if self.clock() >= end:
                return False
            self.left.node.ask_names()
            self.left.push()
        return True

    def meet(self, where: Where) -> None:
        """Wait until the stranger is known: it announces itself, or answers a question for its name."""
        if isinstance(where.host, str):
            _ = self.right_address

    def renew(self, treatment: Treatment, seed: int, patience: float) -> None:
        """Begin another case on the same host: a stranger would take one that has forgotten all for a new one."""
        self.settle(_CALM)
        if self._impaired or any(each.cuts for each in self._links):
            self.let_pass(_REPEATING)
        if "perf" in self.roles:
            # It waits before it forgets its partner, and would forget a new one with it (D-12).
            self.let_pass(_FORGETTING)
        for side in self._hosts:
            for end in side.ends:
                if end.engine.open:
                    end.close()
            side.ends.clear()
        self.let_pass(_LULL)
        for each in self._links:
            each.cuts.clear()
            if isinstance(each.link, FaultyLink):
                each.link.change(sending=treatment.faults, receiving=treatment.faults, seed=seed)
        self._impaired = treatment.name != "none"
        self.patience = patience
        self.frames, self.events, self.told = [], Told(), []
        self.reboots.clear()
        self.applications.clear()
        self.roles.clear()
        self._started = time.monotonic_ns()

    def clock(self) -> int:
        """A clock that never runs backwards, in ns."""
        return time.monotonic_ns()

    def turn(self, limit: int) -> bool:
        """Sleep until there is something to do, and do it."""
        now = time.monotonic_ns()
        if now >= limit:
            return False
        pauses = [each.core.pause() for each in self._hosts]
        wait = min([limit - now, *(each for each in pauses if each is not None)]) / 1_000_000
        poller = select.poll()
        for each in self._hosts:
            poller.register(each.link.fileno(), select.POLLIN)
        poller.poll(min(max(wait, 0.0), _LONGEST))
        for each in self._hosts:
            each.step()
        return True

    def cut(self, packet_type: int, *places: int, source: bytes | None = None) -> None:
        """Lose these frames of a type, counted from 0 from now on."""
        chosen = Cut(packet_type, frozenset(places), source)
        for each in self._links:
            each.cuts.append(chosen)

    def seen(self, batch: FrameBatch, leaving: bool) -> None:
        """A host of ours sends frames, or has received some: what a stranger sends is only seen as it arrives."""
        if not leaving and self.stranger is None:
            return
        now = time.monotonic_ns() + self._since_1970
        self.frames += [Recorded(now, batch.frame(index)) for index in range(len(batch))]

    def close(self) -> None:
        """Close hosts and links; owed acks are not sent."""
        for each in self._links:
            each.close()


def _treated(link: Link, treatment: Treatment, seed: int, *, both: bool) -> Link:
    """A link with the faults of an impairment: in what we send, and in what comes where the other end is not ours."""
    faults = treatment.faults
    if both:
        return FaultyLink(link, seed=seed, sending=faults, receiving=faults)
    return link if treatment.name == "none" else FaultyLink(link, seed=seed, sending=faults)
