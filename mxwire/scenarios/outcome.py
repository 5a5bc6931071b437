"""The outcome of a scenario."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mxwire.frames import FrameBatch

if TYPE_CHECKING:
    from mxwire.scenarios.script import Script


class ScenarioVerdict(StrEnum):
    """The verdict of a scenario on a host."""

    PASS = "pass"
    """All expectations were met."""
    NON_STRICT = "non-strict"
    """A SHOULD was not met, or a frame was late; neither harms a peer."""
    FAIL = "fail"
    """A MUST was not met."""
    INFO = "info"
    """The behaviour is optional; the outcome reports it."""
    MISSING = "missing"
    """The host did not send a single frame."""
    SKIPPED = "skipped"
    """Not played; ``reason`` gives the cause."""


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field that did not meet its condition."""

    field: str
    expected: str
    found: str

    def __str__(self) -> str:
        """Describe the difference in words."""
        return f"{self.field} is {self.found}, expected {self.expected}"


@dataclass(frozen=True, slots=True)
class Remark:
    """An observation during the run, with the line of its step."""

    line: int
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class ScenarioOutcome:
    """The outcome of a scenario, with all its frames."""

    script: Script
    verdict: ScenarioVerdict
    dialect: str
    profile: str = ""
    """The host's profile, if it was simulated."""
    reason: str = ""
    """One line with the cause, unless the scenario passed."""
    line: int | None = None
    """Line of the step that failed."""
    expected: str = ""
    """The expectation of that step."""
    found: str = ""
    """The frame that came instead."""
    differences: tuple[FieldDifference, ...] = ()
    """Differences by field, if the packet was the expected one."""
    remarks: tuple[Remark, ...] = ()
    """Observations: SHOULDs that were not met, and optional behaviour."""
    frames: FrameBatch = field(default_factory=lambda: FrameBatch.from_frames([]))
    """All frames; timestamps are nanoseconds since the start or, with a live host, since 1970."""
    sent: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    """Mask of the frames sent by the tester; shape ``(n,)``."""
    failed_frame: int | None = None
    """Index in ``frames`` of the frame that did not meet its expectation."""
    counted: dict[str, int] = field(default_factory=dict)
    """Frames that the host dropped, by counter under its name in the language; empty for live hosts."""
    seed: int = 0
    duration_ns: int = 0

    @property
    def passed(self) -> bool:
        """True if the host passed: pass, non-strict or info."""
        return self.verdict in (ScenarioVerdict.PASS, ScenarioVerdict.NON_STRICT, ScenarioVerdict.INFO)

    def as_object(self) -> dict[str, Any]:
        """Return the outcome as an object for JSON, with stable keys."""
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
            "differences": [asdict(each) for each in self.differences],
            "remarks": [asdict(each) for each in self.remarks],
            "counted": self.counted,
            "frames": len(self.frames),
            "duration_ms": self.duration_ns / 1e6,
        }
