"""A claim, the evidence that it is judged by, and its verdict."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from mxwire.bench.record import Measurement, Recording, Series
from mxwire.bench.rounds import order
from mxwire.report.plot import number_text

Outcome = Literal["confirmed", "refuted", "undecided", "not applicable"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("confirmed", "refuted", "undecided", "not applicable")
How = Literal["counted", "live", "modelled", ""]


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """The outcome of a claim, with its numbers or the reason for their absence."""

    outcome: Outcome
    numbers: str
    how: How = ""
    """Origin of the numbers."""
    disturbed: tuple[str, ...] = ()
    """Measurements during which a polling side lost its processor."""

    @property
    def text(self) -> str:
        """The numbers, and the disturbed measurements."""
        return f"{self.numbers} (disturbed: {'; '.join(self.disturbed)})" if self.disturbed else self.numbers


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

    def point(self, study: str, series: str, name: str, x: float, *, modelled: bool = False) -> Measurement:
        """A measurement; raise :class:`EvidenceError` if it was not recorded."""
        found = self.series(study, series, modelled=modelled).point(name, x)
        if found is None:
            quick = (self._modelled if modelled else self._live)[study].conditions.quick
            how = " by a quick study" if quick else ""
            raise EvidenceError(f"{study}: {series} of {name} at {x:,.15g} was not measured{how}")
        return found

    def series(self, study: str, name: str, *, modelled: bool = False) -> Series:
        """A series; raise :class:`EvidenceError` if it was not recorded, or by a quick study that is not evidence."""
        recording = (self._modelled if modelled else self._live).get(study)
        if recording is None:
            command = "bench claims" if modelled else f"bench {study}"
            raise EvidenceError(f"no recording of mxwire {command} ({'virtual time' if modelled else 'live'})")
        if recording.conditions.quick and not modelled:
            raise EvidenceError(f"the recording of {study} is a quick one: its times mean nothing")
        if recording.conditions.quick and study == "mtu":
            raise EvidenceError(f"the recording of {study} is a quick one: its messages are shorter than the claim's")
        found = recording.named(name)
        if found is None:
            raise EvidenceError(f"{study}: {name} was not measured")
        return found

    def live(self, study: str, series: str, name: str, x: float) -> Measurement:
        """A live measurement."""
        return self.point(study, series, name, x)

    def model(self, series: str, name: str, x: float, study: str = "model") -> float:
        """A value in virtual time that supports a verdict; see :meth:`models`."""
        return self.models(series, (name,), x, study)[name]

    def models(self, series: str, names: Iterable[str], x: float, study: str = "model") -> dict[str, float]:
        """Values in virtual time that support a verdict, by name.

        Raise :class:`FittedError` if the cost table of the recording was fitted to one of them.
        """
        found = {name: self.point(study, series, name, x, modelled=True) for name in names}
        fitted = []
        for each in self._fitted(study):
            if each["series"] == series and each["x"] == x and each["name"] in found:
                model = text_of(found[each["name"]].median)
                fitted.append(f"{each['name']} {text_of(each['value'], each['unit'])} (model: {model})")
        if fitted:
            unit = self.series(study, series, modelled=True).x_unit
            place = f"{x:,.15g} {'B' if unit == 'bytes' else unit}"
            raise FittedError(f"the cost table was fitted to the paper's {series} at {place}: {', '.join(fitted)}")
        return {name: point.median for name, point in found.items()}

    def given(self, series: str, name: str, x: float, study: str = "model") -> float:
        """A value in virtual time as a premise: a claim may start from it, even if the table was fitted to it."""
        return self.point(study, series, name, x, modelled=True).median

    def _fitted(self, study: str) -> list[dict[str, Any]]:
        """The numbers to which the table of a recording was fitted."""
        numbers = self._modelled[study].facts.get("fitted")
        if numbers is None:
            raise EvidenceError(f"{study}: the recording does not name the numbers to which its table was fitted")
        return list(numbers)


Judge = Callable[[ClaimEvidence], ClaimVerdict]


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of a paper, or with ``derived`` one of this project, and the function that judges it."""

    number: str
    """Identifier, such as ``S2-F12-a``."""
    text: str
    paper: str
    """The paper's own figure; empty if it gives none."""
    judge: Judge
    derived: bool = False

    def verdict(self, evidence: ClaimEvidence) -> ClaimVerdict:
        """Judge the claim; without evidence it is not applicable."""
        try:
            return self.judge(evidence)
        except FittedError as error:
            return ClaimVerdict("not applicable", str(error), "modelled")
        except EvidenceError as error:
            return ClaimVerdict("not applicable", str(error))


CLAIMS: Final[dict[str, Claim]] = {}
"""All claims by their identifiers."""


def claims(number: str, text: str, paper: str = "", *, derived: bool = False) -> Callable[[Judge], Judge]:
    """Register a function as the judge of a claim."""

    def registered(judge: Judge) -> Judge:
        CLAIMS[number] = Claim(number, text, paper, judge, derived)
        return judge

    return registered


def unanswered(number: str, text: str, reason: str, paper: str = "", *, derived: bool = False) -> None:
    """Register a claim that these studies cannot answer."""
    CLAIMS[number] = Claim(number, text, paper, lambda _: ClaimVerdict("not applicable", reason), derived)


def disturbed(*measurements: Measurement) -> tuple[str, ...]:
    """The names of the measurements in which a polling side lost its processor in many rounds."""
    return tuple(dict.fromkeys(each.name for each in measurements if "disturbed" in each.marks))


def compared(less: Measurement, greater: Measurement, numbers: str, factor: float = 1.0) -> ClaimVerdict:
    """Judge round by round whether ``less`` is below ``factor`` times ``greater``.

    The verdict is undecided if a measurement was disturbed, which the verdict then names, or if the rounds disagree.
    """
    names = disturbed(less, greater)
    if names:
        return ClaimVerdict("undecided", numbers, "live", names)
    found = order(less.samples, greater.samples, factor)
    outcomes: dict[str, Outcome] = {"less": "confirmed", "greater": "refuted"}
    return ClaimVerdict(outcomes.get(found, "undecided"), numbers, "live")


def combined(
    name: str, left: Measurement, right: Measurement, made: Callable[[float, float], float] = operator.sub
) -> Measurement:
    """A measurement computed from two others, round by round: their difference, or the result of ``made``."""
    samples = tuple(made(one, other) for one, other in zip(left.samples, right.samples, strict=False))
    return Measurement(name, left.unit, samples, marks=tuple(dict.fromkeys((*left.marks, *right.marks))))


def all_of(verdicts: Iterable[ClaimVerdict], numbers: str, how: How = "live") -> ClaimVerdict:
    """The verdict of several conditions: refuted if one is, else undecided if one is."""
    judged = list(verdicts)
    outcomes = {each.outcome for each in judged}
    worst: Outcome = "refuted" if "refuted" in outcomes else "undecided" if "undecided" in outcomes else "confirmed"
    return ClaimVerdict(worst, numbers, how, tuple(dict.fromkeys(name for each in judged for name in each.disturbed)))


def modelled(holds: bool, numbers: str) -> ClaimVerdict:
    """The verdict of a condition in virtual time."""
    return ClaimVerdict("confirmed" if holds else "refuted", numbers, "modelled")


def counted(holds: bool, numbers: str) -> ClaimVerdict:
    """The verdict of a condition on counts."""
    return ClaimVerdict("confirmed" if holds else "refuted", numbers, "counted")


def by_construction(numbers: str, reason: str) -> ClaimVerdict:
    """The verdict of a condition that a model meets because it was built that way."""
    return ClaimVerdict("not applicable", f"{numbers}; {reason}", "modelled")


_KINDS: Final = "TFDI"
"""Tables, figures, discussion, and paths within a host: the order in which claims are listed."""


def _place(number: str) -> tuple[str, int, int, str]:
    """The place of a claim in a list: ``S1-F4-a`` is the first of figure 4 of the second text."""
    seed, _, rest = number.partition("-")
    part, _, letter = rest.partition("-")
    return seed, _KINDS.find(part[0]), int(part[1:] or 0) if letter else 0, letter or part


def selected(names: Iterable[str]) -> Iterator[Claim]:
    """The claims whose identifiers begin with one of ``names``, or all without names."""
    identifiers = [each.upper() for each in names]
    for number, claim in sorted(CLAIMS.items(), key=lambda each: _place(each[0])):
        if not identifiers or any(
            number.upper() == each or number.upper().startswith(f"{each}-") for each in identifiers
        ):
            yield claim


def text_of(value: float, unit: str = "") -> str:
    """A number with three significant digits, and its unit."""
    return number_text(value) + (f" {unit}" if unit else "")


def percent(ratio: float) -> str:
    """A ratio as a gain: ``+12%``."""
    return f"{(ratio - 1) * 100:+.0f}%"


def share_text(share: float) -> str:
    """A share in percent: ``95%``."""
    return f"{share * 100:.0f}%"


def record_of(claim: Claim, verdict: ClaimVerdict) -> dict[str, Any]:
    """A judged claim as an object for JSON."""
    return {
        "claim": claim.number,
        "text": claim.text,
        "paper": claim.paper,
        "derived": claim.derived,
        "verdict": verdict.outcome,
        "numbers": verdict.numbers,
        "disturbed": list(verdict.disturbed),
        "how": verdict.how,
    }
