"""Promises that cannot be kept in a scenario, whatever the engine does, with the reasons."""

from __future__ import annotations

from mxwire.protocol import Defect, Profile
from mxwire.simulation.invariants import INVARIANTS
from mxwire.simulation.scenario import INCIDENTS, Scenario

_HELD_ALWAYS = ("exception", "memory")
_PARTING = (Defect.RESTART_HOLE, Defect.SESSION_NUMBERS_DISAGREE, Defect.EARLY_DRAINED_BY_ONE)
_OF_PARTNERS = ("delivery", "status", "partner", "liveness", "leftovers", "numbers")
"""Invariants between two hosts."""
_GIVING_UP = (*INCIDENTS, "loss", "corrupt")
"""Incidents and faults that may make a host abandon another host, or restart it."""
_OF_CHANCE = ("status", "partner")
_WRONG_INDEX = "a HOST_REPLY that repeats the index of its query teaches a wrong index"
_OVERTAKEN = (
    "a host with defect D-1 that receives a CONNECT request after the NOTIFYs behind it expects number 1 again, "
    "and waits for numbers that its partner does not send any more"
)
_ENOUGH_RESENDS = 12
"""Number of retransmissions from which on random loss alone does not make a host abandon another one."""


def fallen(scenario: Scenario) -> dict[str, str]:
    """Return the invariants that need not hold in a scenario, each with the reason; all others are checked."""
    if scenario.tamper:
        # No checksum protects a message: a changed byte is taken as sent.
        why = "bytes were changed and no checksum detected it"
        return {name: why for name in INVARIANTS if name not in _HELD_ALWAYS}
    profiles = [scenario.profile_of(number) for number in range(scenario.hosts)]
    found: dict[str, str] = {}
    few = min(each.resend_maximum for each in profiles) < _ENOUGH_RESENDS
    if few and (scenario.loss or scenario.corrupt):
        why = f"with fewer than {_ENOUGH_RESENDS} retransmissions, random loss alone makes a host abandon another one"
        found |= dict.fromkeys(_OF_CHANCE, why)
    parts = few or any(getattr(scenario, each) for each in _GIVING_UP)
    if parts and any(profile.has(each) for profile in profiles for each in _PARTING):
        why = "partners with the defects D-3, D-4, D-5 or D-13 lose each other, and do not always reconnect"
        found |= dict.fromkeys((*_OF_PARTNERS, "rules"), why)
    if _forgets_what_overtook(scenario, profiles):
        found |= dict.fromkeys((*_OF_PARTNERS, "rules"), _OVERTAKEN)
    if _teaches_wrong_indexes(scenario):
        found |= dict.fromkeys(_OF_PARTNERS, _WRONG_INDEX)
    return found


def fallen_rules(scenario: Scenario) -> dict[str, str]:
    """Return the rules of the wire that may be broken in a scenario, each with the reason."""
    return dict.fromkeys(("W-5", "R-HOST-06"), _WRONG_INDEX) if _teaches_wrong_indexes(scenario) else {}


def _forgets_what_overtook(scenario: Scenario, profiles: list[Profile]) -> bool:
    """Return whether a NOTIFY may reach a host with D-1 before the CONNECT request that was sent first (R-CON-12)."""
    overtaking = scenario.reorder or scenario.jitter
    forgetting = any(each.has(Defect.REPLY_LEAVES_REVERSE_SESSION) for each in profiles)
    return bool(overtaking and forgetting and any(not each.connects_back for each in profiles))


def _teaches_wrong_indexes(scenario: Scenario) -> bool:
    profiles = [scenario.profile_of(number) for number in range(scenario.hosts)]
    return scenario.discovery != "static" and any(each.reply_echoes_index for each in profiles)
