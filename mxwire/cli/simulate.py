"""``mxwire simulate``: hosts in a network with faults, in virtual time, and checks of invariants."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import click

from mxwire.cli import options as shared
from mxwire.cli.conflicts import conflicts, requires
from mxwire.cli.group import Command
from mxwire.cli.notes import print_record, wrote
from mxwire.cli.option_class import option, takes
from mxwire.cli.option_groups import WorkerOptions
from mxwire.cli.progress import bar
from mxwire.errors import OptionError
from mxwire.report.document import Block, Column, Heading, Listing, Paragraph, number_columns, show, tabulate
from mxwire.report.terminal import terminal_width
from mxwire.units import MICROSECOND, SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from mxwire.analysis.table_file import RecordTable
    from mxwire.campaign import Campaign
    from mxwire.protocol import Profile
    from mxwire.simulation import ExhaustivePlay, RunOutcome, Scenario
    from mxwire.simulation.exhaustive import PlayedPlan
    from mxwire.simulation.faults import Plan

_LEGEND: Final = (
    "excused: messages not delivered, and not owed, as an application died or a partner was declared dead; incidents: "
    "kills, crashes, pauses, stalls, partitions, filters and MTU changes; steps: events of the simulation; unchecked: "
    "breaches of invariants that need not hold in this run; deviations: breaches of rules that only recommend."
)
_EXHAUSTIVE_LEGEND: Final = (
    "played: plans of faults, each run from the beginning and checked for all invariants; pruned: plans that were not "
    "played, as another one leads to the same state before its last fault; states: different states before a step of "
    "the runs that were extended by one more fault."
)
_FAILURES_SHOWN: Final = 20


def _seeds(value: str) -> range:
    """An option type: ``0-9999``, or one number."""
    first, dash, last = value.partition("-")
    if not first.isdecimal() or not (last.isdecimal() if dash else not last):
        raise click.BadParameter(f"{value!r} is not a range of seeds: write 0-9999, or one number")
    seeds = range(int(first), int(last or first) + 1)
    if not seeds:
        raise click.BadParameter(f"{value!r} ends before it starts")
    return seeds


def _plan(value: str) -> Plan:
    """An option type: ``lose@7,die:1@31``, a plan of faults."""
    from mxwire.simulation.faults import parse_plan

    return parse_plan(value)


def _rate(name: str, text: str) -> shared.Decorator:
    return option(text, f"--{name} P", type=shared.Amount(0, 1, max_open=True))


def _count(name: str, text: str) -> shared.Decorator:
    return shared.integer_option(text, f"--{name}", most=100)


def _microseconds(name: str, text: str) -> shared.Decorator:
    return shared.integer_option(text, f"--{name} US", most=10**9)


@click.command(cls=Command)
@shared.integer_option("Random seed.  [default: 0]", "--seed")
@option("Campaign: one run per seed, each with its own faults.", "--seeds A-B", type=_seeds)
@takes(WorkerOptions, name="workers")
@shared.table_option
@shared.integer_option("Hosts, 1 to 8; 1 needs --processes.  [default: 2]", "--hosts", least=1, most=8)
@shared.integer_option("Messages.  [default: 100]", "--messages", least=1)
@shared.name_option("Exchanged messages; see above.  [default: all-to-all]", "workload", "--workload")
@shared.live_dialect_option("Dialect of the hosts.  [default: mxoe]")
@shared.name_option(
    "Implementations to imitate, by the hosts in turn; see above.  [default: open-mx]",
    "profile",
    "--profile NAME[/HZ],…",
    listed=True,
)
@shared.integer_option("Applications per host.  [default: 1]", "--processes", least=1, most=4)
@shared.name_option(
    "Path between the applications of a host: a shared engine (shared), or engines of their own with a channel that "
    "copies long messages once (one-copy) or twice (two-copies).  [default: shared]",
    "local path",
    "--local",
)
@shared.integer_option("Interfaces per host.  [default: 1]", "--interfaces", least=1, most=4)
@shared.name_option("Discovery of hosts: static, nameless or announce.  [default: static]", "discovery", "--discovery")
@shared.integer_option("Longest message.  [default: 1048576]", "--largest BYTES")
@shared.integer_option("Retransmissions until a partner is abandoned.", "--resend-maximum", least=1)
@option("Faults at given frames and steps: lose@7,die:1@31.", "--faults PLAN", type=_plan)
@shared.integer_option(
    "Play every plan of up to this many faults of a small workload, or of all of them.", "--exhaustive", least=1, most=4
)
@_rate("loss", "Share of frames that are lost, 0 to 1.")
@_rate("duplicate", "Share of frames that are duplicated.")
@_rate("reorder", "Share of frames that are held back.")
@_rate("corrupt", "Share of frames that are damaged and fail the frame check.")
@_rate("tamper", "Share of frames with changed bytes that pass the frame check.")
@_microseconds("delay", "Transit time of a frame, in microseconds.")
@_microseconds("jitter", "Largest random addition to the delay.")
@_microseconds("held", "Time by which reordered frames and duplicates are held back.")
@_microseconds("coalescing", "Interval whose frames are delivered together.")
@_microseconds("gap", "Time that applications wait between two calls.")
@_count("kill", "Applications that die, and restart.")
@_count("crash", "Hosts that lose power, and restart.")
@_count("pause", "Hosts whose libraries pause for a while.")
@_count("stall", "Applications that make no calls for a while.")
@_count("partition", "Periods in which one host cannot reach another.")
@_count("filter", "Periods in which a packet type is dropped.")
@_count("mtu", "Periods in which long frames do not pass.")
@option("Check all frames against the rules, or do not.", "--judge/--no-judge", "judged", default=None)
@option("Write all frames to a capture file.", "--pcap FILE", type=click.Path())
@shared.integer_option("With --pcap: only frames that this host sends or receives.", "--at HOST")
@shared.json_option("JSON Lines: one object per run.")
@conflicts(
    "--exhaustive",
    "--seeds",
    "--faults",
    "--pcap",
    "--at",
    error="--exhaustive plans the faults of all runs: use it without --seeds, --faults, --pcap and --at",
)
@requires(
    "--to",
    "--on",
    "--checkpoint",
    one_of=("--seeds", "--exhaustive"),
    error="--to, --on and --checkpoint are for many runs: add --seeds or --exhaustive",
)
@conflicts("--seeds", "--seed", "--pcap", error="--seeds starts many runs: use it without --seed and --pcap")
@requires("--at", one_of=("--pcap",), error="--at chooses the host to capture on: name the file with --pcap")
def command(
    seed: int | None,
    seeds: range | None,
    workers: WorkerOptions,
    target: Path | None,
    pcap: str | None,
    at: int | None,
    as_json: bool,
    exhaustive: int | None,
    **options: Any,
) -> None:
    """Run hosts in a simulated network, and check invariants.

    The seed determines how applications connect, send and receive, which frames are lost, and when applications die.
    The same options and version give the same frames and the same digest on any machine. A campaign draws, for each
    seed, the settings that no option fixes; the first failed run is reduced before it is shown. Exit code 1: an
    invariant was violated.

    Profiles: open-mx (the newest without its defects), open-mx-1.5-as-found, open-mx-1.1, open-mx-1.0, open-mx-0.6,
    open-mx-0.5, native-mx; with /HZ appended, the ticks of the host's clock per second.

    Workloads: ping-pong, stream, many-to-one, all-to-all, same-host (between the applications of each host); and small
    ones of one to three messages: tiny, small, medium, large, synchronous, handled (by the unexpected handler),
    overlapping (two that match the same receives), pair (two large ones), exchange (one in each direction), crossing
    (a medium and a large one, in opposite directions), train (tiny, medium, large).

    Faults of --faults and --exhaustive: lose, double, swap (delayed behind its burst), delay (by 2 ms) and echo
    (arrives again after 2 ms), each @FRAME; pause (no calls for 1.5 s) and die (killed, and restarted), each
    :APPLICATION@STEP. --exhaustive plays them all, at every frame and step, and omits a plan where another one has led
    to the same state.
    """
    from mxwire.simulation import Scenario

    fixed = fixed_by(options)
    if exhaustive is not None:
        failed = _exhaust(exhaustive, workers, seed or 0, fixed, target, as_json)
    elif seeds is None:
        outcome = _run(Scenario(seed or 0, **fixed), pcap, at)
        failed = _report(outcome, as_json)
    else:
        failed = _campaign(seeds, workers, fixed, target, as_json)
    if failed:
        sys.exit(1)


# Options and scenarios


def fixed_by(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a scenario that options fix."""
    from mxwire.simulation.scenario import IN_MICROSECONDS
    from mxwire.wire.dialect import dialect_by_name

    fixed = {name: value for name, value in options.items() if value is not None and name != "profile"}
    for name in IN_MICROSECONDS:
        if name in fixed:
            fixed[name] *= MICROSECOND
    if "dialect" in fixed:
        fixed["dialect"] = dialect_by_name(fixed["dialect"])
    if options.get("profile"):
        fixed["profiles"] = tuple(_profile(each) for each in options["profile"].split(","))
    return fixed


def _profile(text: str) -> Profile:
    from mxwire.protocol import profile_by_name

    name, slash, rate = text.partition("/")
    profile = profile_by_name(name)
    if not slash:
        return profile
    if not rate.isdecimal() or not 1 <= int(rate) <= 10_000:
        raise OptionError(f"profile {text!r}: a clock has 1 to 10000 ticks per second, for example {name}/250")
    return replace(profile, hz=int(rate))


# Runs


def _run(scenario: Scenario, pcap: str | None, at: int | None = None) -> RunOutcome:
    """Run a scenario, with progress on a terminal; its frames go to the file ``pcap``."""
    from mxwire.simulation import Simulation

    if at is not None and at >= scenario.hosts:
        raise OptionError(f"--at {at}: the hosts are 0 to {scenario.hosts - 1}")
    with bar("messages", None) as shown:
        progress = shown.update if shown.shown else None
        if pcap is None:
            return Simulation(scenario, progress=progress).run()
        from mxwire.capture import create_capture
        from mxwire.frames import LINKTYPE_ETHERNET

        with create_capture(pcap) as capture:
            simulation = Simulation(scenario, tap=capture.write, progress=progress, at=at)
            capture.begin(LINKTYPE_ETHERNET)
            if capture.comments_allowed:
                capture.write_names({each: simulation.world.name_of(each) for each in simulation.world.addresses})
            return simulation.run()


def _campaign(seeds: range, workers: WorkerOptions, fixed: dict[str, Any], target: Path | None, as_json: bool) -> bool:
    """Run one scenario per seed, by several workers; return True if any failed."""
    from mxwire.campaign.checkpoint import AnswerCodec
    from mxwire.simulation import RunOutcome, draw_scenario

    # Build one scenario here to report errors in the options before any process starts.
    draw_scenario(seeds[0], **fixed)
    digest, sums, virtual = sha256(), Counter[str](), 0
    failed: list[RunOutcome] = []
    codec = AnswerCodec(RunOutcome.values, lambda values, seed: RunOutcome.of(draw_scenario(seed, **fixed), values))
    with (
        _rows(target) as table,
        bar("seeds", len(seeds), streams=as_json) as shown,
        workers.campaign(len(seeds)) as campaign,
    ):
        answers = campaign.play(partial(_drawn_run, fixed), seeds, codec=codec, finished=shown.update)
        # In the order of the seeds, on which the digest depends, not in that of the workers.
        for seed, answer in zip(seeds, answers, strict=True):
            if isinstance(answer, RunOutcome):
                outcome = answer
            else:
                outcome = RunOutcome.fatal(draw_scenario(seed, **fixed), str(answer))
            virtual += outcome.duration
            digest.update(outcome.digest.encode())
            sums.update(outcome.counts)
            if as_json:
                print_record(outcome.record())
            if table is not None:
                table.add(_row(outcome))
            if not outcome.held:
                failed.append(outcome)
    if target is not None:
        wrote(len(seeds), "run", target)
    if as_json:
        return bool(failed)
    rows = {"seeds": len(seeds), "failed": len(failed), "virtual time": f"{virtual / SECOND:.0f} s", **sums}
    show(
        [
            tabulate("property, #value", rows.items()),
            Paragraph(_LEGEND),
            Paragraph(f"digest of all runs {digest.hexdigest()}"),
        ]
    )
    if failed:
        show(_failures(failed))
    return bool(failed)


def _drawn_run(fixed: dict[str, Any], seed: int) -> RunOutcome:
    from mxwire.simulation import Simulation, draw_scenario

    return Simulation(draw_scenario(seed, **fixed)).run()


def _exhaust(
    bound: int, workers: WorkerOptions, seed: int, fixed: dict[str, Any], target: Path | None, as_json: bool
) -> bool:
    """Play all plans of the small workloads, or of the workload that the options fix; return True if any failed."""
    from mxwire.simulation import SMALL_WORKLOADS, Scenario
    from mxwire.simulation.exhaustive import ExhaustivePlay

    names = [fixed.pop("workload")] if "workload" in fixed else list(SMALL_WORKLOADS)
    if names[0] not in SMALL_WORKLOADS:
        raise OptionError(
            f"--exhaustive plays small workloads, not {names[0]}: use one of {', '.join(SMALL_WORKLOADS)}"
        )
    plays = [ExhaustivePlay(Scenario(seed, workload=name, **fixed), bound) for name in names]
    with _rows(target) as table, bar("plans", None, streams=as_json) as shown, workers.campaign() as campaign:
        for play in plays:
            for outcome in play.outcomes(partial(_played_plans, campaign)):
                shown.update(sum(each.played for each in plays), sum(each.planned for each in plays))
                if table is not None:
                    table.add(_row(outcome))
            if as_json:
                print_record(play.record())
    if target is not None:
        wrote(sum(each.played for each in plays), "run", target)
    failed = [outcome for play in plays for outcome in play.failed]
    if not as_json:
        unchecked = {name: why for play in plays for name, why in play.unchecked.items()}
        show([_exhaustive_table(plays), Paragraph(_EXHAUSTIVE_LEGEND), *_unchecked(unchecked)])
        if failed:
            show(_failures(failed))
    return bool(failed)


def _played_plans(campaign: Campaign, scenarios: Sequence[Scenario], traced: bool) -> Iterator[PlayedPlan]:
    """Play plans of one number of faults by the workers of a campaign."""
    from mxwire.campaign.checkpoint import AnswerCodec
    from mxwire.simulation import RunOutcome
    from mxwire.simulation.exhaustive import PlayedPlan, play_plan

    section = f"{scenarios[0].workload} {len(scenarios[0].faults)}" if scenarios else ""
    codec = AnswerCodec(PlayedPlan.values, PlayedPlan.of)
    answers = campaign.play(partial(play_plan, traced=traced), scenarios, section=section, codec=codec)
    for scenario, answer in zip(scenarios, answers, strict=True):
        yield answer if isinstance(answer, PlayedPlan) else PlayedPlan(RunOutcome.fatal(scenario, str(answer)))


# Tables

_COLUMNS: Final = (
    "seed:UInt64 workload faults breach breach_text duration_ns:Int64 messages:UInt64 delivered:UInt64 excused:UInt64 "
    "frames:UInt64 frames_lost:UInt64 incidents:UInt64 steps:UInt64 unchecked:UInt64 deviations:UInt64 digest command"
)
"""The columns of ``--to``: one row per run; ``breach`` is the first broken invariant, null if all held."""


def _rows(target: Path | None) -> AbstractContextManager[RecordTable | None]:
    """The table of ``--to``, if it is given."""
    from mxwire.analysis.table_file import RecordTable

    return nullcontext() if target is None else RecordTable(target, _COLUMNS)


def _row(outcome: RunOutcome) -> dict[str, Any]:
    """The values of ``_COLUMNS``; missing values are null."""
    from mxwire.simulation.faults import plan_text

    scenario, breach = outcome.scenario, outcome.breaches[0] if outcome.breaches else None
    return {
        "seed": scenario.seed,
        "workload": scenario.workload,
        "faults": plan_text(scenario.faults),
        "breach": None if breach is None else breach.invariant,
        "breach_text": None if breach is None else breach.text,
        "duration_ns": outcome.duration,
        **{name.replace(" ", "_"): value for name, value in outcome.counts.items()},
        "digest": outcome.digest,
        "command": scenario.command(),
    }


# Reports


def _report(outcome: RunOutcome, as_json: bool) -> bool:
    """Print the outcome of a run; return True if it failed."""
    from mxwire.simulation import INVARIANTS

    if as_json:
        print_record(outcome.record())
        return not outcome.held
    rows = {"virtual time": f"{outcome.duration / SECOND:.6f} s", **outcome.counts}
    blocks: list[Block] = [
        tabulate("property, #value", rows.items()),
        Paragraph(_LEGEND),
        Paragraph(f"digest {outcome.digest}"),
    ]
    blocks += _unchecked(outcome.unchecked)
    if outcome.held:
        checked = [name for name in INVARIANTS if name not in outcome.unchecked]
        blocks.append(Paragraph(f"all {len(checked)} invariants held: {', '.join(checked)}"))
    show(blocks)
    if not outcome.held:
        show(_failures([outcome]))
    return not outcome.held


def _unchecked(unchecked: Mapping[str, str]) -> list[Block]:
    """The invariants and rules that need not hold, by reason."""
    return [
        Paragraph(
            f"not checked against the engine, because {why}: "
            f"{', '.join(name for name, reason in unchecked.items() if reason == why)}"
        )
        for why in dict.fromkeys(unchecked.values())
    ]


def _exhaustive_table(plays: list[ExhaustivePlay]) -> Block:
    """The table of exhaustive plays, one row per workload; digests wrap on a terminal, not in pipes."""
    counts = number_columns("played", "pruned", "states", "failed")
    rows = (
        (each.scenario.workload, each.played, each.pruned, each.states, len(each.failed), each.digest) for each in plays
    )
    digest = Column("digest of all runs", wraps=terminal_width() is not None)
    return tabulate((Column("workload"), *counts, digest), rows)


def _failures(failed: list[RunOutcome]) -> list[Block]:
    """The violated invariants; the first failed run is reduced."""
    from mxwire.simulation import INVARIANTS, shrink

    # A run without a digest would end this process as well, so it is not reduced.
    first = shrink(failed[0]) if failed[0].digest else failed[0]
    breach = first.breaches[0]
    invariant = INVARIANTS[breach.invariant]
    rules = f" ({', '.join(invariant.rules)})" if invariant.rules else ""
    blocks: list[Block] = [
        Heading(f"Seed {failed[0].scenario.seed}: {breach.invariant} does not hold"),
        Paragraph(f"{invariant.text}{rules}"),
        Paragraph(str(breach)),
        Paragraph("repeat it, reduced, with:" if first is not failed[0] else "repeat it with:"),
        Listing((first.scenario.command(),)),
    ]
    if len(failed) > 1:
        others = tuple(
            f"seed {each.scenario.seed}: {each.breaches[0].invariant}" for each in failed[1 : 1 + _FAILURES_SHOWN]
        )
        blocks += [Heading("Others", 3), Listing(others)]
    return blocks
