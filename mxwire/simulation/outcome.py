"""The outcome of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from mxwire.simulation.invariants import InvariantBreach
from mxwire.simulation.scenario import Scenario


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The result of a run: digest, counts, and broken invariants."""

    scenario: Scenario
    digest: str
    """SHA-256 over every frame and every event with its time."""
    duration: int
    """Virtual time in nanoseconds."""
    counts: dict[str, int] = field(default_factory=dict)
    """Counts by name: messages, frames, incidents and others."""
    fallen: dict[str, str] = field(default_factory=dict)
    """Invariants, and rules of the wire, that need not hold in this scenario, with the reasons."""
    breaches: tuple[InvariantBreach, ...] = ()
    """The broken invariants, in the order of detection."""

    @property
    def held(self) -> bool:
        """Return whether every invariant held."""
        return not self.breaches
