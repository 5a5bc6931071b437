"""Script: a parsed scenario with the settings of its head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mxwire.protocol import Profile
from mxwire.protocol.profile import OPEN_MX_1_5
from mxwire.scenarios.steps import CallStep, CheckStep, ExpectStep, ScenarioStep, SendStep, SilenceStep, walk
from mxwire.wire.dialect import MXOE, Dialect, omx

_SOURCE: Final = range(6, 12)
"""Offsets of the source address in a frame."""
DIALECTS = {"mxoe": (MXOE,), "omx": (omx(1500), omx(9000))}
"""Dialects in which a scenario is played, by the names used in its head."""


@dataclass(frozen=True, slots=True)
class TesterDeclaration:
    """A declared tester: an endpoint that the tester plays beside or instead of the default one."""

    name: str
    endpoint: int
    host: int = 1
    """Number of its host; testers with the same host share an Ethernet address."""
    known: bool = True
    """True if it is in the peer table of the host under test from the start."""
    named: bool = True
    """True if the host under test knows its name from the start."""
    interface: int = 0
    """Index of the interface of the host under test that it communicates with."""


@dataclass(frozen=True, slots=True)
class Script:
    """A parsed scenario."""

    file: str
    name: str
    """Path in the library without suffix, for example ``connect/bad-key``."""
    text: str
    title: str
    rules: tuple[str, ...]
    """Numbers of the rules that it tests."""
    steps: tuple[ScenarioStep, ...]
    about: str = ""
    history: str = ""
    """The defect of a former release of Open-MX that it detects: the release that fixed it, and a description."""
    dialects: tuple[str, ...] = ("mxoe", "omx")
    """Dialect families in which it can be played."""
    connected: str = "no"
    """Connects before the first step: ``no``, ``once`` (the tester to the host), or ``both`` (also the host to the
    tester)."""
    profile: str = ""
    """Required profile of the host; empty for any."""
    host: Mapping[str, Any] = field(default_factory=dict)
    """Profile fields of the host that must differ from the defaults."""
    endpoint: bool = True
    """True if the host has an endpoint open from the start."""
    discovery: str = "no"
    """Discovery by the host: ``no``, ``announce``, or ``listen`` (only receive announcements)."""
    within: int = 100_000_000
    """Nanoseconds within which an expected frame must arrive, unless its step has a limit of its own."""
    ignored: frozenset[str] = frozenset()
    """Packets that are ignored unless they are expected."""
    actors: tuple[TesterDeclaration, ...] = ()
    """Declared testers; the default tester is among them only if the head describes it."""
    only_simulated: str = ""
    """Reason why it cannot be played against a live host; empty if it can."""
    harmful: str = ""
    """Harm that it does to a real host; empty if harmless. Harmful scenarios are skipped for external hosts."""
    info: bool = False
    """True if the behaviour is optional, so that the outcome only reports it."""

    @property
    def needs_application(self) -> bool:
        """True if the application on the host under test must make calls."""
        calling = (CallStep, CheckStep)
        if self.connected == "both":
            return True
        return any(isinstance(each, calling) and not _of_counters(each) for each in walk(self.steps))

    @property
    def several_processes(self) -> bool:
        """True if endpoints of the host under test belong to several processes."""
        return any(isinstance(each, CallStep) and "process" in each.arguments for each in walk(self.steps))

    @property
    def interfaces(self) -> int:
        """Number of interfaces that the host under test needs."""
        return 1 + max((each.interface for each in self.actors), default=0)

    @property
    def needs_profile(self) -> bool:
        """True if the host must be configured differently from Open-MX."""
        return bool(self.profile or self.unusual)

    @property
    def unusual(self) -> dict[str, Any]:
        """Settings of the host that differ from those of Open-MX."""
        return {name: value for name, value in self.host.items() if getattr(OPEN_MX_1_5, name) != value}

    @property
    def packets(self) -> frozenset[str]:
        """Packets that its steps expect or forbid."""
        packets: set[str] = set()
        for each in walk(self.steps):
            if isinstance(each, ExpectStep):
                packets.add(each.packet)
            elif isinstance(each, SilenceStep):
                packets.update(each.packets)
        return frozenset(packets)

    @property
    def senders(self) -> frozenset[str]:
        """Names of the testers that send; the default tester has the empty name."""
        return frozenset(each.tester for each in walk(self.steps) if isinstance(each, SendStep))

    @property
    def forges_source(self) -> bool:
        """True if the tester forges source addresses, which misleads a learning switch."""
        sends = [each for each in walk(self.steps) if isinstance(each, SendStep)]
        patched = {patch.offset.constant for each in sends for patch in each.patches}
        return any("src_mac" in each.fields for each in sends) or not patched.isdisjoint(_SOURCE)

    def applies_to(self, dialect: Dialect) -> bool:
        """Return whether it can be played in a dialect."""
        return dialect.family in self.dialects

    def played_in(self) -> tuple[Dialect, ...]:
        """Return the dialects in which the library's own tests play it."""
        return tuple(each for family in self.dialects for each in DIALECTS[family])

    def profile_from(self, profile: Profile) -> Profile:
        """Return ``profile`` with the changes that the host needs."""
        values = dict(self.host)
        if "defects" in values:
            values["defects"] = profile.defects | values["defects"]
        return replace(profile, **values) if values else profile


def _of_counters(step: ScenarioStep) -> bool:
    return isinstance(step, CheckStep) and step.subject == "counters"
