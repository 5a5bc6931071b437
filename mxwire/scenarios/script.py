"""Script: a scenario that was read, and what its head says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mxwire.protocol import Profile
from mxwire.protocol.profile import OPEN_MX_1_5
from mxwire.scenarios.steps import Call, Check, Expect, Send, Silence, Step, walk
from mxwire.wire.dialect import MXOE, Dialect, omx

_SOURCE: Final = range(6, 12)
"""Offsets of the source address in a frame."""
DIALECTS = {"mxoe": (MXOE,), "omx": (omx(1500), omx(9000))}
"""What a scenario is played in, by the names of its head."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Another endpoint that the tester plays."""

    name: str
    endpoint: int
    host: int = 1
    """Number of the host that it lives on; testers of one number share an Ethernet address."""
    known: bool = True
    """Whether the host under test has it in its peer table."""
    named: bool = True
    """Whether the host under test knows its name from the start."""
    interface: int = 0
    """Which interface of the host under test it talks to."""


@dataclass(frozen=True, slots=True)
class Script:
    """A scenario."""

    file: str
    name: str
    """Path below the folder of the library without suffix, for example ``connect/bad-key``."""
    text: str
    title: str
    rules: tuple[str, ...]
    """Numbers of the rules that it is about."""
    steps: tuple[Step, ...]
    about: str = ""
    history: str = ""
    """The defect of a former release of Open-MX that it looks for: the release that mended it, and what it was."""
    dialects: tuple[str, ...] = ("mxoe", "omx")
    """The families that it applies to."""
    connected: str = "no"
    """What has happened before the first step: ``no``, ``once`` (the tester has connected to the host), or ``both``
    (and the host to the tester)."""
    profile: str = ""
    """The profile that the host has to have; empty: any."""
    host: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the host's profile that have to be different."""
    endpoint: bool = True
    """Whether the host has an endpoint open from the start."""
    discovery: str = "no"
    """Whether the host announces itself (``announce``), or only hears who does (``listen``)."""
    within: int = 100_000_000
    """Nanoseconds in which frames have to come, unless a step says otherwise."""
    ignored: frozenset[str] = frozenset()
    """Packets that are passed over where they are not expected."""
    actors: tuple[Actor, ...] = ()
    """Testers besides the one that has no name, and the one that has, where the head describes it."""
    only_simulated: str = ""
    """Why it cannot be played against a live host, where it cannot."""
    harmful: str = ""
    """What it does to a real host, where that is harm; a host that is not ours is then spared."""
    info: bool = False
    """Whether the host is free to do what it likes, and the outcome tells what."""

    @property
    def needs_application(self) -> bool:
        """Whether the application on the host under test has to make calls."""
        asked = (Call, Check)
        if self.connected == "both":
            return True
        return any(isinstance(each, asked) and not _of_counters(each) for each in walk(self.steps))

    @property
    def interfaces(self) -> int:
        """How many interfaces the host under test needs."""
        return 1 + max((each.interface for each in self.actors), default=0)

    @property
    def needs_profile(self) -> bool:
        """Whether the host must be built or set otherwise than Open-MX is."""
        return bool(self.profile or self.unusual)

    @property
    def unusual(self) -> dict[str, Any]:
        """What a host must have set otherwise than Open-MX has."""
        return {name: value for name, value in self.host.items() if getattr(OPEN_MX_1_5, name) != value}

    @property
    def packets(self) -> frozenset[str]:
        """The packets that its steps expect or forbid."""
        found: set[str] = set()
        for each in walk(self.steps):
            if isinstance(each, Expect):
                found.add(each.packet)
            elif isinstance(each, Silence):
                found.update(each.packets)
        return frozenset(found)

    @property
    def senders(self) -> frozenset[str]:
        """The names of the testers that send; the empty one is the tester that has no name."""
        return frozenset(each.tester for each in walk(self.steps) if isinstance(each, Send))

    @property
    def forges_source(self) -> bool:
        """Whether the tester sends with a source address that is not its own, which misleads a learning switch."""
        sends = [each for each in walk(self.steps) if isinstance(each, Send)]
        patched = {patch.offset.constant for each in sends for patch in each.patches}
        return any("src_mac" in each.fields for each in sends) or not patched.isdisjoint(_SOURCE)

    def applies_to(self, dialect: Dialect) -> bool:
        """Whether it can be played in a dialect."""
        return dialect.family in self.dialects

    def played_in(self) -> tuple[Dialect, ...]:
        """The dialects that the library is tried in."""
        return tuple(each for family in self.dialects for each in DIALECTS[family])

    def profile_from(self, profile: Profile) -> Profile:
        """The profile that the host needs, made from another one."""
        values = dict(self.host)
        if "defects" in values:
            values["defects"] = profile.defects | values["defects"]
        return replace(profile, **values) if values else profile


def _of_counters(step: Step) -> bool:
    return isinstance(step, Check) and step.subject == "counters"
