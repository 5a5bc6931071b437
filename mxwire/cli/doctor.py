"""``mxwire doctor``: can this interface be used, and what is wrong?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from mxwire.cli.live import Live, live_options, time_option
from mxwire.report.json_line import json_line
from mxwire.words import count_of

if TYPE_CHECKING:
    from mxwire.host.doctor import DoctorFinding

EPILOG = """\b
Looked at are: the link and its MTU against what both dialects need; what the driver tells of coalescing,
offloads, rings and flow control; bridges and programs that take frames first; permission; whether frames leave and
arrive; conflicts of addresses and names; and, where other hosts are, whether they answer, speak our dialect, and
are reached by long frames.

\b
Examples:
  mxwire doctor -i eth0
  mxwire doctor -i eth0 --dialect omx:1500     for hosts of another dialect
  mxwire doctor -i eth0 --json | jq 'select(.level != "ok")'

\b
Exit code: 0 if nothing is wrong (warnings may be), 1 if there are problems, of which a missing permission is one,
2 if there is no such interface, 130 after Ctrl-C.
"""
_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


@click.command(epilog=EPILOG)
@live_options
@time_option(4.0, "How many seconds to look for other hosts.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a finding, a line each.")
def command(live: Live, seconds: float, as_json: bool) -> None:
    """Examine an interface, and say what to do about each problem.

    It is a host on the interface for some seconds, and asks others as mxwire discover does.
    """
    from mxwire.host.doctor import DoctorLevel

    levels = []
    for each in _examine(live, seconds):
        levels.append(each.level)
        if as_json:
            click.echo(json_line(asdict(each)))
        else:
            _show(each)
        sys.stdout.flush()
    problems, warnings = levels.count(DoctorLevel.PROBLEM), levels.count(DoctorLevel.WARNING)
    if not as_json:
        told = [count_of(problems, "problem", none="no"), count_of(warnings, "warning", none="no")]
        click.echo(f"{live.interface}: {', '.join(told)}")
    sys.stdout.flush()
    if problems:
        sys.exit(1)


def _examine(live: Live, seconds: float) -> Iterator[DoctorFinding]:
    from mxwire.host.doctor import examine
    from mxwire.wire.dialect import dialect_by_name

    return examine(
        live.interface,
        dialect_by_name(live.dialect or "mxoe"),
        seconds,
        name=live.name,
        profile=live.profile,
        peers=live.peers,
        announce=not live.quiet,
    )


def _show(finding: DoctorFinding) -> None:
    """A line, and what to do below it."""
    from mxwire.report.terminal import is_coloured

    level = click.style(f"{finding.level:8}", fg=_COLOURS[finding.level]) if is_coloured() else finding.level
    click.echo(f"{level:8} {finding.check:12} {finding.text}")
    if finding.advice is not None:
        click.echo(f"{'':8} {'':12} → {finding.advice}")
