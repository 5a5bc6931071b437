"""A finding: what was looked at, how it is, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    """It works, but not well, or something could not be tried."""
    PROBLEM = "problem"
    """It will not work."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report."""

    check: str
    """What was looked at: a word that stays the same."""
    level: Level
    text: str
    """How it is."""
    advice: str | None = None
    """What to do about it."""
    host: str | None = None
    """The address of the host that it is about, if it is about another."""


def ok(check: str, text: str, host: str | None = None) -> Finding:
    """Nothing is wrong."""
    return Finding(check, Level.OK, text, None, host)


def warning(check: str, text: str, advice: str | None, host: str | None = None) -> Finding:
    """It could be better."""
    return Finding(check, Level.WARNING, text, advice, host)


def problem(check: str, text: str, advice: str, host: str | None = None) -> Finding:
    """It does not work."""
    return Finding(check, Level.PROBLEM, text, advice, host)
