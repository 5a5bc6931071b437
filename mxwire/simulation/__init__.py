"""Nodes on a simulated Ethernet with seeded faults and virtual time, and the checks of what must hold.

A run is a function of its :class:`Scenario`: the same seed gives the same frames, events and digest on any machine.
"""

from mxwire.simulation.invariants import INVARIANTS, Breach, Invariant
from mxwire.simulation.mixture import draw_scenario
from mxwire.simulation.outcome import Outcome
from mxwire.simulation.scenario import Scenario
from mxwire.simulation.shrinking import shrink
from mxwire.simulation.simulation import Simulation

__all__ = [
    "INVARIANTS",
    "Breach",
    "Invariant",
    "Outcome",
    "Scenario",
    "Simulation",
    "draw_scenario",
    "shrink",
]
