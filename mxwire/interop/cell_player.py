"""Player of one cell: perform a case on a testbed, and judge its result."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from mxwire.errors import MxwireError, create_folder
from mxwire.interop.cases import CaseDefinition, case_by_name
from mxwire.interop.diagnosis import diagnose
from mxwire.interop.expectations import CellExpectation, expected_of
from mxwire.interop.impairments import treatment_by_name
from mxwire.interop.implementations import dialect_of, profile_of
from mxwire.interop.recorded_frames import HostTable, breaches_of, comments, digest, write_capture
from mxwire.interop.result import CAPTURES, Cell, Implementation
from mxwire.interop.roles import HostSetup, UnexpectedResult
from mxwire.interop.simulated_testbed import SimulatedTestbed
from mxwire.interop.testbed import PATIENCE, Testbed
from mxwire.protocol import LocalProtocolError
from mxwire.rules import Verdict, Violation
from mxwire.words import count_of

_IMPATIENCE: Final = 3.0
"""Seconds that a case waits for an event that must not occur."""
_OF_DIALECT: Final = ("R-PUL-", "R-MED-", "R-SND-03", "R-NAK-02", "R-RTX-02", "W-2", "W-7")
"""Rules on fields that dialects interpret differently: a breach between dialects does not count against a host."""
_SEVERITIES: Final[tuple[tuple[str, Verdict], ...]] = (
    ("violation", "fail"),
    ("deviation", "non-strict"),
    ("note", "info"),
)


@dataclass(frozen=True, slots=True)
class CellOrder:
    """A cell to be played."""

    left: Implementation
    right: Implementation
    case: str
    impairment: str
    seed: int
    configuration: tuple[str, ...] = ()
    """Words that name the configuration on a command line; none if the hosts are simulated."""

    @property
    def name(self) -> str:
        """Name of the cell."""
        return f"{self.left.name}/{self.right.name}/{self.case}/{self.impairment}"

    @property
    def command(self) -> str:
        """Command that plays the cell again."""
        words = ["mxwire", "interop", "--cell", self.name, "--seed", str(self.seed)]
        return shlex.join([*words, *self.configuration])

    def cell(self, verdict: Verdict, reason: str) -> Cell:
        """Return the cell with a verdict."""
        rules = case_by_name(self.case).case.rules
        return Cell(
            self.left.name,
            self.right.name,
            self.case,
            self.impairment,
            self.seed,
            verdict,
            reason,
            rules=rules,
            command=self.command,
        )


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """Result of a case."""

    works: bool
    text: str
    defect: bool = False
    """True if the failure is one of mxwire itself, not of the hosts."""


def casting_of(implementation: Implementation, name: str) -> HostSetup:
    """Return the configuration of a host of mxwire."""
    return HostSetup(name, dialect_of(implementation.dialect), profile_of(implementation))


def play_simulated(order: CellOrder, captures: Path | None = None) -> Cell:
    """Play a cell in virtual time; if ``captures`` is a folder, write the frames there."""
    part = case_by_name(order.case)
    left, right = casting_of(order.left, "left"), casting_of(order.right, "right")
    expected = expected_of(part, left, right)
    testbed = SimulatedTestbed(
        left,
        right,
        treatment_by_name(order.impairment),
        order.seed,
        introduction=part.introduction,
        patience=PATIENCE if expected.expectation == "works" else _IMPATIENCE,
    )
    outcome = perform(part, testbed)
    hosts = HostTable.on(testbed, (left, right))
    findings = breaches_of(testbed.frames, hosts, exact=True, reboots=testbed.reboots, slowest=testbed.slowest)
    return cell_of(order, part, testbed, expected, outcome, hosts, findings, captures)


def perform(part: CaseDefinition, testbed: Testbed) -> CaseOutcome:
    """Perform a case.

    Raises :class:`~mxwire.interop.roles.UnplayableCase` if it cannot be played between these hosts, and
    :class:`~mxwire.errors.MxwireError` if an interface or a program fails, which is not a failure of the hosts.
    """
    try:
        part.play(testbed)
    except UnexpectedResult as unexpected:
        return CaseOutcome(False, str(unexpected))
    except LocalProtocolError as error:
        return CaseOutcome(False, f"a call was refused: {error}")
    except MxwireError:
        raise
    except Exception as error:
        return CaseOutcome(False, f"a defect of mxwire: {type(error).__name__}: {error}", defect=True)
    return CaseOutcome(True, "works")


def cell_of(
    order: CellOrder,
    part: CaseDefinition,
    testbed: Testbed,
    expected: CellExpectation,
    outcome: CaseOutcome,
    hosts: HostTable,
    findings: Sequence[Violation],
    captures: Path | None,
    left_out: Collection[int] = (),
) -> Cell:
    """Return the result of a performed case as a cell.

    ``left_out`` are the numbers of frames that were not judged, because they continue exchanges from before the cell.
    """
    names = {side.address: side.name for side in testbed.sides}
    found = _evidence(part, hosts, findings)
    diagnosis = () if outcome.works else tuple(diagnose(testbed.frames, hosts, testbed.sides, names))
    verdict, reason = _verdict(expected, outcome, found, diagnosis)
    if left_out:
        reason += f"; not judged: {count_of(len(left_out), 'frame')} of exchanges from before this cell"
    log = testbed.events
    events = (*log.lines, f"… and {log.left_out} more") if log.left_out else tuple(log.lines)
    cell = replace(
        order.cell(verdict, reason),
        expectation=expected.expectation,
        expected=expected.text,
        findings=found,
        rules=tuple(dict.fromkeys((*part.case.rules, *(each.rule for each in found)))),
        diagnosis=diagnosis,
        duration_ns=testbed.clock() - testbed.started,
        frames=len(testbed.frames),
        digest=digest(testbed.frames, testbed.started),
        events=events,
    )
    if captures is None:
        return cell
    file = order.name.replace("/", "--") + ".pcapng"
    comment = f"mxwire interop: {order.name}, seed {order.seed}: {verdict}: {reason}"
    texts, whole = comments(testbed.frames, found, left_out), verdict in ("fail", "non-strict")
    write_capture(captures / file, testbed.frames, texts, names, comment, whole=whole)
    return replace(cell, capture=file)


def captures_in(folder: Path) -> Path:
    """Return the folder of captures in the folder of a report; create it if necessary."""
    path = folder / CAPTURES
    create_folder(path)
    return path


def _evidence(part: CaseDefinition, hosts: HostTable, findings: Iterable[Violation]) -> tuple[Violation, ...]:
    """Return the findings that are evidence on the hosts."""
    apart = len({each.dialect for each in hosts.castings.values()} | {hosts.others}) > 1
    return tuple(
        each
        for each in findings
        if each.rule not in part.unseen.split() and not (apart and each.rule.startswith(_OF_DIALECT))
    )


def _verdict(
    expected: CellExpectation, outcome: CaseOutcome, findings: Sequence[Violation], diagnosis: Sequence[str]
) -> tuple[Verdict, str]:
    if outcome.defect:
        return "fail", outcome.text
    if expected.expectation == "works" and not outcome.works:
        return "fail", outcome.text
    if expected.expectation == "fails" and outcome.works:
        return "fail", f"works, though it should not: {expected.text}"
    if not outcome.works and not diagnosis:
        return "non-strict", f"fails as expected, but without a visible cause: {outcome.text}"
    reason = "works" if outcome.works else f"fails as expected: {outcome.text}"
    for severity, verdict in _SEVERITIES:
        of_kind = [each for each in findings if each.severity == severity]
        if of_kind:
            count = f"{len(of_kind)} {severity}" + ("s" if len(of_kind) > 1 else "")
            return verdict, f"{reason}, but {count}: {of_kind[0]}"
    return "pass", reason
