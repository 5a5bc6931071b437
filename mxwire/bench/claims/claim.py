"""A claim, the evidence that it is judged by, and its verdict."""

from __future__ import annotations

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
    """The outcome of a claim, with its numbers or the reason why there are none."""

    outcome: Outcome
    numbers: str
    how: How = ""
    """Origin of the numbers."""


class EvidenceError(Exception):
    """Evidence that a claim needs was not recorded."""


class ClaimEvidence:
    """Recordings by study. Those in virtual time are apart from live ones."""

    def __init__(self, recordings: Iterable[Recording]) -> None:
        self.recordings = list(recordings)
        self._live: dict[str, Recording] = {}
        self._modelled: dict[str, Recording] = {}
        for each in self.recordings:
            kept = self._modelled if each.conditions.stage.startswith("virtual time") else self._live
            kept[each.study] = each

    def point(self, study: str, series: str, name: str, x: float, *, modelled: bool = False) -> Measurement:
        """A measurement; raise :class:`EvidenceError` if it was not recorded."""
        found = self.series(study, series, modelled=modelled).point(name, x)
        if found is None:
            raise EvidenceError(f"{study}: {series} of {name} at {x:,.15g} was not measured")
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
        """A value in virtual time."""
        return self.point(study, series, name, x, modelled=True).median


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


def disturbed(*measurements: Measurement) -> bool:
    """Return whether a polling side of one of them lacked its processor in many rounds."""
    return any("disturbed" in each.marks for each in measurements)


def compared(less: Measurement, greater: Measurement, numbers: str, factor: float = 1.0) -> ClaimVerdict:
    """Judge round by round whether ``less`` is below ``factor`` times ``greater``; undecided if one was disturbed."""
    if disturbed(less, greater):
        return ClaimVerdict("undecided", f"{numbers} (disturbed)", "live")
    found = order(less.samples, greater.samples, factor)
    outcomes: dict[str, Outcome] = {"less": "confirmed", "greater": "refuted"}
    return ClaimVerdict(outcomes.get(found, "undecided"), numbers, "live")


def all_of(verdicts: Iterable[ClaimVerdict], numbers: str, how: How = "live") -> ClaimVerdict:
    """The verdict of several conditions: refuted if one is, else undecided if one is."""
    outcomes = {each.outcome for each in verdicts}
    worst: Outcome = "refuted" if "refuted" in outcomes else "undecided" if "undecided" in outcomes else "confirmed"
    return ClaimVerdict(worst, numbers, how)


def modelled(holds: bool, numbers: str, *, fitted: str = "") -> ClaimVerdict:
    """The verdict of a condition in virtual time; ``fitted`` names the numbers to which the table was fitted.

    A table confirms nothing to which it was fitted: such a claim is not applicable.
    """
    if fitted:
        return ClaimVerdict("not applicable", f"{numbers}; the table was fitted to {fitted}", "modelled")
    return ClaimVerdict("confirmed" if holds else "refuted", numbers, "modelled")


def selected(names: Iterable[str]) -> Iterator[Claim]:
    """The claims whose identifiers begin with one of ``names``, or all without names."""
    wanted = [each.upper() for each in names]
    for number, claim in CLAIMS.items():
        if not wanted or any(number.upper() == each or number.upper().startswith(f"{each}-") for each in wanted):
            yield claim


def text_of(value: float, unit: str = "") -> str:
    """A number with three significant digits, and its unit."""
    return number_text(value) + (f" {unit}" if unit else "")


def percent(ratio: float) -> str:
    """A ratio as a gain: ``+12 %``."""
    return f"{(ratio - 1) * 100:+.0f} %"


def record_of(claim: Claim, verdict: ClaimVerdict) -> dict[str, Any]:
    """A judged claim as an object for JSON."""
    return {
        "claim": claim.number,
        "text": claim.text,
        "paper": claim.paper,
        "derived": claim.derived,
        "verdict": verdict.outcome,
        "numbers": verdict.numbers,
        "how": verdict.how,
    }
