"""Results of a verification as JSON, as blocks of a report for one capture or many, and as JUnit XML."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final
from xml.etree import ElementTree

from mxwire.analysis.verification import HostRecord, OrderedVerification
from mxwire.ethernet import mac_text
from mxwire.report.document import (
    Block,
    Heading,
    Listing,
    Paragraph,
    Table,
    tabulate,
)
from mxwire.report.junit import junit_case, junit_document, junit_suite
from mxwire.report.pointers import SEE_FRAME, left_out_text
from mxwire.report.result import Result, column, result, table
from mxwire.rules import CATALOGUE, Violation
from mxwire.rules.finding import SEVERITIES, finding_text
from mxwire.words import count_of

SHOWN: Final = 10
"""Maximum number of findings shown per rule, severity and host; further findings are only counted."""
DISORDERED: Final = (
    "Frames are in the wrong order in this capture: findings that depend on the order are notes, and blame no host."
)
_COOKED: Final = "A Linux cooked capture does not record destinations: only rules about single frames were checked."
_LOSSY: Final = "The capture lacks frames: after the first missing one, only rules about single frames were checked."
SEE: Final = f"mxwire rules NUMBER shows more about a rule; {SEE_FRAME}"


@result("finding")
class BrokenRule(Result):
    """A finding: the rule, the host, and the frames that show it."""

    file: str
    rule: str = column(code=True)
    severity: str = column()
    """violation, deviation or note."""
    host: str = column(code=True)
    frames: list[int]
    """The frames that show it; the last one broke the rule."""
    time_ns: int
    expected: str
    found: str

    @classmethod
    def of(cls, found: Violation, file: str, frames: list[int]) -> BrokenRule:
        """Describe a breach in ``frames`` of ``file``."""
        return cls(
            *(file, found.rule, found.severity, mac_text(found.host), frames),
            *(found.time_ns, found.expected, found.found),
        )

    @property
    def kind(self) -> Kind:
        """The kind of findings with which it is counted."""
        return self.severity, self.rule, self.host

    def __str__(self) -> str:
        """Return one line."""
        return finding_text(self.rule, self.severity, self.host, self.frames, self.found, self.expected)


Kind = tuple[str, str, str]
"""Severity, rule and host."""


@result("capture")
class VerificationLimits(Result):
    """The circumstances that limit the findings about a capture."""

    file: str
    without_destinations: bool
    """True for a Linux cooked capture, in which only single frames are judged."""
    lossy: bool
    """True if the capture itself lost frames."""
    disordered: bool
    """True if frames are in the wrong order, so that findings that depend on it are notes."""
    findings_left_out: int
    """Findings that the filter left out."""

    @classmethod
    def of(cls, verification: OrderedVerification, file: str) -> VerificationLimits:
        """Describe the circumstances of a verification."""
        left_out = verification.selector.left_out if verification.selector is not None else 0
        return cls(file, verification.cooked, verification.lossy, verification.disordered, left_out)


@result("host")
class HostVerdict(Result):
    """The verdict on a host."""

    file: str
    host: str = column(code=True)
    verdict: str = column()
    """pass, info, non-strict, fail or missing."""
    frames: int = column(right=True)
    violations: int = column(right=True)
    deviations: int = column(right=True)
    notes: int = column(right=True)
    rules: list[str] = column("rules applied", right=True, text=lambda rules: str(len(rules)))
    """The rules that were applied."""
    broken: list[list[Any]]
    """Rule, severity and number of findings."""
    captures: int = column(right=True, internal=True, default=1)

    @classmethod
    def of(cls, record: HostRecord, file: str) -> HostVerdict:
        """Summarize the record of a host."""
        return cls(
            file,
            mac_text(record.address),
            record.verdict,
            sum(record.frames.values()),
            record.count("violation"),
            record.count("deviation"),
            record.count("note"),
            record.rules,
            [[rule, severity, count] for (rule, severity), count in record.findings.items()],
        )

    @property
    def muted(self) -> bool:
        """True if there is nothing to say about the host."""
        return self.verdict in ("pass", "missing")

    def __add__(self, other: HostVerdict) -> HostVerdict:
        """Return the verdict on the host in two captures, or sets of them."""
        return replace(
            self,
            verdict=min(self.verdict, other.verdict, key=_VERDICTS.index),
            frames=self.frames + other.frames,
            violations=self.violations + other.violations,
            deviations=self.deviations + other.deviations,
            notes=self.notes + other.notes,
            rules=sorted({*self.rules, *other.rules}),
            broken=[*self.broken, *other.broken],
            captures=self.captures + other.captures,
        )


_VERDICTS: Final = ("fail", "non-strict", "info", "pass", "missing")
"""The worst first."""


@result()
class VerifiedCapture(Result):
    """The verdicts on a whole capture."""

    limits: VerificationLimits
    hosts: list[HostVerdict]
    limited: bool
    """True if the limits are among the :meth:`results`."""

    @classmethod
    def of(cls, verification: OrderedVerification, file: str) -> VerifiedCapture:
        """Summarize a verification; findings that a filter of hosts left out concern hosts that are not reported."""
        selector = verification.selector
        by_frame = selector is not None and not selector.selection.is_of_hosts_only
        limits = VerificationLimits.of(verification, file)
        limited = limits.without_destinations or limits.lossy or limits.disordered
        hosts = [HostVerdict.of(each, file) for each in verification.shown()]
        return cls(limits, hosts, limited or (by_frame and limits.findings_left_out > 0))

    def results(self) -> Iterator[Result]:
        """Yield the results that are reported as JSON."""
        if self.limited:
            yield self.limits
        yield from self.hosts


class FindingSample:
    """The first findings of each kind, for display."""

    def __init__(self) -> None:
        self._counts: Counter[Kind] = Counter()

    def takes(self, found: Violation) -> bool:
        """Count a finding, and return whether it is among the first ``SHOWN`` of its kind."""
        kind = found.severity, found.rule, found.host.hex()
        self._counts[kind] += 1
        return self._counts[kind] <= SHOWN


class VerificationReport:
    """The results of one capture, or those of many captures that are ``merged``."""

    def __init__(self, title: str, *, merged: bool = False) -> None:
        self.title = title
        self._merged = merged
        self._hosts: dict[str, HostVerdict] = {}
        self._findings: dict[Kind, list[BrokenRule]] = defaultdict(list)
        self._limits: list[VerificationLimits] = []

    def add(self, found: BrokenRule | VerifiedCapture) -> None:
        """Add a finding, or the verdicts on a capture."""
        if isinstance(found, BrokenRule):
            kept = self._findings[found.kind]
            # Bounds memory: a capture may break one rule in every frame.
            if len(kept) < SHOWN:
                kept.append(found)
            return
        self._limits.append(found.limits)
        for each in found.hosts:
            known = self._hosts.get(each.host)
            self._hosts[each.host] = each if known is None else known + each

    def blocks(self) -> list[Block]:
        """Return hosts with their verdicts, the rules broken, and the findings: of many captures the worst first."""
        hosts = [*self._hosts.values()]
        if self._merged:
            hosts.sort(key=lambda each: (_VERDICTS.index(each.verdict), each.host))
        counted = ("captures", "frames") if self._merged else ("frames", "rules")
        verdicts = table(HostVerdict, hosts, "host", "verdict", *counted, "violations", "deviations", "notes")
        shown: list[Block] = [Heading(self.title), verdicts, *self._remarks()]
        if not any(each.broken for each in hosts):
            return shown
        counts, captures = self._counts()
        # One capture is read in the order of the rules, many by what occurs most.
        kinds = sorted(counts, key=lambda kind: (SEVERITIES.index(kind[0]), -counts[kind] * self._merged, kind))
        shown += [Heading("Rules broken", 3), self._rules(kinds, counts, captures), Heading("Findings", 3)]
        for kind in kinds:
            shown += self._examples(self._findings[kind], counts[kind])
        return [*shown, Paragraph(SEE)]

    def _counts(self) -> tuple[Counter[Kind], Counter[Kind]]:
        """Return the numbers of findings per kind, and those of the captures with them."""
        counts, captures = Counter[Kind](), Counter[Kind]()
        for host in self._hosts.values():
            for rule, severity, count in host.broken:
                counts[severity, rule, host.host] += count
                captures[severity, rule, host.host] += 1
        return counts, captures

    def _remarks(self) -> Iterator[Block]:
        if not self._merged:
            for each in self._limits:
                if each.without_destinations:
                    yield Paragraph(_COOKED)
                elif each.lossy:
                    yield Paragraph(_LOSSY)
                if each.disordered:
                    yield Paragraph(DISORDERED)
        left_out = sum(each.findings_left_out for each in self._limits)
        if left_out:
            yield Paragraph(left_out_text(left_out))

    def _rules(self, kinds: list[Kind], counts: Counter[Kind], captures: Counter[Kind]) -> Table:
        heads = ("count", "captures") if self._merged else ("count",)
        rows = []
        for severity, rule, host in kinds:
            numbers = [each[severity, rule, host] for each in (counts, captures)][: len(heads)]
            rows.append((rule, severity, host, *numbers, CATALOGUE[rule].text))
        return tabulate(", #".join(("`rule, severity, `host", *heads)) + ", ~rule text", rows)

    def _examples(self, kept: list[BrokenRule], count: int) -> Iterator[Block]:
        first = kept[0]
        yield Paragraph(f"{first.rule}, {first.severity}, {first.host}; expected: {first.expected}")
        lines = []
        for each in kept:
            where = f"{each.file}, " if self._merged else ""
            frames = f"{where}frame{'s' if len(each.frames) > 1 else ''} {', '.join(map(str, each.frames))}"
            expected = "" if each.expected == first.expected else f"; expected: {each.expected}"
            lines.append(f"{frames}: {each.found}{expected}")
        if count > len(kept):
            lines.append(f"… and {count - len(kept)} more (--json lists all)")
        yield Listing(tuple(lines))

    def suites(self) -> Iterator[ElementTree.Element]:
        """Yield a suite of JUnit XML per host, with one case per rule checked."""
        for host in self._hosts.values():
            yield self._suite(host)

    def _suite(self, host: HostVerdict) -> ElementTree.Element:
        # Cases are rules, so that a rule broken twice is one failure.
        broken = {rule for rule, severity, _ in host.broken if severity == "violation"}
        suite = junit_suite(f"{self.title} {host.host}", tests=len(host.rules), failures=len(broken))
        found = {(severity, rule): count for rule, severity, count in host.broken}
        for rule in host.rules:
            case = junit_case(suite, f"{rule}: {CATALOGUE[rule].text}")
            for severity in (each for each in SEVERITIES if (each, rule) in found):
                kept = self._findings[severity, rule, host.host]
                # JUnit knows no warnings: whatever does not fail a case is its output.
                tag = "failure" if severity == "violation" else "system-out"
                element = ElementTree.SubElement(case, tag)
                if tag == "failure":
                    number = count_of(found[severity, rule], "finding")
                    element.set("message", f"{number}; expected: {kept[0].expected}")
                element.text = "\n".join(map(str, kept))
        return suite


def junit_text(reports: Iterable[VerificationReport]) -> str:
    """All verdicts as JUnit XML: one suite per capture and host, one case per rule checked."""
    return junit_document("mxwire verify", (suite for each in reports for suite in each.suites()))
