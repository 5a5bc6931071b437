"""The invariants of every run, by name, with the rules behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Invariant:
    """A property that must hold in every run."""

    name: str
    text: str
    rules: tuple[str, ...]
    """The rules of the behaviour specification that imply it."""


_ALL: Final = (
    Invariant("delivery", "every message is delivered", ("R-ORD-05", "R-RTX-02", "R-NOT-01")),
    Invariant("once", "no message is delivered twice", ("R-ORD-03", "R-ORD-05")),
    Invariant(
        "order", "messages of one sender are matched in the order of sending", ("R-MAT-01", "R-MAT-02", "R-SEQ-06")
    ),
    Invariant(
        "content",
        "the receiver has exactly the bytes that were sent",
        ("R-MED-02", "R-MED-04", "R-PUL-05", "R-PUL-13", "R-MSC-01"),
    ),
    Invariant(
        "memory",
        "nothing is written beyond the end of a message, or into a buffer whose receive has ended",
        ("R-MED-04", "R-PUL-05", "R-PUL-10", "R-MSC-01"),
    ),
    Invariant("address", "a message reaches the endpoint and the session it was sent to", ("R-EP-02", "R-EP-05")),
    Invariant(
        "status", "every request ends with the status that the rules require", ("R-MSC-01", "R-NOT-02", "R-NAK-05")
    ),
    Invariant("partner", "no partner is reset or abandoned without cause", ("R-CLS-04", "R-CLS-05", "R-RTX-05")),
    Invariant(
        "liveness",
        "once faults have stopped, every request ends within the time that the timers imply",
        ("R-RTX-01", "R-PUL-08", "R-ACK-04", "R-CON-02"),
    ),
    Invariant(
        "leftovers",
        "at the end no request, buffer, region, handle or timer is left",
        ("R-PUL-03", "R-PUL-10", "R-RDV-01", "R-RDV-05", "R-ACK-05"),
    ),
    Invariant("numbers", "sender and receiver agree on the sequence numbers", ("R-SEQ-05", "R-ACK-01", "R-ACK-05")),
    Invariant("rules", "the frames on the wire follow every MUST of the specification", ()),
    Invariant("exception", "no frame and no fault makes the engine raise", ()),
)

INVARIANTS: Final[dict[str, Invariant]] = {each.name: each for each in _ALL}
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
