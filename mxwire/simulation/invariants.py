"""What must hold in every run: each invariant by name, with the rules behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Invariant:
    """Something that must hold."""

    name: str
    text: str
    rules: tuple[str, ...]
    """The rules of the behaviour specification that promise it."""


_ALL: Final = (
    Invariant("delivery", "every message is delivered", ("R-ORD-05", "R-RTX-02", "R-NOT-01")),
    Invariant("once", "no message is delivered twice", ("R-ORD-03", "R-ORD-05")),
    Invariant(
        "order", "messages of one sender are matched in the order of sending", ("R-MAT-01", "R-MAT-02", "R-SEQ-06")
    ),
    Invariant(
        "content",
        "the receiver has the bytes that were sent",
        ("R-MED-02", "R-MED-04", "R-PUL-05", "R-PUL-13", "R-MSC-01"),
    ),
    Invariant(
        "memory",
        "nothing is written behind the end of a message, or into a buffer whose receive has ended",
        ("R-MED-04", "R-PUL-05", "R-PUL-10", "R-MSC-01"),
    ),
    Invariant("address", "a message reaches the endpoint and the session it was sent to", ("R-EP-02", "R-EP-05")),
    Invariant(
        "status", "every request ends with the status that the rules give it", ("R-MSC-01", "R-NOT-02", "R-NAK-05")
    ),
    Invariant("partner", "nobody is reset or given up without cause", ("R-CLS-04", "R-CLS-05", "R-RTX-05")),
    Invariant(
        "liveness",
        "once faults have stopped, everything ends within the time that the timers give",
        ("R-RTX-01", "R-PUL-08", "R-ACK-04", "R-CON-02"),
    ),
    Invariant(
        "leftovers",
        "at the end no request, buffer, region, handle or timer is left",
        ("R-PUL-03", "R-PUL-10", "R-RDV-01", "R-RDV-05", "R-ACK-05"),
    ),
    Invariant("numbers", "both sides agree on the sequence numbers", ("R-SEQ-05", "R-ACK-01", "R-ACK-05")),
    Invariant("rules", "the frames on the wire keep every MUST of the specification", ()),
    Invariant("exception", "no frame and no fault makes the engine raise", ()),
)

INVARIANTS: Final[dict[str, Invariant]] = {each.name: each for each in _ALL}
"""All invariants by name."""


@dataclass(frozen=True, slots=True)
class Breach:
    """An invariant that did not hold."""

    invariant: str
    time: int
    """Virtual time at which it was noticed, in nanoseconds."""
    text: str
    """What was found."""
    rule: str = ""
    """The rule of the wire that was broken, if it is one."""

    @property
    def kind(self) -> tuple[str, str]:
        """What two breaches that may have the same cause have in common."""
        return self.invariant, self.rule

    def __str__(self) -> str:
        """One line for a person."""
        return f"{self.invariant} at {self.time / 1e9:.6f} s: {self.text}"
