"""What the book says of a rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Force = Literal["MUST", "SHOULD", "MAY", "fact"]
Judged = Literal["wire", "inside", "not"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the specification, and who can judge it."""

    number: str
    """As in the specification, for example ``R-SEQ-05``; ``W-6.4`` is section 6.4 of its wire format part."""
    text: str
    """The rule in one line."""
    force: Force
    """How strictly it is meant; ``fact`` for what describes a real host without demanding."""
    judged: Judged
    """``wire``: by the judge, from frames; ``inside``: only by whoever sees into a host, such as a test of the engine;
    ``not``: by nobody."""
    why: str = ""
    """Why the wire does not show it, or nobody judges it, where ``judged`` is not ``wire``."""
    checker_only: bool = False
    """Of use to a checker of real hosts only: an engine has nothing to implement. ``why`` says why."""
    chapter: str = ""
    """The chapter's title."""


def on_wire(number: str, force: Force, text: str) -> Rule:
    """A rule that the judge applies."""
    return Rule(number, text, force, "wire")


def inside(number: str, force: Force, text: str, why: str) -> Rule:
    """A rule of what a host does with its own state."""
    return Rule(number, text, force, "inside", why)


def permits(number: str, force: Force, text: str) -> Rule:
    """A rule that nobody can break."""
    return Rule(number, text, force, "not", "it permits, and demands nothing")


def of_real_hosts(number: str, force: Force, text: str, why: str) -> Rule:
    """A rule that says something of real hosts, which nobody else has to keep, and leaves an engine nothing to do."""
    return Rule(number, text, force, "not", why, checker_only=True)


def chapter(title: str, *rules: Rule) -> tuple[Rule, ...]:
    """The rules of one chapter."""
    return tuple(replace(rule, chapter=title) for rule in rules)
