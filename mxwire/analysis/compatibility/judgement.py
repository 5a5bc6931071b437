"""Judge whether two builds can communicate, per class of messages, even from incomplete evidence."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final, Literal

from mxwire.analysis.compatibility.builds import NO_PIPELINE, Build
from mxwire.analysis.compatibility.reach import NO_END, Reach, reach
from mxwire.wire.numbers import SMALL_MAXIMUM

if TYPE_CHECKING:
    from mxwire.analysis.compatibility.sides import Side

MessageClass = Literal["discovery", "connect", "tiny", "small", "medium", "large"]
Word = Literal["yes", "partly", "no", "unknown"]

CLASSES: Final[dict[MessageClass, str]] = {
    "discovery": "announcements, and host names",
    "connect": "connects",
    "tiny": "0 to 32 bytes",
    "small": "33 to 128 bytes",
    "medium": "129 to 32768 bytes",
    "large": "longer ones, and synchronous sends",
}
"""Exchanges between two hosts, in the order in which they take place."""
_WORSE: Final[dict[Word, int]] = {"yes": 0, "unknown": 1, "partly": 2, "no": 3}


@dataclass(frozen=True, slots=True)
class Answer:
    """The result for one class of messages: whether it passes in both directions."""

    word: Word
    why: str = ""
    change: str = ""
    """The change that makes the class work."""


YES: Final = Answer("yes")

Judgement = dict[MessageClass, Answer]


def judge(one: Build, other: Build) -> Judgement:
    """Return whether two builds can communicate."""
    apart = _apart(one, other)
    if apart is not None:
        return apart
    directions = ("→", reach(one, other)), ("←", reach(other, one))
    return {
        "discovery": YES,
        "connect": YES,
        "tiny": YES,
        "small": YES,
        "medium": _worst([_medium(arrow, each) for arrow, each in directions]),
        "large": _worst([_large(arrow, each) for arrow, each in directions]),
    }


def _apart(one: Build, other: Build) -> Judgement | None:
    """Return the judgement of builds that cannot decode each other's headers; None for others."""
    if one.ethertype != other.ethertype:
        nothing = Answer(
            "no",
            f"one sends EtherType 0x{one.ethertype:04X}, the other 0x{other.ethertype:04X}",
            "build both hosts with the same EtherType; with MX only 0x86DF works",
        )
        return dict.fromkeys(CLASSES, nothing)
    if one.swapped != other.swapped:
        nothing = Answer(
            "no",
            "one sends integers in network order, the other in little-endian order",
            "build both hosts with the endian option on; MX needs it",
        )
        heard = Answer("partly", f"hosts and names are found, their indexes misread: {nothing.why}", nothing.change)
        return dict.fromkeys(CLASSES, nothing) | {"discovery": heard}
    return None


def _medium(arrow: str, direction: Reach) -> Answer:
    if direction.medium >= direction.threshold:
        return YES
    if direction.medium <= SMALL_MAXIMUM:
        return Answer("no", f"{arrow} {direction.why_medium}", direction.change_medium)
    return Answer(
        "partly", f"{arrow} up to {direction.medium:.0f} bytes: {direction.why_medium}", direction.change_medium
    )


def _large(arrow: str, direction: Reach) -> Answer:
    if direction.large == NO_END:
        return YES
    if direction.large <= 0:
        return Answer("no", f"{arrow} {direction.why_large}", direction.change_large)
    if direction.large <= direction.threshold:
        only = f"only synchronous sends of up to {direction.large:.0f} bytes"
        return Answer("no", f"{arrow} {only}: {direction.why_large}", direction.change_large)
    return Answer("partly", f"{arrow} up to {direction.large:.0f} bytes: {direction.why_large}", direction.change_large)


def _worst(answers: Sequence[Answer]) -> Answer:
    """Return the worst result in ``answers``, since a class must pass in both directions."""
    word = max((each.word for each in answers), key=lambda each: _WORSE[each])
    why = "; ".join(dict.fromkeys(each.why for each in answers if each.why))
    return Answer(word, why, "; ".join(dict.fromkeys(each.change for each in answers if each.change)))


def judge_sides(one: Side, other: Side, arrived: Collection[MessageClass] = ()) -> Judgement:
    """Return whether two sides can communicate, from incomplete evidence: undetermined results are unknown.

    ``arrived`` lists the classes of messages that the capture shows to arrive: builds that cannot pass them are
    excluded.
    """
    pairs = [*product(one.candidates, other.candidates)]
    judged = [(pair, judge(*pair)) for pair in pairs]
    # A capture that contradicts every pair of builds excludes none of them.
    judged = [each for each in judged if all(each[1][name].word != "no" for name in arrived)] or judged
    every = [judgement for _, judgement in judged]
    # Whether a receiver ignores the pipeline never shows. If nothing else is open, this is the reason to name.
    usual = [judgement for pair, judgement in judged if not any(build.pipeline_ignored for build in pair)]
    open_questions = "; ".join(f"{each.label}: {reason}" for each in (one, other) for reason in each.unknown)
    found: Judgement = {}
    for each in CLASSES:
        answers = [judgement[each] for judgement in every]
        if len({answer.word for answer in answers}) == 1:
            found[each] = answers[0]
        else:
            settled = len({judgement[each].word for judgement in usual}) == 1
            found[each] = Answer("unknown", NO_PIPELINE if settled else open_questions)
    return found
