"""All rules of the specification, read from the table in ``catalogue.md``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, get_args

from mxwire.texts import table_rows

Force = Literal["MUST", "SHOULD", "MAY", "fact"]
Judged = Literal["wire", "inside", "not"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the specification, and how it can be judged."""

    number: str
    """Number in the specification, for example ``R-SEQ-05``; ``W-6.4`` is section 6.4 of its wire format part."""
    text: str
    """The rule in one line."""
    force: Force
    """Strictness of the rule; ``fact`` for a description of real hosts that requires nothing."""
    judged: Judged
    """``wire``: by the judge, from frames; ``inside``: only with a view of the host's state, as in a test of the
    engine; ``not``: not at all."""
    why: str = ""
    """The reason, unless ``judged`` is ``wire``."""
    checker_only: bool = False
    """True if only a checker of real hosts can use the rule, because an engine has nothing to implement. ``why`` gives
    the reason."""
    chapter: str = ""
    """The chapter's title."""


_FORCES: Final[dict[str, Force]] = {each: each for each in get_args(Force)}
_JUDGED: Final[dict[str, tuple[Judged, bool]]] = {
    "wire": ("wire", False),
    "inside": ("inside", False),
    "not": ("not", False),
    "real": ("not", True),
}
"""Words of the table: how the rule is judged, and whether only a checker can use it."""


def _read() -> Iterator[Rule]:
    for chapter, (number, force, word, text, why) in table_rows(__file__, "catalogue.md"):
        judged, checker_only = _JUDGED[word]
        yield Rule(number, text, _FORCES[force], judged, why, checker_only, chapter)


CATALOGUE: Final[dict[str, Rule]] = {each.number: each for each in _read()}
"""All rules by number: those of the wire format, then those of behaviour in the order of the specification."""


def chapters() -> list[str]:
    """Return the titles of the chapters, in order."""
    return list(dict.fromkeys(each.chapter for each in CATALOGUE.values()))
