"""Nodes on a simulated Ethernet with seeded faults and virtual time, and the checks of the invariants.

A run is a function of its :class:`Scenario`: the same seed gives the same frames, events and digest on any machine.
"""

from mxwire.simulation.invariants import INVARIANTS, Invariant, InvariantBreach
from mxwire.simulation.scenario import Scenario, draw_scenario
from mxwire.simulation.shrinker import shrink
from mxwire.simulation.simulation import RunOutcome, Simulation

__all__ = [
    "INVARIANTS",
    "Invariant",
    "InvariantBreach",
    "RunOutcome",
    "Scenario",
    "Simulation",
    "draw_scenario",
    "shrink",
]
