"""Results of a verification as blocks of a report, JSON lines and JUnit XML."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final
from xml.etree import ElementTree

from mxwire.analysis.verification import HostRecord, OrderedVerification, Verification
from mxwire.ethernet import mac_text
from mxwire.report.document import Block, Column, Heading, Listing, Paragraph, Row, Table, code_columns, number_columns
from mxwire.report.json_line import keyed_line
from mxwire.report.pointers import SEE_FRAME, left_out_text
from mxwire.rules import CATALOGUE, Violation
from mxwire.rules.finding import SEVERITIES
from mxwire.words import count_of

SHOWN: Final = 10
"""Maximum number of findings shown per rule, severity and host; further findings are only counted."""
_HOSTS: Final = (
    *code_columns("host"),
    Column("verdict"),
    *number_columns("frames", "rules applied", "violations", "deviations", "notes"),
)
_RULES: Final = (
    Column("rule", code=True),
    Column("severity"),
    Column("host", code=True),
    Column("count", right=True),
    Column("rule text", wraps=True),
)
DISORDERED: Final = (
    "Frames are in the wrong order in this capture: findings that depend on the order are notes, and blame no host."
)
SEE: Final = f"mxwire rules NUMBER shows more about a rule; {SEE_FRAME}"


class FindingSample:
    """The first findings of each rule, severity and host, for display."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, bytes], list[Violation]] = defaultdict(list)

    def add(self, found: Violation) -> None:
        """Keep a finding if it is among the first ``SHOWN`` of its kind."""
        kept = self._kept[found.rule, found.severity, found.host]
        if len(kept) < SHOWN:
            kept.append(found)

    def of(self, rule: str, severity: str, host: bytes) -> list[Violation]:
        """The kept findings of a rule, severity and host."""
        return self._kept[rule, severity, host]


def blocks(path: str, verification: Verification, findings: FindingSample) -> list[Block]:
    """Hosts with their verdicts, the rules broken, and the findings."""
    hosts = verification.shown()
    shown: list[Block] = [Heading(path), Table(_HOSTS, tuple(_host(each) for each in hosts))]
    kinds = sorted(
        ((rule, severity, host) for host in hosts for rule, severity in host.findings),
        key=lambda kind: (SEVERITIES.index(kind[1]), kind[0], kind[2].address),
    )
    if verification.cooked:
        shown.append(
            Paragraph(
                "A Linux cooked capture does not record destinations: only rules about single frames were checked."
            )
        )
    elif verification.lossy:
        shown.append(
            Paragraph(
                "The capture lacks frames: after the first missing one, only rules about single frames were checked."
            )
        )
    if isinstance(verification, OrderedVerification) and verification.disordered:
        shown.append(Paragraph(DISORDERED))
    left_out = verification.selector.left_out if verification.selector is not None else 0
    if left_out:
        shown.append(Paragraph(left_out_text(left_out)))
    if not kinds:
        return shown
    rows = tuple(
        Row((rule, severity, mac_text(host.address), str(host.findings[rule, severity]), CATALOGUE[rule].text))
        for rule, severity, host in kinds
    )
    shown += [Heading("Rules broken", 3), Table(_RULES, rows), Heading("Findings", 3)]
    for rule, severity, host in kinds:
        shown += _findings(findings.of(rule, severity, host.address), host.findings[rule, severity])
    return [*shown, Paragraph(SEE)]


def _host(record: HostRecord) -> Row:
    counts = [len(record.rules), *(record.count(each) for each in SEVERITIES)]
    cells = (mac_text(record.address), record.verdict, str(sum(record.frames.values())), *map(str, counts))
    return Row(cells, muted=record.verdict in ("pass", "missing"))


def _findings(kept: list[Violation], count: int) -> Iterator[Block]:
    first = kept[0]
    yield Paragraph(f"{first.rule}, {first.severity}, {mac_text(first.host)}; expected: {first.expected}")
    lines = [_finding(each, "" if each.expected == first.expected else f"; expected: {each.expected}") for each in kept]
    if count > len(kept):
        lines.append(f"… and {count - len(kept)} more (--json lists all)")
    yield Listing(tuple(lines))


def _finding(found: Violation, expected: str) -> str:
    frames = f"frame{'s' if len(found.frames) > 1 else ''} {', '.join(map(str, found.frames))}"
    return f"{frames}: {found.found}{expected}"


def finding_line(path: str, found: Violation, start_ns: int | None = None) -> str:
    """A finding as a JSON line; ``start_ns`` is the time of the capture's first frame."""
    return keyed_line(
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
    """One JSON line per host with its verdict, preceded by one about the capture if that or a filter limits
    what is reported."""
    disordered = isinstance(verification, OrderedVerification) and verification.disordered
    selector = verification.selector
    left_out = selector.left_out if selector is not None else 0
    by_frame = selector is not None and not selector.selection.is_of_hosts_only
    if verification.cooked or verification.lossy or disordered or (left_out and by_frame):
        yield keyed_line(
            record="capture",
            file=path,
            without_destinations=verification.cooked,
            lossy=verification.lossy,
            disordered=disordered,
            findings_left_out=left_out,
        )
    for each in verification.shown():
        yield keyed_line(
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


def junit_text(verified: Iterable[tuple[str, Verification, FindingSample]]) -> str:
    """All verdicts as JUnit XML: one suite per capture and host, one case per rule checked."""
    root = ElementTree.Element("testsuites", name="mxwire verify")
    for path, verification, findings in verified:
        for record in verification.shown():
            root.append(_suite(path, record, findings))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _suite(path: str, record: HostRecord, findings: FindingSample) -> ElementTree.Element:
    rules = sorted(record.rules)
    broken = {rule for rule, severity in record.findings if severity == "violation"}
    name = f"{path} {mac_text(record.address)}"
    counts = {"tests": str(len(rules)), "failures": str(len(broken)), "errors": "0"}
    suite = ElementTree.Element("testsuite", {"name": name, **counts})
    for rule in rules:
        case = ElementTree.SubElement(suite, "testcase", {"classname": name, "name": f"{rule}: {CATALOGUE[rule].text}"})
        counts_of = {severity: record.findings[rule, severity] for severity in SEVERITIES}
        for severity in (each for each in SEVERITIES if counts_of[each]):
            kept = findings.of(rule, severity, record.address)
            tag = "failure" if severity == "violation" else "system-out"
            element = ElementTree.SubElement(case, tag)
            if tag == "failure":
                element.set("message", f"{count_of(counts_of[severity], 'finding')}; expected: {kept[0].expected}")
            element.text = "\n".join(map(str, kept))
    return suite
