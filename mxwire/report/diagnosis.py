"""What a diagnosis found, for people and for programs; and the catalogue of what it can find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mxwire.analysis.diagnosis import CATALOGUE, Diagnosis, Evidence, Examination, Finding, Party, catalogue
from mxwire.ethernet import mac_text
from mxwire.report.document import Block, Column, Heading, Listing, Paragraph, Row, Table
from mxwire.report.json_line import json_line
from mxwire.words import count_of

Since = Callable[[int], int]
"""From a time stamp to nanoseconds since the capture began."""

_NAMES_SHOWN = 16
SEE = (
    "mxwire diagnose --explain ID tells what a diagnosis means and how it is told apart; mxwire decode -v --frames "
    "NUMBER shows a frame."
)


def blocks(path: str, examination: Examination, found: list[Finding]) -> list[Block]:
    """Findings, one heading for each diagnosis, and what could not be judged."""
    facts = examination.facts
    shown: list[Block] = [Heading(path), Paragraph(_at_a_glance(examination, found))]
    names = _names(examination, found)
    if names:
        shown.append(Paragraph(names))
    for place, same in enumerate(_grouped(found), 1):
        shown += _finding(place, same, facts.since_start)
    limits = examination.limits()
    if limits:
        shown += [Heading("Not judged", 3), Listing(tuple(map(_sentence, limits)))]
    if found:
        shown.append(Paragraph(SEE))
    return shown


def _at_a_glance(examination: Examination, found: list[Finding]) -> str:
    follower = examination.facts.follower
    looked = f"{count_of(follower.frames, 'frame')} and {count_of(follower.messages, 'message')} examined"
    ids = list(dict.fromkeys(each.id for each in found))
    if not ids:
        return f"{looked}: nothing found."
    return f"{looked}: {', '.join(ids)}."


def _names(examination: Examination, found: list[Finding]) -> str:
    """What the hosts that findings concern are called, as far as they told."""
    hosts = sorted({party.address for each in found for party in each.concerns})
    known = [(host, examination.facts.name(host)) for host in hosts]
    told = [f"{mac_text(host)} is {name}" for host, name in known if name]
    return f"{', '.join(told[:_NAMES_SHOWN])}." if told else ""


def _grouped(found: Iterable[Finding]) -> Iterator[list[Finding]]:
    """Findings with the same diagnosis, in their order."""
    groups: dict[str, list[Finding]] = {}
    for each in found:
        groups.setdefault(each.id, []).append(each)
    yield from groups.values()


def _finding(place: int, same: list[Finding], since: Since) -> Iterator[Block]:
    first = same[0]
    yield Heading(f"{place}. {CATALOGUE[first.id].title}  [{first.id}, confidence {first.confidence}]", 3)
    for each in same:
        sure = "" if each.confidence == first.confidence else f" (confidence {each.confidence})"
        yield Paragraph(_sentence(each.summary + sure))
        yield Listing(tuple(_evidence(one, since) for one in each.evidence))
    advice = dict.fromkeys(text for each in same for text in each.advice)
    yield Paragraph("What to do:")
    yield Listing(tuple(advice), numbered=True)


def _evidence(shown: Evidence, since: Since) -> str:
    where = ""
    if shown.frames:
        where = f"frame{'s' if len(shown.frames) > 1 else ''} {', '.join(map(str, shown.frames))}"
    if shown.time_ns is not None:
        at = f"at {since(shown.time_ns) / 1e9:.6f} s"
        where = f"{where}, {at}" if where else at
    return f"{shown.text} ({where})" if where else shown.text


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:] if text[:3].isalpha() else text
    return text if text.endswith(".") else f"{text}."


def headline(found: Finding) -> str:
    """A finding in a line, for who watches."""
    return f"{found.id} ({found.confidence}): {found.summary}"


# For programs


def finding_line(path: str, examination: Examination, found: Finding) -> str:
    """A finding as a JSON object."""
    diagnosis, facts = CATALOGUE[found.id], examination.facts
    return _line(
        facts.decoder.start_ns,
        record="finding",
        file=path,
        id=found.id,
        title=diagnosis.title,
        group=diagnosis.group,
        confidence=found.confidence,
        concerns=[_party(each, facts.name(each.address)) for each in found.concerns],
        summary=found.summary,
        evidence=[
            {
                "text": each.text,
                "frames": list(each.frames),
                "time_ns": each.time_ns,
                "since_start_ns": None if each.time_ns is None else facts.since_start(each.time_ns),
            }
            for each in found.evidence
        ],
        advice=list(found.advice),
    )


def summary_line(path: str, examination: Examination, found: list[Finding]) -> str:
    """What was looked at, as a JSON object."""
    follower = examination.facts.follower
    return _line(
        None,
        record="summary",
        file=path,
        frames=follower.frames,
        messages=follower.messages,
        findings=len(found),
        ids=list(dict.fromkeys(each.id for each in found)),
        not_judged=examination.limits(),
    )


def _party(party: Party, name: str | None) -> dict[str, Any]:
    return {"host": mac_text(party.address), "name": name, "endpoint": party.endpoint}


def _line(start_ns: int | None, **fields: object) -> str:
    return json_line(fields, start_ns)


# The catalogue


def diagnosis_line(diagnosis: Diagnosis) -> str:
    """An entry of the catalogue as a JSON object."""
    return _line(
        None,
        record="diagnosis",
        id=diagnosis.id,
        title=diagnosis.title,
        group=diagnosis.group,
        users_see=diagnosis.users_see,
        capture_shows=diagnosis.capture_shows,
        told_apart=diagnosis.told_apart,
        advice=advice_of(diagnosis),
        needs=sorted(diagnosis.needs),
        follows_from=sorted(diagnosis.follows_from),
    )


def catalogue_table() -> Table:
    """All diagnoses in a table."""
    columns = Column("id", code=True), Column("what it is", wraps=True)
    return Table(columns, tuple(Row((each.id, each.title)) for each in catalogue()))


def explanation(diagnosis: Diagnosis) -> list[Block]:
    """All that the catalogue says of a diagnosis."""
    shown: list[Block] = [
        Heading(f"{diagnosis.id}: {diagnosis.title}"),
        Paragraph(f"What users see: {diagnosis.users_see}"),
        Paragraph(f"What the capture shows: {diagnosis.capture_shows}"),
        Paragraph(f"How it is told apart: {diagnosis.told_apart}"),
        Paragraph("What to do:"),
        Listing(advice_of(diagnosis), numbered=True),
    ]
    if diagnosis.needs:
        shown.append(Paragraph(f"The capture must have: {', '.join(sorted(diagnosis.needs))}."))
    if diagnosis.follows_from:
        shown.append(Paragraph(f"Not reported where it follows from: {', '.join(sorted(diagnosis.follows_from))}."))
    return shown


def advice_of(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Advice without the values of a case."""
    general = {"mtu": "the frame limit less 14", "ping": "the MTU less 28", "silent": "the silent endpoint"}
    return tuple(each.format_map(general) for each in diagnosis.advice)
