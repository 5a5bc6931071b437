"""How a scenario ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mxwire.frames import FrameBatch

if TYPE_CHECKING:
    from mxwire.scenarios.script import Script


class Verdict(StrEnum):
    """What a scenario says of a host."""

    PASS = "pass"
    """Everything was as it must be."""
    NON_STRICT = "non-strict"
    """Nothing was wrong that a peer suffers from, but not all was as it should be; or it came late."""
    FAIL = "fail"
    """Something was not as it must be."""
    INFO = "info"
    """The host was free, and the outcome says what it did."""
    MISSING = "missing"
    """The host has not sent a single frame."""
    SKIPPED = "skipped"
    """Not played; the reason says why."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that was not as expected."""

    field: str
    expected: str
    found: str

    def __str__(self) -> str:
        """In words."""
        return f"{self.field} is {self.found}, expected {self.expected}"


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that was noticed on the way, with the line of the step."""

    line: int
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """How a scenario ended, and all frames of it."""

    script: Script
    verdict: Verdict
    dialect: str
    profile: str = ""
    """The host's profile, where it was simulated."""
    reason: str = ""
    """One line: why it did not pass; empty where it did."""
    line: int | None = None
    """The line of the step that failed."""
    expected: str = ""
    """What that step has expected."""
    found: str = ""
    """What came instead."""
    differences: tuple[Difference, ...] = ()
    """Field by field, where the packet was the right one."""
    remarks: tuple[Remark, ...] = ()
    """What was noticed on the way: what should have been, and what the host was free to do."""
    frames: FrameBatch = field(default_factory=lambda: FrameBatch.from_frames([]))
    """All frames, with nanoseconds since the beginning or, of a live host, since 1970."""
    sent: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    """Which of them the tester has sent; shape ``(n,)``."""
    failed_frame: int | None = None
    """The place in ``frames`` of the one that was not as expected."""
    seed: int = 0
    duration_ns: int = 0

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return self.verdict in (Verdict.PASS, Verdict.NON_STRICT, Verdict.INFO)

    def as_object(self) -> dict[str, Any]:
        """The outcome with stable keys."""
        return {
            "name": self.script.name,
            "file": self.script.file,
            "title": self.script.title,
            "rules": list(self.script.rules),
            "dialect": self.dialect,
            "profile": self.profile,
            "seed": self.seed,
            "verdict": self.verdict.value,
            "reason": self.reason,
            "line": self.line,
            "expected": self.expected,
            "found": self.found,
            "differences": [
                {"field": each.field, "expected": each.expected, "found": each.found} for each in self.differences
            ],
            "remarks": [{"line": each.line, "text": each.text} for each in self.remarks],
            "frames": len(self.frames),
            "duration_ms": self.duration_ns / 1e6,
        }
