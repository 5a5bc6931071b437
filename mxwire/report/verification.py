"""What a verification found, for people, for programs, and for what collects test results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final
from xml.etree import ElementTree

from mxwire.analysis.observed_order import OrderedVerification
from mxwire.analysis.verification import HostRecord, Verification
from mxwire.ethernet import mac_text
from mxwire.report.document import Block, Column, Heading, Listing, Paragraph, Row, Table
from mxwire.report.json_line import json_line
from mxwire.rules import CATALOGUE, Violation

SHOWN: Final = 10
"""Findings of one rule and host that are shown to people; the others are counted."""
_HOSTS: Final = (
    Column("host", code=True),
    Column("verdict"),
    Column("frames", right=True),
    Column("rules applied", right=True),
    Column("violations", right=True),
    Column("deviations", right=True),
    Column("notes", right=True),
)
_RULES: Final = (
    Column("rule", code=True),
    Column("severity"),
    Column("host", code=True),
    Column("times", right=True),
    Column("what it says", wraps=True),
)
_ORDER: Final = ("violation", "deviation", "note")
DISORDERED: Final = "Frames are in the wrong order in this capture: what rests on it is noted, and held against nobody."
SEE: Final = "mxwire rules NUMBER tells more of a rule; mxwire decode -v --frames NUMBER shows a frame."


class Findings:
    """The findings that are shown to people: the first of each rule, severity and host."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, bytes], list[Violation]] = defaultdict(list)

    def add(self, found: Violation) -> None:
        """Keep a finding if it is one of the first of its kind."""
        kept = self._kept[found.rule, found.severity, found.host]
        if len(kept) < SHOWN:
            kept.append(found)

    def of(self, rule: str, severity: str, host: bytes) -> list[Violation]:
        """The first findings of a kind."""
        return self._kept[rule, severity, host]


def blocks(path: str, verification: Verification, findings: Findings) -> list[Block]:
    """Hosts and their verdicts, rules that were not kept, and the findings."""
    hosts = verification.shown()
    shown: list[Block] = [Heading(path), Table(_HOSTS, tuple(_host(each) for each in hosts))]
    kinds = sorted(
        ((rule, severity, host) for host in hosts for rule, severity in host.findings),
        key=lambda kind: (_ORDER.index(kind[1]), kind[0], kind[2].address),
    )
    if verification.cooked:
        shown.append(Paragraph("A Linux cooked capture names no destinations: only single frames were judged."))
    elif verification.lossy:
        shown.append(Paragraph("Frames passed that were not captured: from there on only single frames were judged."))
    if isinstance(verification, OrderedVerification) and verification.disordered:
        shown.append(Paragraph(DISORDERED))
    if not kinds:
        return shown
    rows = tuple(
        Row((rule, severity, mac_text(host.address), str(host.findings[rule, severity]), CATALOGUE[rule].text))
        for rule, severity, host in kinds
    )
    shown += [Heading("Rules not kept", 3), Table(_RULES, rows), Heading("Findings", 3)]
    for rule, severity, host in kinds:
        shown += _findings(findings.of(rule, severity, host.address), host.findings[rule, severity])
    return [*shown, Paragraph(SEE)]


def _host(record: HostRecord) -> Row:
    counts = [len(record.rules), *(record.count(each) for each in ("violation", "deviation", "note"))]
    cells = (mac_text(record.address), record.verdict, str(sum(record.frames.values())), *map(str, counts))
    return Row(cells, muted=record.verdict in ("pass", "missing"))


def _findings(kept: list[Violation], count: int) -> Iterator[Block]:
    first = kept[0]
    yield Paragraph(f"{first.rule}, {first.severity}, {mac_text(first.host)}: {first.expected}")
    lines = [_finding(each, "" if each.expected == first.expected else f"; expected: {each.expected}") for each in kept]
    if count > len(kept):
        lines.append(f"… and {count - len(kept)} more (--json tells them all)")
    yield Listing(tuple(lines))


def _finding(found: Violation, expected: str) -> str:
    frames = f"frame{'s' if len(found.frames) > 1 else ''} {', '.join(map(str, found.frames))}"
    return f"{frames}: {found.found}{expected}"


def finding_line(path: str, found: Violation, start_ns: int | None = None) -> str:
    """A finding as a JSON object; ``start_ns`` is the time of the capture's first frame."""
    return _line(
        start_ns,
        record="finding",
        file=path,
        rule=found.rule,
        severity=found.severity,
        host=mac_text(found.host),
        frames=list(found.frames),
        time_ns=found.time_ns,
        expected=found.expected,
        found=found.found,
    )


def host_lines(path: str, verification: Verification) -> Iterator[str]:
    """The verdict on each host as a JSON object; before them, what kept rules from being applied, if anything did."""
    disordered = isinstance(verification, OrderedVerification) and verification.disordered
    if verification.cooked or verification.lossy or disordered:
        yield _line(
            record="capture",
            file=path,
            without_destinations=verification.cooked,
            lossy=verification.lossy,
            disordered=disordered,
        )
    for each in verification.shown():
        yield _line(
            record="host",
            file=path,
            host=mac_text(each.address),
            verdict=each.verdict,
            frames=sum(each.frames.values()),
            violations=each.count("violation"),
            deviations=each.count("deviation"),
            notes=each.count("note"),
            rules=sorted(each.rules),
        )


def _line(start_ns: int | None = None, **fields: object) -> str:
    return json_line(fields, start_ns)


def junit(verified: Iterable[tuple[str, Verification, Findings]]) -> str:
    """All verdicts as JUnit XML: a suite for each host of each capture, a case for each rule it was held against."""
    root = ElementTree.Element("testsuites", name="mxwire verify")
    for path, verification, findings in verified:
        for record in verification.shown():
            root.append(_suite(path, record, findings))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _suite(path: str, record: HostRecord, findings: Findings) -> ElementTree.Element:
    rules = sorted(record.rules)
    broken = {rule for rule, severity in record.findings if severity == "violation"}
    name = f"{path} {mac_text(record.address)}"
    counts = {"tests": str(len(rules)), "failures": str(len(broken)), "errors": "0"}
    suite = ElementTree.Element("testsuite", {"name": name, **counts})
    for rule in rules:
        case = ElementTree.SubElement(suite, "testcase", {"classname": name, "name": f"{rule}: {CATALOGUE[rule].text}"})
        times = {severity: record.findings[rule, severity] for severity in _ORDER}
        for severity in (each for each in _ORDER if times[each]):
            kept = findings.of(rule, severity, record.address)
            tag = "failure" if severity == "violation" else "system-out"
            said = ElementTree.SubElement(case, tag)
            if tag == "failure":
                said.set("message", f"{times[severity]} times; expected: {kept[0].expected}")
            said.text = "\n".join(map(str, kept))
    return suite
