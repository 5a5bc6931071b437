"""The report of judged claims: as blocks, as a page of documentation, and the studies that they need."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from mxwire.bench.claims import araki_1998, buntinas_2006, goglin_2011, maccabe_2002, note_2009
from mxwire.bench.claims.claim import OUTCOMES, Check, Claim, ClaimEvidence, ClaimVerdict, Judge, point_term, ratio
from mxwire.bench.record import Recording, read_recordings
from mxwire.errors import MxwireError
from mxwire.report.document import Block, Column, Heading, Listing, Paragraph, Row, Table, markdown
from mxwire.texts import entries, file_text, table_rows
from mxwire.words import count_of, suggestion

TEXTS: Final = {
    "S0": "User space against the kernel (InsideHPC, 2009)",
    "S1": "User-space communication: a quantitative study (Araki and others, 1998)",
    "S2": "High-performance message passing over generic Ethernet with Open-MX (Goglin, 2011)",
    "S3": "Data transfer mechanisms within a node, for MPI (Buntinas, Mercier and Gropp, 2006)",
    "S4": "Application offload, shown by double buffering (Maccabe and others, about 2002)",
}


def _read_checks() -> dict[str, Sequence[Check] | Judge]:
    """The checks by the number of the claim: those of the table, and those of the modules."""
    modules = note_2009, araki_1998, goglin_2011, buntinas_2006, maccabe_2002
    rows: dict[str, list[Check]] = defaultdict(list)
    for heading, (number, name, at, other, other_at, least, most) in table_rows(__file__, "checks.md"):
        term = point_term(heading, name, at)
        term = ratio(term, point_term(heading, other, other_at)) if other else term
        rows[number].append(Check(term, float(least or "-inf"), float(most or "inf")))
    return {**rows, **{number: each for module in modules for number, each in module.CHECKS.items()}}


def _read_claims() -> Iterator[Claim]:
    checks = _read_checks()
    statements = entries(__file__, "claims.toml")
    for number, statement in statements.items():
        yield Claim(number, checks=checks.get(number, ()), **statement)


CLAIMS: Final = tuple(_read_claims())
"""All claims, in the order of the report."""


def judged(evidence: ClaimEvidence, names: Iterable[str] = ()) -> list[tuple[Claim, ClaimVerdict]]:
    """The claims that ``names`` select, with their verdicts. Raises as :func:`selected`."""
    return [(claim, claim.verdict(evidence)) for claim in selected(names)]


def selected(names: Iterable[str] = ()) -> list[Claim]:
    """The claims whose identifiers begin with one of ``names``, or all without names.

    Raises :class:`~mxwire.errors.MxwireError` for a name with which no identifier begins.
    """
    chosen: set[str] = set()
    for each in names:
        name = each.upper()
        found = {claim.number for claim in CLAIMS if f"{claim.number}-".upper().startswith(f"{name}-")}
        if not found:
            known = [claim.number for claim in CLAIMS]
            raise MxwireError(
                f"no claim {each!r}{suggestion(name, [*TEXTS, *known])}: name one, like {known[-1]}, or all of "
                f"a text: {', '.join(TEXTS)}"
            )
        chosen |= found
    return [claim for claim in CLAIMS if not chosen or claim.number in chosen]


def read_evidence(paths: Iterable[Path]) -> ClaimEvidence:
    """The evidence of recorded studies. Raises :class:`~mxwire.bench.record.RecordingError` for other files."""
    return ClaimEvidence([recording for path in paths for recording in read_recordings(path)])


def claim_blocks(found: list[tuple[Claim, ClaimVerdict]]) -> Iterator[Block]:
    """The totals, and per text a table of the verdicts and one of their numbers."""
    totals = Counter(verdict.outcome for _, verdict in found)
    yield Paragraph(", ".join(f"{totals[each]} {each}" for each in OUTCOMES if totals[each]) + ".")
    for text, title in TEXTS.items():
        of_text = [each for each in found if each[0].number.startswith(f"{text}-")]
        if of_text:
            yield Heading(title, 2)
            yield from _tables([each for each in of_text if not _without_numbers(each[1])])
            yield from _not_applicable([each for each in of_text if _without_numbers(each[1])])


def _without_numbers(verdict: ClaimVerdict) -> bool:
    return verdict.outcome == "not applicable" and not verdict.how


def _not_applicable(found: list[tuple[Claim, ClaimVerdict]]) -> Iterator[Block]:
    """Claims without numbers, in a list per reason."""
    reasons: dict[str, list[Claim]] = {}
    for claim, verdict in found:
        reasons.setdefault(verdict.numbers, []).append(claim)
    for reason, listed in reasons.items():
        yield Paragraph(f"Not applicable: {reason}.")
        yield Listing(tuple(f"{claim.number}: {claim.text}" for claim in listed))


def _tables(found: list[tuple[Claim, ClaimVerdict]]) -> Iterator[Block]:
    if not found:
        yield Paragraph("No claim of this text can be judged by these recordings.")
        return
    verdicts, numbers = [], []
    for claim, verdict in found:
        number = f"{claim.number}*" if claim.derived else claim.number
        verdicts.append(Row((number, claim.text, claim.paper or "-", verdict.how, verdict.outcome)))
        # A row per number: those of some claims fill a screen.
        for place, line in enumerate(verdict.lines):
            numbers.append(Row(("" if place else number, line)))
    claims, text = Column("claim", code=True), partial(Column, wraps=True)
    yield Table((claims, text("statement"), text("paper"), Column("how"), Column("verdict")), tuple(verdicts))
    yield Table((claims, text("numbers here")), tuple(numbers))


def conditions_blocks(recordings: list[Recording]) -> Iterator[Block]:
    """The conditions of all recordings, one line each."""
    if not recordings:
        return
    yield Heading("Conditions", 2)
    lines = []
    for each in recordings:
        run = each.conditions
        engine = "compiled" if run.compiled else "interpreted"
        state = "" if each.complete else ", partial"
        lines.append(
            f"{each.study}: {run.testbed}, {run.processor}, {count_of(run.processors, 'processor')}, "
            f"Linux {run.kernel}, Python {run.python}, {engine}, load {run.load:g}, {run.time}{state}"
        )
    yield Listing(tuple(lines))


def page(evidence: ClaimEvidence) -> str:
    """The page of documentation."""
    blocks = [*claim_blocks(judged(evidence)), *conditions_blocks(evidence.recordings)]
    coverage = file_text(__file__, "coverage.md")
    return file_text(__file__, "page.md").format(claims=markdown(blocks), coverage=coverage)
