"""Claims, the evidence that they are judged by, and their verdicts.

A claim is a row of a table: its statement, the paper's figure, and checks. A :class:`Check` bounds a number, which
:func:`live`, :func:`modelled` and :func:`given` take from a recording, and :func:`ratio`, :func:`difference` and
:func:`rate` compute from others. A live number has a value per round, and a bound holds if nearly all rounds agree.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from statistics import median
from typing import Any, Final, Literal

from mxwire.bench.record import VARIED, Measurement, Recording, Series
from mxwire.bench.rounds import order
from mxwire.report.plot import number_text
from mxwire.words import size_text

Outcome = Literal["confirmed", "refuted", "undecided", "by construction", "not applicable"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("confirmed", "refuted", "undecided", "by construction", "not applicable")
How = Literal["counted", "live", "modelled", ""]
MODEL: Final = "model"
"""The study in virtual time that most claims on models use."""


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """The outcome of a claim, with its numbers or the reason for their absence."""

    outcome: Outcome
    numbers: str
    how: How = ""
    """Origin of the numbers."""
    disturbed: tuple[str, ...] = ()
    """Measurements during which a polling side lost its processor."""
    deciding: tuple[str, ...] = ()
    """Guesses of a cost table on which the outcome depends."""
    why: str = ""
    """The reason why the numbers differ from the paper's."""

    @classmethod
    def of(cls, holds: bool, numbers: str, how: How = "counted") -> ClaimVerdict:
        """Return the verdict of a claim that holds or does not."""
        return cls("confirmed" if holds else "refuted", numbers, how)

    @property
    def lines(self) -> list[str]:
        """The numbers, the disturbed measurements, the guesses that decide, and the reason for a difference."""
        remarks = {
            "disturbed": ", ".join(self.disturbed),
            "decided by a guess": ", ".join(self.deciding),
            "reason": self.why,
        }
        return [*self.numbers.split("; "), *(f"{name}: {remark}" for name, remark in remarks.items() if remark)]


class EvidenceError(Exception):
    """Evidence that a claim needs was not recorded."""


class FittedError(EvidenceError):
    """A claim rests on a number to which the cost table was fitted."""


class ClaimEvidence:
    """Recordings by study; those in virtual time are kept separate from live ones."""

    def __init__(self, recordings: Iterable[Recording]) -> None:
        self.recordings = list(recordings)
        self._live: dict[str, Recording] = {}
        self._modelled: dict[str, Recording] = {}
        for each in self.recordings:
            kept = self._modelled if each.conditions.virtual else self._live
            kept[each.study] = each

    @cached_property
    def varied(self) -> list[tuple[str, ClaimEvidence]]:
        """Evidence in which a guess of a cost table has another value, with the name of the guess."""
        found = []
        for study, recording in self._modelled.items():
            for each in recording.facts.get(VARIED, ()):
                evidence = ClaimEvidence(self.recordings)
                evidence._modelled[study] = recording.varied(each["points"])
                found.append((each["guess"], evidence))
        return found

    def recording(self, study: str, *, modelled: bool = False) -> Recording:
        """A recording; raise :class:`EvidenceError` if there is none, or only a quick one, which does not count."""
        recording = (self._modelled if modelled else self._live).get(study)
        if recording is None:
            command = "bench claims" if modelled else f"bench {study}"
            raise EvidenceError(f"no recording of mxwire {command} ({'virtual time' if modelled else 'live'})")
        if recording.conditions.quick and not modelled:
            raise EvidenceError(f"the recording of {study} is a quick one: its times mean nothing")
        if recording.conditions.quick and study == "mtu":
            raise EvidenceError(f"the recording of {study} is a quick one: its messages are shorter than the claim's")
        return recording

    def series(self, study: str, name: str, *, modelled: bool = False) -> Series:
        """A series; raise :class:`EvidenceError` if it was not recorded, or by a quick study that is not evidence."""
        found = self.recording(study, modelled=modelled).named(name)
        if not found:
            raise EvidenceError(f"{study}: {name} was not measured")
        return found

    def point(self, study: str, series: str, name: str, x: float, *, modelled: bool = False) -> Measurement:
        """A measurement; raise :class:`EvidenceError` if it was not recorded."""
        found = self.series(study, series, modelled=modelled).point(name, x)
        if found is None:
            how = " by a quick study" if self.recording(study, modelled=modelled).conditions.quick else ""
            raise EvidenceError(f"{study}: {series} of {name} at {x:,.15g} was not measured{how}")
        return found

    def unfitted(self, study: str, series: str, name: str, x: float) -> Measurement:
        """A point in virtual time that supports a verdict.

        Raise :class:`FittedError` if the cost table of the recording was fitted to it.
        """
        found = self.point(study, series, name, x, modelled=True)
        numbers = self._modelled[study].facts.get("fitted")
        if numbers is None:
            raise EvidenceError(f"{study}: the recording does not name the numbers to which its table was fitted")
        for each in numbers:
            if (each["series"], each["name"], each["x"]) == (series, name, x):
                place = f"{x:,.15g} {self.series(study, series, modelled=True).x_unit}".replace("bytes", "B")
                raise FittedError(
                    f"the cost table was fitted to the paper's {series} at {place}: {name} "
                    f"{text_of(each['value'], each['unit'])} (model: {text_of(found.median)})"
                )
        return found


# Numbers


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of a verdict: a value per round if it is live, otherwise one."""

    label: str
    samples: tuple[float, ...]
    unit: str = ""
    how: How = "modelled"
    disturbed: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """The median of the rounds."""
        return median(self.samples)

    @property
    def text(self) -> str:
        """The number with its label."""
        return f"{self.label} {text_of(self.value, self.unit)}".strip()


Term = Callable[[ClaimEvidence], Quantity]
"""Takes or computes a number; raises :class:`EvidenceError` without evidence."""


def _place(series: Series, name: str, x: float) -> str:
    """A point in words; a series over the unit ``time`` has one point per name."""
    key = series.x_unit
    if key == "time":
        return f"{series.name} of {name}"
    return f"{name} at {size_text(x)}" if key == "bytes" else f"{name} at {x:g} {key}"


def live(study: str, series: str, name: str, x: float) -> Term:
    """A live measurement."""

    def term(evidence: ClaimEvidence) -> Quantity:
        point = evidence.point(study, series, name, x)
        place = _place(evidence.series(study, series), name.replace(", spinning", ""), x)
        marked = (name,) if "disturbed" in point.marks else ()
        return Quantity(place, point.samples, point.unit, "live", marked)

    return term


def modelled(series: str, name: str, x: float, study: str = MODEL, *, premise: bool = False) -> Term:
    """A number in virtual time. Only as a ``premise`` may it be one to which the cost table was fitted."""

    def term(evidence: ClaimEvidence) -> Quantity:
        found = evidence.point(study, series, name, x, modelled=True) if premise else None
        point = found or evidence.unfitted(study, series, name, x)
        return Quantity(_place(evidence.series(study, series, modelled=True), name, x), point.samples, point.unit)

    return term


given = partial(modelled, premise=True)
"""A number in virtual time from which a claim starts, even if the table was fitted to it."""


def point_term(heading: str, name: str, place: str) -> Term:
    """The term of a point in the table of checks (``checks.md``), by the heading of its section."""
    kind, study, series = heading.split(": ")
    x = json.loads(place)
    return live(study, series, name, x) if kind == "live" else modelled(series, name, x, study, premise=kind == "given")


def computed(
    made: Callable[..., float], label: Callable[..., str], *terms: Term, unit: str = "", how: How = "modelled"
) -> Term:
    """A number computed from others, round by round; ``label`` makes its text from the others."""

    def term(evidence: ClaimEvidence) -> Quantity:
        found = [each(evidence) for each in terms]
        samples = tuple(made(*values) for values in zip(*(each.samples for each in found), strict=False))
        names = tuple(dict.fromkeys(name for each in found for name in each.disturbed))
        kind: How = "live" if any(each.how == "live" for each in found) else how
        return Quantity(label(*found), samples, unit, kind, names)

    return term


def ratio(one: Term, other: Term) -> Term:
    """The first number over the second one."""
    return computed(operator.truediv, lambda left, right: f"{left.text} / {right.text}:", one, other)


def difference(one: Term, other: Term, label: str = "") -> Term:
    """The first number minus the second one."""

    def term(evidence: ClaimEvidence) -> Quantity:
        made = computed(operator.sub, lambda left, right: label or f"{left.text} - {right.text}:", one, other)
        return replace(made(evidence), unit=one(evidence).unit)

    return term


def rate(term: Term, length: int) -> Term:
    """The rate of messages of a length in MiB/s, from their time in µs."""
    return computed(lambda time: length / 1.048576 / time, lambda each: each.label, term, unit="MiB/s")


def mean_of(label: str, *terms: Term, unit: str = "") -> Term:
    """The mean of numbers."""
    return computed(lambda *values: sum(values) / len(values), lambda *_: label, *terms, unit=unit)


def least_of(*terms: Term, unit: str = "µs") -> Term:
    """The least number of each round."""

    def label(*found: Quantity) -> str:
        return min(found, key=lambda each: each.value).label

    return computed(lambda *values: min(values), label, *terms, unit=unit)


# Checks


@dataclass(frozen=True, slots=True)
class Check:
    """Bounds of a number, both included."""

    term: Term
    least: float = float("-inf")
    most: float = float("inf")

    def verdict(self, evidence: ClaimEvidence) -> ClaimVerdict:
        """Judge the number; it is undecided if it was disturbed, or if the rounds disagree."""
        found = self.term(evidence)
        bounds = [f"at least {self.least:g}"] if self.least > float("-inf") else []
        bounds += [f"at most {self.most:g}"] if self.most < float("inf") else []
        numbers = f"{found.text} ({', '.join(bounds)})" if bounds else found.text
        if found.disturbed:
            return ClaimVerdict("undecided", numbers, found.how, found.disturbed)
        return ClaimVerdict(self._outcome(found), numbers, found.how)

    def _outcome(self, found: Quantity) -> Outcome:
        if found.how != "live":
            return "confirmed" if self.least <= found.value <= self.most else "refuted"
        sides = []
        for bound, wanted in ((self.least, "greater"), (self.most, "less")):
            if abs(bound) < float("inf"):
                verdict = order(found.samples, [bound] * len(found.samples))
                sides.append("confirmed" if verdict == wanted else "undecided" if verdict == "undecided" else "refuted")
        return _worst(sides)


Judge = Callable[[ClaimEvidence], ClaimVerdict]


def ordered(*terms: Term) -> tuple[Check, ...]:
    """Each number is at most the next one."""
    return tuple(Check(ratio(one, other), most=1) for one, other in pairwise(terms))


def _worst(outcomes: Sequence[str]) -> Outcome:
    worst: Outcome
    for worst in ("refuted", "undecided", "by construction", "not applicable"):
        if worst in outcomes:
            return worst
    return "confirmed"


def all_of(verdicts: Iterable[ClaimVerdict]) -> ClaimVerdict:
    """The verdict of several conditions: refuted if one is, else undecided if one is."""
    judged = list(verdicts)
    names = tuple(dict.fromkeys(name for each in judged for name in each.disturbed))
    return ClaimVerdict(
        _worst([each.outcome for each in judged]), "; ".join(each.numbers for each in judged), judged[0].how, names
    )


# Claims


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of a paper, or with ``derived`` one of this project, and the checks that judge it."""

    number: str
    """Identifier, such as ``S2-F12-a``."""
    text: str
    paper: str = ""
    """The paper's own figure; empty if it gives none."""
    checks: Sequence[Check] | Judge = ()
    """The checks, or a function that judges."""
    needs: str = ""
    """Without checks: the reason why no study can judge it."""
    derived: bool = False
    built: str = ""
    """The reason why the model contains this as a constant, so that its numbers show nothing."""
    note: str = ""
    """A remark about the numbers."""
    differs: str = ""
    """The reason why the numbers differ from the paper's, if the claim is refuted."""

    def verdict(self, evidence: ClaimEvidence) -> ClaimVerdict:
        """Judge the claim; without evidence it is not applicable, and undecided if a guess decides it."""
        found = self._judged(evidence)
        if found.how == "modelled" and found.outcome in ("confirmed", "refuted"):
            others = [name for name, varied in evidence.varied if self._judged(varied).outcome != found.outcome]
            if others:
                return replace(found, outcome="undecided", deciding=tuple(dict.fromkeys(others)))
        return replace(found, why=self.differs) if found.outcome == "refuted" else found

    def _judged(self, evidence: ClaimEvidence) -> ClaimVerdict:
        if self.needs:
            return ClaimVerdict("not applicable", self.needs)
        try:
            if callable(self.checks):
                return self.checks(evidence)
            found = all_of(each.verdict(evidence) for each in self.checks)
        except FittedError as error:
            return ClaimVerdict("not applicable", str(error), "modelled")
        except EvidenceError as error:
            return ClaimVerdict("not applicable", str(error))
        if self.note:
            found = replace(found, numbers=f"{found.numbers}; {self.note}")
        if self.built:
            return replace(found, outcome="by construction", numbers=f"{found.numbers}; {self.built}")
        return found


def text_of(value: float, unit: str = "") -> str:
    """A number with three significant digits, and its unit."""
    return number_text(value) + (f" {unit}" if unit else "")


def record_of(claim: Claim, verdict: ClaimVerdict) -> dict[str, Any]:
    """A judged claim as an object for JSON."""
    return {
        "claim": claim.number,
        "text": claim.text,
        "paper": claim.paper,
        "derived": claim.derived,
        "verdict": verdict.outcome,
        "numbers": verdict.numbers,
        "reason": verdict.why,
        "disturbed": list(verdict.disturbed),
        "deciding": list(verdict.deciding),
        "how": verdict.how,
    }
