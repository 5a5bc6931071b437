"""Findings of a stateful replay: differences between the live host and the recorded one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """Cause of a difference."""

    PROTOCOL = "protocol"
    """The host itself answers differently."""
    APPLICATION = "application"
    """The application on the host differs: it sends other messages, posts other receives, or is absent."""
    RULE = "rule"
    """A rule of the specification is broken, whatever the recorded host did."""


@dataclass(frozen=True, slots=True)
class ReplayFinding:
    """One difference."""

    kind: Cause
    rule: str
    """Number of the rule that requires the recorded behaviour; empty if applications are free to choose."""
    field: str
    """The field that differs, for example ``Tiny.session``; empty if none."""
    frame: int
    """Number in the capture of the expected frame; 0 if there is none."""
    expected: str
    found: str

    def __str__(self) -> str:
        """Describe the difference in one line."""
        what = f"{self.field}: " if self.field else ""
        where = f" (recorded frame {self.frame})" if self.frame else ""
        return f"{what}{self.found}, expected {self.expected}{where}"
