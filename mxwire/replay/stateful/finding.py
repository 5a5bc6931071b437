"""What a stateful replay finds out: how the live host differs from the recorded one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Whose doing a difference is."""

    PROTOCOL = "protocol"
    """The host itself answers otherwise than the recorded one did."""
    APPLICATION = "application"
    """The application on the host does something else: it sends other messages, posts other receives, is not there."""
    RULE = "rule"
    """A rule of the specification is broken, whatever the recorded host did."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference."""

    kind: Kind
    rule: str
    """The number of the rule that says what is right here; empty where an application is free."""
    field: str
    """The field that differs, as ``Tiny.session``; empty where it is not about a field."""
    frame: int
    """The number in the capture of the frame that was expected; 0 where there was none."""
    expected: str
    found: str

    def __str__(self) -> str:
        """One line for a person."""
        what = f"{self.field}: " if self.field else ""
        where = f" (recorded frame {self.frame})" if self.frame else ""
        return f"{what}{self.found}, expected {self.expected}{where}"
