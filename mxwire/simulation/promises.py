"""Which promises cannot be held in a scenario whatever the engine does, and why."""

from __future__ import annotations

from mxwire.protocol import Defect
from mxwire.simulation.invariants import INVARIANTS
from mxwire.simulation.scenario import Scenario

_HELD_ALWAYS = ("exception", "memory")
_RESTART_DEFECTS = (Defect.RESTART_HOLE, Defect.SESSION_NUMBERS_DISAGREE)
_OF_RESTARTS = ("delivery", "status", "partner", "liveness", "leftovers", "numbers", "rules")


def fallen(scenario: Scenario) -> dict[str, str]:
    """The invariants that need not hold in a scenario, each with the reason; the others are checked as always."""
    if scenario.tamper:
        # No checksum protects a message: what a changed byte says is believed.
        why = "bytes were changed and no check found it"
        return {name: why for name in INVARIANTS if name not in _HELD_ALWAYS}
    breaks = scenario.kill or scenario.crash or scenario.partition or scenario.filter or scenario.mtu
    if breaks and any(profile.has(each) for profile in scenario.profiles for each in _RESTART_DEFECTS):
        why = "partners with the defects D-3, D-4 or D-13 do not always find together again"
        return dict.fromkeys(_OF_RESTARTS, why)
    return {}
