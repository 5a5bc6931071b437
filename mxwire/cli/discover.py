"""``mxwire discover``: which hosts are on an Ethernet."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from mxwire.cli.live import Live, live_options, time_option
from mxwire.cli.notes import end_interrupted_line, note
from mxwire.report.json_line import json_line
from mxwire.words import count_of

if TYPE_CHECKING:
    from mxwire.host.survey import Survey, SurveyedHost
    from mxwire.link import Tap

EPILOG = """\b
Columns: address and name; the index that the host gave us in its table; its dialect, with the frame limit
(omx:9000) if frames of a large message of it pass this interface; the shortest time in which it answered a host
query.

\b
Examples:
  mxwire discover -i eth0                     listen and ask for 5 seconds
  mxwire discover -i eth0 --time 60           as long as it takes, a live table on a terminal
  mxwire discover -i eth0 -c 1 --time 600     until a host is there
  mxwire discover -i eth0 --json | jq .name   one JSON object a host
  mxwire discover -i eth0 --quiet             without announcing ourselves: names only of hosts that know us

\b
Hosts that are known beforehand are listed as well, even if nothing is heard of them.
Exit code: 0 if anything was heard of a host, 1 if not, 2 if it cannot work, 130 after Ctrl-C.
"""

BATCHES = 64
"""Batches of frames between other hosts that are examined per round: a busy network must not delay the next round."""


@click.command(epilog=EPILOG)
@live_options
@time_option(5.0, "How many seconds to listen.")
@click.option(
    "-c", "--count", type=click.IntRange(1), metavar="N", help="Stop as soon as so many hosts have told all they can."
)
@click.option(
    "--ask-dialect/--no-ask-dialect",
    default=True,
    help="Find out what hosts speak by a request that they refuse, or do not.  [default: ask]",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a host, a line each, in the end.")
def command(live: Live, seconds: float, count: int | None, ask_dialect: bool, as_json: bool) -> None:
    """Find the hosts on an Ethernet, their names, dialects and answer times.

    We announce ourselves as any host does, unless --quiet: hosts do not answer those they do not know. Hosts are
    asked for their name twice a second.
    """
    from mxwire.host.survey import Survey
    from mxwire.link import Tap

    with live.open(short_frames=True, background=False) as host, Tap.open(live.interface) as tap:
        survey = Survey(host, ask_dialect=ask_dialect)
        interrupted = False
        try:
            _follow(_until(survey, tap, seconds, count, ask_dialect), live_table=sys.stdout.isatty() and not as_json)
        except KeyboardInterrupt:
            interrupted = True
            end_interrupted_line()
        found = survey.hosts()
        _tell(found, as_json)
        there = any(each.heard for each in found)
        if not there:
            frames = host.core.links[0].statistics().received
            note(f"no host was found on {live.interface}: {_why_none(frames)}")
    if interrupted:
        sys.exit(130)
    if not there:
        sys.exit(1)


def _why_none(frames: int) -> str:
    if frames:
        return f"{count_of(frames, 'frame')} came, but none of a host"
    return "no frame came; is another host running there (mxwire serve), and is it the right interface (mxwire doctor)?"


def _until(
    survey: Survey, tap: Tap, seconds: float, count: int | None, ask_dialect: bool
) -> Iterator[list[SurveyedHost]]:
    """Yield the rounds of a survey until the time has passed or enough hosts are known."""
    for _ in survey.rounds(seconds):
        for _ in range(BATCHES):
            if not len(batch := tap.receive(0.0)):
                break
            survey.observe(batch)
        hosts = survey.hosts()
        yield hosts
        known = sum(each.answer_ns is not None and (each.complete or not ask_dialect) for each in hosts)
        if count is not None and known >= count:
            return


def _follow(rounds: Iterator[list[SurveyedHost]], *, live_table: bool) -> None:
    """Ask and listen, on a terminal with a table that grows."""
    if not live_table:
        for _ in rounds:
            pass
        return
    from mxwire.cli.progress import live_display
    from mxwire.report.document import renderable
    from mxwire.report.live import hosts_table

    with live_display() as draw:
        for hosts in rounds:
            draw(renderable(hosts_table([record(each) for each in hosts])))


def _tell(hosts: list[SurveyedHost], as_json: bool) -> None:
    from mxwire.report.document import show
    from mxwire.report.live import hosts_table

    records = [record(each) for each in hosts]
    if as_json:
        for each in records:
            click.echo(json_line(each))
    elif records:
        show([hosts_table(records)])
    sys.stdout.flush()


def record(sighting: SurveyedHost) -> dict[str, Any]:
    """A host as an object for JSON."""
    made = asdict(sighting)
    del made["long_frames"]
    return made | {"remark": _remark(sighting)}


def _remark(sighting: SurveyedHost) -> str | None:
    """What is odd about a host."""
    if not sighting.heard:
        return "nothing was heard of it: it is only known from --peers, or from another process here"
    if sighting.name is None:
        return "has not answered: it does not know us (yet), or is down"
    if sighting.queries and not sighting.answers:
        return "was heard, but does not answer host queries"
    return None
