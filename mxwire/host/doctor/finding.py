"""DoctorFinding: the result of one check, with advice."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DoctorLevel(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    """A host works, but not well, or something could not be tested."""
    PROBLEM = "problem"
    """A host will not work."""


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """Result of one check."""

    check: str
    """Name of the check: a word that never changes."""
    level: DoctorLevel
    text: str
    """Description."""
    advice: str | None = None
    """Remedy."""
    host: str | None = None
    """Address of the remote host concerned; None for this host."""


def ok(check: str, text: str, host: str | None = None) -> DoctorFinding:
    """Make a finding without fault."""
    return DoctorFinding(check, DoctorLevel.OK, text, None, host)


def warning(check: str, text: str, advice: str | None, host: str | None = None) -> DoctorFinding:
    """Make a warning."""
    return DoctorFinding(check, DoctorLevel.WARNING, text, advice, host)


def problem(check: str, text: str, advice: str, host: str | None = None) -> DoctorFinding:
    """Make a problem."""
    return DoctorFinding(check, DoctorLevel.PROBLEM, text, advice, host)
