"""Orderings of contestants that took turns, judged round by round.

A machine that is disturbed for a while disturbs all contestants of a round alike. Therefore contestants are compared
within rounds, and an ordering holds only if nearly all rounds agree (sign test); otherwise it is undecided.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Final, Literal

LEAST_ROUNDS: Final = 9
"""Rounds of a run whose times are judged."""
QUICK_ROUNDS: Final = 2
DOUBT: Final = 0.02
"""Largest probability of an ordering by chance: 8 of 9 rounds have 0.0195."""
Order = Literal["less", "greater", "undecided"]
Agreement = Literal["agree", "differ", "undecided"]


def order(left: Sequence[float], right: Sequence[float], factor: float = 1.0) -> Order:
    """Compare the samples of two contestants round by round: is ``left`` less or greater than ``factor`` times
    ``right``?

    Rounds in which both are equal do not count. The result is ``undecided`` unless chance would produce it with a
    probability of at most :data:`DOUBT`, which takes 6 rounds or more.
    """
    # Not strict: a contestant that was left out has fewer rounds.
    pairs = [(one, factor * other) for one, other in zip(left, right, strict=False)]
    less, greater = sum(one < other for one, other in pairs), sum(one > other for one, other in pairs)
    if chance(less, less + greater) <= DOUBT:
        return "less"
    return "greater" if chance(greater, less + greater) <= DOUBT else "undecided"


def agreement(left: Sequence[float], right: Sequence[float], share: float = 0.15) -> Agreement:
    """Judge round by round whether the samples of two contestants differ by at most ``share`` of the larger one."""
    orders = order(left, right, 1 - share), order(right, left, 1 - share)
    if "less" in orders:
        return "differ"
    return "agree" if orders == ("greater", "greater") else "undecided"


def agreement_counts(found: Sequence[Agreement]) -> dict[str, int]:
    """Return the number of points, and of those with each verdict, for a recording."""
    kinds: tuple[Agreement, ...] = ("agree", "differ", "undecided")
    return {"points": len(found)} | {kind: found.count(kind) for kind in kinds}


def chance(wins: int, rounds: int) -> float:
    """Probability of at least ``wins`` of ``rounds`` if both outcomes of a round are equally likely."""
    return sum(comb(rounds, each) for each in range(wins, rounds + 1)) / float(2**rounds)


def within(left: float, right: float, share: float = 0.15) -> bool:
    """Return whether two values differ by at most ``share`` of the larger one."""
    return abs(left - right) <= share * max(abs(left), abs(right))
