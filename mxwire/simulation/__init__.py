"""Nodes on a simulated Ethernet with seeded faults and virtual time, and the checks of the invariants.

A run is a function of its :class:`Scenario`: the same seed gives the same frames, events and digest on any machine.

``network.py`` is the switch, which drops, duplicates, reorders and delays frames; ``world.py`` joins it with hosts and
applications, and ``simulation.py`` runs the whole. ``invariants.py`` lists what every run is checked for, and
``shrinker.py`` reduces a run that fails. Where ``scenario.py`` draws faults from a seed, ``exhaustive.py`` plays all
plans of a few faults (``faults.py``).
"""

from mxwire.simulation.exhaustive import ExhaustivePlay
from mxwire.simulation.invariants import INVARIANTS, Invariant, InvariantBreach
from mxwire.simulation.scenario import SMALL_WORKLOADS, Scenario, draw_scenario
from mxwire.simulation.shrinker import shrink
from mxwire.simulation.simulation import RunOutcome, Simulation

__all__ = [
    "INVARIANTS",
    "SMALL_WORKLOADS",
    "ExhaustivePlay",
    "Invariant",
    "InvariantBreach",
    "RunOutcome",
    "Scenario",
    "Simulation",
    "draw_scenario",
    "shrink",
]
