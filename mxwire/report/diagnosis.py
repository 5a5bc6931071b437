"""Findings of a diagnosis, of one capture or of many, as JSON and as blocks of a report; the catalogue of diagnoses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol, TypeVar, get_args

from mxwire.analysis.diagnosis import CATALOGUE, Diagnosis, Evidence, Examination, Finding, Party, catalogue
from mxwire.analysis.diagnosis.facts import Facts
from mxwire.analysis.diagnosis.finding import SEVERITIES, Confidence, seconds
from mxwire.analysis.diagnosis.losses import DirectionLoss
from mxwire.ethernet import mac_text
from mxwire.report.document import Block, Heading, Listing, Paragraph, Table, tabulate
from mxwire.report.pointers import SEE_FRAME, left_out_text
from mxwire.report.result import Result, column, internal, result, table
from mxwire.words import count_of

SHOWN: Final = 40
"""Maximum number of merged findings in the table."""
_NAMES_SHOWN = 16
_LOSSES_SHOWN = 64
NO_COST = "cost unknown"
SEE = f"mxwire diagnose --explain ID explains a diagnosis and how to distinguish it; {SEE_FRAME}"


# Results


@result()
class AffectedParty(Result):
    """A host, or an endpoint of it."""

    host: str
    name: str | None
    endpoint: int | None

    @classmethod
    def of(cls, party: Party, facts: Facts) -> AffectedParty:
        """Describe a party, with its name if the capture has it."""
        return cls(mac_text(party.address), facts.name(party.address), party.endpoint)

    def __str__(self) -> str:
        """Return the name, or else the address, and the endpoint if there is one."""
        return (self.name or self.host) + ("" if self.endpoint is None else f" ep {self.endpoint}")


@result()
class ListedEvidence(Result):
    """An item of evidence."""

    text: str
    weight: str
    """proof, sign or hint."""
    frames: list[int]
    """If there are many, only the first."""
    time_ns: int | None
    since_start_ns: int | None
    file: str

    @classmethod
    def of(cls, shown: Evidence, facts: Facts, file: str, frames: list[int]) -> ListedEvidence:
        """Describe evidence in ``frames`` of ``file``."""
        since = None if shown.time_ns is None else facts.since_start(shown.time_ns)
        return cls(shown.text, shown.weight, frames, shown.time_ns, since, file)

    def __str__(self) -> str:
        """Return one line; the time is that of the first frame only, so it is printed beside that number."""
        at = "" if self.since_start_ns is None else f"at {self.since_start_ns / 1e9:.6f} s"
        if not self.frames:
            return f"{self.text} ({at})" if at else self.text
        first, *others = map(str, self.frames)
        if not at:
            return f"{self.text} (frame{'s' if others else ''} {', '.join([first, *others])})"
        also = f"; also {', '.join(others)}" if others else ""
        return f"{self.text} (frame {first} {at}{also})"


@result("finding")
class DiagnosedTrouble(Result):
    """A finding, with its cost, evidence and advice."""

    file: str
    id: str
    title: str
    group: str
    severity: str
    confidence: str
    cost_ns: int | None
    """Time for which transfers stalled; null if unknown."""
    cost_frames: int | None
    """Additional frames; null if unknown."""
    concerns: list[AffectedParty]
    summary: str
    evidence: list[ListedEvidence]
    doubts: list[str]
    """Circumstances that weaken the evidence."""
    advice: list[str]

    @classmethod
    def of(cls, found: Finding, facts: Facts, located: FrameLocator) -> DiagnosedTrouble:
        """Describe a finding."""
        diagnosis = CATALOGUE[found.id]
        return cls(
            located([number for each in found.evidence for number in each.frames])[0],
            found.id,
            diagnosis.title,
            diagnosis.group,
            found.severity,
            found.confidence,
            found.cost.ns,
            found.cost.frames,
            [AffectedParty.of(each, facts) for each in found.concerns],
            found.summary,
            [ListedEvidence.of(each, facts, *located(each.frames)) for each in found.evidence],
            list(found.doubts),
            list(found.advice),
        )

    @property
    def hosts(self) -> str:
        """The parties that it concerns, as text."""
        return ", ".join(map(str, self.concerns))


class FrameLocator(Protocol):
    """The file of frames of a capture."""

    def __call__(self, frames: Any, /) -> tuple[str, list[int]]:
        """Return the file of the first of ``frames``, and their numbers in it."""


@result()
class LossyDirection(Result):
    """Frames that were lost from one host to another, at least."""

    source: str = column("from", code=True)
    destination: str = column("to", code=True)
    sent: int = column(right=True)
    """Frames known to have been sent."""
    lost: int
    """``lost_before`` and ``lost_behind`` the point of capture."""
    lost_before: int = column(right=True)
    lost_behind: int = column(right=True)
    percent: float = column(right=True, text=lambda percent: f"{percent:.2f}%")

    @classmethod
    def of(cls, loss: DirectionLoss) -> LossyDirection:
        """Describe the losses of a direction."""
        hosts = mac_text(loss.source), mac_text(loss.destination)
        return cls(*hosts, loss.sent, loss.lost, loss.before, loss.behind, round(loss.percent, 4))


@result("summary")
class ExaminedCapture(Result):
    """The scope of an examination, and its findings."""

    file: str
    frames: int
    messages: int
    findings: int
    findings_left_out: int
    """Findings that the filter left out."""
    ids: list[str]
    loss: list[LossyDirection]
    not_judged: list[str]
    """The limits of the examination."""
    found: list[DiagnosedTrouble] = internal()
    duration_ns: int = internal()
    lossy: list[LossyDirection] = internal()
    """The directions with losses."""

    @classmethod
    def of(
        cls, file: str, examination: Examination, found: list[Finding], left_out: int, located: FrameLocator
    ) -> ExaminedCapture:
        """Describe an examination; ``left_out`` is the number of findings that the user's filter left out."""
        facts, losses = examination.facts, examination.losses()
        return cls(
            file,
            facts.follower.frames,
            facts.follower.messages,
            len(found),
            left_out,
            list(dict.fromkeys(each.id for each in found)),
            [LossyDirection.of(each) for each in losses[:_LOSSES_SHOWN]],
            examination.limits(),
            [DiagnosedTrouble.of(each, facts, located) for each in found],
            facts.duration_ns,
            [LossyDirection.of(each) for each in losses if each.lost][:_LOSSES_SHOWN],
        )

    @property
    def problems(self) -> int:
        """Number of findings that are errors or warnings."""
        return sum(each.severity != "note" for each in self.found)


@result("merged_finding")
class MergedTrouble(Result):
    """The findings of many captures with the same diagnosis and hosts, with the sum of their costs."""

    id: str = column("finding", code=True)
    severity: str = column()
    hosts: str = column(wraps=True)
    captures: int = column(right=True)
    cost_ns: int | None
    cost_frames: int | None
    summary: str
    file: str
    frames: list[int]
    advice: list[str]
    cost: str = column(right=True, internal=True)

    @classmethod
    def of(cls, same: list[DiagnosedTrouble]) -> MergedTrouble:
        """Merge findings; the most costly is the example."""
        worst = max(same, key=lambda each: (each.cost_ns or 0, each.cost_frames or 0))
        time, frames = (_sum(costs) for costs in zip(*((each.cost_ns, each.cost_frames) for each in same), strict=True))
        return cls(
            worst.id,
            # The severity may differ between captures, and the order of severities begins with the worst.
            min((each.severity for each in same), key=_severity),
            worst.hosts,
            # A capture may have several findings of one diagnosis about the same hosts.
            len({each.file for each in same}),
            time,
            frames,
            worst.summary,
            worst.file,
            # Some evidence is about no single frame, for example a rate.
            next((each.frames for each in worst.evidence if each.frames), []),
            worst.advice,
            seconds(time) if time is not None else count_of(frames, "frame") if frames else "-",
        )


def _sum(values: Iterable[int | None]) -> int | None:
    known = [each for each in values if each is not None]
    return sum(known) if known else None


def _severity(name: str) -> int:
    return [*SEVERITIES].index(name)  # type: ignore[arg-type]  # a text, also if it was a Severity


def merged_troubles(found: Iterable[DiagnosedTrouble]) -> list[MergedTrouble]:
    """Merge the findings of many captures by diagnosis and hosts, the most costly first, then by severity."""
    groups: dict[tuple[str, str], list[DiagnosedTrouble]] = defaultdict(list)
    for each in found:
        groups[each.id, each.hosts].append(each)

    def rank(each: MergedTrouble) -> tuple[object, ...]:
        return -(each.cost_ns or 0), _severity(each.severity), -(each.cost_frames or 0), each.id, each.hosts

    return sorted(map(MergedTrouble.of, groups.values()), key=rank)


# Blocks


def merged_blocks(title: str, merged: list[MergedTrouble]) -> list[Block]:
    """The findings of many captures by cost, and the worst example of each."""
    if not merged:
        return [Heading(title), Paragraph("Nothing found.")]
    lines = []
    for each in merged[:SHOWN]:
        frames = f", frame {each.frames[0]}" if each.frames else ""
        lines.append(f"{each.id}: {each.file}{frames}: {each.summary}")
    blocks: list[Block] = [
        Heading(title),
        table(MergedTrouble, merged[:SHOWN], "cost", "severity", "id", "hosts", "captures"),
        Heading("The worst capture of each", 3),
        Listing(tuple(lines)),
    ]
    if len(merged) > SHOWN:
        blocks.append(Paragraph(f"{len(merged) - SHOWN} more: --json lists all."))
    return blocks


def blocks(examined: ExaminedCapture, *, named: bool = False) -> list[Block]:
    """The findings of a capture, grouped by diagnosis with one heading each, and the limits of the examination.

    If hosts are ``named``, addresses are not explained.
    """
    shown: list[Block] = [Heading(examined.file), Paragraph(_at_a_glance(examined))]
    if examined.findings_left_out:
        shown.append(Paragraph(left_out_text(examined.findings_left_out)))
    names = _names(examined.found)
    if names and not named:
        shown.append(Paragraph(names))
    for place, same in enumerate(grouped(examined.found), 1):
        shown += _trouble(place, same, examined)
    if examined.lossy:
        columns = ("source", "destination", "sent", "lost_before", "lost_behind", "percent")
        shown += [Heading("Loss per direction", 3), table(LossyDirection, examined.lossy, *columns), _LOWER_BOUNDS]
    if examined.not_judged:
        shown += [Heading("Not judged", 3), Listing(tuple(map(_sentence, examined.not_judged)))]
    if examined.found:
        shown.append(Paragraph(SEE))
    return shown


_LOWER_BOUNDS: Final = Paragraph(
    "Lower bounds: frames lost before the point of capture were requested and never passed; those lost behind it "
    "passed and were repeated. Losses after which nothing is repeated do not show."
)


def _at_a_glance(examined: ExaminedCapture) -> str:
    scope = f"{count_of(examined.frames, 'frame')} and {count_of(examined.messages, 'message')} examined"
    if not examined.found:
        return f"{scope}: nothing found."
    titles = [(same[0].title, _cost(same[0], examined)) for same in grouped(examined.found)]
    named = (f"{_within(title)}{f' ({cost})' if cost != NO_COST else ''}" for title, cost in titles)
    # Two troubles may have stalled the same transfer at the same time.
    overlapping = " Costs may overlap: do not add them." if sum(cost != NO_COST for _, cost in titles) > 1 else ""
    return f"{scope}: {'; '.join(named)}.{overlapping}"


def _within(title: str) -> str:
    """The title as it stands within a sentence: without its capital, unless its first word is an acronym."""
    word = title.split()[0]
    # A single capital is an article, "A", not an acronym.
    return title if len(word) > 1 and word.isupper() else title[:1].lower() + title[1:]


def cost_text(ns: int | None, frames: int | None, duration_ns: int, total: int) -> str:
    """A cost relative to the duration, or to the ``total`` of frames, of the capture; ``cost unknown`` without one."""
    if ns is not None:
        return f"cost {seconds(ns)} of {seconds(duration_ns)}"
    return f"cost {frames} of {count_of(total, 'frame')}" if frames else NO_COST


def _cost(found: DiagnosedTrouble, examined: ExaminedCapture) -> str:
    return cost_text(found.cost_ns, found.cost_frames, examined.duration_ns, examined.frames)


def _names(found: list[DiagnosedTrouble]) -> str:
    """The names of the hosts affected by ``found``, if the capture contains them."""
    known = sorted({(party.host, party.name) for each in found for party in each.concerns if party.name})
    named = [f"{host} is {name}" for host, name in known]
    return f"{', '.join(named[:_NAMES_SHOWN])}." if named else ""


class _Diagnosed(Protocol):
    @property
    def id(self) -> str:
        """Name of the diagnosis."""


_Grouped = TypeVar("_Grouped", bound=_Diagnosed)


def grouped(found: Iterable[_Grouped]) -> Iterator[list[_Grouped]]:
    """Group findings by diagnosis, keeping their order."""
    groups: dict[str, list[_Grouped]] = {}
    for each in found:
        groups.setdefault(each.id, []).append(each)
    yield from groups.values()


def _trouble(place: int, same: list[DiagnosedTrouble], examined: ExaminedCapture) -> Iterator[Block]:
    first = same[0]
    costs = [_cost(each, examined) for each in same]
    yield Heading(f"{place}. {first.title}  [{first.id}]", 3)
    # Sorted from the lowest, because a heading with only one confidence would hide that of the other findings.
    confidences = [known for known in reversed(get_args(Confidence)) if any(each.confidence == known for each in same)]
    ends = " to ".join(dict.fromkeys((confidences[0], confidences[-1])))
    yield Paragraph(f"Severity {first.severity}, confidence {ends}, {costs[0]}.")
    # Only what differs from the line above is repeated, since most findings of a diagnosis agree.
    for each, cost in zip(same, costs, strict=True):
        differs = [f"confidence {each.confidence}"] if len(confidences) > 1 else []
        differs += [cost] if cost != costs[0] else []
        yield Paragraph(_sentence(f"{each.summary} ({', '.join(differs)})" if differs else each.summary))
        yield Listing((*map(str, each.evidence), *(f"less certain: {doubt}" for doubt in each.doubts)))
    # In order, and without repetition: advice differs only in the values of a case.
    advice = dict.fromkeys(text for each in same for text in each.advice)
    yield Paragraph("What to do:")
    yield Listing(tuple(advice), numbered=True)


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:] if text[:3].isalpha() else text
    return text if text.endswith(".") else f"{text}."


def headline(found: Finding) -> str:
    """A finding as one line, for live monitoring."""
    return f"{found.id} ({found.severity}, {found.confidence}): {found.summary}"


# The catalogue


def diagnosis_record(diagnosis: Diagnosis) -> dict[str, Any]:
    """The JSON object of an entry of the catalogue."""
    return {
        "record": "diagnosis",
        "id": diagnosis.id,
        "title": diagnosis.title,
        "group": diagnosis.group,
        "users_see": diagnosis.text.users_see,
        "capture_shows": diagnosis.text.capture_shows,
        "distinction": diagnosis.text.distinction,
        "advice": advice_of(diagnosis),
        "needs": sorted(diagnosis.text.needs),
        "follows_from": sorted(diagnosis.text.follows_from),
    }


def catalogue_table() -> Table:
    """All diagnoses as a table."""
    return tabulate("`id, ~title", ((each.id, each.title) for each in catalogue()))


def explanation(diagnosis: Diagnosis) -> list[Block]:
    """The catalogue entry of a diagnosis as blocks."""
    shown: list[Block] = [
        Heading(f"{diagnosis.id}: {diagnosis.title}"),
        Paragraph(f"Symptoms: {diagnosis.text.users_see}"),
        Paragraph(f"In the capture: {diagnosis.text.capture_shows}"),
        Paragraph(f"Distinguish it {_within(diagnosis.text.distinction)}"),
        Paragraph("What to do:"),
        Listing(advice_of(diagnosis), numbered=True),
    ]
    if diagnosis.text.needs:
        shown.append(Paragraph(f"Needs a capture with: {', '.join(sorted(diagnosis.text.needs))}."))
    if diagnosis.text.follows_from:
        shown.append(Paragraph(f"Not reported as a consequence of: {', '.join(sorted(diagnosis.text.follows_from))}."))
    return shown


def advice_of(diagnosis: Diagnosis) -> tuple[str, ...]:
    """The advice of a diagnosis, with general terms in place of the values of a case."""
    general = {"mtu": "the frame limit less 14", "ping": "the MTU less 28", "silent": "the silent endpoint"}
    return tuple(each.format_map(general) for each in diagnosis.text.advice)
