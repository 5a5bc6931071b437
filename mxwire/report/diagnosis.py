"""Findings of a diagnosis as blocks of a report and as JSON records, and the catalogue of diagnoses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, get_args

from mxwire.analysis.diagnosis import CATALOGUE, Diagnosis, Evidence, Examination, Finding, Party, catalogue
from mxwire.analysis.diagnosis.facts import Facts
from mxwire.analysis.diagnosis.finding import Confidence, Cost, seconds
from mxwire.analysis.diagnosis.losses import DirectionLoss
from mxwire.ethernet import mac_text
from mxwire.report.document import Block, Column, Heading, Listing, Paragraph, Row, Table, code_columns, number_columns
from mxwire.report.json_line import keyed_line
from mxwire.report.pointers import SEE_FRAME, left_out_text
from mxwire.words import count_of

Since = Callable[[int], int]
"""Converts a timestamp to nanoseconds since the start of the capture."""

_NAMES_SHOWN = 16
_LOSSES_SHOWN = 64
NO_COST = "cost unknown"
SEE = f"mxwire diagnose --explain ID explains a diagnosis and how to distinguish it; {SEE_FRAME}"


def blocks(
    path: str, examination: Examination, found: list[Finding], left_out: int = 0, *, named: bool = False
) -> list[Block]:
    """Findings, grouped by diagnosis with one heading each, and the limits of the examination.

    ``left_out`` is the number of findings that the user's filter left out. If hosts are ``named``, addresses are not
    explained.
    """
    facts = examination.facts
    shown: list[Block] = [Heading(path), Paragraph(_at_a_glance(examination, found))]
    if left_out:
        shown.append(Paragraph(left_out_text(left_out)))
    names = _names(examination, found)
    if names and not named:
        shown.append(Paragraph(names))
    for place, same in enumerate(grouped(found), 1):
        shown += _finding(place, same, facts)
    shown += _losses(examination)
    limits = examination.limits()
    if limits:
        shown += [Heading("Not judged", 3), Listing(tuple(map(_sentence, limits)))]
    if found:
        shown.append(Paragraph(SEE))
    return shown


def _at_a_glance(examination: Examination, found: list[Finding]) -> str:
    follower = examination.facts.follower
    examined = f"{count_of(follower.frames, 'frame')} and {count_of(follower.messages, 'message')} examined"
    if not found:
        return f"{examined}: nothing found."
    titles = [(CATALOGUE[same[0].id].title, cost_text(same[0].cost, examination.facts)) for same in grouped(found)]
    named = (f"{_within(title)}{f' ({cost})' if cost != NO_COST else ''}" for title, cost in titles)
    overlapping = " Costs may overlap: do not add them." if sum(cost != NO_COST for _, cost in titles) > 1 else ""
    return f"{examined}: {'; '.join(named)}.{overlapping}"


def _within(title: str) -> str:
    """The title as it stands within a sentence: without its capital, unless its first word is an acronym."""
    word = title.split()[0]
    return title if len(word) > 1 and word.isupper() else title[:1].lower() + title[1:]


def cost_text(cost: Cost, facts: Facts) -> str:
    """A cost relative to the duration, or the frame count, of the whole capture; ``cost unknown`` without frames."""
    parts = []
    if cost.ns is not None:
        parts.append(f"{seconds(cost.ns)} of {seconds(facts.duration_ns)}")
    elif cost.frames:
        parts.append(f"{cost.frames} of {count_of(facts.follower.frames, 'frame')}")
    return f"cost {parts[0]}" if parts else NO_COST


def _names(examination: Examination, found: list[Finding]) -> str:
    """The names of the hosts affected by ``found``, if the capture contains them."""
    hosts = sorted({party.address for each in found for party in each.concerns})
    known = [(host, examination.facts.name(host)) for host in hosts]
    named = [f"{mac_text(host)} is {name}" for host, name in known if name]
    return f"{', '.join(named[:_NAMES_SHOWN])}." if named else ""


def grouped(found: Iterable[Finding]) -> Iterator[list[Finding]]:
    """Group findings by diagnosis, keeping their order."""
    groups: dict[str, list[Finding]] = {}
    for each in found:
        groups.setdefault(each.id, []).append(each)
    yield from groups.values()


def _finding(place: int, same: list[Finding], facts: Facts) -> Iterator[Block]:
    first = same[0]
    costs = [cost_text(each.cost, facts) for each in same]
    yield Heading(f"{place}. {CATALOGUE[first.id].title}  [{first.id}]", 3)
    # Sorted from the lowest, because a heading with only one confidence would hide that of the other findings.
    confidences = [known for known in reversed(get_args(Confidence)) if any(each.confidence == known for each in same)]
    ends = " to ".join(dict.fromkeys((confidences[0], confidences[-1])))
    yield Paragraph(f"Severity {first.severity}, confidence {ends}, {costs[0]}.")
    for each, cost in zip(same, costs, strict=True):
        differs = [f"confidence {each.confidence}"] if len(confidences) > 1 else []
        differs += [cost] if cost != costs[0] else []
        yield Paragraph(_sentence(f"{each.summary} ({', '.join(differs)})" if differs else each.summary))
        doubts = (f"less certain: {doubt}" for doubt in each.doubts)
        yield Listing((*(_evidence(one, facts.since_start) for one in each.evidence), *doubts))
    advice = dict.fromkeys(text for each in same for text in each.advice)
    yield Paragraph("What to do:")
    yield Listing(tuple(advice), numbered=True)


def _losses(examination: Examination) -> Iterator[Block]:
    """The directions in which frames were lost."""
    lossy = [each for each in examination.losses() if each.lost][:_LOSSES_SHOWN]
    if not lossy:
        return
    yield Heading("Loss per direction", 3)
    columns = *code_columns("from", "to"), *number_columns("sent", "lost before", "lost behind", "percent")
    yield Table(columns, tuple(Row(_loss_cells(each)) for each in lossy))
    yield Paragraph(
        "Lower bounds: frames lost before the point of capture were requested and never passed; those lost behind it "
        "passed and were repeated. Losses after which nothing is repeated do not show."
    )


def _loss_cells(loss: DirectionLoss) -> tuple[str, ...]:
    hosts = mac_text(loss.source), mac_text(loss.destination)
    return *hosts, str(loss.sent), str(loss.before), str(loss.behind), f"{loss.percent:.2f}%"


def _loss_record(loss: DirectionLoss) -> dict[str, Any]:
    return {
        "source": mac_text(loss.source),
        "destination": mac_text(loss.destination),
        "sent": loss.sent,
        "lost": loss.lost,
        "lost_before": loss.before,
        "lost_behind": loss.behind,
        "percent": round(loss.percent, 4),
    }


def _evidence(shown: Evidence, since: Since) -> str:
    at = "" if shown.time_ns is None else f"at {since(shown.time_ns) / 1e9:.6f} s"
    if not shown.frames:
        return f"{shown.text} ({at})" if at else shown.text
    # The time is that of the first frame only, so it is printed beside that number.
    first, *others = map(str, shown.frames)
    if not at:
        return f"{shown.text} (frame{'s' if others else ''} {', '.join([first, *others])})"
    also = f"; also {', '.join(others)}" if others else ""
    return f"{shown.text} (frame {first} {at}{also})"


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:] if text[:3].isalpha() else text
    return text if text.endswith(".") else f"{text}."


def headline(found: Finding) -> str:
    """A finding as one line, for live monitoring."""
    return f"{found.id} ({found.severity}, {found.confidence}): {found.summary}"


# JSON records


def finding_line(path: str, examination: Examination, found: Finding) -> str:
    """A finding as a JSON line."""
    diagnosis, facts = CATALOGUE[found.id], examination.facts
    return keyed_line(
        facts.decoder.start_ns,
        record="finding",
        file=path,
        id=found.id,
        title=diagnosis.title,
        group=diagnosis.group,
        severity=found.severity,
        confidence=found.confidence,
        cost_ns=found.cost.ns,
        cost_frames=found.cost.frames,
        concerns=[_party(each, facts.name(each.address)) for each in found.concerns],
        summary=found.summary,
        evidence=[
            {
                "text": each.text,
                "weight": each.weight,
                "frames": list(each.frames),
                "time_ns": each.time_ns,
                "since_start_ns": None if each.time_ns is None else facts.since_start(each.time_ns),
            }
            for each in found.evidence
        ],
        doubts=list(found.doubts),
        advice=list(found.advice),
    )


def summary_line(path: str, examination: Examination, found: list[Finding], left_out: int = 0) -> str:
    """The scope of the examination as a JSON line."""
    follower = examination.facts.follower
    return keyed_line(
        None,
        record="summary",
        file=path,
        frames=follower.frames,
        messages=follower.messages,
        findings=len(found),
        findings_left_out=left_out,
        ids=list(dict.fromkeys(each.id for each in found)),
        loss=[_loss_record(each) for each in examination.losses()[:_LOSSES_SHOWN]],
        not_judged=examination.limits(),
    )


def _party(party: Party, name: str | None) -> dict[str, Any]:
    return {"host": mac_text(party.address), "name": name, "endpoint": party.endpoint}


# The catalogue


def diagnosis_line(diagnosis: Diagnosis) -> str:
    """An entry of the catalogue as a JSON line."""
    return keyed_line(
        None,
        record="diagnosis",
        id=diagnosis.id,
        title=diagnosis.title,
        group=diagnosis.group,
        users_see=diagnosis.text.users_see,
        capture_shows=diagnosis.text.capture_shows,
        distinction=diagnosis.text.distinction,
        advice=advice_of(diagnosis),
        needs=sorted(diagnosis.needs),
        follows_from=sorted(diagnosis.follows_from),
    )


def catalogue_table() -> Table:
    """All diagnoses as a table."""
    columns = Column("id", code=True), Column("title", wraps=True)
    return Table(columns, tuple(Row((each.id, each.title)) for each in catalogue()))


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
    if diagnosis.needs:
        shown.append(Paragraph(f"Needs a capture with: {', '.join(sorted(diagnosis.needs))}."))
    if diagnosis.follows_from:
        shown.append(Paragraph(f"Not reported as a consequence of: {', '.join(sorted(diagnosis.follows_from))}."))
    return shown


def advice_of(diagnosis: Diagnosis) -> tuple[str, ...]:
    """The advice of a diagnosis, with general terms in place of the values of a case."""
    general = {"mtu": "the frame limit less 14", "ping": "the MTU less 28", "silent": "the silent endpoint"}
    return tuple(each.format_map(general) for each in diagnosis.text.advice)
