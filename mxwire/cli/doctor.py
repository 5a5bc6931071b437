"""``mxwire doctor``: checks of an interface, and advice on its problems."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from mxwire.cli.group import Command
from mxwire.cli.live_options import LiveOptions
from mxwire.cli.notes import print_record
from mxwire.cli.option_class import takes
from mxwire.cli.options import duration_option, flag_option, json_option
from mxwire.words import count_of

if TYPE_CHECKING:
    from mxwire.host.doctor import DoctorFinding

_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


@click.command(cls=Command)
@takes(LiveOptions, "via", name="live")
@duration_option(4.0, "Look for other hosts for S seconds.")
@flag_option("Also print a line per host, however many there are.", "-v", "--verbose")
@json_option("JSON Lines: one object per finding and host.")
def command(live: LiveOptions, seconds: float, verbose: bool, as_json: bool) -> None:
    """Examine an interface, and report what to do about each problem.

    It opens a host on the interface for a few seconds, and queries other hosts as mxwire discover does. Findings
    that are the same for more than 3 hosts are one line.
    """
    from mxwire.host.doctor import DoctorLevel, summary

    levels, about_hosts = [], []
    for each in _examine(live, seconds):
        levels.append(each.level)
        if as_json:
            record = asdict(each)
            del record["several"]
            print_record(record)
        elif each.several is None or verbose:
            _print(each)
        else:
            about_hosts.append(each)
    for each in summary(about_hosts):
        _print(each)
    problems, warnings = levels.count(DoctorLevel.PROBLEM), levels.count(DoctorLevel.WARNING)
    if not as_json:
        counts = [count_of(problems, "problem", none="no"), count_of(warnings, "warning", none="no")]
        click.echo(f"{live.interface}: {', '.join(counts)}")
    if problems:
        sys.exit(1)


def _examine(live: LiveOptions, seconds: float) -> Iterator[DoctorFinding]:
    from mxwire.host.doctor import examine
    from mxwire.wire.dialect import dialect_by_name

    return examine(
        live.interface,
        dialect_by_name(live.dialect or "mxoe"),
        seconds,
        name=live.name,
        profile=live.profile,
        peers=live.peers,
        announce=live.announce,
    )


def _print(finding: DoctorFinding) -> None:
    """Print a finding, with its advice below."""
    from mxwire.report.terminal import is_coloured

    level = click.style(f"{finding.level:8}", fg=_COLOURS[finding.level]) if is_coloured() else finding.level
    click.echo(f"{level:8} {finding.check:12} {finding.text}")
    if finding.advice is not None:
        click.echo(f"{'':8} {'':12} → {finding.advice}")
