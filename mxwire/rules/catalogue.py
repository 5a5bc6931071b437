"""All rules of the specification as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Force = Literal["MUST", "SHOULD", "MAY", "fact"]
Judged = Literal["wire", "inside", "not"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the behaviour specification, and who can judge it."""

    number: str
    """As in the specification, for example ``R-SEQ-05``."""
    chapter: str
    """The chapter's title."""
    text: str
    """The rule in one line."""
    force: Force
    """How strictly it is meant; ``fact`` for what describes without demanding."""
    judged: Judged
    """``wire``: from frames; ``inside``: only from inside a host, so tests of the engine judge it; ``not``: by
    nobody."""
    why: str = ""
    """Why the wire does not show it, where ``judged`` is not ``wire``."""
    checker_only: bool = False
    """The rule is of use to a checker of real hosts only: the engine has nothing to implement. ``why`` says why."""


CATALOGUE: Final[dict[str, Rule]] = {}
"""All rules by number, in the order of the specification."""
