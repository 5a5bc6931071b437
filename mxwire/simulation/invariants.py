"""The invariants of every run by name, with the rules that imply them, and the exceptions for each scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mxwire.protocol import Defect, Profile
from mxwire.simulation.scenario import INCIDENTS, Scenario
from mxwire.texts import table_rows


@dataclass(frozen=True, slots=True)
class Invariant:
    """A property that must hold in every run."""

    name: str
    text: str
    rules: tuple[str, ...]
    """The rules of the behaviour specification that imply it."""


INVARIANTS: Final = {
    name: Invariant(name, text, tuple(filter(None, rules.split(", "))))
    for _, (name, text, rules) in table_rows(__file__, "invariants.md")
}
"""All invariants by name."""


@dataclass(frozen=True, slots=True)
class InvariantBreach:
    """A broken invariant."""

    invariant: str
    time: int
    """Virtual time of detection, in nanoseconds."""
    text: str
    """The observation that contradicts the invariant."""
    rule: str = ""
    """The broken rule of the wire, if the invariant is ``rules``."""

    @property
    def kind(self) -> tuple[str, str]:
        """Return invariant and rule: two breaches of the same kind may have the same cause."""
        return self.invariant, self.rule

    def __str__(self) -> str:
        """Return one line with invariant, time and text."""
        return f"{self.invariant} at {self.time / 1e9:.6f} s: {self.text}"


_HELD_ALWAYS = ("exception", "memory")
_PARTING = (Defect.RESTART_HOLE, Defect.SESSION_NUMBERS_DISAGREE, Defect.EARLY_DRAINED_BY_ONE)
_OF_PARTNERS = ("delivery", "status", "partner", "liveness", "leftovers", "numbers")
"""Invariants between two hosts."""
_GIVING_UP = (*INCIDENTS, "loss", "corrupt")
"""Incidents and faults that may restart a host or make another host abandon it."""
_OF_CHANCE = ("status", "partner")
_WRONG_INDEX = "a HOST_REPLY that repeats the index of its query teaches a wrong index"
_NEW_PROCESS = "a process that starts later does not know the indexes that its host has been sent"
_OVERTAKEN = (
    "a host with defect D-1 that receives a CONNECT request after the NOTIFYs behind it expects number 1 again, "
    "and waits for numbers that its partner does not send any more"
)
_TWICE = (
    "a restarted host with defect D-1 that receives messages before a CONNECT request of their sender expects number 1 "
    "again, and accepts these messages once more if they are retransmitted"
)
_ENOUGH_RESENDS = 12
"""Number of retransmissions from which random loss alone does not make a host abandon another host."""


def unchecked(scenario: Scenario) -> dict[str, str]:
    """Return the invariants that need not hold in a scenario, each with the reason; all others are checked."""
    if scenario.tamper:
        # A message has no checksum, so a changed byte is not detected.
        why = "bytes were changed and no checksum detected it"
        return {name: why for name in INVARIANTS if name not in _HELD_ALWAYS}
    profiles = [scenario.profile_of(number) for number in range(scenario.hosts)]
    reasons: dict[str, str] = {}
    few = min(each.resend_maximum for each in profiles) < _ENOUGH_RESENDS
    if few and (scenario.loss or scenario.corrupt):
        why = f"with fewer than {_ENOUGH_RESENDS} retransmissions, random loss alone makes a host abandon another one"
        reasons |= dict.fromkeys(_OF_CHANCE, why)
    parts = few or bool(scenario.faults) or any(getattr(scenario, each) for each in _GIVING_UP)
    if parts and any(profile.has(each) for profile in profiles for each in _PARTING):
        why = "partners with the defects D-3, D-4, D-5 or D-13 lose each other, and do not always reconnect"
        reasons |= dict.fromkeys((*_OF_PARTNERS, "rules"), why)
    if parts and any(profile.has(Defect.REPLY_LEAVES_REVERSE_SESSION) for profile in profiles):
        reasons["once"] = _TWICE
    if _notify_may_overtake_connect(scenario, profiles):
        reasons |= dict.fromkeys((*_OF_PARTNERS, "rules"), _OVERTAKEN)
    if _teaches_wrong_indexes(scenario):
        reasons |= dict.fromkeys(_OF_PARTNERS, _WRONG_INDEX)
    return reasons


def unchecked_rules(scenario: Scenario) -> dict[str, str]:
    """Return the rules of the wire that may be broken in a scenario, each with the reason."""
    reasons = {"W-5": _NEW_PROCESS} if scenario.local != "shared" and (scenario.kill or scenario.interrupted) else {}
    if _teaches_wrong_indexes(scenario):
        reasons |= dict.fromkeys(("W-5", "R-HOST-06"), _WRONG_INDEX)
    return reasons


def _notify_may_overtake_connect(scenario: Scenario, profiles: list[Profile]) -> bool:
    """Return whether a NOTIFY may reach a host with D-1 before the CONNECT request that was sent first (R-CON-12)."""
    overtaking = scenario.reorder or scenario.jitter or scenario.faults
    forgetting = any(each.has(Defect.REPLY_LEAVES_REVERSE_SESSION) for each in profiles)
    return bool(overtaking and forgetting and any(not each.connects_back for each in profiles))


def _teaches_wrong_indexes(scenario: Scenario) -> bool:
    profiles = [scenario.profile_of(number) for number in range(scenario.hosts)]
    return scenario.discovery != "static" and any(each.reply_echoes_index for each in profiles)
