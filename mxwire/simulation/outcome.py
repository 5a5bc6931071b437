"""What a run has shown."""

from __future__ import annotations

from dataclasses import dataclass, field

from mxwire.simulation.invariants import Breach
from mxwire.simulation.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run."""

    scenario: Scenario
    digest: str
    """SHA-256 over every frame and every event with its time."""
    duration: int
    """Virtual time in nanoseconds."""
    counts: dict[str, int] = field(default_factory=dict)
    """How much of what there was, by name."""
    fallen: dict[str, str] = field(default_factory=dict)
    """Invariants, and rules of the wire, that need not hold in this scenario, and why."""
    breaches: tuple[Breach, ...] = ()
    """The invariants that did not hold, in the order in which it was noticed."""

    @property
    def held(self) -> bool:
        """Whether everything held."""
        return not self.breaches
