"""Nodes on a simulated Ethernet with seeded faults and virtual time, and the checks of the invariants.

A run is a function of its :class:`Scenario`: the same seed gives the same frames, events and digest on any machine.

``network.py`` is the switch, which drops, duplicates, reorders and delays frames; ``world.py`` joins it with hosts and
applications, and triggers the incidents of a run, such as kills, pauses and partitions; ``simulation.py`` runs the
whole, and ``schedule.py`` is its virtual time. ``scenario.py`` draws the probabilities and numbers of faults from a
seed. Instead, ``faults.py`` describes plans of explicit faults, and ``exhaustive.py`` plays all plans.
``invariants.py`` lists what every run is checked for, and ``shrinker.py`` reduces a run that fails.
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
