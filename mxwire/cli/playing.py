"""What ``mxwire scenario`` does, and ``mxwire replay`` with a scenario: scenarios are found, played and told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import click

from mxwire.capture import create_capture
from mxwire.capture.writer import CaptureWriter
from mxwire.errors import MxwireError
from mxwire.protocol import profile_by_name
from mxwire.report.document import Column, Paragraph, Row, Table, show
from mxwire.report.exchange import exchange_lines
from mxwire.report.json_line import json_line
from mxwire.report.terminal import is_coloured
from mxwire.rules.catalogue import CATALOGUE
from mxwire.scenarios import Remark, ScenarioOutcome, ScenarioVerdict, Script, ScriptError, load, run_simulated
from mxwire.scenarios.errors import suggestion
from mxwire.scenarios.files import paths_of
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import dialect_by_name
from mxwire.wire.enums import NackType
from mxwire.wire.packets import NackLib
from mxwire.words import count_of

if TYPE_CHECKING:
    pass

_MANY: Final = 24
"""From so many runs on only those are told that are not well."""
_MARKS: Final = {ScenarioVerdict.FAIL: "FAIL", ScenarioVerdict.MISSING: "MISSING"}


# Finding


def scripts_of(names: Iterable[str]) -> Iterator[Script]:
    """The scenarios that a user names: files, folders, names and folders of the library; without any, all of it."""
    for path in paths_of(names):
        yield load(path)


def tell_list(names: tuple[str, ...], rules: tuple[str, ...], as_json: bool) -> None:
    """Say which scenarios there are."""
    for rule in rules:
        if rule not in CATALOGUE:
            raise MxwireError(f"no rule {rule}{suggestion(rule, CATALOGUE)} (mxwire rules lists them)")
    found = [each for each in scripts_of(names) if not rules or set(rules) & set(each.rules)]
    if as_json:
        for each in found:
            click.echo(json_line(_as_object(each)))
        return
    if not found:
        raise MxwireError(f"no scenario is about {' or '.join(rules)}")
    columns = (Column("name", code=True), Column("title and rules", wraps=True))
    rows = tuple(Row((each.name, f"{each.title}\n{' '.join(each.rules)}".rstrip())) for each in found)
    show([Table(columns, rows), Paragraph(f"{count_of(len(found), 'scenario')}; mxwire scenario show NAME shows one.")])


def _as_object(script: Script) -> dict[str, Any]:
    return {
        "name": script.name,
        "file": script.file,
        "title": script.title,
        "about": script.about,
        "history": script.history,
        "rules": list(script.rules),
        "dialects": list(script.dialects),
        "needs_application": script.needs_application,
    }


def tell_text(name: str, as_json: bool) -> None:
    """Show the text of a scenario, in colours on a terminal."""
    script = load(name)
    if as_json:
        click.echo(json_line(_as_object(script) | {"text": script.text}))
        return
    if not is_coloured():
        click.echo(script.text, nl=False)
        return
    from mxwire.cli.colouring import coloured

    for line in script.text.splitlines():
        click.echo(coloured(line))


def tell_check(names: tuple[str, ...], as_json: bool) -> bool:
    """Read scenarios, and say what is wrong; whether nothing is."""
    good = bad = 0
    for path in paths_of(names):
        problem: MxwireError | None = None
        try:
            load(path)
            good += 1
        except MxwireError as error:
            problem, bad = error, bad + 1
        if as_json:
            click.echo(json_line({"file": str(path), "ok": problem is None, **_problem(problem)}))
        elif problem is not None:
            click.echo(str(problem), err=True)
    if not as_json:
        click.echo(f"{count_of(good, 'scenario')} well formed" + (f", {bad} not" if bad else ""))
    return not bad


def _problem(problem: MxwireError | None) -> dict[str, Any]:
    if not isinstance(problem, ScriptError) or problem.place is None:
        return {"line": None, "column": None, "error": None if problem is None else str(problem)}
    return {"line": problem.place.line, "column": problem.place.column, "error": problem.reason}


# Playing


def simulate(names: tuple[str, ...], profile: str, dialect: str | None, seed: int) -> Iterator[ScenarioOutcome]:
    """Play scenarios against the engine, in one dialect or all that the library is tried in."""
    chosen = profile_by_name(profile)
    only = None if dialect is None else dialect_by_name(dialect)
    for script in list(scripts_of(names)):
        for each in script.played_in() if only is None else (only,):
            yield run_simulated(script, chosen, each, seed)


# Telling


@dataclass(frozen=True, slots=True)
class Telling:
    """How outcomes are told."""

    as_json: bool = False
    ladder: bool = False
    judge: bool = False
    """Hold all frames of the host against the rules besides; who breaks one has failed."""
    verbose: bool = False
    write: str | None = None
    seed: int | None = None
    """Where the endpoint numbers and sessions of a live run come from; printed before the outcomes."""

    def tell(self, outcomes: Iterable[ScenarioOutcome]) -> bool:
        """Tell them as they come; whether none has failed."""
        counts: Counter[ScenarioVerdict] = Counter()
        told = 0
        with create_capture(self.write) if self.write else nullcontext() as capture:
            for each in outcomes:
                outcome = _judged(each) if self.judge else each
                counts[outcome.verdict] += 1
                if isinstance(capture, CaptureWriter):
                    _write(capture, outcome)
                if self.as_json:
                    click.echo(json_line(outcome.as_object()))
                    continue
                if not told and self.seed is not None:
                    click.echo(f"seed {self.seed} (mxwire scenario run --seed {self.seed} repeats this run)")
                told += 1
                self._tell(outcome, few=told <= _MANY)
                if told == _MANY + 1 and not (self.verbose or self.ladder):
                    click.echo("… from here on only what is not well (-v tells of all)")
        if not self.as_json:
            click.echo(_summary(counts))
        return not (counts[ScenarioVerdict.FAIL] or counts[ScenarioVerdict.MISSING])

    def _tell(self, outcome: ScenarioOutcome, *, few: bool) -> None:
        misleading = self.seed is not None and outcome.script.forges_source
        well = (
            outcome.verdict in (ScenarioVerdict.PASS, ScenarioVerdict.INFO, ScenarioVerdict.SKIPPED) and not misleading
        )
        if not (self.verbose or self.ladder or few or not well):
            return
        click.echo(_line(outcome))
        for text in _explanation(outcome):
            click.echo(f"    {text}")
        if self.ladder and len(outcome.frames):
            click.echo()
            names = ("tester", "host")
            dialect = dialect_by_name(outcome.dialect)
            for line in exchange_lines(
                outcome.frames, outcome.sent.tolist(), dialect, names=names, marked=outcome.failed_frame
            ):
                click.echo(line)
            click.echo()


def _judged(outcome: ScenarioOutcome) -> ScenarioOutcome:
    """An outcome with the rules that the host has broken besides."""
    from mxwire.scenarios.judge import breaches

    found = breaches(outcome, dialect_by_name(outcome.dialect))
    remarks = tuple(
        Remark(0, f"frame {each.frames[-1]} breaks {each.rule}: {each.found}, expected {each.expected}")
        for each in found
    )
    failed = outcome.passed and any(each.severity == "violation" for each in found)
    verdict = ScenarioVerdict.FAIL if failed else outcome.verdict
    broken = dict.fromkeys(each.rule for each in found)
    reason = f"besides, the host breaks {' and '.join(broken)}" if failed else outcome.reason
    return replace(outcome, verdict=verdict, reason=reason, remarks=(*outcome.remarks, *remarks))


def _line(outcome: ScenarioOutcome) -> str:
    mark = _MARKS.get(outcome.verdict, outcome.verdict.value)
    return f"{mark:10}  {outcome.script.name} ({outcome.dialect}): {outcome.script.title}"


def _explanation(outcome: ScenarioOutcome) -> Iterator[str]:
    if outcome.reason:
        place = f"{outcome.script.file}:{outcome.line}: " if outcome.line else ""
        yield f"{place}{outcome.reason}"
    if outcome.line:
        yield f"  {outcome.script.text.splitlines()[outcome.line - 1].strip()}"
    if outcome.expected:
        yield f"expected  {outcome.expected}"
    if outcome.found:
        yield f"found     {outcome.found}"
    if outcome.line and outcome.script.rules:
        yield f"rules     {' '.join(outcome.script.rules)}"
    if (closed := _closed_endpoint(outcome)) is not None:
        yield f"its endpoint {closed} is not open: name one that is, with the host, like --host alpha:0:3"
    for each in outcome.remarks:
        yield f"line {each.line}: {each.text}" if each.line else each.text


def _closed_endpoint(outcome: ScenarioOutcome) -> int | None:
    """The endpoint of a live host that scenarios were played to, if it failed for being closed."""
    if outcome.profile or outcome.failed_frame is None:
        return None
    frame = codec_of(dialect_by_name(outcome.dialect)).parse(outcome.frames.frame(outcome.failed_frame))
    if isinstance(frame, NackLib) and frame.nack_type == NackType.ENDPT_CLOSED:
        return frame.src_endpoint
    return None


def _summary(counts: Counter[ScenarioVerdict]) -> str:
    parts = [f"{counts[each]} {each.value}" for each in ScenarioVerdict if counts[each]]
    return f"{count_of(sum(counts.values()), 'run')}: {', '.join(parts)}" if parts else "nothing was played"


def _write(capture: CaptureWriter, outcome: ScenarioOutcome) -> None:
    """Write the frames of an outcome; in pcapng, with a comment on the frame that failed."""
    frames = outcome.frames
    comments = {}
    if outcome.failed_frame is not None and capture.comments_allowed:
        comments[int(frames.number[outcome.failed_frame])] = f"{outcome.script.name}: {outcome.reason}"
    if len(frames):
        capture.write(frames, comments)
