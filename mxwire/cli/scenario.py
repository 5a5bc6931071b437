"""``mxwire scenario``: short scripts of the frames that a tester sends and the answers that a host must send."""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from mxwire.cli import options as shared
from mxwire.cli.completion import offers, rule_numbers, scenarios
from mxwire.cli.conflicts import conflicts, requires
from mxwire.cli.group import CommandGroup
from mxwire.cli.live_options import MEETING_POINT, LiveOptions
from mxwire.cli.notes import print_record, print_records
from mxwire.cli.option_class import argument, group, option, options_class, takes
from mxwire.cli.option_groups import WorkerOptions
from mxwire.cli.options import host_type
from mxwire.errors import MxwireError
from mxwire.report.document import Paragraph, show, tabulate
from mxwire.report.terminal import is_coloured
from mxwire.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mxwire.analysis.host_names import HostChoice
    from mxwire.capture.writer import CaptureWriter
    from mxwire.scenarios import ScenarioOutcome, ScenarioVerdict, Script
    from mxwire.scenarios.series import SimulatedPlay

_MANY: Final = 24
"""Minimum number of runs for which only failures are printed."""
_MARKS: Final = {"fail": "FAIL", "missing": "MISSING"}


_profile_option = shared.name_option(
    "Implementation to imitate.  [default: open-mx-1.5]", "profile", "--profile", default="open-mx-1.5"
)


@click.group(cls=CommandGroup)
def command() -> None:
    """Play scenarios: short scripts of the frames that a tester sends and the answers that a host must send.

    They are played against the engine, or against any live host.
    """


@command.command(name="list")
@click.argument("names", metavar="[NAME|FILE]...", nargs=-1, shell_complete=scenarios)
@option(
    "Only those that test this rule, or one of these (R-ACK); may be repeated.",
    "--rule NUMBER",
    "rules",
    multiple=True,
    shell_complete=offers(rule_numbers),
)
@shared.json_option("JSON Lines: one object per scenario.")
def list_command(names: tuple[str, ...], rules: tuple[str, ...], as_json: bool) -> None:
    """List names, titles and rules of the library's scenarios, or of those named."""
    from mxwire.report.rules import select
    from mxwire.scenarios.series import scripts_of

    numbers = {rule.number for rule in select(rules)}
    scripts = [each for each in scripts_of(names) if not rules or numbers & set(each.rules)]
    if as_json:
        print_records(map(_record, scripts))
        return
    if not scripts:
        raise MxwireError(f"no scenario tests {' or '.join(rules)}")
    rows = ((each.name, f"{each.title}\n{' '.join(each.rules)}".rstrip()) for each in scripts)
    number = Paragraph(f"{count_of(len(scripts), 'scenario')}; mxwire scenario show NAME shows one.")
    show([tabulate("`name, ~title and rules", rows), number])


@command.command("show")
@click.argument("name", metavar="NAME|FILE", shell_complete=scenarios)
@shared.json_option("One JSON object with the text, title and rules.")
def show_text(name: str, as_json: bool) -> None:
    """Print the text of a scenario."""
    from mxwire.scenarios import load
    from mxwire.scenarios.syntax import coloured

    script = load(name)
    if as_json:
        print_record(_record(script) | {"text": script.text})
        return
    if not is_coloured():
        click.echo(script.text, nl=False)
        return
    for line in script.text.splitlines():
        click.echo(coloured(line, click.style))


@command.command()
@click.argument("names", metavar="[NAME|FILE]...", nargs=-1, shell_complete=scenarios)
@shared.json_option("JSON Lines: one object per scenario.")
def check(names: tuple[str, ...], as_json: bool) -> None:
    """Check the syntax of scenarios: files, folders or names; without any, the whole library. Exit code 2: errors."""
    from mxwire.scenarios.files import load, paths_of

    good = bad = 0
    for path in paths_of(names):
        problem: MxwireError | None = None
        try:
            load(path)
            good += 1
        except MxwireError as error:
            problem, bad = error, bad + 1
        if as_json:
            print_record({"file": str(path), "ok": problem is None, **_problem(problem)})
        elif problem is not None:
            click.echo(str(problem), err=True)
    if not as_json:
        click.echo(f"{count_of(good, 'scenario')} well formed" + (f", {bad} not" if bad else ""))
    if bad:
        sys.exit(2)


@requires("--driver", one_of=("-i",), error="--driver needs -i, the interface that leads to its host")
@requires("-i", one_of=("--target", "--driver"), error="a live host needs both -i and --target")
@requires("--target", one_of=("-i",), error="a live host needs both -i and --target")
@conflicts("--driver", "--target", error="--driver opens the host: omit --target")
@conflicts("-i", "--profile", error="--profile is for the engine: omit it, or -i")
@conflicts("-i", "--on", "--jobs", error="{option} {are} for the engine: a live host is played by this process")
@requires(
    "--key", "--harmful", "--via", one_of=("-i",), error="{option} {are} for a live host: name one with -i and --target"
)
@conflicts("--driver", "--key", error="--key is for --target: a driver reports its own")
@options_class
class ScenarioOptions:
    """The options of mxwire scenario run."""

    names: tuple[str, ...] = argument(metavar="[NAME|FILE]...", nargs=-1, shell_complete=scenarios)
    profile: str = _profile_option
    dialect: str | None = shared.live_dialect_option("Only this dialect.  [default: mxoe, omx:1500 and omx:9000]")
    seed: int | None = shared.integer_option("Random seed.  [default: 0; with -i a new one]", "--seed")
    interface: str | None = shared.interface_option(
        "Play against a live host on this interface; needs --target or --driver."
    )
    via: str = shared.via_option("packet", "xdp")
    target: HostChoice | None = option(
        "The live host, like alpha:0, or an address; with :3 appended, its endpoint 3.", "--target HOST", type=host_type
    )
    key: int = shared.key_option
    driver: str | None = option(
        "Instead of --target: a program that opens hosts; see mxwire scenario host.", "--driver COMMAND"
    )
    harmful: bool = shared.flag_option("Include scenarios that crash real hosts.", "--harmful")
    judge: bool = shared.flag_option("Check all frames of the host against the rules too.", "--judge")
    ladder: bool = shared.flag_option("Draw the frames of each run.", "--ladder")
    write: str | None = option(
        "Write all frames to FILE; .pcapng marks failures.", "-w", "--write FILE", type=shared.FILE
    )
    verbose: bool = shared.flag_option("Also print runs that pass, however many there are.", "-v", "--verbose")
    workers: WorkerOptions = group(WorkerOptions, "checkpoint")
    as_json: bool = shared.json_option("JSON Lines: one object per run.")

    def play_live(self, interface: str, seed: int) -> Iterator[ScenarioOutcome]:
        """Play against a live host, whose driver or address is given."""
        from mxwire.scenarios.series import play_driven, play_live

        if self.driver is not None:
            return play_driven(
                self.names, interface, self.driver, dialect=self.dialect, harmful=self.harmful, seed=seed, via=self.via
            )
        assert self.target is not None
        return play_live(
            self.names,
            interface,
            self.target.host,
            MEETING_POINT if self.target.endpoint is None else self.target.endpoint,
            dialect=self.dialect or "mxoe",
            key=self.key,
            harmful=self.harmful,
            seed=seed,
            via=self.via,
        )


@command.command()
@takes(ScenarioOptions)
def run(options: ScenarioOptions) -> None:
    """Play scenarios against the engine in virtual time: files, folders or names; without any, the whole library.

    With -i and --target they are played against a live host; those that need calls of its application are skipped. The
    application on that host must only receive, as mxwire serve --sink does: the answers of an echo are failures.
    With -i and --driver all are played: a program on the other host makes the calls. In both cases, scenarios that
    crash real hosts need --harmful, and those that send with the host's own address are played last.
    Exit code 1: at least one failed, or the host sent nothing.
    """
    from mxwire.scenarios.series import simulated_plays

    if options.interface is None:
        plays = simulated_plays(options.names, options.profile, options.dialect, options.seed or 0)
        outcomes, seed = _simulated(plays, options.workers), None
    else:
        from mxwire.scenarios.live_run import new_seed

        seed = new_seed() if options.seed is None else options.seed
        outcomes = options.play_live(options.interface, seed)
    if not _report(outcomes, options, seed):
        sys.exit(1)


@command.command()
def highlight() -> None:
    """Print a syntax file for Vim; see the documentation for its installation."""
    from mxwire.scenarios.syntax import vim

    click.echo(vim(), nl=False)


@command.command(name="host")
@shared.interface_option(required=True)
@shared.via_option("packet", "xdp")
@_profile_option
def host_command(interface: str, via: str, profile: str) -> None:
    """Run the host under test for mxwire scenario run --driver, on this or another machine.

    It reads requests from standard input and writes answers to standard output, one JSON object per line. The
    documentation describes them, so that a driver can be written for any other host. It ends with its input.
    """
    from mxwire.link import open_link
    from mxwire.scenarios.local_host import DrivenHost

    LiveOptions(interface).check()
    with closing(DrivenHost(lambda: open_link(interface, via), profile)) as driven:
        for line in sys.stdin:
            try:
                question = json.loads(line)
            except ValueError:
                question = line.strip()
            click.echo(json.dumps(driven.answer(question)))


def _simulated(plays: list[SimulatedPlay], workers: WorkerOptions) -> Iterator[ScenarioOutcome]:
    """The outcomes of plays against the engine; without ``--on`` and ``--jobs`` they run in this process."""
    from mxwire.campaign import FatalPiece
    from mxwire.scenarios.series import SimulatedPlay

    if workers == WorkerOptions():
        workers = WorkerOptions(jobs=1)
    with workers.campaign(len(plays)) as campaign:
        for play, answer in zip(plays, campaign.play(SimulatedPlay.play, plays), strict=True):
            yield play.failed(str(answer)) if isinstance(answer, FatalPiece) else answer


def _record(script: Script) -> dict[str, Any]:
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


def _problem(problem: MxwireError | None) -> dict[str, Any]:
    from mxwire.scenarios import ScriptError

    if not isinstance(problem, ScriptError) or problem.place is None:
        return {"line": None, "column": None, "error": None if problem is None else str(problem)}
    return {"line": problem.place.line, "column": problem.place.column, "error": problem.reason}


# Reports


def _report(outcomes: Iterable[ScenarioOutcome], options: ScenarioOptions, seed: int | None) -> bool:
    """Print outcomes as they come, after the ``seed`` of a live run; return True if none failed."""
    from mxwire.capture import CaptureWriter, create_capture
    from mxwire.scenarios import ScenarioVerdict

    counts: Counter[ScenarioVerdict] = Counter()
    printed = 0
    with create_capture(options.write) if options.write else nullcontext() as capture:
        for each in outcomes:
            outcome = _judged(each) if options.judge else each
            counts[outcome.verdict] += 1
            if isinstance(capture, CaptureWriter):
                _write(capture, outcome)
            if options.as_json:
                print_record(outcome.as_object())
                continue
            if not printed and seed is not None:
                click.echo(f"seed {seed} (the same command with --seed {seed} repeats this run)")
            printed += 1
            _print(outcome, options, seed, few=printed <= _MANY)
            if printed == _MANY + 1 and not (options.verbose or options.ladder):
                click.echo("… from here on only failures (-v prints all runs)")
    if not options.as_json:
        click.echo(_summary(counts))
    return not (counts[ScenarioVerdict.FAIL] or counts[ScenarioVerdict.MISSING])


def _print(outcome: ScenarioOutcome, options: ScenarioOptions, seed: int | None, *, few: bool) -> None:
    from mxwire.report.ladder import exchange_lines
    from mxwire.scenarios import ScenarioVerdict
    from mxwire.wire.dialect import dialect_by_name

    misleading = seed is not None and outcome.script.forges_source
    well = outcome.verdict in (ScenarioVerdict.PASS, ScenarioVerdict.INFO, ScenarioVerdict.SKIPPED) and not misleading
    if not (options.verbose or options.ladder or few or not well):
        return
    click.echo(_line(outcome))
    for text in _explanation(outcome):
        click.echo(f"    {text}")
    if options.ladder and len(outcome.frames):
        click.echo()
        names = ("tester", "host")
        dialect = dialect_by_name(outcome.dialect)
        for line in exchange_lines(
            outcome.frames, outcome.sent.tolist(), dialect, names=names, marked=outcome.failed_frame
        ):
            click.echo(line)
        click.echo()


def _judged(outcome: ScenarioOutcome) -> ScenarioOutcome:
    """Add the rules that the host breaks to an outcome."""
    from mxwire.scenarios import Remark, ScenarioVerdict
    from mxwire.scenarios.breaches import breaches
    from mxwire.wire.dialect import dialect_by_name

    violations = breaches(outcome, dialect_by_name(outcome.dialect))
    remarks = tuple(
        Remark(0, f"frame {each.frames[-1]} breaks {each.rule}: {each.found}, expected {each.expected}")
        for each in violations
    )
    failed = outcome.passed and any(each.severity == "violation" for each in violations)
    verdict = ScenarioVerdict.FAIL if failed else outcome.verdict
    broken = dict.fromkeys(each.rule for each in violations)
    reason = f"in addition, the host breaks {' and '.join(broken)}" if failed else outcome.reason
    return replace(outcome, verdict=verdict, reason=reason, remarks=(*outcome.remarks, *remarks))


def _line(outcome: ScenarioOutcome) -> str:
    mark = _MARKS.get(outcome.verdict.value, outcome.verdict.value)
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
    if outcome.counted and not outcome.passed:
        counted = ", ".join(f"{name} {count}" for name, count in outcome.counted.items())
        yield f"dropped   by the host under test, which counted {counted}"
    if (closed := _closed_endpoint(outcome)) is not None:
        yield f"its endpoint {closed} is not open: name an open one, like --target alpha:0:3"
    for each in outcome.remarks:
        yield f"line {each.line}: {each.text}" if each.line else each.text


def _closed_endpoint(outcome: ScenarioOutcome) -> int | None:
    """The endpoint of a live host, if the outcome failed because it is closed."""
    from mxwire.wire.codec import codec_of
    from mxwire.wire.dialect import dialect_by_name
    from mxwire.wire.enums import NackType
    from mxwire.wire.packets import NackLib

    if outcome.profile or outcome.failed_frame is None:
        return None
    frame = codec_of(dialect_by_name(outcome.dialect)).parse(outcome.frames.frame(outcome.failed_frame))
    if isinstance(frame, NackLib) and frame.nack_type == NackType.ENDPT_CLOSED:
        return frame.src_endpoint
    return None


def _summary(counts: Counter[ScenarioVerdict]) -> str:
    from mxwire.scenarios import ScenarioVerdict

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
