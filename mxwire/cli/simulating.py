"""What ``mxwire simulate`` does: options become scenarios, scenarios run, outcomes are told."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any, Final

import click

from mxwire.cli.progress import bar
from mxwire.errors import MxwireError
from mxwire.protocol import Profile, profile_by_name
from mxwire.report.document import Block, Column, Heading, Listing, Paragraph, Row, Table, show
from mxwire.report.json_line import json_line
from mxwire.simulation import INVARIANTS, RunOutcome, Scenario, Simulation, draw_scenario, shrink
from mxwire.units import MICROSECOND, SECOND
from mxwire.wire.dialect import dialect_by_name

_IN_MICROSECONDS: Final = ("delay", "jitter", "held", "coalescing", "gap")
_LEGEND: Final = (
    "excused: messages not delivered, and not owed, as an application died or a partner was declared dead; incidents: "
    "kills, crashes, pauses, stalls, partitions, filters and MTU changes; steps: events of the simulation; fallen: "
    "breaches of invariants that do not apply to this run; deviations: breaches of rules that only recommend."
)
_FAILURES_SHOWN: Final = 20
_CHUNK: Final = 8


# Options and scenarios


def fixed_by(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a scenario that options fix."""
    fixed = {name: value for name, value in options.items() if value is not None and name != "profile"}
    for name in _IN_MICROSECONDS:
        if name in fixed:
            fixed[name] *= MICROSECOND
    if "dialect" in fixed:
        fixed["dialect"] = dialect_by_name(fixed["dialect"])
    if options.get("profile"):
        fixed["profiles"] = tuple(_profile(each) for each in options["profile"].split(","))
    return fixed


def _profile(text: str) -> Profile:
    name, slash, rate = text.partition("/")
    profile = profile_by_name(name)
    if not slash:
        return profile
    if not rate.isdecimal() or not 1 <= int(rate) <= 10_000:
        raise MxwireError(f"profile {text!r}: a clock has 1 to 10000 ticks a second, for example {name}/250")
    return replace(profile, hz=int(rate))


def scenario_of(seed: int, fixed: Mapping[str, Any]) -> Scenario:
    """A plain scenario with what is fixed."""
    return Scenario(seed, **fixed)


def command_for(scenario: Scenario) -> str:
    """The command that runs a scenario again."""
    words = ["mxwire", "simulate"]
    for name, value in scenario.differences().items():
        option = "--profile" if name == "profiles" else f"--{name.replace('_', '-')}"
        if name == "judged":
            words.append("--judge" if value else "--no-judge")
            continue
        assert isinstance(value, (int, float, str))
        words += [option, str(int(value) // MICROSECOND if name in _IN_MICROSECONDS else value)]
    return shlex.join(words)


# Runs


def run_one(scenario: Scenario, pcap: str | None, at: int | None = None) -> RunOutcome:
    """Run a scenario, with progress on a terminal; what is seen goes to a file if one is named."""
    if at is not None and pcap is None:
        raise MxwireError("--at chooses the host to capture on: say with --pcap where the frames go")
    if at is not None and at >= scenario.hosts:
        raise MxwireError(f"--at {at}: the hosts are 0 to {scenario.hosts - 1}")
    with bar("messages", None) as shown:
        progress = shown.update if shown.shown else None
        if pcap is None:
            return Simulation(scenario, progress=progress).run()
        from mxwire.capture import create_capture

        with create_capture(pcap) as capture:
            return Simulation(scenario, tap=capture.write, progress=progress, at=at).run()


def campaign(seeds: range, jobs: int | None, fixed: dict[str, Any], as_json: bool) -> bool:
    """Run a scenario a seed, in several processes; returns whether any failed."""
    draw_scenario(seeds[0], **fixed)  # what is wrong with the options is said before anything is begun
    digest, sums, failed, virtual, done = sha256(), Counter[str](), list[RunOutcome](), 0, 0
    workers = min(jobs or os.cpu_count() or 1, len(seeds))
    with bar("seeds", len(seeds), streams=as_json) as shown, _outcomes(seeds, fixed, workers) as outcomes:
        for outcome in outcomes:
            done += 1
            virtual += outcome.duration
            digest.update(outcome.digest.encode())
            sums.update(outcome.counts)
            if as_json:
                click.echo(json_line(as_object(outcome)))
            if not outcome.held:
                failed.append(outcome)
            shown.update(done)
    if as_json:
        return bool(failed)
    rows = {"seeds": done, "failed": len(failed), "virtual time": f"{virtual / SECOND:.0f} s", **sums}
    show([_table(rows), Paragraph(_LEGEND), Paragraph(f"digest of all runs {digest.hexdigest()}")])
    if failed:
        show(_failures(failed))
    return bool(failed)


@contextmanager
def _outcomes(seeds: range, fixed: dict[str, Any], workers: int) -> Iterator[Iterator[RunOutcome]]:
    run = partial(_drawn_run, fixed)
    if workers == 1:
        yield map(run, seeds)
        return
    with ProcessPoolExecutor(workers) as pool:
        try:
            yield pool.map(run, seeds, chunksize=_CHUNK)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _drawn_run(fixed: dict[str, Any], seed: int) -> RunOutcome:
    return Simulation(draw_scenario(seed, **fixed)).run()


# What is told


def tell(outcome: RunOutcome, as_json: bool) -> bool:
    """Say how a run ended; returns whether it failed."""
    if as_json:
        click.echo(json_line(as_object(outcome)))
        return not outcome.held
    rows = {"virtual time": f"{outcome.duration / SECOND:.6f} s", **outcome.counts}
    blocks: list[Block] = [_table(rows), Paragraph(_LEGEND), Paragraph(f"digest {outcome.digest}")]
    for why in dict.fromkeys(outcome.fallen.values()):
        names = [name for name, reason in outcome.fallen.items() if reason == why]
        blocks.append(Paragraph(f"not held against the engine, because {why}: {', '.join(names)}"))
    if outcome.held:
        checked = [name for name in INVARIANTS if name not in outcome.fallen]
        blocks.append(Paragraph(f"all {len(checked)} invariants held: {', '.join(checked)}"))
    show(blocks)
    if not outcome.held:
        show(_failures([outcome]))
    return not outcome.held


def as_object(outcome: RunOutcome) -> dict[str, Any]:
    """An outcome for programs."""
    return {
        "seed": outcome.scenario.seed,
        "held": outcome.held,
        "duration_ns": outcome.duration,
        "counts": outcome.counts,
        "digest": outcome.digest,
        "fallen": outcome.fallen,
        "breaches": [
            {"invariant": each.invariant, "time_ns": each.time, "text": each.text} for each in outcome.breaches
        ],
        "scenario": outcome.scenario.differences(),
        "command": command_for(outcome.scenario),
    }


def _table(rows: Mapping[str, Any]) -> Block:
    columns = (Column("property"), Column("value", right=True))
    return Table(columns, tuple(Row((name, str(value))) for name, value in rows.items()))


def _failures(failed: list[RunOutcome]) -> list[Block]:
    """What did not hold, the first of them made smaller."""
    first = shrink(failed[0])
    breach = first.breaches[0]
    invariant = INVARIANTS[breach.invariant]
    rules = f" ({', '.join(invariant.rules)})" if invariant.rules else ""
    blocks: list[Block] = [
        Heading(f"Seed {failed[0].scenario.seed}: {breach.invariant} does not hold"),
        Paragraph(f"{invariant.text}{rules}"),
        Paragraph(str(breach)),
        Paragraph("run it again, made smaller:"),
        Listing((command_for(first.scenario),)),
    ]
    if len(failed) > 1:
        others = tuple(
            f"seed {each.scenario.seed}: {each.breaches[0].invariant}" for each in failed[1 : 1 + _FAILURES_SHOWN]
        )
        blocks += [Heading("Others", 3), Listing(others)]
    return blocks
